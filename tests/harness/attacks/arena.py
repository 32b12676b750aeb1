"""Sets up what there is to attack, lets children attack it, and looks afterwards whether anything happened."""

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import kernelwright
from kernelwright.core.errors import HarnessError
from kernelwright.core.launch import BuildRequest
from kernelwright.devices.base import RunRequest, TimingProtocol
from kernelwright.harness.child import Child, ChildDied, StepTimeout
from kernelwright.harness.processes import import_roots, problem_files, readable_folders
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.scratch import Scratch
from kernelwright.harness.setup import Role, WorkerSetup
from kernelwright.harness.wire import Request
from tests.harness.attacks.attempts import BOMBS, KEY, SUCCEEDED, Target
from tests.harness.attacks.maker import REFERENCE

MAKER = "tests.harness.attacks.maker:AttackMaker"
MEMORY_BYTES = 1 << 30
DISK_BYTES = 128 << 20
BOMB_S = 20.0
SPIN_S = 1.0
GROWTH_BYTES = 300 << 20
CONTROL = "(control)"
OUTCOME = "anything changed outside"


@dataclass(frozen=True)
class Place:
    """Where an attack runs from: the child's role, the device's name that confines it, what is asked of it."""

    name: str
    role: Role
    device: str
    reference: bool = False


PLACES = (
    Place("compile worker", "compile", "fake"),
    Place("device worker, cpu", "device", "fake"),
    Place("device worker, cuda", "device", "cuda:0"),
    Place("reference.py, cpu", "device", "fake", reference=True),
    Place("reference.py, cuda", "device", "cuda:0", reference=True),
)

EVERYWHERE = tuple(place.name for place in PLACES if not place.reference)


@dataclass
class Row:
    """One attack from one place."""

    place: str
    attack: str
    verdict: str

    @property
    def tried(self) -> bool:
        """An attack; not a control, nor the look at what changed outside."""
        return not self.attack.startswith((CONTROL, OUTCOME))

    @property
    def bad(self) -> bool:
        """An attack that succeeded, or a control that did not."""
        return self.verdict.startswith(SUCCEEDED) is not self.attack.startswith(CONTROL)


@dataclass
class Arena:
    """Folders, servers and a process to attack."""

    base: Path
    scratch: Scratch
    target: Target
    problem: Path
    walls: bool = True
    reports: dict[str, SandboxReport] = field(default_factory=dict)

    def child(self, place: Place, name: str) -> Child:
        """Not started."""
        child = Child(self.setup(place, name))
        if not self.walls:
            child._without_walls = "left out"
        return child

    def setup(self, place: Place, name: str) -> WorkerSetup:
        """Of a child; it sees its problem as a device worker does, and so does the compile worker here."""
        roots = import_roots(MAKER)
        return WorkerSetup(
            role=place.role,
            device=place.device,
            parent=os.getpid(),
            scratch=str(self.scratch.folder(name)),
            artifacts=str(self.scratch.artifacts),
            cache=str(self.base / "cache"),
            problem=str(self.problem),
            slow_cases=True,
            memory_bytes=MEMORY_BYTES,
            disk_bytes=DISK_BYTES,
            readable=readable_folders(roots, *problem_files(self.problem)),
            maker=MAKER,
        )

    def traces(self) -> list[str]:
        """What an attack left outside."""
        target = self.target
        left = [f"{path}" for folder in target.outside for path in Path(folder).glob("new")]
        left += [path for path in ("/dev/shm/new", "/tmp/kernelwright-new", "/etc/new", "/usr/new", "/run/new", "/var/tmp/new", "/new")
                 if Path(path).exists()]  # fmt: skip
        for path in (
            f"{target.home}/secret",
            target.database,
            target.hidden_database,
            target.artifact,
            f"{target.other_scratch}/note",
        ):
            if not Path(path).exists() or Path(path).read_text() != "precious":
                left.append(f"{path} changed")
        if _state(target.victim) != "T":
            left.append("another process was woken or ended")
        return left


@contextlib.contextmanager
def arena(*, walls: bool = True) -> Iterator[Arena]:
    """Everything that an attack may want, all of it of the same user as the harness."""
    with contextlib.ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="attacks-"))).resolve()
        base.chmod(0o755)
        scratch = Scratch(base)
        stack.callback(scratch.close)
        victim = subprocess.Popen(["sleep", "600"], env={"KEY": KEY})
        stack.callback(_end, victim)
        victim.send_signal(signal.SIGSTOP)
        port, name, path = _servers(stack, base)
        problem = _problem(base / "problem")
        target = Target(
            parent=os.getpid(),
            victim=victim.pid,
            port=port,
            name=name,
            socket=path,
            library=str(problem / "attack.so"),
            home=str(_folder(base / "home", "secret", ".netrc", ".ssh/id_ed25519")),
            database=str(_folder(base / "campaign", "memory.db") / "memory.db"),
            hidden_database=str(_folder(problem / ".kernelwright", "memory.db") / "memory.db"),
            artifact=str(_folder(scratch.artifacts, "0123.cubin") / "0123.cubin"),
            other_scratch=str(_folder(scratch.folder("other"), "note")),
            other_problem=str(_folder(base / "other-problem", "reference.py")),
            outside=(
                str(base), str(base / "home"), str(base / "campaign"), str(scratch.artifacts), str(problem),
                str(_folder(base / "cache")), str(scratch.folder("other")), str(scratch.path),
                str(Path(kernelwright.__file__).parent), str(Path.cwd()),
            ),
        )  # fmt: skip
        target.write(problem / "target.json")
        stack.enter_context(_environment(base / "home"))
        yield Arena(base, scratch, target, problem, walls)


