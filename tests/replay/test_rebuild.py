"""The winner rebuilt from the memory: same, tampered, other toolchain, other problem, other device, noise."""

import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.core.errors import HarnessError
from kernelwright.core.outcome import Status
from kernelwright.devices.base import DuelResult
from kernelwright.harness.protocol import Built
from kernelwright.memory.records import ProblemRecord
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import bundled_names, load_problem
from kernelwright.replay import Part, Replayed, Verdict, read_subject, rebuild
from kernelwright.replay.problem_files import as_toml, write_problem
from kernelwright.replay.subject import library_of

from .campaigns import GPU, NAME, TIMES, Gpu, make_campaign, opener, tampered


async def replay(file: Path, harness: Gpu) -> Replayed:
    with Memory.open(file, read_only=True) as memory:
        return await rebuild(read_subject(memory, NAME), opener(harness))


def part(result: Replayed, name: str) -> Part:
    found = [each for each in result.parts if each.name == name]
    assert len(found) == 1, result.parts
    assert len(f"{found[0]}".splitlines()) == 1
    return found[0]


async def test_the_same_again(finished: Path) -> None:
    result = await replay(finished, Gpu(TIMES, noise=0.0013))
    assert result.verdict is Verdict.REPRODUCED, result.why
    names = [
        "memory",
        "problem",
        "kernelwright",
        "binary",
        "checks",
        "sanitizer",
        "ratio",
        "library",
        "times",
    ]
    assert [each.name for each in result.parts] == names
    assert "the certificate agrees" in part(result, "memory").reason
    assert "intervals overlap" in part(result, "ratio").reason


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE templates SET source = source || ' ' WHERE name = 't2-0001'", "its source is that of"),
        ("UPDATE problems SET reference = reference || ' '", "its texts are those of"),
        ("UPDATE measurements SET samples_ms = replace(samples_ms, '0.9', '0.4')", "that of its samples is"),
        (
            "UPDATE measurements SET samples_ms = json_insert(json_remove(samples_ms, '$[0]'), '$[#]', samples_ms -> 0)",
            "samples differ: cases[0].samples_ms",
        ),
        ("UPDATE duels SET samples = replace(samples, '1.', '3.')", "samples differ: promotion."),
        (
            "UPDATE duels SET samples = replace(samples, '1.', '3.') WHERE verdict LIKE '%\"confirmation\": true%'",
            "samples differ: confirmation.",
        ),
        ("DELETE FROM experiments WHERE number = 3", "counts 9 experiments, 8 are recorded"),
        (
            "DELETE FROM duels WHERE verdict LIKE '%\"confirmation\": true%'",
            "of the issued certificate is not recorded",
        ),
        ("UPDATE experiments SET configuration = '{\"X\":1}' WHERE number > 1", "configuration are those of"),
    ],
)
async def test_a_tampered_memory_is_told_and_nothing_of_it_is_run(
    statement: str, reason: str, finished: Path, tmp_path: Path
) -> None:
    harness = Gpu(TIMES)
    result = await replay(tampered(finished, tmp_path, statement), harness)
    assert result.verdict is Verdict.NOT_REPRODUCED
    assert "tampered" in result.why
    assert reason in result.why
    assert harness.compiled == 0


async def test_a_changed_toolchain_is_told_and_decides_nothing(finished: Path) -> None:
    facts = replace(GPU, toolchain="NVRTC 14.0")
    result = await replay(finished, Gpu(TIMES, facts=facts, build="-new"))
    assert part(result, "toolchain").reason == "changed: recorded with NVRTC 13.1, this is NVRTC 14.0"
    assert part(result, "toolchain").verdict is Verdict.DIFFERS
    assert "as the other toolchain or device explains" in part(result, "binary").reason
    assert result.verdict is Verdict.REPRODUCED


async def test_another_binary_of_the_same_toolchain_is_told(finished: Path) -> None:
    result = await replay(finished, Gpu(TIMES, build="-new"))
    assert "though the toolchain goes by the same name" in part(result, "binary").reason


