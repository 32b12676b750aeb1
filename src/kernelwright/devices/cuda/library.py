"""A vendor library in a candidate's place: what a user would call instead, in PyTorch, on the harness's stream and buffers.

Its outputs are checked and its time is taken like a candidate's: the same inputs, the same cleared L2 cache, the same
events or graphs, in turn with the candidate that it is compared with.
"""

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from kernelwright.core.errors import MissingError, ProblemError
from kernelwright.core.launch import ResolvedPlan
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import Buffer, CaseRequest, CaseSource
from kernelwright.devices.cuda.driver import CudaError
from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.module import Constant
from kernelwright.devices.cuda.operations import CandidateFailed, LaunchRefused, Operation

_TYPES: Final = {
    "float16": "<f2",
    "bfloat16": "<i2",
    "float32": "<f4",
    "float64": "<f8",
    "bool": "|b1",
    "int8": "|i1",
    "uint8": "|u1",
    "int16": "<i2",
    "int32": "<i4",
    "int64": "<i8",
}
"""Type strings of the array interface; bfloat16, which it lacks, is viewed."""
_REFUSED: Final = 1
"""An error that leaves the context alone (CUDA_ERROR_INVALID_VALUE)."""


class Library:
    """Context manager: while it holds, PyTorch works on the harness's stream.

    Raises MissingError where PyTorch cannot be had.
    """

    constants: tuple[Constant, ...] = ()

    def __init__(self, gpu: Gpu, source: CaseSource) -> None:
        self._gpu, self._source = gpu, source
        self._torch = _torch(gpu.driver.ordinal)
        self._fault = ""

    @property
    def name(self) -> str:
        """For people."""
        return f"PyTorch {self._torch.__version__}"

    def __enter__(self) -> Self:
        torch, driver = self._torch, self._gpu.driver
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        self._stream = torch.cuda.stream(
            torch.cuda.ExternalStream(int(driver.stream), device=f"cuda:{driver.ordinal}")
        )
        self._stream.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.__exit__(kind, error, trace)
        if not self._gpu.lost:
            self._gpu.driver.synchronize()
            self._torch.cuda.empty_cache()

    def prepared(
        self, request: CaseRequest, buffers: Sequence[Buffer], pointers: Mapping[str, int]
    ) -> tuple[Operation, ...]:
        """The library's call on buffers at these addresses as one operation. Raises ProblemError."""
        tensors = {buffer.name: self._tensor(buffer, pointers[buffer.name]) for buffer in buffers}
        call = self._source.library(request.case, tensors, self._torch)
        return (Operation(self._as_operation(call), (), "the library's call", tensors),)

    def uses_shared(self, plan: ResolvedPlan) -> bool:
        """Of no concern, as local memory."""
        del plan
        return False

    def local_bytes(self, plan: ResolvedPlan) -> int:
        """Of no concern: the library keeps nothing."""
        del plan
        return 0

    def refusal(self, error: LaunchRefused) -> CandidateFailed:
        """Not asked for: a call of the library is no launch of a candidate."""
        return self.failed(error)

    def failed(self, error: CudaError | ProblemError) -> CandidateFailed:
        """The library's own words, where it said any."""
        return CandidateFailed(Status.LAUNCH_FAILED, self._fault or str(error), Check.LAUNCH_LIMITS)

    def _as_operation(self, call: Callable[[], object]) -> Callable[[], tuple[Any, ...]]:
        def operation() -> tuple[Any, ...]:
            try:
                call()
            except (ProblemError, RuntimeError) as error:
                self._fault = f"the library: {' '.join(str(error).split())[:300]}"
                return (_Refused(_REFUSED),)
            return (0,)

        return operation

    def _tensor(self, buffer: Buffer, pointer: int) -> Any:
        if buffer.dtype not in _TYPES:
            raise ProblemError(
                f"library.py: PyTorch gets no {buffer.dtype} ({buffer.name}): remove library.py, or use {', '.join(_TYPES)}"
            )
        torch, device = self._torch, f"cuda:{self._gpu.driver.ordinal}"
        if not all(buffer.shape):
            return torch.empty(buffer.shape, device=device)
        tensor = torch.as_tensor(_Memory(buffer, pointer), device=device)
        return tensor.view(torch.bfloat16) if buffer.dtype == "bfloat16" else tensor


class _Memory:
    """A buffer as other libraries see it (CUDA array interface, version 3)."""

    def __init__(self, buffer: Buffer, pointer: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": buffer.shape,
            "typestr": _TYPES[buffer.dtype],
            "data": (pointer, False),
            "version": 3,
        }


class _Refused(int):
    """An error of a call that is none of the driver's."""

    name = "the library refused"


def _torch(ordinal: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about its own set-up
        try:
            torch = importlib.import_module("torch")
            torch.zeros(1, device=f"cuda:{ordinal}").cpu()
        except (ImportError, OSError, RuntimeError, AttributeError, AssertionError, MemoryError) as error:
            reason = " ".join(str(error).split())[:200]
            raise MissingError(
                f"PyTorch with CUDA is not usable here ({reason}): pip install torch"
            ) from None
    return torch
