"""The runner against a pretend driver (see fake_libcuda.cpp): a check of its logic, never of speed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kernelwright.devices.cuda as device
from kernelwright.core.errors import MissingError
from kernelwright.devices.cuda.nvrtc import Nvrtc
from kernelwright.devices.cuda.trusted import trusted_cubin

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("the pretend driver needs g++")
    folder = tmp_path_factory.mktemp("driver")
    shutil.copy(Path(device.__file__).with_name("trusted.cu"), folder / "trusted_host.inc")
    flags = ["-O1", "-w", "-std=c++17", "-shared", "-fPIC", f"-I{folder}", "-Wl,-soname,libcuda.so.1"]
    source = str(HERE / "fake_libcuda.cpp")
    subprocess.run([compiler, *flags, "-o", str(folder / "libcuda.so.1"), source, "-ldl"], check=True)
    try:
        # Compiled here, without the pretend driver in the way of NVRTC; the runner finds it in the cache.
        trusted_cubin(Nvrtc(), "sm_90a", folder)
    except MissingError as error:
        pytest.skip(str(error))
    (folder / "any.cubin").write_bytes(b"\x7fELF")
    return folder


def run(driver: Path, scenario: str, **variables: str) -> dict[str, dict[str, Any]]:
    environment = os.environ | {"LD_LIBRARY_PATH": str(driver)} | variables
    script = [sys.executable, str(HERE / "pretend_runs.py"), scenario, str(driver / "any.cubin"), str(driver)]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return {record["name"]: record for record in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def healthy(driver: Path) -> dict[str, dict[str, Any]]:
    return run(driver, "healthy")


def test_facts(healthy: dict[str, dict[str, Any]]) -> None:
    assert healthy["facts"]["arch"] == "sm_90a"
    assert healthy["facts"]["uuid"] == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_measured(healthy: dict[str, dict[str, Any]]) -> None:
    right = healthy["right"]
    assert right["status"] == "measured"
    assert [t[:3] for t in right["timings"]] == [["n=1000", "events", 8], ["n=1000 again", "events", 8]]
    assert all(0 < t[3] < 1 for t in right["timings"])
    assert right["rms"] == pytest.approx(2**0.5, rel=0.1)
    assert healthy["check only"]["timings"] == []
    assert healthy["check only"]["status"] == "measured"
    assert [case for case, _ in healthy["check only"]["errors"]] == [
        t[0] for t in healthy["right"]["timings"]
    ]
    assert all(0.0 <= error < 1.0 for _, error in healthy["check only"]["errors"])
    assert healthy["right"]["errors"] == []
    assert healthy["many runs"]["timings"][0][2] == 300


def test_inputs_are_made_once(healthy: dict[str, dict[str, Any]]) -> None:
    made = [tuple(entry) for entry in healthy["right again"]["made"]]
    assert len(made) == len(set(made)) == 6
    assert healthy["graph"]["made"] == 20


def test_graph_and_inout(healthy: dict[str, dict[str, Any]]) -> None:
    assert [t[1:3] for t in healthy["graph"]["timings"]] == [["graph", 8], ["graph", 8]]
    for name in ("inout", "inout graph", "cluster", "shared", "shares", "after all"):
        assert healthy[name]["status"] == "measured", healthy[name]


@pytest.mark.parametrize(
    ("name", "status", "check", "part"),
    [
        (
            "tail",
            "wrong",
            "poison",
            "1 of 1000 values of C wrong, first at [999]: got nothing (never written), expected",
        ),
        ("wrong", "wrong", "values", "1 of 1000 values of C wrong, first at [5]: got"),
        (
            "outside",
            "wrong",
            "guard bands",
            "wrote outside output 'C' (4000 bytes): N bytes changed from N bytes after its end",
        ),
        ("before", "wrong", "guard bands", "N bytes changed from N bytes before its beginning"),
        ("mutates", "wrong", "inputs unchanged", "case n=1000: changed its input 'A'"),
        ("sabotages", "wrong", "inputs unchanged", "case n=1000 run 5: changed its input 'A'"),
        ("once", "wrong", "poison", "got nothing (never written)"),
        (
            "refused",
            "launch_failed",
            "launch limits",
            "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (grid [4, 1, 1], block [256, 1, 1] = 256 threads",
        ),
        ("absent", "launch_failed", "launch limits", "the cubin has no kernel 'absent'"),
        ("cluster refused", "launch_failed", "launch limits", "CUDA_ERROR_INVALID_CLUSTER_SIZE"),
        (
            "cooperative refused",
            "launch_failed",
            "launch limits",
            "cooperative: at most 64 blocks fit at once",
        ),
        (
            "block",
            "launch_failed",
            "launch limits",
            "a block of 512 threads; with 128 registers a thread at most 256 fit",
        ),
        (
            "argument",
            "launch_failed",
            "launch limits",
            "kernel 'right' argument 4 is 4 bytes, the plan gives 'n': int64 (8)",
        ),
        ("arguments", "launch_failed", "launch limits", "the kernel has 4 arguments, the plan gives 2"),
        ("unknown", "launch_failed", "launch limits", "argument 1 names no buffer of the case: 'Z'"),
        (
            "memory",
            "launch_failed",
            "launch limits",
            "no device memory for 2147483648 bytes of scratch 'huge'",
        ),
        (
            "racy",
            "unstable",
            "repeat",
            "case n=1000 run 4: other output than in case n=1000 check on the same inputs",
        ),
        (
            "peeks",
            "unstable",
            "repeat",
            "case n=1000 run 1: other output than in case n=1000 check on the same inputs",
        ),
    ],
)
def test_bad_candidates(
    healthy: dict[str, dict[str, Any]], name: str, status: str, check: str, part: str
) -> None:
    assert healthy[name]["status"] == status
    assert healthy[name]["check"] == check
    # Canaries are random: a byte that is written can be what was there (1 in 256).
    reason = re.sub(
        r"\b[1-4] bytes changed from [0-8] bytes", "N bytes changed from N bytes", healthy[name]["reason"]
    )
    assert part in reason
    assert healthy[name]["timings"] == []


def test_crash_and_endless_kernel_break_the_runner(driver: Path) -> None:
    crash = run(driver, "crash")["crash"]
    assert crash["status"] == "crashed"
    assert "kernel 'crash' (launch 2 of 2) crashed: CUDA_ERROR_ILLEGAL_ADDRESS" in crash["reason"]
    assert crash["check"] == "crash"
    assert crash["broken"]
    endless = run(driver, "endless")["endless"]
    assert endless["status"] == "timed_out"
    assert "did not end within 0.2 s" in endless["reason"]
    assert endless["check"] == "run limits"
    assert endless["broken"]
    assert "lost its context" in endless["after"]


def test_problem_faults_are_the_problems(driver: Path) -> None:
    found = run(driver, "faults")
    assert "the inputs of case n=1000 lack 'B'" in found["lacks input"]["error"]
    assert "has 3996 bytes, 4000 are needed" in found["short input"]["error"]
    assert "gives no output 'C'" in found["lacks output"]["error"]
    assert "gives 7 values for output 'C'" in found["short output"]["error"]
    assert "cannot be read" in found["no artifact"]["error"]
    assert "does not load" in found["no cubin"]["error"]
    assert found["at last"]["status"] == "measured"


def test_evicts_when_memory_is_short(driver: Path) -> None:
    found = run(driver, "tight")
    assert found["tight"]["status"] == "measured"
    assert found["tight"]["made"] > 24


def test_driver_that_cannot_start_is_a_reason(driver: Path) -> None:
    script = "from kernelwright.devices.cuda import CudaRunner, probe; print(probe().reason); CudaRunner()"
    environment = os.environ | {"LD_LIBRARY_PATH": str(driver), "FAKE_CUDA_INIT": "100"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "cuInit failed with 100: no CUDA device is visible"
    assert "MissingError: no usable CUDA device" in done.stderr


def test_equal_inputs_give_equal_bits(driver: Path) -> None:
    found = run(driver, "equal_runs")
    for name in ("racy", "peeks", "leftover"):
        for how in ("run", "trial"):
            record = found[f"{name} {how}"]
            assert (record["status"], record["check"]) == ("unstable", "repeat"), record
            assert "other output than in case n=1000" in record["reason"]
    assert "check 1" in found["peeks trial"]["reason"]
    assert found["noise False"]["status"] == "unstable"
    assert found["noise True"]["status"] == "measured"
    assert found["two uses of a slot"]["status"] == "unstable"


def test_protocol(driver: Path) -> None:
    found = run(driver, "protocol")
    # One checked and ten timed runs: module globals do not survive the check.
    assert found["ten"]["status"] == "measured", found["ten"]
    assert [t[2] for t in found["loser"]["timings"]] == [2, 2]
    # An event pair around a short kernel reads mostly overhead: no verdict from it.
    assert [t[1:3] for t in found["short loser"]["timings"]] == [["graph", 8], ["graph", 8]]
    # Here a sum with NaN keeps the bits of the poison; a GPU gives its own NaN ("values").
    assert found["shared"]["check"] == "poison"
    assert found["shared"]["reason"].startswith("case n=1000: 1 of 1000 values of C wrong, first at [9]")
    # The check's poison is NaN; the first run with the other poison shows it. Which one timed runs begin with is drawn.
    assert found["trusts"]["check"] == "poison"
    assert re.match("case n=1000 run [14]: 1000 of 1000 values of C wrong", found["trusts"]["reason"])
    for kernel in ("tail", "wrong"):
        assert found[f"trial {kernel}"]["check"] == "stress inputs"
        assert "of 1000 values of C wrong" in found[f"trial {kernel}"]["reason"]


def test_a_short_trial_is_a_graph_of_plans_as_timed_runs_are(driver: Path) -> None:
    """What one plan of a graph leaves the next one finds: a kernel could tell by it that it is timed."""
    found = run(driver, "protocol")
    assert found["trial right 0.001"]["status"] == "measured", found["trial right 0.001"]
    assert found["trial right 0.001"]["made"] == 2
    assert found["trial shares 0.001"]["check"] == "stress inputs"
    assert found["trial shares 0.001"]["reason"].startswith("case shares 0.001 check ")
    assert found["trial shares 0.0"]["status"] == "measured", found["trial shares 0.0"]
    assert found["trial shares 0.0"]["made"] == 1


def test_a_trial_begins_as_a_timed_run_does(driver: Path) -> None:
    """Behind a cleared L2 cache, and nothing between its launches."""
    found = run(driver, "queued")["trial"]
    assert found["status"] == "measured"
    queued = found["queued"]
    starts = [at for at, what in enumerate(queued) if what == "kw_clear"]
    assert len(starts) == 2
    for at in starts:
        assert queued[at + 1 : at + 5] == ["cuEventRecord", "right", "slow", "cuEventRecord"]


def test_no_right_output_lies_in_device_memory(driver: Path) -> None:
    found = run(driver, "hidden")
    assert found["right"]["status"] == "measured"
    for index in range(3):
        assert found[f"set {index}"]["shown"]
        assert found[f"set {index}"]["clear"] < 10
    assert found["left over"]["poison"]


def test_duels(driver: Path) -> None:
    found = run(driver, "duels")
    for name, method in (("copy", "events"), ("graph", "graph"), ("after all", "events")):
        assert found[name]["parts"][0] == "measured", found[name]
        assert [c[:4] for c in found[name]["cases"]] == [
            [case, method, 6, 6] for case in ("n=1000", "n=1000 again")
        ]
    assert all(c[4] > 1 > c[5] for c in found["slower"]["cases"])
    assert all(c[5] > 1 > c[4] for c in found["faster"]["cases"])
    assert found["many"]["cases"][0][2:4] == [150, 150]
    checks = {"wrong": "values", "racy": "repeat", "outside": "guard bands", "refused": "launch limits"}
    for kernel, check in (checks | {"mutates": "inputs unchanged"}).items():
        for side in ("challenger", "incumbent"):
            assert found[f"{side} {kernel}"]["parts"][2:] == [check, side]
            assert found[f"{side} {kernel}"]["cases"] == []
    assert found["late"]["parts"][2:] == ["poison", "incumbent"]
    kept = dict.fromkeys(("meddles", "sabotages"), "inputs unchanged")
    for kernel, check in {"strays": "guard bands", **kept}.items():
        for side in ("challenger", "incumbent"):
            for turn in range(4):
                assert found[f"{side} {kernel} {turn}"]["parts"][2:] == [check, side]
    for turn in range(4):
        check, side = found[f"unseen {turn}"]["parts"][2:]
        assert (check in {"values", "inputs unchanged"}, side) == (True, "challenger")
    for side in ("challenger", "incumbent"):
        assert found[f"{side} spies"]["parts"][:2] == ["measured", ""]
    assert found["incumbent endless"]["parts"][::3] == ["timed_out", "incumbent"]
    assert found["incumbent endless"]["broken"]


def test_a_duel_with_the_vendor_library(driver: Path) -> None:
    found = run(driver, "library")
    assert found["missing"]["parts"][0] == "not_run"
    assert "pip install torch" in found["missing"]["parts"][1]
    for name, method in (("events", "events"), ("graph", "graph"), ("after all", "events")):
        assert found[name]["parts"] == ["measured", "", "", "", "PyTorch 9.9"], found[name]
        assert found[name]["cases"] == [[case, method, 6, 6] for case in ("n=1000", "n=1000 again")]
    assert found["tf32"]["allowed"] is False
    for prefix in ("", "graph "):
        wrong, raises = found[f"{prefix}wrong"]["parts"], found[f"{prefix}raises"]["parts"]
        assert wrong[2:] == ["values", "incumbent", "PyTorch 9.9"]
        assert raises[1:4] == ["the library: no such convolution", "launch limits", "incumbent"]
        assert not found[f"{prefix}raises"]["broken"]
        absent = found[f"{prefix}absent"]["parts"]
        assert absent[1:4] == ["library.py: has no function 'library'", "launch limits", "incumbent"]


def test_throttled_blocks_are_taken_again(driver: Path) -> None:
    found = run(driver, "throttled")
    assert found["cool"]["conditions"] == [[1980, 41, None, []]] * 2
    assert found["cool"]["discarded"] == [0, 0]
    assert found["cool"]["findings"] == []
    assert found["once"]["discarded"] == [20, 0]
    assert found["once"]["conditions"][0][3] == []
    assert found["always"]["discarded"] == [30, 30]
    assert found["always"]["findings"][0] == (
        "case n=1000: the GPU stayed throttled (hardware slowdown): its timings are too slow"
    )
    assert found["capped"]["discarded"] == [0, 0]
    assert found["capped"]["findings"] == ["software power cap in 2 of 2 cases, SM clock down to 1980 MHz"]
    for name in ("cool", "once", "always", "capped"):
        assert [t[2] for t in found[name]["timings"]] == [8, 8]


def test_another_context_has_a_turn_before_each_block(driver: Path) -> None:
    found = run(driver, "turns")
    assert [found[name]["status"] for name in ("fresh", "as ever")] == ["measured"] * 2
    assert [found[name]["turns"] for name in ("fresh", "as ever")] == [2, 0]
    alone = run(driver, "turns", FAKE_CUDA_ONE_CONTEXT="1")["fresh"]
    assert (alone["status"], alone["turns"]) == ("measured", 0)


def test_constants_are_looked_at(driver: Path) -> None:
    found = run(driver, "constants")
    assert found["right"]["status"] == "measured"
    assert found["remembers"]["check"] == "inputs unchanged"
    assert found["remembers"]["reason"] == "case n=1000: changed its constant 'kept'"


def test_local_memory_holds_nothing_of_the_last_run(driver: Path) -> None:
    found = run(driver, "stacks")
    blocks = 2 * 4 * (2048 // 256)
    assert [found[kernel]["stacks"] for kernel in ("right", "slow")] == [0, blocks * (1 + 10)]


def test_where_outputs_lie(driver: Path) -> None:
    """Small ones at five addresses for each of three input sets, at the same ones for both sides of a duel."""
    found = run(driver, "addresses")
    slots = found["seen"]["slots"]
    theirs = {side: [slot[1:] for slot in slots if slot[0] == side] for side in ("challenger", "incumbent")}
    assert theirs["challenger"] == theirs["incumbent"]
    assert [index for index, _, _ in theirs["challenger"]] == list(range(15))
    for place in (1, 2):
        assert len({slot[place] for slot in theirs["challenger"]}) == 15
    lie = {name: {tuple(each) for each in found[name]["inputs"]} for name in list(found)[-4:]}
    assert all(found[name]["status"] == "measured" and len(lie[name]) == 2 * 3 * 2 for name in lie)
    assert not lie["one"] & lie["another"], "inputs are moved between duels"
    assert lie["no room"] == lie["no room still"] == lie["another"]
    for places in lie.values():
        assert {at for side, at in places if side == "challenger"} == {
            at for side, at in places if side == "incumbent"
        }


def test_runs_stand_at_every_place_of_the_queues_groups(driver: Path) -> None:
    found = run(driver, "places")
    assert [found[name]["status"] for name in ("even", "as ever")] == ["measured"] * 2
    assert [found[name]["nothings"] for name in ("even", "as ever")] == [2 * (0 + 1 + 2 + 3) + 0 + 1, 0]
