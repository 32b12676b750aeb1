"""Confines a child before it touches anything of a candidate: capabilities, limits, landlock, seccomp.

Everything is done by the child to itself, in :func:`lock_down`, without a helper program or privileges. Each
layer that cannot be had on this machine is reported with the reason; the others still hold.

Sources: Linux ``landlock(7)``, ``seccomp(2)``, ``capabilities(7)``, ``prctl(2)``.
"""

import contextlib
import ctypes
import os
import platform
import resource
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_CAPBSET_DROP: Final = 24
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP: Final = 22
_SIGKILL: Final = 9

_LANDLOCK_CREATE: Final = 444
_LANDLOCK_ADD: Final = 445
_LANDLOCK_RESTRICT: Final = 446
_READ_RIGHTS: Final = (1 << 0) | (1 << 2) | (1 << 3)  # execute, read file, read directory
_FILE_RIGHTS: Final = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15)
_ALL_RIGHTS: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_NEWEST_RIGHTS: Final = (1 << 16) - 1

_SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/opt", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/dev/urandom", "/dev/random", "/proc/cpuinfo",
    "/proc/meminfo", "/proc/devices", "/proc/modules", "/proc/driver/nvidia", "/proc/sys/vm", "/sys/devices",
    "/sys/module", "/sys/bus/pci", "/sys/class/drm", "/sys/fs/cgroup", "/proc/stat", "/proc/filesystems",
)  # fmt: skip
_GPU: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-caps", "/dev/shm")  # noqa: S108

_DENIED: Final[dict[str, dict[str, int]]] = {
    "x86_64": {
        "ptrace": 101, "chroot": 161, "mount": 165, "umount2": 166, "swapon": 167, "reboot": 169,
        "init_module": 175, "add_key": 248, "keyctl": 250, "unshare": 272, "pivot_root": 155,
        "perf_event_open": 298, "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "kexec_load": 246, "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425,
        "pidfd_getfd": 438, "process_madvise": 440,
    },
    "aarch64": {
        "ptrace": 117, "chroot": 51, "mount": 40, "umount2": 39, "swapon": 224, "reboot": 142,
        "init_module": 105, "add_key": 217, "keyctl": 219, "unshare": 97, "pivot_root": 41,
        "perf_event_open": 241, "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270,
        "process_vm_writev": 271, "kexec_load": 104, "bpf": 280, "userfaultfd": 282, "io_uring_setup": 425,
        "pidfd_getfd": 438, "process_madvise": 440,
    },
}  # fmt: skip
_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SOCKET: Final = {"x86_64": 41, "aarch64": 198}
_AF_UNIX: Final = 1


@dataclass(frozen=True)
class Layer:
    """One layer of the sandbox: whether it holds, and what it does or why it could not be had."""

    name: str
    holds: bool
    detail: str = ""


@dataclass(frozen=True)
class SandboxReport:
    """What holds in a child."""

    layers: tuple[Layer, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the layers that do not hold."""
        return tuple(layer.name for layer in self.layers if not layer.holds)


@dataclass(frozen=True)
class Limits:
    """Resource limits of a child. Never the address space: CUDA reserves hundreds of gigabytes of it."""

    data_bytes: int | None = 8 << 30
    file_bytes: int = 2 << 30
    open_files: int = 1024


def lock_down(
    *, writable: Sequence[Path], readable: Sequence[Path], gpu: bool = False, limits: Limits | None = None
) -> SandboxReport:
    """Confine this process and everything it starts. Cannot be undone.

    ``writable`` are the private folders; ``readable`` what is needed besides the system's own folders.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    layers = [
        _try("capabilities", lambda: _drop_capabilities(libc)),
        _try("limits", lambda: _set_limits(limits or Limits())),
        _try("landlock", lambda: _landlock(libc, writable, readable, gpu=gpu)),
        _try("seccomp", lambda: _seccomp(libc)),
    ]
    return SandboxReport(tuple(layers))


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _try(name: str, step: Callable[[], str]) -> Layer:
    try:
        return Layer(name, holds=True, detail=step())
    except (OSError, ValueError) as error:
        return Layer(name, holds=False, detail=str(error))


