"""Right outputs, computed once by the problem's reference in float64 and kept on the device."""

import importlib
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import Any

import numpy as np

from kernelwright.core.errors import ProblemError
from kernelwright.devices.base import Array, Buffer, CaseInputs, CaseSource
from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.operations import enqueue
from kernelwright.devices.cuda.trusted import Hidden


class Reference:
    """Runs references through the best array library at hand: cupy, torch on the device, numpy on the host.

    Nothing of a right output stays on the device in clear: it is kept under a key, and memory that the library used
    is zeroed before it is free for others. (Work space inside vendor libraries is not ours to zero.)
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.driver = gpu.driver
        self.namespace, self.xp = _choose(gpu.driver.ordinal)

    def expected(
        self, source: CaseSource, case: str, buffers: tuple[Buffer, ...], inputs: CaseInputs
    ) -> dict[str, Hidden]:
        """Dense float64 arrays, one an output, each under a key of its own; memory is the caller's to free.

        Raises ProblemError when the reference lacks an output or gives another size.
        """
        with self._zeroing():
            found = self._compute(source, case, buffers, inputs)
        self._free_cached()
        return found

    def _compute(
        self, source: CaseSource, case: str, buffers: tuple[Buffer, ...], inputs: CaseInputs
    ) -> dict[str, Hidden]:
        host = {name: as_numbers(array, _dtype_of(buffers, name)) for name, array in inputs.arrays.items()}
        given = source.expected(case, {name: self._to_device(a) for name, a in host.items()}, self.xp)
        found: dict[str, Hidden] = {}
        for buffer in buffers:
            if buffer.role not in {"out", "inout"}:
                continue
            if buffer.name not in given:
                raise ProblemError(f"the reference gives no output {buffer.name!r} for case {case}")
            found[buffer.name] = self._keep(given[buffer.name], buffer, case)
        return found

    def _to_device(self, array: Array) -> Any:
        if self.namespace == "cupy":
            return self.xp.asarray(array)
        if self.namespace == "torch":
            return self.xp.from_numpy(np.array(array)).to(f"cuda:{self.driver.ordinal}")
        return array

    def _keep(self, values: Any, buffer: Buffer, case: str) -> Hidden:
        count = prod(buffer.shape)
        held = _float64(values)
        size = prod(held.shape)
        if size != count:
            raise ProblemError(
                f"the reference gives {size} values for output {buffer.name!r} of case {case}; its shape has {count}"
            )
        hidden = Hidden.at(self.gpu.pool.allocate(8 * count))
        if isinstance(held, np.ndarray):
            self.driver.upload(hidden.pointer, held.ctypes.data, 8 * count)
            clear = hidden.pointer
        else:
            self.driver.synchronize()
            clear = int(held.__cuda_array_interface__["data"][0])
        enqueue([self.gpu.trusted.hide(clear, hidden, count)])
        self.driver.synchronize()
        return hidden

    def _zeroing(self) -> AbstractContextManager[Any]:
        """While this holds, cupy's pool zeroes what it takes back."""
        return zeroing_hook(self.xp) if self.namespace == "cupy" else nullcontext()

    def _free_cached(self) -> None:
        self.driver.synchronize()
        if self.namespace == "cupy":
            self.xp.get_default_memory_pool().free_all_blocks()
        elif self.namespace == "torch":
            for pointer, nbytes in unused_blocks(self.xp.cuda.memory_snapshot()):
                self.driver.zero(pointer, nbytes)
            self.driver.synchronize()
            self.xp.cuda.empty_cache()


def zeroing_hook(cupy: Any) -> Any:
    """A cupy memory hook: zero a block, in the stream that used it, when the pool takes it back."""

    def free_preprocess(_: Any, **block: Any) -> None:
        stream = cupy.cuda.get_current_stream().ptr
        cupy.cuda.runtime.memsetAsync(block["mem_ptr"], 0, block["mem_size"], stream)

    members = {"name": "kernelwright", "free_preprocess": free_preprocess}
    return type("Zeroing", (cupy.cuda.MemoryHook,), members)()


def unused_blocks(snapshot: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Address and bytes of the blocks that torch's caching allocator holds and nobody uses.

    ``snapshot`` is what ``torch.cuda.memory_snapshot()`` gives: segments whose blocks lie one after the other.
    """
    found = []
    for segment in snapshot:
        at = int(segment["address"])
        for block in segment["blocks"]:
            if block["state"] == "inactive":
                found.append((at, int(block["size"])))
            at += int(block["size"])
    return found


def as_numbers(array: Array, dtype: str) -> Array:
    """Values a reference can compute with: bfloat16, which numpy lacks, becomes float32 (exactly)."""
    if dtype != "bfloat16":
        return array
    bits = np.ascontiguousarray(array).view(np.uint16) if array.dtype.itemsize == 2 else None
    if bits is None:
        return array.astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _dtype_of(buffers: tuple[Buffer, ...], name: str) -> str:
    return next((b.dtype for b in buffers if b.name == name), "")


def _float64(values: Any) -> Any:
    """Dense float64 array of whatever library gave the values (numpy, cupy, torch, a plain number)."""
    kind = type(values).__module__.split(".")[0]
    if kind == "cupy":
        cupy = importlib.import_module("cupy")
        return cupy.ascontiguousarray(values, dtype=cupy.float64)
    if kind == "torch":
        torch = importlib.import_module("torch")
        dense = values.detach().to(torch.float64).contiguous()
        return dense if dense.is_cuda else dense.numpy()
    return np.ascontiguousarray(values, dtype=np.float64)


def _choose(ordinal: int) -> tuple[str, Any]:
    """First array library that really computes on the device."""
    with warnings.catch_warnings():
        # What these libraries say about their own set-up is no concern of a run.
        warnings.simplefilter("ignore")
        return _first_usable(ordinal)


def _first_usable(ordinal: int) -> tuple[str, Any]:
    try:
        cupy = importlib.import_module("cupy")
        cupy.cuda.Device(ordinal).use()
        int(cupy.arange(3, dtype=cupy.float64).sum())
    except (ImportError, OSError, RuntimeError, AttributeError):
        pass
    else:
        return "cupy", cupy
    try:
        torch = importlib.import_module("torch")
        torch.zeros(1, device=f"cuda:{ordinal}").cpu()
    except (ImportError, OSError, RuntimeError, AttributeError, AssertionError):
        return "numpy", np
    return "torch", torch


def bytes_of(mapping: Mapping[str, object], buffers: tuple[Buffer, ...]) -> int:
    """Device bytes of expected outputs."""
    return sum(8 * prod(b.shape) for b in buffers if b.name in mapping)
