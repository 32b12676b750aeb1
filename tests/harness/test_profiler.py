"""The profiler with a pretended ncu that plays a report."""

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.core.errors import UserError
from kernelwright.core.launch import LaunchSpec, ResolvedPlan
from kernelwright.harness.processes import import_roots, readable_folders
from kernelwright.harness.profiler import Profiler
from kernelwright.harness.protocol import ProfileResult
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.watched import Confinement
from kernelwright.profiling.names import LEVEL1, SM
from tests.harness.support import candidate, fake_harness

CASE = "N=65536"
PLAN = ResolvedPlan(tuple(LaunchSpec(name, (4, 1, 1), (256, 1, 1), 0, ()) for name in ("first", "second")))
NO_WALLS = (Confinement(walls=False),)
FAKE = """#!{python} -P
import json, sys, time
from dataclasses import replace
from pathlib import Path
arguments = sys.argv[1:]
play = json.loads({play!r})
with Path({calls!r}).open("a") as file:
    file.write(json.dumps(arguments) + "\\n")
if "--version" in arguments:
    print("NVIDIA (R) Nsight Compute\\nVersion 2025.3.1.0")
elif "--query-metrics" in arguments:
    print(play["names"])
elif "--import" in arguments:
    print(play.get("source", ""))
else:
    folder = Path(arguments[arguments.index("--log-file") + 1]).parent
    without = arguments[-1]
    scene = play["scenes"].get(without, play["scenes"]["*"])
    Path(folder / "report.csv").write_text(scene.get("log", ""))
    if "progress" in scene:
        (folder / "progress.json").write_text(scene["progress"])
    print(scene.get("print", ""), flush=True)
    time.sleep(scene.get("sleep", 0))
    sys.exit(scene.get("code", 0))
"""
REPORT = (
    f'==PROF== Connected\n"ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum","{SM}"\n'
    '"","","","","ns","%"\n"0","first","(256, 1, 1)","(4, 1, 1)","1,000","50"\n'
    '"1","second","(256, 1, 1)","(4, 1, 1)","3,000","nan"\n'
)
DONE = json.dumps({"stage": "performed", "missing": [], "buffers": {}, "error": ""})
FAILED = json.dumps({"stage": "loaded", "missing": [], "buffers": {"C": 1}, "error": "the kernels crashed"})
GOOD = {"log": REPORT, "progress": DONE}
NAMES = "\n".join(f"{name.partition('.')[0]}   text" for name in LEVEL1 if "xu" not in name)
FORBIDDEN = {"log": "==ERROR== ERR_NVGPUCTRPERM - no permission\n", "progress": DONE, "code": 1}


@pytest.fixture
def setup(tmp_path: Path) -> WorkerSetup:
    for name in ("scratch", "artifacts", "cache"):
        (tmp_path / name).mkdir()
    return WorkerSetup(
        role="device",
        device="cuda:0",
        parent=os.getpid(),
        scratch=str(tmp_path / "scratch"),
        artifacts=str(tmp_path / "artifacts"),
        cache=str(tmp_path / "cache"),
        readable=readable_folders(import_roots()),
    )


def calls(setup: WorkerSetup) -> list[list[str]]:
    lines = (Path(setup.artifacts) / "calls").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def profiler(
    setup: WorkerSetup,
    scenes: dict[str, object],
    *,
    source: str = "",
    limit_s: float = 20.0,
    confinements: tuple[Confinement, ...] = NO_WALLS,
) -> Profiler:
    path = Path(setup.artifacts) / "ncu"
    play = json.dumps({"names": NAMES, "scenes": scenes, "source": source})
    path.write_text(FAKE.format(python=sys.executable, play=play, calls=f"{setup.artifacts}/calls"))
    path.chmod(0o755)
    return Profiler(setup, arch="sm_90a", executable=str(path), limit_s=limit_s, confinements=confinements)


async def run(made: Profiler, source: str = "") -> ProfileResult:
    return await made.run("any.cubin", CASE, PLAN, source)


async def test_counters_of_every_launch(setup: WorkerSetup) -> None:
    result = await run(profiler(setup, {"*": GOOD}))
    assert result.status == "profiled", result
    assert [(k.kernel, k.time_ns) for k in result.kernels] == [("first", 1000.0), ("second", 3000.0)]
    assert result.kernels[1].metrics.get(SM) is None
    assert result.raw == REPORT
    assert result.seconds > 0


async def test_the_call_leaves_clocks_alone_and_flushes_caches(setup: WorkerSetup) -> None:
    await run(profiler(setup, {"*": GOOD}))
    command = " ".join(calls(setup)[0])
    for option in (
        "--clock-control none",
        "--cache-control all",
        "--replay-mode kernel",
        "--launch-count 2",
        "--print-units base",
    ):
        assert option in command
    asked = calls(setup)[0][calls(setup)[0].index("--metrics") + 1]
    assert tuple(asked.split(",")) == LEVEL1


