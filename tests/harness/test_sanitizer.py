"""The sanitizer with a pretended compute-sanitizer that plays a report, and the watched process on a pretended driver."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import kernelwright.devices.cuda as cuda_device
from kernelwright.core.launch import KernelArgument, LaunchSpec, ResolvedPlan, ScratchSpec
from kernelwright.core.outcome import Status
from kernelwright.devices.base import RunResult
from kernelwright.harness.processes import import_roots, readable_folders
from kernelwright.harness.protocol import SanitizerResult
from kernelwright.harness.sanitizer import TOOLS, Confinement, Sanitizer, checked_mode_result, find_sanitizer
from kernelwright.harness.sanitizer_job import Look, Progress, read_progress
from kernelwright.harness.setup import WorkerSetup
from kernelwright.problems.loader import load_problem
from tests.harness.support import candidate, fake_harness
from tests.harness.test_sanitizer_log import CLEAN, INITCHECK, MEMCHECK, RACECHECK, SYNCCHECK, WARNING

CASE = "N=65536"
SIZE = 65536
NO_WALLS = (Confinement(walls=False),)
CLEAN_RACES = (
    "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
)
FAKE = """#!{python} -P
import json, os, subprocess, sys, time
from pathlib import Path
arguments = sys.argv[1:]
options = dict(zip(arguments[:14:2], arguments[1:14:2]))
tool, folder = options["--tool"], Path(options["--log-file"]).parent
with (folder / "calls").open("a") as file:
    file.write(json.dumps([tool, arguments[-1]]) + "\\n")
play = json.loads({play!r})
scene = play.get(tool) or play["*"]
if isinstance(scene, list):
    scene = scene[min(len((folder / "calls").read_text().splitlines()), len(scene)) - 1]
if "log" in scene:
    Path(options["--log-file"]).write_text(scene["log"])
if "progress" in scene:
    (folder / "progress.json").write_text(scene["progress"])
if scene.get("run"):
    code = subprocess.run(arguments[14:], check=False).returncode
    sys.exit(scene["code"] or code)
print(scene.get("print", ""), flush=True)
time.sleep(scene.get("sleep", 0))
if scene["code"] < 0:
    os.kill(os.getpid(), -scene["code"])
sys.exit(scene["code"])
"""
DONE = json.dumps({"stage": "performed", "missing": [], "buffers": {"C": 0x7F5D2C000000}, "error": ""})
LOADED = json.dumps({"stage": "loaded", "missing": [], "buffers": {}, "error": ""})
PASSES = {
    "*": {"log": CLEAN, "progress": DONE, "code": 0},
    "racecheck": {"log": CLEAN_RACES, "progress": DONE, "code": 0},
}
PLAN = ResolvedPlan(
    (
        LaunchSpec(
            "right",
            (4, 1, 1),
            (256, 1, 1),
            0,
            (*(KernelArgument(name, "float32") for name in "ABC"), KernelArgument("N", "int32", SIZE)),
        ),
    ),
    (ScratchSpec("partial", "float32", 33),),
)


@pytest.fixture
def setup(tmp_path: Path) -> WorkerSetup:
    for name in ("scratch", "artifacts", "cache"):
        (tmp_path / name).mkdir()
    (tmp_path / "artifacts" / "any.cubin").write_bytes(b"\x7fELF")
    problem = load_problem("vector_add").folder.resolve()
    return WorkerSetup(
        role="device",
        device="cuda:0",
        parent=os.getpid(),
        scratch=str(tmp_path / "scratch"),
        artifacts=str(tmp_path / "artifacts"),
        cache=str(tmp_path / "cache"),
        problem=str(problem),
        readable=readable_folders(import_roots(), problem),
    )


def tool(setup: WorkerSetup, play: dict[str, object]) -> str:
    """A compute-sanitizer that plays: by tool's name, or ``*`` for every other; a list is played call by call."""
    path = Path(setup.artifacts) / "compute-sanitizer"
    path.write_text(FAKE.format(python=sys.executable, play=json.dumps(play)))
    path.chmod(0o755)
    return str(path)


