"""A device whose compiler and runner do what comments in the source say: misbehave, attack, or work.

``// compile: VERB [WORDS]`` happens in the compile worker, ``// run: VERB [WORDS]`` in the device worker. Its
"binary" is the source.
"""

import ctypes
import hashlib
import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import HarnessError, MissingError
from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import CaseTiming, KernelStatics, StaticMetrics, Status
from kernelwright.devices.base import (
    BuildResult,
    CaseSource,
    DuelCase,
    DuelRequest,
    DuelResult,
    RunRequest,
    RunResult,
)
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.wire import Ceilings

FACTS = DeviceFacts(
    name="fake", kind="fake", model="fake", arch="", uuid="fake", num_sms=2, warp_size=32, max_threads_per_block=1024,
    max_shared_bytes=232448, l2_bytes=1 << 10, memory_bytes=1 << 34, registers_per_sm=65536,
    shared_bytes_per_sm=233472, max_threads_per_sm=2048, max_blocks_per_sm=32, toolchain="fake 1",
)  # fmt: skip
CASE_MS = 2.0


class FakeMaker:
    def prepare(self, setup: WorkerSetup) -> None:
        pass

    def compiler(self, setup: WorkerSetup) -> tuple["FakeCompiler", str]:
        return FakeCompiler(), "fake 1"

    def runner(self, setup: WorkerSetup) -> tuple["FakeRunner", Ceilings]:
        return FakeRunner(), Ceilings()


class PreparingMaker(FakeMaker):
    def prepare(self, setup: WorkerSetup) -> None:
        (Path(setup.cache) / "prepared").touch()


class MissingMaker(FakeMaker):
    def runner(self, setup: WorkerSetup) -> tuple["FakeRunner", Ceilings]:
        raise MissingError("no such GPU: buy one")


class DyingMaker(FakeMaker):
    def runner(self, setup: WorkerSetup) -> tuple["FakeRunner", Ceilings]:
        with (Path(setup.scratch) / "starts").open("a") as file:
            file.write("x")
        sys.stderr.write("the driver is on fire\n")
        os.kill(os.getpid(), signal.SIGABRT)
        raise AssertionError


class HangingMaker(FakeMaker):
    def runner(self, setup: WorkerSetup) -> tuple["FakeRunner", Ceilings]:
        time.sleep(600)
        raise AssertionError


class FakeCompiler:
    def build(self, request: BuildRequest, scratch: Path) -> BuildResult:
        said = perform(request.source, "compile")
        if said is not None:
            return BuildResult(status=Status.COMPILE_FAILED, reason=said)
        content = f"// mode: {request.mode}\n{request.source}".encode()
        digest = hashlib.sha256(content).hexdigest()
        artifact = scratch / f"{digest[:32]}.{request.mode}"
        artifact.write_bytes(content)
        static = StaticMetrics((KernelStatics(request.kernels[0], registers=32),), len(content))
        return BuildResult(str(artifact), digest, static=static, seconds=0.25)


class FakeRunner:
    broken = False
    facts = FACTS

    def run(self, request: RunRequest, source: CaseSource) -> RunResult:
        text = Path(request.artifact).read_text()
        if "// run: break" in text:
            self.broken = True
            return RunResult(Status.CRASHED, "illegal address")
        if "// run: half" in text:
            return RunResult(Status.MEASURED)
        if "// mode: check" in text:
            if "// check: race" in text:
                return RunResult(Status.WRONG, f"race in {request.cases[0].case}", check_seconds=0.5)
            assert request.check_only
            return RunResult(Status.MEASURED, findings=("4-way bank conflict",), check_seconds=0.5)
        if "// run: answers" in text:
            case = request.cases[0].case
            source.expected(case, source.inputs(case, 0).arrays, np)
        said = perform(text.replace("// run: answers", ""), "run")
        if said is not None:
            return RunResult(Status.WRONG, said)
        if request.check_only:
            return RunResult(Status.MEASURED)
        timings = tuple(CaseTiming(case.case, (CASE_MS,) * 8, "clock") for case in request.cases)
        return RunResult(Status.MEASURED, timings=timings, check_seconds=1.0, time_seconds=2.0)

    def duel(self, request: DuelRequest, source: CaseSource) -> DuelResult:
        cases = tuple(
            DuelCase(case.case, (CASE_MS,) * request.rounds, (CASE_MS,) * request.rounds, "clock")
            for case in request.challenger.cases
        )
        return DuelResult(Status.MEASURED, cases=cases, seconds=1.0)

    def close(self) -> None:
        pass