async def test_names_that_did_not_come_are_told_and_looked_up_once(setup: WorkerSetup) -> None:
    made = profiler(setup, {"*": GOOD})
    first, second = await run(made), await run(made)
    told = next(note for note in first.notes if note.startswith("unknown, not 0"))
    assert "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active (no such name for gh100)" in told
    assert f"{SM}" not in told
    assert first.notes == second.notes
    assert sum("--query-metrics" in call for call in calls(setup)) == 1
    again = profiler(setup, {"*": GOOD})
    await run(again)
    assert sum("--query-metrics" in call for call in calls(setup)) == 1  # kept in the cache


async def test_layers_are_left_out_until_counters_come(setup: WorkerSetup) -> None:
    confinements = (Confinement(walls=False), Confinement(walls=False, without=("seccomp", "user")))
    made = profiler(setup, {"*": FORBIDDEN, "seccomp,user": GOOD}, confinements=confinements)
    assert (await run(made)).status == "profiled"
    assert (await run(made)).status == "profiled"
    assert [call[-1] for call in calls(setup) if "--log-file" in call] == ["", "seccomp,user", "seccomp,user"]


async def test_a_crash_of_the_candidate_leaves_out_no_layer(setup: WorkerSetup) -> None:
    confinements = (Confinement(walls=False), Confinement(walls=False, without=("seccomp",)))
    made = profiler(setup, {"*": {"progress": FAILED, "code": 1}}, confinements=confinements)
    result = await run(made)
    assert result.status == "failed"
    assert "the kernels crashed" in result.reason
    assert len(calls(setup)) == 1


async def test_counters_that_are_not_permitted_come_with_the_mend(setup: WorkerSetup) -> None:
    result = await run(profiler(setup, {"*": FORBIDDEN}))
    assert result.status == "not_permitted"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in result.reason


@pytest.mark.parametrize(
    ("scene", "reason"),
    [
        ({"code": 7}, "exit code 7"),
        ({"print": "bash: nothing there", "code": 1}, "nothing there"),
        ({"log": "==ERROR== Failed to connect\n", "progress": DONE}, "Failed to connect"),
        ({"log": REPORT[:120], "progress": DONE}, "no counters"),
    ],
)
async def test_no_counters_is_told_with_why(
    setup: WorkerSetup, scene: dict[str, object], reason: str
) -> None:
    result = await run(profiler(setup, {"*": scene}))
    assert result.status == "failed"
    assert reason in result.reason
    assert result.kernels == ()


async def test_a_tool_that_hangs_is_ended(setup: WorkerSetup) -> None:
    result = await run(profiler(setup, {"*": {"sleep": 60}}, limit_s=0.5))
    assert result.status == "timed_out"
    assert result.seconds < 20


async def test_level_2_names_the_hottest_lines(setup: WorkerSetup) -> None:
    head = '"Line No","Source","Address","Source","# Samples","stall_wait"\n'
    view = head + '"2","b","-","-","90","90"\n"1","a","-","-","10","10"\n'
    result = await run(profiler(setup, {"*": GOOD}, source=view), "first\nsecond\n")
    assert [(line.line, line.text, line.share) for line in result.lines] == [
        (2, "second", 0.9),
        (1, "first", 0.1),
    ]
    assert any("SourceCounters" in call for call in calls(setup))


async def test_without_the_tool_it_is_not_available(
    setup: WorkerSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelwright.harness.profiler.find_tool", lambda _: None)
    result = await run(Profiler(setup))
    assert result.status == "not_available"
    assert "install Nsight Compute" in result.reason


async def test_the_harness_refuses_unknown_cases_and_other_devices(tmp_path: Path) -> None:
    async with fake_harness(tmp_path) as harness:
        with pytest.raises(UserError, match="N=65536"):
            await harness.profile(candidate(), "N=1")
        result = await harness.profile(candidate(), harness.cases[0].id)
    assert result.status == "not_available"


async def test_nobody_is_timed_beside_a_profile(tmp_path: Path) -> None:
    """The device lane is taken while the tool runs, and given back."""
    states: list[bool] = []
    async with fake_harness(tmp_path) as harness:

        class Watching:
            async def run(self, *_: object) -> ProfileResult:
                try:
                    async with asyncio.timeout(0.2), harness._lane.turns.shared():
                        states.append(True)
                except TimeoutError:
                    states.append(False)
                return ProfileResult("profiled")

        harness._hello = replace(harness._hello, facts=replace(harness.facts, kind="cuda"))
        harness._profiler = Watching()
        assert (await harness.profile(candidate(), harness.cases[0].id)).status == "profiled"
        async with asyncio.timeout(5), harness._lane.turns.shared():
            states.append(True)
    assert states == [False, True]
