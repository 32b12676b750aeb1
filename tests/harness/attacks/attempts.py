"""What hostile code tries from inside a child. Every attempt answers ``blocked: WHY`` or ``SUCCEEDED``."""

import contextlib
import ctypes
import errno
import itertools
import json
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

SUCCEEDED = "SUCCEEDED"
KEY = "not-a-real-key"


@dataclass(frozen=True)
class Target:
    """What there is to attack; paths are absolute. ``outside`` are folders that no child may write to."""

    parent: int
    victim: int
    port: int
    name: str
    socket: str
    library: str
    home: str
    database: str
    hidden_database: str
    artifact: str
    other_scratch: str
    other_problem: str
    outside: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> "Target":
        values = json.loads(path.read_text())
        return cls(**{**values, "outside": tuple(values["outside"])})

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


class _Target(ctypes.Structure):
    """``struct target`` of attack.c."""

    _fields_ = (
        ("parent", ctypes.c_int), ("port", ctypes.c_int), ("name", ctypes.c_char_p),
        ("secret", ctypes.c_char_p), ("mine", ctypes.c_char_p),
    )  # fmt: skip


def attempt(step: Callable[[], object]) -> str:
    """Try one step: it succeeds when it raises nothing."""
    try:
        step()
    except OSError as error:
        return f"blocked: {errno.errorcode.get(error.errno or 0, type(error).__name__)}"
    except Refused as refusal:
        return f"blocked: {refusal}"
    return SUCCEEDED


class Refused(Exception):  # noqa: N818 - reads as what happened
    """An attempt that failed without an error of the system."""


def attempt_all(target: Target, own: Path) -> list[tuple[str, str]]:
    """Every attack that leaves the child alive. ``own`` is a folder that it may write in."""
    table = [("(control) write in its own scratch", attempt(lambda: (own / "note").write_text("x")))]
    table += [(name, attempt(step)) for name, step in _file_attacks(target, own)]
    table += [(name, attempt(step)) for name, step in _process_attacks(target)]
    return table + _system_calls(target, own)


