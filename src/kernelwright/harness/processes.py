"""Starting and ending processes: what a child may import and see of the environment, and how it ends for sure."""

import asyncio
import contextlib
import importlib.util
import os
import signal
import site
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from kernelwright.core.errors import UserError
from kernelwright.core.looking import is_there
from kernelwright.problems.loader import strays

_KEPT: Final = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
)  # fmt: skip
_PACKAGES: Final = (
    "kernelwright", "numpy", "scipy", "pydantic", "pydantic_core", "annotated_types", "typing_extensions",
    "typing_inspection", "array_api_compat", "cuda", "cupy", "nvidia", "pynvml",
    "torch", "threadpoolctl", "tree_sitter", "tree_sitter_cuda",
)  # fmt: skip
_ROUNDS: Final = 20
OPEN_INTERPRETER: Final = (
    "make the virtual environment anew with a Python that all users may run (/usr/bin/python3 -m venv)"
)


def scrubbed_environment(scratch: str, roots: Iterable[str], outer: Mapping[str, str]) -> dict[str, str]:
    """Nothing of the user's environment but what the toolchain needs: no keys, no home."""
    roots = tuple(roots)
    # Packages installed for the user alone are found by way of the home, which a child does not have.
    of_user = site.getusersitepackages() in roots
    return {
        **({"PYTHONUSERBASE": site.getuserbase()} if of_user else {"PYTHONNOUSERSITE": "1"}),
        **{name: outer[name] for name in _KEPT if name in outer},
        "HOME": scratch,
        "TMPDIR": scratch,
        "CUPY_CACHE_DIR": f"{scratch}/cupy",
        "CUDA_CACHE_DISABLE": "1",
        "OPENBLAS_NUM_THREADS": "2",
        "PYTHONPATH": os.pathsep.join(roots),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def import_roots(maker: str = "") -> tuple[str, ...]:
    """Folders from which a child imports the packages it needs, and the class ``maker`` (``module:Class``).

    The interpreter's own site folders are among them where the packages lie there; the working directory and
    whatever else is on the parent's path are not.
    """
    roots: dict[str, None] = {}
    package = maker.partition(":")[0].partition(".")[0]
    for name in filter(None, (*_PACKAGES, package)):
        spec = importlib.util.find_spec(name)
        places = [] if spec is None else list(spec.submodule_search_locations or [spec.origin or ""])
        roots.update((str(Path(place).resolve().parent), None) for place in places if place)
    return tuple(roots)


def closed_interpreter() -> str:
    """What is wrong with the Python that children are started with, this same one; empty where nothing is.

    A process may have been started with it by another user, whose rights it has given up since.
    """
    if os.access(sys.executable, os.X_OK):
        return ""
    return f"this user may not run {os.path.realpath(sys.executable)}, or a folder on the way to it is closed"


def refuse_closed_interpreter() -> None:
    """Raises UserError, one line, where children could not be started."""
    if fault := closed_interpreter():
        raise UserError(f"{fault}: {OPEN_INTERPRETER}")


def readable_folders(roots: Iterable[str], *more: Path) -> tuple[str, ...]:
    """What a child reads besides the system's folders: the interpreter, its packages, ``more``.

    Of a link among ``more`` its own name too.
    """
    paths = [sys.prefix, sys.base_prefix, os.path.realpath(sys.executable), *roots, *map(str, more)]
    names = [path.parent.resolve() / path.name for path in more if path.name and is_there(path)]
    found = [*(str(Path(path).resolve()) for path in paths if is_there(path)), *map(str, names)]
    return tuple(dict.fromkeys(found))


def problem_files(folder: Path) -> tuple[Path, ...]:
    """What a device worker needs of a problem's folder: not what is hidden there, such as a campaign's memory.

    Nor what a link leads to out of the folder.
    """
    shown = (path for path in folder.iterdir() if not path.name.startswith("."))
    return tuple(sorted(path for path in shown if not strays(path, folder)))


async def start_process(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """A process in a session of its own, as asyncio starts them; takes the same options, raises the same errors.

    Who is cancelled meanwhile leaves nothing behind. asyncio would end what it has started, and nothing of what that
    has: walls that lose their first process leave their second one waiting for it, for ever.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*command, start_new_session=True, **options)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_end_started)  # also where who waits here is cancelled once more
        await asyncio.wait({starting})
        if _has_started(starting):
            await starting.result().wait()
        raise


def _end_started(starting: "asyncio.Task[asyncio.subprocess.Process]") -> None:
    if _has_started(starting):
        kill_tree(starting.result().pid)


def _has_started(starting: "asyncio.Task[asyncio.subprocess.Process]") -> bool:
    return not starting.cancelled() and starting.exception() is None


def kill_tree(root: int) -> None:
    """SIGKILL a process and everything below it, also what leads a session of its own (compilers, runners).

    Everything found is stopped first, so that nothing new appears while the rest is looked for. What a process was
    starting at that very instant appears later: it is of the group that ``root`` leads.
    """
    leads = _leads_a_group(root)
    tree: set[int] = set()
    found = {root}
    for _ in range(_ROUNDS):
        fresh = found - tree
        if not fresh:
            break
        _signal(fresh, signal.SIGSTOP)
        tree |= fresh
        found = _children_of(tree)
    _signal(tree, signal.SIGKILL)
    if leads:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(root, signal.SIGKILL)


def _leads_a_group(process: int) -> bool:
    try:
        return os.getpgid(process) == process
    except ProcessLookupError:
        return False


def _signal(processes: Iterable[int], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def _children_of(parents: set[int]) -> set[int]:
    """Direct children, from ``/proc/*/stat``: number, name in brackets, state, parent."""
    children = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                text = (Path(entry.path) / "stat").read_text(errors="replace")
                if int(text.rpartition(")")[2].split()[1]) in parents:
                    children.add(int(entry.name))
    return children