def calls(setup: WorkerSetup) -> list[list[str]]:
    """Tool and layers left out of every call, tool by tool."""
    files = sorted(Path(setup.scratch).glob("*/calls"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


async def run(
    setup: WorkerSetup,
    play: dict[str, object],
    *,
    limit_s: float = 20.0,
    confinements: tuple[Confinement, ...] = NO_WALLS,
) -> SanitizerResult:
    sanitizer = Sanitizer(setup, executable=tool(setup, play), limit_s=limit_s, confinements=confinements)
    return await sanitizer.run(f"{setup.artifacts}/any.cubin", [Look(CASE, PLAN)])


async def test_a_clean_candidate_passes_every_tool(setup: WorkerSetup) -> None:
    result = await run(setup, PASSES)
    assert result.status is Status.MEASURED, result
    assert result.tools == ("memcheck", "racecheck", "initcheck", "synccheck")
    assert result.reason == ""
    assert result.seconds > 0


@pytest.mark.parametrize(
    ("name", "log", "reason"),
    [
        ("memcheck", MEMCHECK, "Invalid __global__ write of size 4 bytes in kernel 'k' (candidate.cu:12)"),
        ("racecheck", RACECHECK, "Race reported between"),
        ("initcheck", INITCHECK, "Uninitialized __global__ memory read"),
        ("synccheck", SYNCCHECK, "Barrier error detected"),
    ],
)
async def test_a_finding_of_any_tool_counts(setup: WorkerSetup, name: str, log: str, reason: str) -> None:
    result = await run(setup, {**PASSES, name: {"log": log, "progress": DONE, "code": 9}})
    assert result.status is Status.WRONG
    assert result.reason.startswith(f"{name}: {reason}")
    assert {call[0] for call in calls(setup)} == set(TOOLS)
    assert set(result.tools) == set(TOOLS) - {name}
    if name == "memcheck":
        assert "1 bytes after 'C'" in result.reason


async def test_a_finding_counts_when_the_context_is_lost_with_it(setup: WorkerSetup) -> None:
    result = await run(setup, {**PASSES, "memcheck": {"log": MEMCHECK, "progress": LOADED, "code": 9}})
    assert result.status is Status.WRONG


async def test_a_warning_is_a_note(setup: WorkerSetup) -> None:
    result = await run(setup, {**PASSES, "racecheck": {"log": WARNING, "progress": DONE, "code": 0}})
    assert result.status is Status.MEASURED
    assert any(note.startswith("racecheck: Race reported") for note in result.notes)


@pytest.mark.parametrize(
    ("scene", "reason"),
    [
        ({"log": CLEAN, "progress": DONE, "code": 3}, "exit code 3"),
        ({"log": CLEAN, "progress": LOADED, "code": 0}, "could not be performed"),
        ({"log": CLEAN, "code": 0}, "could not start"),
        ({"log": "what?", "progress": DONE, "code": 0}, "no summary"),
        (
            {"progress": DONE, "code": 1, "print": "unknown option --tool"},
            "no summary: unknown option --tool",
        ),
        ({"log": CLEAN, "progress": "[" * 100_000, "code": 0}, "could not start"),
        (
            {"log": "========= Error: Device not supported.\n", "code": 1},
            "could not start the process: Error: Device",
        ),
        ({"progress": LOADED, "code": -11}, "exit code -11"),
    ],
    ids=[
        "code",
        "not performed",
        "not started",
        "garbage",
        "options",
        "odd progress",
        "unsupported",
        "crash",
    ],
)
async def test_what_is_not_known_is_no_pass(
    setup: WorkerSetup, scene: dict[str, object], reason: str
) -> None:
    result = await run(setup, {**PASSES, "initcheck": scene})
    assert result.status is Status.NOT_RUN, result
    assert result.reason.startswith("initcheck: ")
    assert reason in result.reason
    assert result.tools[:2] == ("memcheck", "racecheck")


async def test_errors_that_cannot_be_read_are_findings(setup: WorkerSetup) -> None:
    log = "========= COMPUTE-SANITIZER\n========= Something new\n========= ERROR SUMMARY: 2 errors\n"
    result = await run(setup, {**PASSES, "memcheck": {"log": log, "progress": DONE, "code": 9}})
    assert (result.status, result.reason) == (
        Status.WRONG,
        "memcheck: 2 errors that its report does not explain",
    )


async def test_a_hang_ends_by_its_limit_and_the_other_tools_go_on(setup: WorkerSetup) -> None:
    play = {**PASSES, "racecheck": {"progress": LOADED, "sleep": 600, "code": 0}}
    result = await run(setup, play, limit_s=1.0)
    assert result.status is Status.NOT_RUN
    assert result.reason == "racecheck: did not end within 1 s"
    assert result.tools == ("memcheck", "initcheck", "synccheck")


async def test_layers_are_left_out_in_order_and_kept_in_mind(setup: WorkerSetup) -> None:
    blocked = {"log": "========= Error: No attachable process found.\n", "code": 1}
    good = {**PASSES["*"], "progress": DONE.replace("[]", '["seccomp"]')}
    play = {**PASSES, "memcheck": [blocked, good]}
    steps = (Confinement(walls=False), Confinement(walls=False, without=("seccomp", "landlock")))
    result = await run(setup, play, confinements=steps)
    assert result.status is Status.MEASURED, result
    tried = {name: [call[1] for call in calls(setup) if call[0] == name] for name in TOOLS}
    assert tried["memcheck"] == ["", "seccomp,landlock"]
    sanitizer = Sanitizer(setup, executable=tool(setup, PASSES), confinements=steps)
    sanitizer._level = 1
    await sanitizer.run(f"{setup.artifacts}/any.cubin", [Look(CASE, PLAN)])
    assert len(calls(setup)) == sum(map(len, tried.values())) + len(TOOLS)
    assert "sandbox without: bubblewrap, seccomp" in result.notes


async def test_behind_the_last_step_it_is_refused(setup: WorkerSetup) -> None:
    result = await run(setup, {"*": {"log": "========= Error: No attachable process found.\n", "code": 1}})
    assert result.status is Status.NOT_RUN
    assert "No attachable process" in result.reason
    assert len(calls(setup)) == len(TOOLS)


async def test_missing_says_what_to_install(setup: WorkerSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.harness.sanitizer.find_sanitizer", lambda: None)
    result = await Sanitizer(setup).run("a", [Look(CASE, PLAN)])
    assert result.status is Status.NOT_RUN
    assert "install the CUDA toolkit" in result.reason


def test_it_is_looked_for_beside_the_toolkit(setup: WorkerSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(tool(setup, PASSES))
    home = path.parent / "cuda"
    (home / "bin").mkdir(parents=True)
    shutil.move(path, home / "bin" / path.name)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CUDA_HOME", str(home))
    assert find_sanitizer() == str(home / "bin" / path.name)


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (Status.MEASURED, Status.MEASURED),
        (Status.WRONG, Status.WRONG),
        (Status.CRASHED, Status.WRONG),
        (Status.TIMED_OUT, Status.NOT_RUN),
    ],
)
def test_the_checked_mode_stands_in_on_the_cpu(status: Status, answer: Status) -> None:
    result = checked_mode_result(RunResult(status, "because"), 1.0)
    assert result.status is answer
    assert result.tools == (("checked mode",) if answer is Status.MEASURED else ())


# -- the watched process ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a pretended libcuda (tests/devices/cuda/fake_libcuda.cpp)."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("the pretended driver needs g++")
    pytest.importorskip("cuda.bindings.driver", reason="NVIDIA's packages are not installed")
    folder = tmp_path_factory.mktemp("driver")
    shutil.copy(Path(cuda_device.__file__).with_name("trusted.cu"), folder / "trusted_host.inc")
    flags = ["-O1", "-w", "-std=c++17", "-shared", "-fPIC", f"-I{folder}", "-Wl,-soname,libcuda.so.1"]
    source = Path(__file__).parents[1] / "devices" / "cuda" / "fake_libcuda.cpp"
    subprocess.run([compiler, *flags, "-o", str(folder / "libcuda.so.1"), str(source), "-ldl"], check=True)
    return folder


@pytest.fixture
def watched(setup: WorkerSetup, driver: Path, monkeypatch: pytest.MonkeyPatch) -> WorkerSetup:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    return replace(setup, readable=(*setup.readable, str(driver)))


def launch(kernel: str, **more: object) -> ResolvedPlan:
    return replace(PLAN, launches=(replace(PLAN.launches[0], kernel=kernel, **more),))  # type: ignore[arg-type]


async def perform(setup: WorkerSetup, plan: ResolvedPlan) -> tuple[SanitizerResult, Progress]:
    play = {"*": {"log": CLEAN, "run": True, "code": 0}}
    sanitizer = Sanitizer(setup, executable=tool(setup, play), tools=("memcheck",), confinements=NO_WALLS)
    result = await sanitizer.run(f"{setup.artifacts}/any.cubin", [Look(CASE, plan)])
    return result, read_progress(own_folder(setup))


def own_folder(setup: WorkerSetup) -> Path:
    """The folder of the only run."""
    (folder,) = Path(setup.scratch).glob("memcheck-*")
    return folder


async def test_the_plan_is_performed_once_in_buffers_of_their_own(watched: WorkerSetup) -> None:
    result, progress = await perform(watched, PLAN)
    assert result.status is Status.MEASURED, result
    assert result.tools == ("memcheck",)
    assert progress.stage == "performed"
    assert set(progress.buffers) == {"A", "B", "C", "partial"}
    assert not set(progress.missing) & {"seccomp", "capabilities", "limits", "ends with parent"}


@pytest.mark.parametrize(
    ("plan", "stage", "reason"),
    [
        (launch("crash"), "loaded", "the kernels crashed: CUDA_ERROR_ILLEGAL_ADDRESS"),
        (launch("absent"), "confined", "no kernel 'absent'"),
        (launch("refused"), "loaded", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
        (launch("right", block=(512, 1, 1)), "confined", "at most 256 fit"),
    ],
    ids=["crash", "absent", "refused", "block"],
)
async def test_a_plan_that_cannot_be_performed_is_no_pass(
    watched: WorkerSetup, plan: ResolvedPlan, stage: str, reason: str
) -> None:
    result, progress = await perform(watched, plan)
    assert result.status is Status.NOT_RUN
    assert progress.stage == stage
    assert reason in result.reason


async def test_a_second_size_has_buffers_of_its_own_and_is_performed_too(watched: WorkerSetup) -> None:
    play = {"*": {"log": CLEAN, "run": True, "code": 0}}
    sanitizer = Sanitizer(watched, executable=tool(watched, play), tools=("memcheck",), confinements=NO_WALLS)
    file, other = f"{watched.artifacts}/any.cubin", "size N=65535"
    arguments = (*PLAN.launches[0].arguments[:3], KernelArgument("N", "int32", 65535))
    good = await sanitizer.run(file, [Look(CASE, PLAN), Look(other, launch("right", arguments=arguments))])
    assert good.status is Status.MEASURED, good
    buffers = read_progress(own_folder(watched)).buffers
    assert {name for name in buffers if "of" in name} == {
        f"{n} of {other}" for n in ("A", "B", "C", "partial")
    }
    assert len(set(buffers.values())) == 8
    bad = await sanitizer.run(file, [Look(CASE, PLAN), Look(other, launch("crash"))])
    assert bad.status is Status.NOT_RUN
    assert "the kernels crashed" in bad.reason


async def test_without_a_driver_the_reason_is_told(
    setup: WorkerSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    result, progress = await perform(setup, PLAN)
    assert result.status is Status.NOT_RUN
    assert "no usable CUDA device" in result.reason
    assert progress.stage == "confined"


async def test_two_candidates_side_by_side_do_not_meet(watched: WorkerSetup) -> None:
    play = {"*": {"log": CLEAN, "run": True, "code": 0}}
    sanitizer = Sanitizer(watched, executable=tool(watched, play), tools=("memcheck",), confinements=NO_WALLS)
    file = f"{watched.artifacts}/any.cubin"
    good, bad = await asyncio.gather(
        sanitizer.run(file, [Look(CASE, PLAN)]), sanitizer.run(file, [Look(CASE, launch("crash"))])
    )
    assert good.status is Status.MEASURED, good
    assert bad.status is not Status.MEASURED


# -- the harness's verb -------------------------------------------------------------------------------


async def test_on_a_device_with_a_checked_mode_it_runs_once_more(tmp_path: Path) -> None:
    async with fake_harness(tmp_path, checked=True) as harness:
        clean, racy = candidate("// clean"), candidate("// check: race")
        good = await harness.sanitize(clean, await harness.compile(clean))
        bad = await harness.sanitize(racy, await harness.compile(racy))
    assert (good.status, good.tools) == (Status.MEASURED, ("checked mode",))
    assert bad.status is Status.WRONG
    assert bad.reason.startswith("checked mode: race in")


async def test_on_a_device_without_it_was_not_run(tmp_path: Path) -> None:
    async with fake_harness(tmp_path, checked=False) as harness:
        work = candidate("// fine")
        result = await harness.sanitize(work, await harness.compile(work))
    assert (result.status, result.tools) == (Status.NOT_RUN, ())
    assert "no checked mode" in result.reason
