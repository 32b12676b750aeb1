"""What is put into the stream, prepared ahead: putting it there is then one plain call each."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kernelwright.core.launch import LaunchSpec
from kernelwright.core.outcome import Status
from kernelwright.devices.cuda.driver import CudaError


class CandidateFailed(Exception):  # noqa: N818 - control flow inside this package, never leaves it
    """The candidate failed; becomes the run's result. ``broken`` when the device context is lost with it."""

    def __init__(self, status: Status, reason: str, *, broken: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.broken = broken


class Operation(NamedTuple):
    """One asynchronous driver call. ``launch`` is set for a candidate's launch; ``keep`` holds its parameters."""

    call: Callable[..., tuple[Any, ...]]
    arguments: tuple[Any, ...]
    what: str
    keep: object = None
    launch: LaunchSpec | None = None


class LaunchRefused(CudaError):  # noqa: N818 - reads as what happened
    """The driver refused a candidate's launch."""

    def __init__(self, code: int, name: str, launch: LaunchSpec) -> None:
        super().__init__(code, name, f"launching {launch.kernel}")
        self.launch = launch


def enqueue(operations: Iterable[Operation]) -> None:
    """Put all into the stream in order. Raises CudaError, LaunchRefused for a candidate's launch."""
    for operation in operations:
        error = operation.call(*operation.arguments)[0]
        if error:
            if operation.launch is not None:
                raise LaunchRefused(int(error), error.name, operation.launch)
            raise CudaError(int(error), error.name, operation.what)
