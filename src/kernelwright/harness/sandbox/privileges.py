"""User, capabilities, and the end of the parent."""

import ctypes
import os
import platform
import signal
import stat
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

NOBODY: Final = 65534
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_CAPBSET_DROP: Final = 24
_PR_SET_NO_NEW_PRIVS: Final = 38
_CAPABILITY_VERSION_3: Final = 0x20080522
_CAPSET: Final = {"x86_64": 126, "aarch64": 91}


def drop_user(libc: ctypes.CDLL, owned: Sequence[Path], readable: Sequence[Path]) -> str:
    """Become ``nobody``, who then owns the folders ``owned``. Raises OSError where that cannot work."""
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.geteuid() != 0:
        return f"already an ordinary user ({os.geteuid()})"
    closed = [path for path in owned if not _reachable(path)]
    closed += [path for path in readable if not (_reachable(path) and _mode(path) & stat.S_IROTH)]
    if closed:
        raise OSError(f"stays root: another user could not read {closed[0]}")
    for path in owned:
        os.chown(path, NOBODY, NOBODY)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    return f"root became user {NOBODY}"


def _reachable(path: Path) -> bool:
    return all(_mode(parent) & stat.S_IXOTH for parent in path.resolve().parents)


def _mode(path: Path) -> int:
    """Mode bits; all of them for what is not there, since nobody will read it."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0o777


def drop_capabilities(libc: ctypes.CDLL) -> str:
    """Empty every set: as root, CAP_SYS_PTRACE and CAP_PERFMON would walk past landlock's checks of /proc."""
    for capability in range(64):
        if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
            break
    number = _CAPSET.get(platform.machine())
    if number is None:
        raise OSError(f"no capset number for {platform.machine()}")
    header = ctypes.create_string_buffer(struct.pack("<Ii", _CAPABILITY_VERSION_3, 0), 8)
    if libc.syscall(number, header, ctypes.create_string_buffer(24)):
        raise OSError(ctypes.get_errno(), "capset refused")
    return "all dropped"


def die_with(libc: ctypes.CDLL, parent: int, *, gpu: bool) -> str:
    """Have the kernel end this process when its parent ends; at once if it has ended already.

    Also hides memory and environment from other processes of the same user. Not on a GPU: a hidden process does
    not own its ``/proc/self``, where libcuda has to write (else CUDA_ERROR_OPERATING_SYSTEM, 304).
    """
    libc.prctl(_PR_SET_DUMPABLE, int(gpu), 0, 0, 0)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_PDEATHSIG refused")
    if os.getppid() != parent:
        raise SystemExit(0)
    return f"killed when process {parent} ends"
