"""Performs plans once each, with nothing but the candidate's kernels: what compute-sanitizer watches.

Every buffer is an allocation of exactly its size, nothing but the inputs is ever written from outside, and no
kernel of the harness is launched: what the tools find is the candidate's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kernelwright.core.case import ITEM_BYTES
from kernelwright.core.errors import ProblemError
from kernelwright.core.launch import ResolvedPlan, ScratchSpec
from kernelwright.devices.base import Array, Buffer
from kernelwright.devices.cuda.casedata import buffer_bytes
from kernelwright.devices.cuda.driver import CudaError, Driver
from kernelwright.devices.cuda.facts import read_facts
from kernelwright.devices.cuda.module import Module
from kernelwright.devices.cuda.operations import CandidateFailed, LaunchRefused, Operation, enqueue

GAP: Final = 64 * 1024
"""Bytes without an owner between two buffers: what runs over the end of one is not in the next."""


@dataclass(frozen=True)
class OnceLook:
    """A plan on one case, and that case's buffers with data for the inputs.

    ``inputs`` is called when the device is ready: they are drawn while its context is made.
    """

    case: str
    plan: ResolvedPlan
    buffers: Sequence[Buffer]
    inputs: Callable[[], Mapping[str, Array]]


def perform_once(
    ordinal: int, cubin: bytes, looks: Sequence[OnceLook], loaded: Callable[[Mapping[str, int]], None]
) -> str:
    """Run each plan once, in turn; why it could not be done, empty when it was.

    ``loaded`` hears the buffers' addresses before the first launch; those of later looks are named with their case.
    Raises MissingError without a device, ProblemError for inputs that do not fit the buffers, CudaError when the
    driver fails before the launches.
    """
    driver = Driver(ordinal)
    held: dict[str, int] = {}
    work: list[Sequence[Operation]] = []
    try:
        module = Module(driver, read_facts(driver), cubin)
        for look in looks:
            pointers = _allocate(driver, _sizes(look.buffers, look.plan.scratch))
            _upload(driver, look, pointers)
            work.append(module.launches(look.plan, pointers))
            held |= {f"{name} of {look.case}" if work[1:] else name: at for name, at in pointers.items()}
    except CandidateFailed as failure:
        return failure.reason
    loaded(held)
    try:
        for launches in work:
            enqueue(launches)
            driver.synchronize()
    except LaunchRefused as error:
        return str(error) if error.sticky else module.refusal(error).reason
    except CudaError as error:
        return f"the kernels crashed: {error.name}"
    return ""


def _sizes(buffers: Sequence[Buffer], scratch: Sequence[ScratchSpec]) -> dict[str, int]:
    sizes = {buffer.name: buffer_bytes(buffer) for buffer in buffers}
    return sizes | {entry.name: entry.elements * ITEM_BYTES[entry.dtype] for entry in scratch}


def _allocate(driver: Driver, sizes: Mapping[str, int]) -> dict[str, int]:
    """An allocation of its own for each buffer; the gaps between them are given back, so they belong to nobody."""
    pointers: dict[str, int] = {}
    gaps: list[int] = []
    for name, nbytes in sizes.items():
        pointers[name] = driver.allocate(nbytes)
        gaps.append(driver.allocate(GAP))
    for gap in gaps:
        driver.free(gap)
    return pointers


def _upload(driver: Driver, look: OnceLook, pointers: Mapping[str, int]) -> None:
    inputs = look.inputs()
    for buffer in look.buffers:
        if buffer.role not in {"in", "inout"}:
            continue
        data = np.ascontiguousarray(inputs[buffer.name])
        if data.nbytes != buffer_bytes(buffer):
            raise ProblemError(
                f"input {buffer.name!r} has {data.nbytes} bytes, {buffer_bytes(buffer)} are needed"
            )
        driver.upload(pointers[buffer.name], data.ctypes.data, data.nbytes)
