"""Starting, watching and ending children."""

import asyncio
import contextlib
import errno
import json
import os
import signal
import site
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from kernelwright.core.errors import HarnessError, UserError
from kernelwright.harness import processes
from kernelwright.harness.child import START_TRIES, Child
from kernelwright.harness.processes import (
    import_roots,
    kill_tree,
    readable_folders,
    scrubbed_environment,
    start_process,
)
from kernelwright.harness.sandbox import Layer
from kernelwright.harness.sandbox.bubblewrap import Enclosed
from kernelwright.harness.scratch import remove_abandoned
from kernelwright.harness.setup import Role, WorkerSetup
from tests.harness.support import names

PROJECT = Path(__file__).parents[2]


def child(tmp_path: Path, role: Role, maker: str = "FakeMaker", start_timeout_s: float = 60.0) -> Child:
    folders = {name: tmp_path / name for name in ("scratch", "artifacts", "cache")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    setup = WorkerSetup(
        role=role,
        device="fake",
        parent=os.getpid(),
        problem=str(PROJECT / "src/kernelwright/problems/bundled/vector_add"),
        readable=readable_folders(import_roots("tests")),
        maker=f"tests.harness.fake_device:{maker}",
        scratch=str(folders["scratch"]),
        artifacts=str(folders["artifacts"]),
        cache=str(folders["cache"]),
    )
    return Child(setup, start_timeout_s)


def gone(pid: int) -> bool:
    """Ended; a zombie whose new parent has not looked yet counts."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def until_gone(pids: list[int], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not all(map(gone, pids)):
            await asyncio.sleep(0.02)


async def test_a_python_that_cannot_be_run_is_the_user_s_to_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python").touch(0o644)
    monkeypatch.setattr("sys.executable", f"{tmp_path}/python")
    with pytest.raises(UserError, match=r"may not run .*/python, or .*: make the virtual environment anew"):
        await child(tmp_path, "probe").start()
    (tmp_path / "python").write_text("#!/nowhere\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr("kernelwright.harness.child.confined_command", bare)
    with pytest.raises(HarnessError, match=r"the compile worker cannot be started: .*No such file"):
        await child(tmp_path / "2", "compile").start()


async def test_too_many_processes_are_the_user_s_to_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr("kernelwright.harness.child.start_process", refuse)
    with pytest.raises(UserError, match=r"the compile worker cannot be started: .* processes: .*ulimit -u"):
        await child(tmp_path, "compile").start()


def bare(command: Sequence[str], view: object, folder: Path) -> Enclosed:
    """No walls."""
    return Enclosed(tuple(command), Layer("bubblewrap", holds=False))


async def test_a_probe_says_hello_and_ends(tmp_path: Path) -> None:
    probe = child(tmp_path, "probe")
    hello = await probe.start()
    assert hello.sandbox.layers
    assert hello.facts is None
    await probe.kill()
    await probe.kill()
    assert probe.process_id is None


async def test_a_slow_start_is_a_fault_of_ours(tmp_path: Path) -> None:
    slow = child(tmp_path, "device", "HangingMaker", start_timeout_s=1.5)
    with pytest.raises(HarnessError, match=r"the device worker does not start: no answer within 1\.5 s"):
        await slow.start()
    assert slow.process_id is None


async def test_nobody_is_left_of_a_start_that_is_cancelled(tmp_path: Path) -> None:
    starting = child(tmp_path, "device", "HangingMaker")
    task = asyncio.create_task(starting.start())
    while starting.process_id is None:
        await asyncio.sleep(0)
    process = starting.process_id
    task.cancel()
    await asyncio.sleep(0)
    await starting.kill()  # asked by whoever closes all, while the cancelled task does it
    assert gone(process)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_death_at_the_start_is_tried_again_and_then_told(tmp_path: Path) -> None:
    dying = child(tmp_path, "device", "DyingMaker")
    with pytest.raises(HarnessError, match="the driver is on fire"):
        await dying.start()
    assert (tmp_path / "scratch/starts").read_text() == "x" * START_TRIES


async def test_an_unknown_maker_is_told(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="NoSuchMaker"):
        await child(tmp_path, "compile", "NoSuchMaker").start()


async def test_prepare_runs_before_the_walls_go_up(tmp_path: Path) -> None:
    preparing = child(tmp_path, "prepare", "PreparingMaker")
    assert (await preparing.start()).sandbox.layers == ()
    assert (tmp_path / "cache/prepared").exists()
    await preparing.kill()


async def test_what_was_started_at_the_instant_of_the_kill_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not among the children yet when they are looked for."""
    program = (
        "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stdout
    late = int(await process.stdout.readline())
    monkeypatch.setattr(processes, "_children_of", lambda _: set())
    kill_tree(process.pid)
    await process.wait()
    await until_gone([process.pid, late])


async def test_who_is_cancelled_while_a_process_starts_leaves_nothing_of_it(tmp_path: Path) -> None:
    """What it has started by then does not end by itself."""
    program = f"sleep 600 & echo $! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; wait"
    starting = asyncio.create_task(start_process("sh", "-c", program))
    for _ in range(2):
        await asyncio.sleep(0)
    for _ in range(1000):
        if (tmp_path / "pid").exists():
            break
        time.sleep(0.01)  # noqa: ASYNC251 - the loop shall not hear yet that the process has started
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await until_gone([int((tmp_path / "pid").read_text())])


async def test_who_is_cancelled_while_nothing_can_be_started_is_told_so() -> None:
    starting = asyncio.create_task(start_process("/nowhere/program"))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting


async def test_what_a_child_started_ends_with_it() -> None:
    """Also in sessions of their own, as compilers and runners are."""
    program = (
        "import subprocess, sys, time\n"
        'code = \'import subprocess, time; p = subprocess.Popen(["sleep", "600"], start_new_session=True);\'\n'
        "code += 'print(p.pid, flush=True); time.sleep(600)'\n"
        "p = subprocess.Popen([sys.executable, '-c', code], start_new_session=True)\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(  # noqa: ASYNC220 - a tree of plain processes
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as root:
        assert root.stdout is not None
        pids = [int(root.stdout.readline()) for _ in range(2)]
        kill_tree(root.pid)
        root.wait()
    await until_gone(pids)


async def test_children_end_when_the_parent_is_killed(tmp_path: Path) -> None:
    """And the next harness removes the scratch that is left."""
    program = (
        "import asyncio, json\n"
        "from pathlib import Path\n"
        "from tests.harness.support import candidate, fake_harness\n"
        "async def main():\n"
        f"    harness = fake_harness(Path({str(tmp_path)!r}))\n"
        "    await harness.start()\n"
        "    tasks = [asyncio.create_task(harness.compile(candidate(f'// compile: hang\\n// {n}'))) for n in range(2)]\n"
        "    while sum(c.process_id is not None for c in harness._children) < 3:\n"
        "        await asyncio.sleep(0.01)\n"
        "    print(json.dumps([c.process_id for c in harness._children if c.process_id]), flush=True)\n"
        "    await asyncio.gather(*tasks)\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(import_roots("tests"))}
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, env=environment, cwd=PROJECT
    )
    assert parent.stdout is not None
    try:
        pids = json.loads(await asyncio.wait_for(parent.stdout.readline(), 30))
    finally:
        with contextlib.suppress(ProcessLookupError):
            parent.send_signal(signal.SIGKILL)
        await parent.communicate()
    assert len(pids) == 3
    await until_gone(pids)
    assert len(names(tmp_path)) == 1
    remove_abandoned(tmp_path)
    assert names(tmp_path) == []


def test_the_environment_keeps_the_toolchain_and_nothing_else() -> None:
    outer = {
        "PATH": "/bin",
        "CUDA_PATH": "/cuda",
        "MODEL_API_KEY": "secret",
        "HOME": "/home/user",
        "LD_PRELOAD": "x",
    }
    inner = scrubbed_environment("/scratch", ["/a", "/b"], outer)
    assert inner["PATH"] == "/bin"
    assert inner["CUDA_PATH"] == "/cuda"
    assert inner["HOME"] == inner["TMPDIR"] == "/scratch"
    assert inner["PYTHONPATH"] == "/a:/b"
    assert not {"MODEL_API_KEY", "LD_PRELOAD", "PYTHONUSERBASE"} & set(inner)


def test_packages_of_the_user_are_found_without_the_home() -> None:
    inner = scrubbed_environment("/scratch", ["/a", site.getusersitepackages()], {})
    assert inner["PYTHONUSERBASE"] == site.getuserbase()
    assert "PYTHONNOUSERSITE" not in inner


async def test_a_strict_child_refuses_to_go_without_a_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))  # no bwrap there
    strict = child(tmp_path, "probe")
    strict._strict = True
    with pytest.raises(
        UserError, match=r"--strict: the sandbox of the probe worker lacks bubblewrap.*kernelwright doctor"
    ):
        await strict.start()
    assert strict.process_id is None


async def test_a_child_goes_without_bubblewrap_where_there_is_none_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin/bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    probe = child(tmp_path, "probe")
    layer = (await probe.start()).sandbox.layers[0]
    await probe.kill()
    assert (layer.name, layer.holds) == ("bubblewrap", False)
    assert layer.detail == "bwrap: No permissions to create a new namespace"