def perform(source: str, where: str) -> str | None:
    """What the source asks for. Words of an answer, or ``None`` to go on as usual."""
    for line in source.splitlines():
        head, _, rest = line.partition(f"// {where}: ")
        if not head and rest:
            verb, *words = rest.split()
            return VERBS[verb](*words)
    return None


def hang() -> None:
    time.sleep(600)


def end_by(number: str) -> None:
    os.kill(os.getpid(), int(number))


def end_once_by(number: str) -> None:
    mark = Path("ended-once")
    if not mark.exists():
        mark.touch()
        end_by(number)


def fault() -> None:
    raise ValueError("a bug of ours")


def fault_once() -> None:
    mark = Path("failed-once")
    if not mark.exists():
        mark.touch()
        raise HarnessError("the device was not ready")


def speak(kind: str) -> None:
    """Write to the parent directly."""
    line = b"not JSON at all\n" if kind == "garbage" else b"[" + b" " * (3 << 20) + b"]\n"
    with socket.socket(fileno=os.dup(int(sys.argv[2]))) as channel:
        channel.sendall(line)
    time.sleep(600)


def wait_for(name: str) -> None:
    """Until the test has opened and closed the pipe of that name."""
    (Path(json.loads(sys.argv[1])["artifacts"]) / name).read_bytes()


def flood(mebibytes: str) -> None:
    line = b"x" * (1 << 20)
    for _ in range(int(mebibytes)):
        os.write(1, line)
        os.write(2, line)


def print_and_exit(*words: str) -> None:
    """As a kernel's printf does."""
    os.write(1, f"\n {' '.join(words)}\n".encode())
    os._exit(3)


def allocate(gibibytes: str) -> None:
    bytearray(int(gibibytes) << 30)


def process_id() -> str:
    # In a namespace of its own every child has the same number: its start tells it apart.
    return Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]


def try_it(name: str, *words: str) -> str:
    try:
        ATTACKS[name](*words)
    except OSError as error:
        return f"refused: {error.strerror}"
    return "ALLOWED"


def connect_tcp(port: str) -> None:
    with socket.socket() as connection:
        connection.connect(("127.0.0.1", int(port)))


def connect_unix(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path.replace("@", "\0"))


def read(path: str) -> None:
    Path(path.replace("PARENT", str(os.getppid()))).read_bytes()[:1]


def write(path: str) -> None:
    with Path(path.replace("PARENT", str(os.getppid()))).open("ab") as file:
        file.write(b"x")


def system_call(name: str) -> None:
    """Calls that Python has no function for, harmless should they be allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_user = 0x10000000
    calls: dict[str, Callable[[], int]] = {
        "ptrace": lambda: libc.ptrace(0x4206, os.getppid(), 0, 0),  # PTRACE_SEIZE
        "unshare": lambda: libc.unshare(new_user),
        "mount": lambda: libc.mount(b"none", b"/", b"tmpfs", 0, None),
        "clone": lambda: libc.syscall(
            56 if os.uname().machine == "x86_64" else 220, new_user | 17, 0, 0, 0, 0
        ),
        "bpf": lambda: libc.syscall(321 if os.uname().machine == "x86_64" else 280, 0, None, 0),
    }
    result = calls[name]()
    if result == 0 and name == "clone":
        os._exit(0)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def open_descriptors() -> str:
    """Numbers of the descriptors that are open, without the one that lists them."""
    return " ".join(str(number) for number in range(256) if is_open(number))


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def environment() -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(os.environ.items()))


VERBS: dict[str, Callable[..., str | None]] = {
    "hang": hang,
    "signal": end_by,
    "signal-once": end_once_by,
    "exit": lambda code: os._exit(int(code)),
    "fault": fault,
    "fault-once": fault_once,
    "speak": speak,
    "wait_for": wait_for,
    "flood": flood,
    "print": print_and_exit,
    "allocate": allocate,
    "sleep": lambda seconds: time.sleep(float(seconds)),
    "pid": process_id,
    "descriptors": open_descriptors,
    "environment": environment,
    "try": try_it,
}
ATTACKS: dict[str, Callable[..., None]] = {
    "tcp": connect_tcp,
    "unix": connect_unix,
    "read": read,
    "write": write,
    "signal": lambda: os.kill(os.getppid(), 0),
    "prlimit": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE) and None,
    "call": system_call,
}