async def attack_all(
    bombs: Collection[str] = EVERYWHERE, *, walls: bool = True
) -> tuple[list[Row], dict[str, SandboxReport]]:
    """Every attack from every place; bombs from the named ones. Without ``walls`` bubblewrap is left out."""
    rows: list[Row] = []
    with arena(walls=walls) as field_:
        for number, place in enumerate(PLACES):
            rows += await _attack_from(field_, place, f"child-{number}")
            for kind in BOMBS if place.name in bombs else ():
                rows.append(await _bomb_from(field_, place, kind, f"bomb-{number}"))
    return rows, field_.reports


async def _attack_from(field_: Arena, place: Place, name: str) -> list[Row]:
    child = field_.child(place, name)
    try:
        field_.reports[place.name] = (await child.start()).sandbox
        words = "reference" if place.reference else f"table {field_.problem / 'target.json'}"
        table = json.loads(await _ask(child, place, words, 120.0))
    except (HarnessError, ValueError) as error:
        table = [[f"{CONTROL} the attacks run", f"failed: {error}"]]
    finally:
        await child.kill()
    rows = [Row(place.name, attack, verdict) for attack, verdict in table]
    left = field_.traces()
    return [
        *rows,
        Row(
            place.name,
            OUTCOME,
            f"{SUCCEEDED}: {', '.join(left)}" if left else "blocked: nothing",
        ),
    ]


async def _bomb_from(field_: Arena, place: Place, kind: str, name: str) -> Row:
    """The parent stays well: little memory more, no process left, the next child works."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = field_.child(place, name)
    endless = kind in {"output", "hang"}
    try:
        await child.start()
        verdict = await _ask(child, place, f"bomb {kind}", SPIN_S if endless else BOMB_S)
    except StepTimeout:
        verdict = "blocked: killed by wall clock" if endless else f"{SUCCEEDED}: it had {BOMB_S:g} s"
    except ChildDied as error:
        verdict = f"blocked: {str(error).split(': ', 1)[-1]}"
    except HarnessError as error:
        verdict = f"blocked: {error}"
    finally:
        await child.kill()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if grown > GROWTH_BYTES:
        verdict = f"{SUCCEEDED}: the harness grew by {grown >> 20} MiB"
    shutil.rmtree(field_.scratch.path / name, ignore_errors=True)
    if left := _processes_with(str(field_.scratch.path)):
        verdict = f"{SUCCEEDED}: {len(left)} processes are left"
    return Row(place.name, f"bomb: {kind}", verdict)


async def _ask(child: Child, place: Place, words: str, timeout_s: float) -> str:
    if place.role == "compile":
        build = BuildRequest(source=words, macros={}, options={}, kernels=("k",), arch="sm_90")
        reply = await child.ask(Request(0, build=build), timeout_s)
        return reply.built.reason if reply.built else ""
    run = RunRequest(artifact=words, cases=(), timing=TimingProtocol())
    reply = await child.ask(Request(0, run=run), timeout_s)
    return reply.ran.reason if reply.ran else ""


def _processes_with(text: str) -> list[int]:
    """Processes whose command line has a text and which still run; the kernel may take a moment to end them."""
    found = []
    for _ in range(200):
        found = [
            number
            for number in _numbers()
            if text.encode() in _command(number) and _state(number) not in "ZX"
        ]
        if not found:
            break
        signal.sigtimedwait([], 0.02)
    return found


def _numbers() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _folder(path: Path, *files: str) -> Path:
    """A folder that any user may look into, with files whose content is known."""
    path.mkdir(exist_ok=True)
    for name in files:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text("precious")
    return path


def _problem(path: Path) -> Path:
    shutil.copytree(Path(kernelwright.__file__).parent / "problems/bundled/vector_add", path)
    (path / "reference.py").write_text(REFERENCE)
    source = Path(__file__).with_name("attack.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(path / "attack.so"), str(source)], check=True)
    return path


def _servers(stack: contextlib.ExitStack, base: Path) -> tuple[int, str, str]:
    """A TCP server, one on an abstract local name, one in the file system."""
    tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    name, path = f"kernelwright-attacks-{os.getpid()}", str(base / "socket")
    for address in (f"\0{name}", path):
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(address)
        server.listen()
    Path(path).chmod(0o777)
    return tcp.getsockname()[1], name, path


@contextlib.contextmanager
def _environment(home: Path) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(HOME=str(home), MODEL_API_KEY=KEY)
    descriptor = os.open(home / "secret", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        yield
    finally:
        os.close(descriptor)
        os.environ.clear()
        os.environ.update(before)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