def _file_attacks(target: Target, own: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    home, secret = Path(target.home), Path(target.home) / "secret"
    readable = [
        secret, home / ".ssh/id_ed25519", home / ".netrc", target.database, target.hidden_database, "/etc/shadow", "/etc/passwd",
        f"{target.other_problem}/reference.py", f"{target.other_scratch}/note", "/dev/mem", "/dev/kmsg",
        *(f"/proc/{target.parent}/{name}" for name in ("environ", "cmdline", "maps", "mem")),
        f"/proc/{target.parent}/cwd/secret", f"/proc/{target.parent}/root/etc/passwd", f"/proc/{target.victim}/environ",
        "/proc/1/environ", "/proc/1/root/etc/passwd", f"/proc/self/root{secret}", "/proc/kcore", "/sys/kernel/debug",
    ]  # fmt: skip
    for path in readable:
        yield f"read {_shown(path, target)}", lambda path=path: Path(path).read_bytes()
    for folder in ("/root", home, "/home", f"/proc/{target.parent}/fd"):
        yield f"list {_shown(folder, target)}", lambda folder=folder: list(Path(folder).iterdir())
    writable = [
        *(f"{folder}/new" for folder in target.outside), secret, target.database, target.artifact, f"{target.other_scratch}/note",
        "/dev/shm/new", "/tmp/kernelwright-new", "/etc/new", "/usr/new", "/run/new", "/var/tmp/new", "/dev/tty", "/new",
        "/proc/sys/kernel/core_pattern", f"/proc/{target.parent}/oom_score_adj", f"/proc/{target.parent}/mem",
    ]  # fmt: skip
    for path in writable:
        yield f"write {_shown(path, target)}", lambda path=path: _append(path)
    yield from _tricks(target, own, secret)


def _tricks(target: Target, own: Path, secret: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    outside = Path(target.outside[0])
    yield "read through a symbolic link", lambda: _link(own / "to-secret", secret).read_bytes()
    yield (
        "write through a symbolic link",
        lambda: (_link(own / "to-outside", outside) / "new").write_text("x"),
    )
    yield "hard link to a secret", lambda: os.link(secret, own / "hard")
    yield "hard link to a binary", lambda: os.link(target.artifact, own / "hard-binary")
    yield "rename a binary away", lambda: Path(target.artifact).rename(own / "moved")
    yield "rename into another folder", lambda: _file(own / "mine").rename(outside / "new")
    yield "rename over a binary", lambda: _file(own / "mine").replace(target.artifact)
    yield "remove a binary", Path(target.artifact).unlink
    yield "remove the database", Path(target.database).unlink
    yield "make a folder outside", (outside / "new").mkdir
    yield "make a device node", lambda: os.mknod(own / "mem", 0o600 | 0o020000, os.makedev(1, 1))
    yield "climb out of the scratch", (own / "../../../../../../../.." / str(secret)[1:]).read_bytes
    yield "lock the database", partial(os.open, target.database, os.O_RDWR)
    yield "file beyond the limit", lambda: os.truncate(_file(own / "big"), 1 << 45)


def _process_attacks(target: Target) -> Iterator[tuple[str, Callable[[], object]]]:
    yield "connect a local socket of the file system", partial(_connect, target.socket)
    yield "secrets in its own environment", _secrets
    yield "inherited descriptors", _descriptors
    yield "open files without end", _exhaust_files
    yield "raise its own limits", _raise_limits
    yield "be spared when memory is short", lambda: Path("/proc/self/oom_score_adj").write_text("-1000")
    yield "find the harness among the processes", lambda: _find(target.parent)
    for program in ("su", "sudo", "mount", "ping"):
        yield f"setuid program {program}", lambda program=program: _become_root(program)


def _system_calls(target: Target, own: Path) -> list[tuple[str, str]]:
    library = ctypes.CDLL(target.library)
    library.attack_name.restype = ctypes.c_char_p
    secret = f"{target.home}/secret".encode()
    table = []
    for role, process in (("", target.parent), (" (another process)", target.victim)):
        aim = _Target(process, target.port, target.name.encode(), secret, str(own).encode())
        for number in range(library.attack_count()):
            name = library.attack_name(number).decode()
            if role and "the harness" not in name:
                continue
            code = library.attack_run(number, ctypes.byref(aim))
            verdict = f"blocked: {errno.errorcode.get(code, code)}" if code else SUCCEEDED
            table.append((f"{name}{role}", verdict))
    return table


def _shown(path: object, target: Target) -> str:
    """A path as the table names it: the same on every machine and in every run."""
    names = {
        target.home: "HOME", target.database: "DATABASE", target.hidden_database: "PROBLEM/.kernelwright/memory.db",
        target.artifact: "ARTIFACT", target.other_scratch: "OTHER-SCRATCH", target.other_problem: "OTHER-PROBLEM",
        f"/proc/{target.parent}/": "/proc/HARNESS/", f"/proc/{target.victim}/": "/proc/OTHER/",
        **{folder: f"OUTSIDE-{number}" for number, folder in enumerate(target.outside)},
    }  # fmt: skip
    text = str(path)
    for real in sorted(names, key=len, reverse=True):
        text = text.replace(real, names[real])
    return text


def _append(path: str | Path) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(handle, b"x")
    os.close(handle)


def _link(path: Path, to: Path) -> Path:
    path.unlink(missing_ok=True)
    path.symlink_to(to)
    return path


def _file(path: Path) -> Path:
    path.write_text("forged")
    return path


def _connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def _secrets() -> None:
    with contextlib.suppress(OSError):
        if KEY.encode() in Path("/proc/self/environ").read_bytes():
            return
    if not any(KEY in value for value in os.environ.values()):
        raise Refused("scrubbed")


def _descriptors() -> None:
    """Anything but /dev/null, the log and the connection."""
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            to = str(link.readlink())
            known = to.startswith(
                ("socket:", "pipe:", "anon_inode:", "/memfd:", "/proc/", "/dev/null", "/dev/nvidia")
            )
            if not known:
                return
    raise Refused("none but its own")


def _exhaust_files() -> None:
    opened = []
    try:
        opened.extend(os.open("/dev/null", os.O_RDONLY) for _ in range(100_000))
    finally:
        for handle in opened:
            os.close(handle)


def _raise_limits() -> None:
    for kind in (resource.RLIMIT_DATA, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
        try:
            resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        except ValueError:
            continue
        return
    raise Refused("EPERM")


def _find(parent: int) -> None:
    for entry in Path("/proc").iterdir():
        if entry.name == str(parent):
            (entry / "stat").read_bytes()
            return
    raise Refused("not there")


def _become_root(program: str) -> None:
    """Whether a setuid program hands out power; harmless arguments."""
    argument = {"su": ["-c", "id -u"], "sudo": ["-n", "id", "-u"]}.get(program, ["--version"])
    done = subprocess.run(
        [program, *argument],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    if done.returncode or done.stdout.strip() != "0" or os.geteuid() == 0:
        raise Refused("no new privileges")


def _fork_bomb() -> str:
    """Processes that wait: as many as it gets, but gentle to the machine."""
    for number in range(3000):
        try:
            process = os.fork()
        except OSError as error:
            return f"blocked: {errno.errorcode[error.errno or 0]} after {number}"
        if process == 0:
            signal.pause()
    return SUCCEEDED


def _memory_bomb() -> str:
    kept = []
    try:
        kept.extend(bytearray(1 << 30) for _ in range(64))
    except MemoryError:
        return f"blocked: ENOMEM after {len(kept)} GiB"
    return SUCCEEDED


def _shared_memory_bomb() -> str:
    """Counted by no resource limit."""
    kept = []
    while True:
        kept.append(block := mmap.mmap(-1, 64 << 20))
        block[:] = b"x" * len(block)


def _disk_bomb() -> str:
    for number in itertools.count():
        with Path(f"fill-{number}").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 64 << 20)
    return SUCCEEDED


def _file_bomb() -> str:
    for number in itertools.count():
        Path(f"many-{number}").touch()
    return SUCCEEDED


def _write_for_ever(handle: int) -> str:
    while True:
        os.write(handle, b"x" * 65536)


def _hang() -> str:
    while True:
        pass


BOMBS: dict[str, Callable[[], str]] = {
    "fork": _fork_bomb,
    "memory": _memory_bomb,
    "shared memory": _shared_memory_bomb,
    "disk": _disk_bomb,
    "many files": _file_bomb,
    "output": lambda: _write_for_ever(1),
    "endless reply": lambda: _write_for_ever(int(sys.argv[2])),
    "hang": _hang,
}
"""Take without end; the parent watches. Words from those that are stopped by an error."""