async def test_a_changed_problem_is_told_and_the_recorded_one_replayed(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(load_problem("vector_add").folder, folder)
    file = await make_campaign(tmp_path, problem=str(folder))
    assert part(await replay(file, Gpu(TIMES)), "problem").verdict is Verdict.REPRODUCED
    (folder / "problem.toml").write_text((folder / "problem.toml").read_text().replace("1e-6", "1e-2"))
    result = await replay(file, Gpu(TIMES))
    assert part(result, "problem").verdict is Verdict.DIFFERS
    assert "changed since: the specification of" in part(result, "problem").reason
    assert result.verdict is Verdict.REPRODUCED
    shutil.rmtree(folder)
    assert "none to compare with here" in part(await replay(file, Gpu(TIMES)), "problem").reason


async def test_a_noisy_device_cannot_judge(finished: Path) -> None:
    result = await replay(finished, Gpu(TIMES, noise=0.3))
    assert part(result, "ratio").verdict is Verdict.NOT_JUDGED
    assert part(result, "times").verdict is Verdict.NOT_JUDGED
    assert "too noisy" in result.why


async def test_another_model_of_device_is_named_and_not_compared(finished: Path) -> None:
    facts = replace(GPU, model="NVIDIA B200", uuid="GPU-2")
    result = await replay(finished, Gpu(TIMES, facts=facts, factor=0.5))
    assert part(result, "device").reason == "recorded on NVIDIA H200 (cuda), this is NVIDIA B200 (cuda)"
    assert part(result, "times").verdict is Verdict.DIFFERS
    assert part(result, "ratio").reason.startswith("0.4")
    assert result.verdict is Verdict.NOT_JUDGED


async def test_another_device_of_the_model_is_told(finished: Path) -> None:
    result = await replay(finished, Gpu(TIMES, facts=replace(GPU, uuid="GPU-2")))
    assert part(result, "device").reason == "another NVIDIA H200 than the recorded one"
    assert result.verdict is Verdict.REPRODUCED


async def test_a_win_that_does_not_come_again_is_no_win(finished: Path) -> None:
    slower = {**TIMES, **{("t2", x): 1.6 for x in range(1, 5)}}
    result = await replay(finished, Gpu(slower))
    assert part(result, "ratio").verdict is Verdict.NOT_REPRODUCED
    assert "apart (+6" in part(result, "ratio").reason
    assert part(result, "times").reason.startswith("3 of 3 cases are off")


async def test_a_slower_clock_is_not_the_kernel(finished: Path) -> None:
    result = await replay(finished, Gpu(TIMES, factor=1.2))
    assert part(result, "ratio").verdict is Verdict.REPRODUCED
    assert part(result, "times").verdict is Verdict.NOT_JUDGED
    assert "the baseline shifts alike" in part(result, "times").reason


async def test_times_taken_in_another_way_are_not_compared(finished: Path) -> None:
    result = await replay(finished, Gpu(TIMES, method="graph"))
    assert part(result, "times").reason == "not comparable: N=65536 was timed by events, now by graph"


async def test_a_certificate_of_before_the_campaign_went_on_is_no_tampering(
    finished: Path, tmp_path: Path
) -> None:
    again = "INSERT INTO duels SELECT number + 10, campaign, challenger, incumbent, promoted, verdict, replace(samples, '1.', '3.'), seconds, recorded FROM duels WHERE verdict LIKE '%\"confirmation\": true%'"
    result = await replay(tampered(finished, tmp_path, again), Gpu(TIMES))
    assert "the certificate agrees" in part(result, "memory").reason


async def test_what_fails_a_check_now_is_named(finished: Path) -> None:
    file = finished
    wrong = {**TIMES, **{("t2", x): Status.WRONG for x in range(1, 5)}}
    assert part(await replay(file, Gpu(wrong)), "checks").reason == "wrong (no check): because"
    broken = {**TIMES, **{("t2", x): Status.COMPILE_FAILED for x in range(1, 5)}}
    assert "compile_failed: line 3" in part(await replay(file, Gpu(broken)), "binary").reason
    unclean = Gpu(TIMES, unsanitary={("t2-0001", x) for x in range(1, 5)})
    assert part(await replay(file, unclean), "sanitizer").verdict is Verdict.NOT_REPRODUCED


@pytest.mark.parametrize("name", bundled_names())
def test_a_recorded_problem_becomes_the_same_folder_again(name: str, tmp_path: Path) -> None:
    problem = load_problem(name)
    record = ProblemRecord(
        problem.id, name, problem.spec.model_dump_json(), problem.reference_source, problem.baseline_source
    )
    assert write_problem(record, tmp_path / name).id == problem.id


def test_json_as_toml() -> None:
    import tomllib

    table = {
        "a": 'x"\\\n\x7f\u2028',
        "b": [1, 2.5, 1e-06, True],
        "c": {"d e": [{"f": "g"}], "n": {}},
        "e": [],
    }
    assert tomllib.loads(as_toml({**table, "none": None})) == table


class WithLibrary(Gpu):
    """The library takes 1.25 of a base unit a case, or is wrong."""

    answer: Status = Status.MEASURED

    async def against_library(
        self, challenger: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        if self.answer is Status.TIMED_OUT:
            raise HarnessError("the worker is lost")
        if self.answer is not Status.MEASURED:
            return DuelResult(self.answer, "C[3] is 4", "values", "incumbent")
        fought = await self.duel(challenger, challenger, rounds, cases)
        slower = [
            replace(case, incumbent_ms=tuple(2 * t for t in case.incumbent_ms)) for case in fought.cases
        ]
        return replace(fought, cases=tuple(slower), library="PyTorch 9.9")


async def test_the_vendor_library_beside_the_winner_is_told_and_decides_nothing(finished: Path) -> None:
    harness = WithLibrary(TIMES)
    found = part(await replay(finished, harness), "library")
    assert found.verdict is Verdict.DIFFERS
    assert found.reason.startswith("0.5")
    assert found.reason.endswith("of PyTorch 9.9's time on this device")
    harness.answer = Status.WRONG
    result = await replay(finished, harness)
    assert part(result, "library").reason == "no reference: the incumbent ended as wrong (values): C[3] is 4"
    assert result.verdict is Verdict.REPRODUCED
    harness.answer = Status.TIMED_OUT
    assert part(await replay(finished, harness), "library").reason == "no reference: the worker is lost"


def test_the_library_of_the_same_problem_comes_with_it(finished: Path, tmp_path: Path) -> None:
    with Memory.open(finished, read_only=True) as memory:
        subject = read_subject(memory, NAME)
        assert "torch.add" in library_of(subject)
        assert library_of(replace(subject, problem_here="softmax")) == ""
        assert library_of(replace(subject, problem_here="/not/there")) == ""
        problem = write_problem(subject.problem, tmp_path / "p", library=library_of(subject))
        assert "torch.add" in problem.library_source


async def test_a_problem_that_lies_elsewhere_is_compared(finished: Path) -> None:
    with Memory.open(finished, read_only=True) as memory:
        subject = replace(read_subject(memory, NAME), problem_here="softmax")
        result = await rebuild(subject, opener(Gpu(TIMES)))
    assert (
        "changed since: the specification and reference and baseline of softmax"
        in part(result, "problem").reason
    )
