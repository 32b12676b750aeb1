"""Confines a child before it imports or touches anything of a candidate. Standard library only.

The child does everything to itself in :func:`lock_down`, without a helper program or privileges, and while it
has a single thread: landlock, seccomp and capabilities belong to threads, later ones inherit them. A layer that
this machine cannot give is reported with the reason; the others still hold.

Sources: Linux ``landlock(7)``, ``seccomp(2)``, ``capabilities(7)``, ``prctl(2)``, ``setrlimit(2)``.
"""

import ctypes
import resource
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelwright.harness.sandbox.landlock import landlock_version, restrict_files
from kernelwright.harness.sandbox.layers import Layer, SandboxReport
from kernelwright.harness.sandbox.privileges import die_with, drop_capabilities, drop_user
from kernelwright.harness.sandbox.seccomp import close_gpu_worker, filter_calls

__all__ = ["Layer", "Limits", "SandboxReport", "after_start", "lock_down"]

PROCESSES: Final = 1024
"""Processes and threads of the dropped user; counted over the whole machine, so it is no tight limit."""


@dataclass(frozen=True)
class Limits:
    """Resource limits of a child and, each for itself, of the processes that it starts.

    Never the address space: CUDA reserves hundreds of gigabytes of it. No CPU time: children are persistent,
    the parent bounds every step by wall clock.
    """

    data_bytes: int = 8 << 30
    file_bytes: int = 2 << 30
    open_files: int = 1024


def lock_down(
    *,
    parent: int,
    writable: Sequence[Path],
    readable: Sequence[Path],
    gpu: bool,
    limits: Limits,
    without: Collection[str] = (),
    family: bool = False,
) -> SandboxReport:
    """Confine this process and everything it starts; cannot be undone. Ends with process ``parent``.

    ``writable`` are the private folders; ``readable`` what is needed besides the system's own folders; ``gpu``
    opens NVIDIA's device files. ``without`` leaves out ``landlock``, ``seccomp``, ``user``, ``capabilities`` or ``ends
    with parent`` for a tool that cannot live with them; the report says so. ``family``: it starts Python
    processes of its own, which have their locks in ``/dev/shm`` and, on a GPU, each a ``/proc/self`` to write.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    shared = [Path("/dev/shm")] if family else []  # noqa: S108 - everybody's, so never owned
    shared += [Path("/proc")] if family and gpu else []
    threads = sum(1 for _ in Path("/proc/self/task").iterdir())
    first = _try("ends first", _first_to_end)  # another user does not own its /proc/self
    user = _unless(without, "user", lambda: drop_user(libc, writable, readable))
    layers = [
        Layer("single thread", threads == 1, f"{threads} at the time of locking"),
        first,
        user,
        _unless(without, "capabilities", lambda: drop_capabilities(libc)),
        _try("limits", lambda: _set_limits(limits, processes=user.holds)),
        # After the change of user, which clears it.
        _unless(without, "ends with parent", lambda: die_with(libc, parent, gpu=gpu)),
        _unless(without, "landlock", lambda: restrict_files(libc, [*writable, *shared], readable, gpu=gpu)),
        _signals(libc, user),
        _unless(without, "seccomp", lambda: filter_calls(libc, gpu=gpu)),
    ]
    return SandboxReport(tuple(layers))


def after_start() -> None:
    """What a GPU's driver needed only to start is closed. Raises OSError where seccomp cannot be had."""
    close_gpu_worker(ctypes.CDLL(None, use_errno=True))


def _try(name: str, step: Callable[[], str]) -> Layer:
    try:
        return Layer(name, holds=True, detail=step())
    except (OSError, ValueError) as error:
        return Layer(name, holds=False, detail=str(error))


def _unless(without: Collection[str], name: str, step: Callable[[], str]) -> Layer:
    return Layer(name, holds=False, detail="left out on purpose") if name in without else _try(name, step)


def _signals(libc: ctypes.CDLL, user: Layer) -> Layer:
    """Who keeps the child from signalling others: landlock since version 6, or another user id."""
    version = landlock_version(libc)
    if version >= 6:
        return Layer("signals", holds=True, detail="only to processes of the sandbox")
    if user.holds:
        return Layer("signals", holds=True, detail="only to processes of its own user")
    return Layer("signals", holds=False, detail=f"needs landlock version 6, the kernel has {max(version, 0)}")


def _first_to_end() -> str:
    """When memory gets short the kernel ends a child, never its parent (``proc(5)``); it cannot take that back."""
    Path("/proc/self/oom_score_adj").write_text("1000")
    return "before all others when memory gets short"


def _set_limits(limits: Limits, *, processes: bool) -> str:
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_DATA: limits.data_bytes,
    }
    if processes:
        wanted[resource.RLIMIT_NPROC] = PROCESSES
    for kind, value in wanted.items():
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)  # noqa: PLW2901 - the same limit
        resource.setrlimit(kind, (value, value))
    return (
        f"{limits.data_bytes >> 20} MiB of memory, files up to {limits.file_bytes >> 20} MiB, no core dumps"
    )
