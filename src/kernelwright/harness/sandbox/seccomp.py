"""Seccomp: which system calls a child may not make. A deny list: CUDA's driver needs too many to list."""

import ctypes
import errno
import platform
import struct
from dataclasses import dataclass
from typing import Final

_PR_SET_SECCOMP: Final = 22
_PR_SET_NO_NEW_PRIVS: Final = 38
_MODE_FILTER: Final = 2

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_DENY: Final = 0x00050000 | errno.EPERM
_UNKNOWN: Final = 0x00050000 | errno.ENOSYS
_UNSUPPORTED: Final = 0x00050000 | errno.EOPNOTSUPP
_NUMBER, _ARCH, _ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; the first argument's low half
_X32: Final = 0x40000000
_AF_UNIX: Final = 1
_NEW_NAMESPACES: Final = 0x7E020000
_THREAD: Final = 0x10000


_CLONE3: Final = 435
_FALLOCATE: Final = (285, 47)
_DENIED: Final = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "chroot": (161, 51),
    "pivot_root": (155, 41), "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97),
    "setns": (308, 268), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142),
    "acct": (163, 89), "quotactl": (179, 60), "syslog": (103, 116), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "open_by_handle_at": (304, 265), "sethostname": (170, 161),
    "setdomainname": (171, 162), "settimeofday": (164, 170), "adjtimex": (159, 171),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "migrate_pages": (256, 238),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    "mount_setattr": (442, 442), "process_mrelease": (448, 448), "move_pages": (279, 239),
    "setpriority": (141, 140), "ioprio_set": (251, 30),
    # What landlock leaves to the owner of a file.
    "chmod": (90, 53), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, 54), "fchown": (93, 55), "lchown": (94, 54), "fchownat": (260, 54), "utime": (132, 88),
    "utimes": (235, 88), "futimesat": (261, 88), "utimensat": (280, 88), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    # What processes of one user share without a file (System V, POSIX queues).
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semctl": (66, 191),
    "msgget": (68, 186), "msgctl": (71, 187), "mq_open": (240, 180),
}  # fmt: skip
"""Call numbers on x86-64 and aarch64 (``asm/unistd.h``)."""


@dataclass(frozen=True)
class _Machine:
    """What differs between architectures: the audit number, the column of the table, calls looked into."""

    audit: int
    column: int
    clone: int
    prlimit: int
    socket: int


_MACHINES: Final = {
    "x86_64": _Machine(0xC000003E, 0, 56, 302, 41),
    "aarch64": _Machine(0xC00000B7, 1, 220, 261, 198),
}


def filter_calls(libc: ctypes.CDLL, *, gpu: bool) -> str:
    """Install the filter. Raises OSError where there is none for the machine or the kernel refuses it.

    On a ``gpu`` local sockets stay open until :func:`close_gpu_worker`: without one cuInit answers
    CUDA_ERROR_OPERATING_SYSTEM (304).
    """
    machine = _machine()
    _install(libc, _program(machine) + _sockets(machine, local=gpu))
    sockets = "no network sockets" if gpu else "no sockets"
    return f"{sockets}, no ptrace, no mounts, no new namespaces"


def close_gpu_worker(libc: ctypes.CDLL) -> None:
    """From now on no socket of any kind and no new process, threads only; filters add up.

    Raises OSError as :func:`filter_calls`.
    """
    machine = _machine()
    _install(libc, _header(machine) + _sockets(machine, local=False) + _no_processes(machine))


def _machine() -> _Machine:
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(f"no filter for {platform.machine()}: there is one for {', '.join(_MACHINES)}")
    return machine


def _install(libc: ctypes.CDLL, program: bytes) -> None:
    """A program without its last answer, which allows."""
    program += _op(_RETURN, _ALLOW)
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.create_string_buffer(header, len(header)), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp filter refused")


def _header(machine: _Machine) -> bytes:
    """Refuse another architecture's calls, load the number."""
    return b"".join(
        [_op(_LOAD, _ARCH), _op(_EQUAL, machine.audit, yes=1), _op(_RETURN, _KILL), _op(_LOAD, _NUMBER)]
    )


def _sockets(machine: _Machine, *, local: bool) -> bytes:
    """No socket, or none but local ones."""
    test = [_op(_EQUAL, _AF_UNIX, yes=1)] if local else []
    return b"".join(_when(machine.socket, [*test, _op(_RETURN, _DENY)]))


def _no_processes(machine: _Machine) -> bytes:
    """Fork and vfork (x86-64 has them apart), and every clone that makes no thread."""
    forks = (57, 58) if machine is _MACHINES["x86_64"] else ()
    program = [_op(_EQUAL, number, no=1) + _op(_RETURN, _DENY) for number in forks]
    program += [_op(_EQUAL, _CLONE3, no=1), _op(_RETURN, _UNKNOWN)]
    return b"".join(program + _when(machine.clone, [_op(_ANY_BIT, _THREAD, yes=1), _op(_RETURN, _DENY)]))


def _program(machine: _Machine) -> bytes:
    """Classic BPF; every test skips its own answer, so the order does not matter."""
    program = [_header(machine)]
    if machine is _MACHINES["x86_64"]:
        program += [_op(_AT_LEAST, _X32, no=1), _op(_RETURN, _DENY)]
    for numbers in _DENIED.values():
        program += [_op(_EQUAL, numbers[machine.column], no=1), _op(_RETURN, _DENY)]
    # A disk would be full before anybody looks; posix_fallocate falls back to writing.
    program += [_op(_EQUAL, _FALLOCATE[machine.column], no=1), _op(_RETURN, _UNSUPPORTED)]
    # glibc falls back to clone, whose flags a filter can read.
    program += [_op(_EQUAL, _CLONE3, no=1), _op(_RETURN, _UNKNOWN)]
    program += _when(machine.clone, [_op(_ANY_BIT, _NEW_NAMESPACES, no=1), _op(_RETURN, _DENY)])
    # Limits of the same user's other processes could be set otherwise; 0 is the caller itself.
    program += _when(machine.prlimit, [_op(_EQUAL, 0, yes=1), _op(_RETURN, _DENY)])
    return b"".join(program)


def _when(number: int, test: list[bytes]) -> list[bytes]:
    """A test of the first argument of one call; the number is loaded again afterwards."""
    inside = [_op(_LOAD, _ARGUMENT), *test, _op(_LOAD, _NUMBER)]
    return [_op(_EQUAL, number, no=len(inside)), *inside]


def _op(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)
