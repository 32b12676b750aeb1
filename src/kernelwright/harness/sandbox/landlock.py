"""Landlock: which files a child may see and change."""

import contextlib
import ctypes
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_PR_SET_NO_NEW_PRIVS: Final = 38

_EXECUTE_AND_READ: Final = (1 << 0) | (1 << 2) | (1 << 3)  # execute, read file, read directory
_OF_FILES: Final = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15)  # ..., truncate, ioctl of devices
_RIGHTS: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_RIGHTS_SINCE_5: Final = (1 << 16) - 1

SYSTEM_FOLDERS: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/opt", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/dev/urandom", "/dev/random", "/proc/cpuinfo",
    "/proc/meminfo", "/proc/devices", "/proc/modules", "/proc/driver/nvidia", "/proc/sys/vm", "/proc/stat",
    "/proc/filesystems", "/sys/devices", "/sys/module", "/sys/bus/pci", "/sys/class/drm", "/sys/fs/cgroup",
)  # fmt: skip
_PRIVATE: Final = ("/dev/null", "/dev/zero", "/dev/full")
_GPU: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-caps")


def gpu_files() -> tuple[Path, ...]:
    """NVIDIA's device files."""
    return (*map(Path, _GPU), *sorted(Path("/dev").glob("nvidia[0-9]*")))


def landlock_version(libc: ctypes.CDLL) -> int:
    """Version of the kernel's landlock; below 1 there is none."""
    version: int = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    return version


def restrict_files(
    libc: ctypes.CDLL, writable: Sequence[Path], readable: Sequence[Path], *, gpu: bool
) -> str:
    """Everything below ``writable``, reading and running below ``readable`` and the system's folders, no more."""
    version = landlock_version(libc)
    if version < 1:
        raise OSError("the kernel has no landlock: Linux 5.13 or later with it switched on is needed")
    rights = _RIGHTS.get(version, _RIGHTS_SINCE_5)
    private = [*writable, *map(Path, _PRIVATE)]
    if gpu:
        # libcuda writes thread names under /proc/self: read-only there is CUDA_ERROR_OPERATING_SYSTEM.
        private += [Path("/proc/self"), *gpu_files()]
    ruleset = _create(libc, version, rights)
    try:
        for path in (*map(Path, SYSTEM_FOLDERS), *readable, Path("/proc/self")):
            _allow(libc, ruleset, path, _EXECUTE_AND_READ, rights)
        for path in private:
            _allow(libc, ruleset, path, rights, rights)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _call(libc, _RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return f"version {version}: writes only in its scratch, reads no home"


def _create(libc: ctypes.CDLL, version: int, rights: int) -> int:
    """A rule set that handles files; TCP since version 4; abstract sockets and signals since 6."""
    handled = struct.pack("<QQQ", rights, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    buffer = ctypes.create_string_buffer(handled, len(handled))
    return _call(libc, _CREATE_RULESET, buffer, ctypes.c_size_t(size), 0)


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, access: int, handled: int) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            access &= handled if path.is_dir() else handled & _OF_FILES
            rule = struct.pack("<Qi", access, handle)
            _call(libc, _ADD_RULE, ruleset, 1, ctypes.create_string_buffer(rule, len(rule)), 0)
        finally:
            os.close(handle)


def _call(libc: ctypes.CDLL, number: int, *arguments: object) -> int:
    result: int = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"landlock: system call {number} refused")
    return result
