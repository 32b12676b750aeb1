"""A worker's side of the conversation, in this process: no walls, no start."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelwright.core.errors import HarnessError
from kernelwright.core.launch import BuildRequest, ResolvedPlan
from kernelwright.core.outcome import Status
from kernelwright.devices.base import CaseRequest, RunRequest
from kernelwright.harness.sandbox import Layer, SandboxReport
from kernelwright.harness.setup import Role, WorkerSetup
from kernelwright.harness.wire import REPLY, Reply, Request, decode, encode
from kernelwright.harness.worker.serve import serve
from kernelwright.problems.loader import load_problem
from tests.harness.fake_device import CASE_MS, FACTS

REPORT = SandboxReport((Layer("test", holds=True),))
BUILD = BuildRequest("// a kernel", {}, {}, ("k",), "")


class Parent:
    """Talks to a worker that serves in a thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")
        self.code: int | None = None
        self.fault = ""

    def hear(self) -> Reply:
        reply: Reply = decode(REPLY, self._file.readline())
        return reply

    def ask(self, request: Request) -> Reply:
        self._connection.sendall(encode(request))
        return self.hear()

    def hang_up(self) -> None:
        self._file.close()
        self._connection.close()


@contextmanager
def worker(tmp_path: Path, role: Role, maker: str = "FakeMaker") -> Iterator[Parent]:
    for name in ("scratch", "artifacts"):
        (tmp_path / name).mkdir(exist_ok=True)
    setup = WorkerSetup(
        role, "fake", 1, str(tmp_path / "scratch"), str(tmp_path / "artifacts"), str(tmp_path),
        problem=str(load_problem("vector_add").folder), maker=f"tests.harness.fake_device:{maker}",
    )  # fmt: skip
    ours, theirs = socket.socketpair()
    parent = Parent(ours)

    def work() -> None:
        try:
            parent.code = serve(setup, REPORT, theirs.detach())
        except HarnessError as error:
            parent.fault = str(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield parent
    finally:
        parent.hang_up()
        thread.join(20)
    assert not thread.is_alive()


def test_a_compiler_greets_and_builds_in_its_scratch(tmp_path: Path) -> None:
    with worker(tmp_path, "compile") as parent:
        hello = parent.hear().hello
        assert hello is not None
        assert (hello.sandbox, hello.toolchain, hello.facts) == (REPORT, "fake 1", None)
        built = parent.ask(Request(7, build=BUILD)).built
    assert built is not None
    assert Path(built.artifact).parent == tmp_path / "scratch/work"
    assert list((tmp_path / "artifacts").iterdir()) == []
    assert parent.code == 0


def test_a_new_compiler_clears_what_a_killed_one_left(tmp_path: Path) -> None:
    (left := tmp_path / "scratch/work/build-1").mkdir(parents=True)
    (left / "candidate.ii").touch()
    with worker(tmp_path, "compile") as parent:
        parent.hear()
        assert not left.exists()


def test_a_source_that_needs_all_memory_is_a_failed_compile(tmp_path: Path) -> None:
    source = BuildRequest(f"// compile: allocate {1 << 20}", {}, {}, ("k",), "")
    with worker(tmp_path, "compile") as parent:
        parent.hear()
        built = parent.ask(Request(1, build=source)).built
    assert built is not None
    assert built.status is Status.COMPILE_FAILED
    assert "out of memory" in built.reason


def test_a_device_greets_and_measures(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_text("// fine")
    run = RunRequest(str(binary), (CaseRequest("N=1", ResolvedPlan(())),))
    with worker(tmp_path, "device") as parent:
        hello = parent.hear().hello
        assert hello is not None
        assert hello.facts == FACTS
        reply = parent.ask(Request(3, run=run))
    assert reply.id == 3
    assert reply.ran is not None
    assert reply.ran.timings[0].median_ms == CASE_MS
    assert not reply.broken


@pytest.mark.parametrize(
    ("role", "request_"),
    [("compile", Request(1, run=RunRequest("/a", ()))), ("device", Request(1, build=BUILD))],
)
def test_a_worker_does_only_its_own_work(tmp_path: Path, role: Role, request_: Request) -> None:
    with worker(tmp_path, role) as parent:
        parent.hear()
        reply = parent.ask(request_)
    assert "was asked to" in reply.error
    assert not reply.user_error


@pytest.mark.parametrize("role", ["prepare", "probe"])
def test_some_workers_only_say_hello(tmp_path: Path, role: Role) -> None:
    with worker(tmp_path, role) as parent:
        assert parent.hear().hello is not None
    assert parent.code == 0


def test_what_is_missing_is_said_instead_of_a_greeting(tmp_path: Path) -> None:
    with worker(tmp_path, "device", "MissingMaker") as parent:
        reply = parent.hear()
    assert reply.hello is None
    assert (reply.error, reply.user_error) == ("no such GPU: buy one", True)
    assert parent.code == 1


def test_a_parent_that_talks_nonsense_is_left(tmp_path: Path) -> None:
    with worker(tmp_path, "compile") as parent:
        parent.hear()
        parent._connection.sendall(b"nonsense\n")
        assert parent._file.readline() == b""
    assert "no valid message" in parent.fault
