"""What is put into the stream, prepared ahead: putting it there is then one plain call each."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kernelwright.core.launch import LaunchSpec
from kernelwright.core.outcome import Status
from kernelwright.devices.cuda.driver import CudaError


class CandidateFailed(Exception):  # noqa: N818 - control flow inside this package, never leaves it
    """The candidate failed; becomes the run's result. ``side`` is set in a duel: whose fault it is."""

    def __init__(self, status: Status, reason: str, check: str, side: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.check = check
        self.side = side


@contextmanager
def blame(side: str) -> Iterator[None]:
    """What fails here fails by this side of a duel."""
    try:
        yield
    except CandidateFailed as failure:
        failure.side = failure.side or side
        raise


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