def _drop_capabilities(libc: ctypes.CDLL) -> str:
    for capability in range(64):
        if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
            break
    header = struct.pack("<Ii", 0x20080522, 0)
    number = {"x86_64": 126, "aarch64": 91}.get(platform.machine())
    if number is None:
        raise OSError(f"no capset number for {platform.machine()}")
    _call(libc, number, ctypes.create_string_buffer(header, 8), ctypes.create_string_buffer(24))
    return "all dropped"


def _set_limits(limits: Limits) -> str:
    pairs = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
    ]
    if limits.data_bytes is not None:
        pairs.append((resource.RLIMIT_DATA, limits.data_bytes))
    for kind, wanted in pairs:
        _, hard = resource.getrlimit(kind)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))
    memory = "no memory limit" if limits.data_bytes is None else f"{limits.data_bytes >> 20} MiB of memory"
    return f"{memory}, files up to {limits.file_bytes >> 20} MiB, no core dumps"


def _landlock(libc: ctypes.CDLL, writable: Iterable[Path], readable: Iterable[Path], *, gpu: bool) -> str:
    version = libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
    if version < 1:
        raise OSError("the kernel has no landlock")
    rights = _ALL_RIGHTS.get(version, _NEWEST_RIGHTS)
    # Since version 4 TCP, since 6 abstract sockets and signals to processes outside.
    handled = struct.pack("<QQQ", rights, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _call(
        libc, _LANDLOCK_CREATE, ctypes.create_string_buffer(handled, 24), ctypes.c_size_t(size), 0
    )
    private = [*writable, Path("/dev/null"), Path("/dev/zero"), Path("/dev/full")]
    if gpu:
        # libcuda writes thread names under /proc/self: read-only there is CUDA_ERROR_OPERATING_SYSTEM.
        private += [Path("/proc/self"), *map(Path, _GPU), *Path("/dev").glob("nvidia[0-9]*")]
    try:
        for path in (*map(Path, _SYSTEM), *readable, Path("/proc/self")):
            _allow(libc, ruleset, path, _READ_RIGHTS, rights)
        for path in private:
            _allow(libc, ruleset, path, rights, rights)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _call(libc, _LANDLOCK_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)
    return f"version {version}: writes only in its scratch"


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, access: int, handled: int) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            access &= handled if path.is_dir() else handled & _FILE_RIGHTS
            rule = struct.pack("<Qi", access, handle)
            _call(libc, _LANDLOCK_ADD, ruleset, 1, ctypes.create_string_buffer(rule, 12), 0)
        finally:
            os.close(handle)


def _seccomp(libc: ctypes.CDLL) -> str:
    """Deny the calls on the list, and every socket that is not a unix socket, with EPERM."""
    machine = platform.machine()
    if machine not in _DENIED:
        raise OSError(f"no filter for {machine}")
    load, equal, give = 0x20, 0x15, 0x06
    deny, allow, kill = 0x00050000 | 1, 0x7FFF0000, 0x80000000

    def op(code: int, yes: int, no: int, value: int) -> bytes:
        return struct.pack("<HBBI", code, yes, no, value)

    program = [
        op(load, 0, 0, 4),
        op(equal, 1, 0, _AUDIT_ARCH[machine]),
        op(give, 0, 0, kill),
        op(load, 0, 0, 0),
    ]
    if machine == "x86_64":
        program += [op(0x35, 0, 1, 0x40000000), op(give, 0, 0, deny)]  # the x32 numbers
    for number in _DENIED[machine].values():
        program += [op(equal, 0, 1, number), op(give, 0, 0, deny)]
    program += [
        op(equal, 0, 3, _SOCKET[machine]),
        op(load, 0, 0, 16),
        op(equal, 1, 0, _AF_UNIX),
        op(give, 0, 0, deny),
    ]
    program.append(op(give, 0, 0, allow))
    code = ctypes.create_string_buffer(b"".join(program))
    header = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code)), 16)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, 2, header, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp filter refused")
    return "no network, no ptrace, no mounts, no new namespaces"


def _call(libc: ctypes.CDLL, number: int, *arguments: object) -> int:
    result: int = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    return result
