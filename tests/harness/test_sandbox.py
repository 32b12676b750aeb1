"""Attacks from inside both kinds of children: each is refused."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

import kernelwright
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.processes import import_roots, readable_folders
from kernelwright.harness.sandbox import Layer, SandboxReport, _try
from tests.harness.support import candidate, fake_harness, names

module_loop = pytest.mark.asyncio(loop_scope="module")
ROLES = ("compile", "run")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a secret, a key in the environment, and servers that listen."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "secret").write_text("secret")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("MODEL_API_KEY", "not-a-real-key")
        yield folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory, home: Path) -> AsyncIterator[LocalHarness]:
    descriptor = os.open(home / "secret", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        async with fake_harness(tmp_path_factory.mktemp("scratch"), compile_workers=1) as started:
            yield started
    finally:
        os.close(descriptor)


async def said(harness: LocalHarness, where: str, text: str) -> str:
    """What a child answers to a line of source."""
    work = candidate(f"// {where}: {text}")
    compiled = await harness.compile(work)
    return compiled.reason if where == "compile" else (await harness.benchmark(work, compiled)).reason


def needs(harness: LocalHarness, *layers: str) -> None:
    lacking = [layer for layer in harness.sandbox.layers if layer.name in layers and not layer.holds]
    if lacking:
        pytest.skip(f"no {lacking[0].name} here: {lacking[0].detail}")


async def assert_refused(harness: LocalHarness, text: str, *layers: str) -> None:
    needs(harness, *layers)
    for where in ROLES:
        assert (await said(harness, where, f"try {text}")).startswith("refused"), f"{where}: {text}"


@module_loop
async def test_network(harness: LocalHarness) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        await assert_refused(harness, f"tcp {server.getsockname()[1]}", "seccomp")


@module_loop
@pytest.mark.parametrize("abstract", [True, False])
async def test_unix_sockets(harness: LocalHarness, tmp_path: Path, abstract: bool) -> None:
    path = f"\0kernelwright-{os.getpid()}" if abstract else str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        await assert_refused(harness, f"unix {path.replace(chr(0), '@')}", "seccomp")


@module_loop
async def test_reading_the_home(harness: LocalHarness, home: Path) -> None:
    await assert_refused(harness, f"read {home / 'secret'}", "landlock")


@module_loop
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/proc/PARENT/environ", "/proc/PARENT/mem", "/proc/PARENT/cmdline"]
)
async def test_reading_others(harness: LocalHarness, path: str) -> None:
    await assert_refused(harness, f"read {path}", "landlock")


@module_loop
async def test_writing_outside(harness: LocalHarness, home: Path, tmp_path: Path) -> None:
    package = Path(kernelwright.__file__).parent
    places = [
        home / "secret",
        tmp_path / "new",
        package / "new",
        Path("/dev/shm/new"),
        harness._cache / "new",
    ]
    for place in places:
        await assert_refused(harness, f"write {place}", "landlock")
        assert "new" not in names(place.parent)
    assert (home / "secret").read_text() == "secret"


@module_loop
async def test_the_device_worker_cannot_change_binaries(harness: LocalHarness) -> None:
    needs(harness, "landlock")
    target = Path((await harness.compile(candidate("// a binary"))).artifact)
    assert (await said(harness, "run", f"try write {target}")).startswith("refused")


@module_loop
async def test_its_own_scratch_is_writable(harness: LocalHarness) -> None:
    for where in ROLES:
        assert await said(harness, where, "try write notes") == "ALLOWED"


@module_loop
async def test_signalling_the_parent(harness: LocalHarness) -> None:
    await assert_refused(harness, "signal", "signals")


@module_loop
@pytest.mark.parametrize("name", ["ptrace", "unshare", "mount", "clone", "bpf"])
async def test_system_calls(harness: LocalHarness, name: str) -> None:
    await assert_refused(harness, f"call {name}", "seccomp")


@module_loop
async def test_limits_of_the_parent(harness: LocalHarness) -> None:
    await assert_refused(harness, "prlimit", "seccomp")


@module_loop
async def test_the_environment_is_scrubbed(harness: LocalHarness, home: Path) -> None:
    for where in ROLES:
        environment = await said(harness, where, "environment")
        assert "PATH=" in environment
        assert "not-a-real-key" not in environment
        assert str(home) not in environment


@module_loop
async def test_only_its_own_descriptors_are_open(harness: LocalHarness) -> None:
    for where in ROLES:
        numbers = (await said(harness, where, "descriptors")).split()
        assert numbers[:3] == ["0", "1", "2"]
        assert len(numbers) == 4, numbers


@module_loop
async def test_every_layer_reports(harness: LocalHarness) -> None:
    layers = {layer.name: layer for layer in harness.sandbox.layers}
    assert layers["single thread"].holds, layers["single thread"]
    assert layers["capabilities"].holds
    assert layers["ends with parent"].holds
    assert all(layer.detail for layer in layers.values())
    assert harness.sandbox.missing == tuple(name for name, layer in layers.items() if not layer.holds)


def test_nothing_but_packages_is_importable_or_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    roots = import_roots()
    assert str(Path(kernelwright.__file__).resolve().parents[1]) in roots
    assert str(tmp_path) not in roots
    assert str(tmp_path) not in readable_folders(roots)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a user to drop")
def test_root_becomes_nobody_where_that_can_work() -> None:
    """In a bare interpreter of its own; what it needs is loaded, so an unreadable Python does not matter."""
    program = (
        "import ctypes, os, sys\n"
        "from pathlib import Path\n"
        "from kernelwright.harness.sandbox.privileges import drop_user\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "try:\n"
        "    drop_user(libc, [Path(sys.argv[1])], [Path(sys.argv[2])])\n"
        "except OSError as error:\n"
        "    print('stays', os.geteuid(), error)\n"
        "else:\n"
        "    print('now', os.geteuid(), os.getegid(), os.getgroups(), os.stat(sys.argv[1]).st_uid)\n"
    )
    with tempfile.TemporaryDirectory() as name:
        (folder := Path(name)).chmod(0o711)
        (own := folder / "own").mkdir()
        (closed := folder / "closed").mkdir(mode=0o700)
        answers = [
            subprocess.run(
                [sys.executable, "-c", program, own, readable], capture_output=True, text=True, check=True,
                env={"PYTHONPATH": os.pathsep.join(import_roots())},
            ).stdout.strip()
            for readable in ("/usr", closed)
        ]  # fmt: skip
        assert answers[0] == "now 65534 65534 [] 65534"
        assert answers[1] == f"stays 0 stays root: another user could not read {closed}"


def test_a_layer_that_cannot_be_had_is_reported_with_the_reason() -> None:
    def refuse() -> str:
        raise OSError("the kernel has no landlock")

    report = SandboxReport((_try("landlock", refuse), _try("seccomp", lambda: "no sockets")))
    assert report.layers[0] == Layer("landlock", holds=False, detail="the kernel has no landlock")
    assert report.missing == ("landlock",)
