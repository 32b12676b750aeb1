"""The filter's program, run by a small interpreter: also for the architecture that this machine is not."""

import errno
import struct

import pytest

from kernelwright.harness.sandbox import seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
DENY, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = {
    "x86_64": {"read": 0, "socket": 41, "clone": 56, "ptrace": 101, "mount": 165, "prlimit": 302, "bpf": 321},
    "aarch64": {
        "read": 63,
        "socket": 198,
        "clone": 220,
        "ptrace": 117,
        "mount": 40,
        "prlimit": 261,
        "bpf": 280,
    },
}
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SIGCHLD, CLONE_VM, CLONE_VFORK, CLONE_NEWUSER, CLONE_NEWNET = 17, 0x100, 0x4000, 0x10000000, 0x40000000
CLONE_THREAD = 0x10000
MACHINES = sorted(CALLS)


def run(program: bytes, number: int, audit: int, argument: int = 0) -> int:
    """What classic BPF answers; every jump goes forward, so it ends (linux/bpf_common.h)."""
    data = struct.pack("<IIQQ5Q", number, audit, 0, argument & (2**64 - 1), *[0] * 5)
    code = list(struct.iter_unpack("<HBBI", program))
    at = accumulator = 0
    while True:
        operation, yes, no, value = code[at]
        at += 1
        match operation:
            case 0x20:
                accumulator = struct.unpack_from("<I", data, value)[0]
            case 0x15:
                at += yes if accumulator == value else no
            case 0x35:
                at += yes if accumulator >= value else no
            case 0x45:
                at += yes if accumulator & value else no
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"unknown operation {operation:#x}")


def program(name: str, *, gpu: bool = False) -> bytes:
    """As :func:`filter_calls` installs it."""
    machine = seccomp._MACHINES[name]
    rules = seccomp._program(machine) + seccomp._sockets(machine, local=gpu)
    return rules + seccomp._op(seccomp._RETURN, ALLOW)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize(
    ("call", "argument", "answer"),
    [
        ("read", 5, ALLOW),
        ("ptrace", 0, DENY),
        ("mount", 0, DENY),
        ("bpf", 0, DENY),
        ("socket", AF_INET, DENY),
        ("socket", AF_INET6, DENY),
        ("socket", AF_NETLINK, DENY),
        ("clone", SIGCHLD, ALLOW),
        ("clone", CLONE_VM | CLONE_VFORK | SIGCHLD, ALLOW),
        ("clone", CLONE_NEWUSER | SIGCHLD, DENY),
        ("clone", CLONE_NEWNET | SIGCHLD, DENY),
        ("prlimit", 0, ALLOW),
        ("prlimit", 1, DENY),
    ],
)
def test_answers(name: str, gpu: bool, call: str, argument: int, answer: int) -> None:
    assert run(program(name, gpu=gpu), CALLS[name][call], AUDIT[name], argument) == answer


@pytest.mark.parametrize("name", MACHINES)
def test_a_gpu_needs_local_sockets_until_it_is_open(name: str) -> None:
    number = CALLS[name]["socket"]
    assert run(program(name), number, AUDIT[name], AF_UNIX) == DENY
    assert run(program(name, gpu=True), number, AUDIT[name], AF_UNIX) == ALLOW
    machine = seccomp._MACHINES[name]
    later = (
        seccomp._header(machine)
        + seccomp._sockets(machine, local=False)
        + seccomp._op(seccomp._RETURN, ALLOW)
    )
    assert run(later, number, AUDIT[name], AF_UNIX) == DENY
    assert run(later, CALLS[name]["read"], AUDIT[name]) == ALLOW


@pytest.mark.parametrize("name", MACHINES)
def test_a_gpu_worker_that_has_started_gets_threads_but_no_processes(name: str) -> None:
    machine = seccomp._MACHINES[name]
    later = seccomp._header(machine) + seccomp._no_processes(machine) + seccomp._op(seccomp._RETURN, ALLOW)
    clone = CALLS[name]["clone"]
    assert run(later, clone, AUDIT[name], CLONE_VM | CLONE_THREAD) == ALLOW
    assert run(later, clone, AUDIT[name], SIGCHLD) == DENY
    assert run(later, clone, AUDIT[name], CLONE_VM | CLONE_VFORK | SIGCHLD) == DENY
    assert run(later, CALLS[name]["read"], AUDIT[name]) == ALLOW
    if name == "x86_64":
        assert [run(later, fork, AUDIT[name]) for fork in (57, 58)] == [DENY, DENY]


@pytest.mark.parametrize("name", MACHINES)
def test_clone3_is_unknown_so_that_glibc_falls_back(name: str) -> None:
    assert run(program(name), 435, AUDIT[name]) == UNKNOWN


@pytest.mark.parametrize("name", MACHINES)
def test_calls_of_another_architecture_end_the_process(name: str) -> None:
    i386 = 0x40000003
    assert run(program(name), CALLS[name]["read"], i386) == KILL


def test_the_x32_numbers_are_no_way_around() -> None:
    assert run(program("x86_64"), 0x40000000 | 41, AUDIT["x86_64"], AF_INET) == DENY
    assert run(program("x86_64"), 0x40000000, AUDIT["x86_64"]) == DENY
