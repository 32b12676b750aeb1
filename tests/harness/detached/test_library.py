"""The vendor library on another machine: its file travels with what is asked about it, its answers are not believed."""

import asyncio
import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.core.outcome import Status
from kernelwright.devices.base import DuelCase, DuelResult, TimingProtocol
from kernelwright.harness.detached.evaluate import evaluate
from kernelwright.harness.detached.folder import Folder, read_results
from kernelwright.harness.detached.harness import DetachedHarness
from kernelwright.harness.detached.items import terms_of
from kernelwright.harness.detached.records import (
    Batch,
    Bundle,
    Item,
    ProblemFiles,
    Result,
    Side,
    Source,
    Terms,
    item_id,
    source_id,
)
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import Built
from kernelwright.problems.loader import load_problem

from ..fake_device import FACTS
from .test_detached import MAKER, answer, candidate, harness

PROBLEM = load_problem("vector_add")
GPU = replace(FACTS, kind="cuda")


def timed(*cases: str, rounds: int = 16, library: str = "PyTorch 2.6.0a0+df5bbc09.nv24.12") -> DuelResult:
    times = (0.5,) * rounds
    sides = tuple(DuelCase(case, times, times, "events") for case in cases)
    return DuelResult(Status.MEASURED, cases=sides, library=library)


async def started(path: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> DetachedHarness:
    """A harness that believes to be asking a GPU."""
    remote = harness(path)
    probe = asyncio.create_task(answer(path, results))
    await remote.start()
    await probe
    monkeypatch.setattr(DetachedHarness, "facts", GPU)
    return remote


async def test_the_library_is_asked_where_the_device_is_and_its_file_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str, str, int]] = []

    async def against(
        self: LocalHarness, challenger: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        seen.append((self.problem.id, self.problem.library_source, challenger.candidate.id, rounds))
        return timed(*(case.id for case in PROBLEM.cases(slow=True) if cases is None or case.id in cases))

    monkeypatch.setattr(LocalHarness, "against_library", against)
    path = tmp_path / "d"
    remote = await started(path, tmp_path / "p.jsonl", monkeypatch)
    mine = Built(candidate(), await remote.compile(candidate()))
    one = PROBLEM.cases(slow=True)[0].id
    asking = [
        asyncio.create_task(remote.against_library(mine, 16)),
        asyncio.create_task(remote.against_library(mine, 16, [one])),
        asyncio.create_task(remote.benchmark(mine.candidate, mine.compiled)),
    ]
    await answer(path, tmp_path / "r.jsonl", 3)
    everything, some, _ = await asyncio.gather(*asking)
    await remote.close()
    assert seen == [(PROBLEM.id, PROBLEM.library_source, candidate().id, 16)] * 2
    assert everything == timed(*(case.id for case in PROBLEM.cases(slow=True)))
    assert some == timed(one)
    carrying = {
        item.kind: bool(batch.terms.problem.library)
        for batch in Folder(path).asked()
        for item in batch.items.values()
    }
    assert carrying == {"probe": False, "benchmark": False, "library": True}


async def test_no_trip_is_made_for_an_answer_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d"
    remote = await started(path, tmp_path / "p.jsonl", monkeypatch)
    mine = Built(candidate(), await remote.compile(candidate()))
    answers = []
    device = Folder(path).device
    assert device is not None
    with monkeypatch.context() as now:
        now.setattr(remote, "_header", device.model_copy(update={"kernelwright": "0.0.9"}))
        answers.append(await remote.against_library(mine, 16))
    with monkeypatch.context() as now:
        now.setattr(remote, "problem", replace(PROBLEM, library_source=""))
        answers.append(await remote.against_library(mine, 16))
    monkeypatch.setattr(DetachedHarness, "facts", FACTS)
    answers.append(await remote.against_library(mine, 16))
    await remote.close()
    assert [answer.status for answer in answers] == [Status.NOT_RUN] * 3
    for result, words in zip(answers, ("0.0.9", "names no vendor library", "on GPUs only"), strict=True):
        assert words in result.reason
    assert not Folder(path).pending()


@pytest.mark.parametrize("library", [PROBLEM.library_source, ""])
async def test_what_cannot_be_had_there_is_an_answer(tmp_path: Path, library: str) -> None:
    """No GPU there; and a candidate that does not compile there."""
    terms = terms_of(PROBLEM, slow_cases=True, seed=0, timing=TimingProtocol()).with_library(library)
    texts = [candidate(comment).template.source for comment in ("", "\n// compile: pid")]
    sources = {source_id(text): Source(name="mine", text=text) for text in texts}
    asked = [
        Item(kind="library", sides=(Side(template=id_, configuration={}),), rounds=16) for id_ in sources
    ]
    items = {item_id(terms.id, item): item for item in asked}
    file, results = tmp_path / "b.json", tmp_path / "r.jsonl"
    file.write_bytes(Bundle(batches=(Batch(terms=terms, sources=sources, items=items),)).to_json())
    await evaluate(file, results, device="cpu", maker=MAKER)
    told = {r.item: r for r in read_results(results).records if isinstance(r, Result)}
    found = [told[id_].dueled for id_ in items]
    assert [(d.status, d.at_fault) for d in found if d] == [
        (Status.NOT_RUN, ""),
        (Status.COMPILE_FAILED, "challenger"),
    ]
    assert not any(told[id_].fault(item, terms.cases) for id_, item in items.items())


@pytest.mark.parametrize(
    ("dueled", "fault"),
    [
        (timed("a", "b"), ""),
        (timed("b", "a", rounds=3), ""),
        (DuelResult(Status.NOT_RUN, "no PyTorch"), ""),
        (timed("a", "b", library=""), "names no vendor library"),
        (timed("a", "b", library="PyTorch 2.6\nIgnore all"), "names no vendor library"),
        (timed("a", "b", library="PyTorch 2" + "." * 99), "names no vendor library"),
        (timed("a"), "every case once"),
        (timed("a", "b", "b"), "every case once"),
        (timed("a", "c"), "other cases"),
        (timed("a", "b", rounds=17), "more rounds"),
        (replace(timed("a", "b"), cases=(DuelCase("a", (math.nan,), (1.0,), "events"),)), "no times"),
        (None, "is no answer to a library"),
    ],
)
def test_an_answer_about_the_library_is_a_name_and_times(dueled: DuelResult | None, fault: str) -> None:
    item = Item(kind="library", sides=(Side(template="t", configuration={}),), rounds=16)
    told = Result(item="i", bundle="b", header="h", dueled=dueled).fault(item, ("a", "b"))
    assert (fault in told) if fault else not told


def test_a_request_about_the_library_has_one_candidate_and_rounds() -> None:
    side = Side(template="t", configuration={})
    for sides, rounds in (((), 16), ((side,), 0), ((side, side), 16)):
        with pytest.raises(ValueError, match="a library has 1 candidates"):
            Item(kind="library", sides=sides, rounds=rounds)


def test_what_needs_no_library_is_hashed_as_before_there_were_any() -> None:
    """Files and results of older versions go on being known by their hashes."""
    values = {"id": "p", "name": "n", "toml": "t", "reference": "r", "baseline": "b"}
    files = ProblemFiles.model_validate(values)
    assert files.model_dump(mode="json") == values
    terms = Terms(problem=files, slow_cases=False, seed=0, timing=TimingProtocol(), cases=("a",))
    assert terms.model_dump(mode="json")["problem"] == values
    assert terms.with_library("").id == terms.id
    other = terms.with_library("def library(): ...")
    assert other.id != terms.id
    assert Terms.model_validate(other.model_dump(mode="json")) == other
