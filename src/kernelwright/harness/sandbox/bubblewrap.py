"""Bubblewrap: namespaces around a process, so that what it may not touch is not even there.

Processes, network, System V IPC, host name and files of their own; of the files only what a :class:`View` names.
Not needed: where it is missing, or the kernel gives no namespaces, the process starts without it and the layer
says why. Source: ``bwrap(1)``.
"""

import functools
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelwright.core.looking import is_link, is_there
from kernelwright.harness.sandbox.landlock import SYSTEM_FOLDERS, gpu_files
from kernelwright.harness.sandbox.layers import Layer

NAME: Final = "bubblewrap"
INIT: Final = 1
"""Parent of the enclosed process, in its own process namespace."""
_NAMESPACES: Final = (
    "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--die-with-parent", "--new-session", "--hostname", "sandbox",
)  # fmt: skip
_TRY_S: Final = 5.0


@dataclass(frozen=True)
class View:
    """What an enclosed process sees besides the system's own folders, and may change. Paths are absolute.

    ``gpu`` shows NVIDIA's device files. ``capabilities`` leaves those of root to the process (a child of the
    harness drops them itself; ncu needs one where counters are root's). ``shared_memory`` gives a ``/dev/shm`` of its
    own that every user may write.
    """

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    gpu: bool = False
    capabilities: bool = False
    shared_memory: bool = False


@dataclass(frozen=True)
class Enclosed:
    """A command to start, and whether walls are around it."""

    command: tuple[str, ...]
    layer: Layer


def confined_command(command: Sequence[str], view: View, folder: Path) -> Enclosed:
    """``command`` behind walls, working in ``folder``; as it was where there can be none (the layer says why).

    Environment and inherited descriptors go through: the caller scrubs them. A signal that ends the process
    becomes exit code 128 + its number (:func:`signal_of`).
    """
    program = shutil.which("bwrap")
    if reason := _reason_against(program):
        return Enclosed(tuple(command), Layer(NAME, holds=False, detail=reason))
    walls = [str(program), *_NAMESPACES, *_files(view), "--chdir", str(folder)]
    if not view.capabilities:
        walls += ["--cap-drop", "ALL"]
    detail = "sees no other process, no network, and of the files only what it needs"
    return Enclosed((*walls, "--", *command), Layer(NAME, holds=True, detail=detail))


def signal_of(code: int) -> int:
    """Number of the signal that ended an enclosed process, from the exit code of its walls; 0 for none."""
    return -code if code < 0 else code - 128 if code > 128 else 0


def _reason_against(program: str | None) -> str:
    """Why there can be no walls; empty when there can."""
    if program is None:
        return "bwrap is not installed"
    return _refusal(program, os.geteuid())


@functools.cache
def _refusal(program: str, user: int) -> str:
    """What the program says where it cannot work; tried once a process (some milliseconds)."""
    if user and Path(program).stat().st_mode & stat.S_ISUID:
        return f"{program} is setuid root: it is not used"
    # Unprivileged callers get a user namespace too; root does without, so that it can still become nobody.
    command = [program, *_NAMESPACES, *_files(View()), "--", shutil.which("true") or "/bin/true"]
    try:
        code, errors = _try(command)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} cannot be used: {error}"
    if code == 0:
        return ""
    said = errors.decode(errors="replace").strip().splitlines()
    return said[-1][:300] if said else f"{program} ended with code {code}"


def _try(command: Sequence[str]) -> tuple[int, bytes]:
    """Exit code and stderr. Where it is given up, its second process ends too, which may wait for the first."""
    quiet, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(
        command, stdin=quiet, stdout=quiet, stderr=pipe, env={}, start_new_session=True
    ) as tried:
        try:
            _, errors = tried.communicate(timeout=_TRY_S)
        finally:
            if tried.returncode is None:
                os.killpg(tried.pid, signal.SIGKILL)
    return tried.returncode, errors


def _files(view: View) -> list[str]:
    """The file system: a fresh root, then parents before children."""
    arguments = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - a private one
    if view.shared_memory:
        arguments += ["--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108 - a private one
    for path in map(Path, SYSTEM_FOLDERS):
        if is_link(path):
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif is_there(path) and not str(path).startswith(("/dev", "/proc/")):
            # Parents that the bind makes are root's own: a child that is nobody could not pass.
            parents = [p for p in reversed(path.parents) if p != Path("/")]
            arguments += [word for parent in parents for word in ("--dir", str(parent))]
            arguments += ["--ro-bind", str(path), str(path)]
    if view.gpu:
        for path in (Path("/proc/driver/nvidia"), *gpu_files()):
            arguments += ["--dev-bind-try", str(path), str(path)]
    binds = dict.fromkeys(_outside_the_system((*_interpreter(), *view.readable)), "--ro-bind")
    binds |= dict.fromkeys(view.writable, "--bind")
    shown: list[Path] = []
    for path in sorted(binds):
        # Made here, not by the bind: nobody shall be able to pass through folders that are root's own outside.
        parents = [p for p in reversed(path.parents) if p != Path("/") and not _below(p, shown)]
        arguments += [word for parent in parents for word in ("--dir", str(parent))]
        arguments += [binds[path], str(path), str(path)]
        shown.append(path)
    return [*arguments, "--remount-ro", "/"]


def _outside_the_system(paths: Iterable[Path]) -> Iterator[Path]:
    system = [Path(folder) for folder in SYSTEM_FOLDERS]
    return (path for path in paths if is_there(path) and not _below(path, system))


def _below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _interpreter() -> Iterator[Path]:
    """Prefixes on the way from Python's name to its file: virtual environments and their tools link to links."""
    step = Path(sys.executable)
    while True:
        if len(step.parents) > 2:  # never the root itself
            yield step.parents[1]
        if not is_link(step):
            return
        step = step.parent / step.readlink()
