"""The evaluator: in order, one at a time, compiled ahead, and whatever goes wrong ends as a state."""

import asyncio
from pathlib import Path

import pytest

from kernelwright.board_server import evaluator as evaluating
from kernelwright.board_server.evaluator import ATTEMPTS, PROBLEM_AT_FAULT, completed
from kernelwright.board_server.store import Store
from kernelwright.core.candidate import parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import HarnessError, PlanError, UserError
from kernelwright.leaderboard.base import Mode, State

from .support import FACTS, Benches, FakeBench, candidate, draft, listing, site, source


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "board.db"


def prepared(data: Path, *words: str, attempts: int = 0) -> list[str]:
    """A board's file in which submissions wait already; their ids."""
    store = Store.open(data)
    store.adopt(listing())
    store.new_token("anna")
    added = [store.add(draft(words=each, tag=f"t{n}")) for n, each in enumerate(words)]
    for _ in range(attempts):
        store.begin(added[0])
    store.close()
    return [each.id for each in added]


@pytest.mark.parametrize(
    ("words", "state", "reason"),
    [
        ("wrong", "failed", "wrong: because"),
        ("endless", "timed_out", "timed_out: because"),
        ("too fast", "rejected", "too_fast: below the floor"),
        ("no compile", "failed", "compile_failed: line 3: no <U+001B>[31m"),
        ("boom", "failed", "a fault of the board (RuntimeError), not of the kernel"),
        ("harness", "failed", "its evaluation ended 3 times without a verdict"),
        ("broken problem", "failed", PROBLEM_AT_FAULT),
        ("folder", "failed", "crashed: said x.py:3: at 1/2/3 of /no/such/place"),
    ],
)
async def test_what_goes_wrong_is_a_state_and_the_next_one_is_right(
    data: Path, words: str, state: str, reason: str
) -> None:
    first, second = prepared(data, words, "ms: 2")
    async with site(data) as here:
        assert await here.ended(second) == "passed"
        found = here.service.store.by_id(first)
        assert found is not None
        assert found.verdict.state == state
        assert found.verdict.reason.startswith(reason)
        assert found.verdict.score_s is None
        if words in {"boom", "harness"}:
            assert here.benches.opened[0].closed
            assert len(here.benches.opened) == (2 if words == "boom" else 1 + ATTEMPTS)
            assert any(first in text for text in here.said)
        if words == "broken problem":
            assert "/" not in found.verdict.reason
            assert any(f"{first}: UserError: /" in text for text in here.said)


async def test_a_worker_that_was_killed_costs_a_submission_nothing(data: Path) -> None:
    (submission,) = prepared(data, "killed ms: 2")
    async with site(data) as here:
        assert await here.ended(submission) == "passed"
        assert here.benches.kills == 2
        assert any("signal 9" in text for text in here.said)


@pytest.mark.parametrize(
    ("values", "reason"),
    [({"X": 4}, "small"), ({"Y": 1}, "'Y'"), ({"X": 3}, "not one of its values"), ({"X": "1"}, "values")],
)
async def test_a_configuration_that_is_none(data: Path, values: dict[str, object], reason: str) -> None:
    async with site(data) as here:
        sent = (await here.post(here.token("anna"), configuration=values)).json()
        assert await here.ended(sent["id"]) == "failed"
        found = here.service.store.by_id(sent["id"])
        assert found is not None
        assert reason in found.verdict.reason


def test_a_configuration_is_completed_with_the_first_valid_values() -> None:
    template = parse_template(source())
    assert completed(template, FACTS, Configuration()) == Configuration({"X": 1})
    assert completed(template, FACTS, Configuration({"X": 2})) == Configuration({"X": 2})
    # JSON's 1.0 and true equal 1: the kernel gets what its author wrote.
    assert completed(template, FACTS, Configuration({"X": True})).key == '{"X":1}'
    many = source().replace(
        "X = [1, 2, 4]", "X = [1, 2, 4]\n" + "\n".join(f"Y{n} = {list(range(9))}" for n in range(9))
    )
    with pytest.raises(PlanError, match="give a value for every tunable"):
        completed(parse_template(many), FACTS, Configuration())
    never = source().replace("[constraints]", '[constraints]\nnever = "X > 9"', 1)
    with pytest.raises(
        PlanError, match=r"^own\.cu:\d+: constraints\.never: the constraint 'never' \(X > 9\)"
    ):
        completed(parse_template(never, "own.cu"), FACTS, Configuration())


async def test_in_order_one_at_a_time_and_compiled_ahead(data: Path) -> None:
    ids = prepared(data, "slow", *(f"ms: {n}" for n in range(1, 5)))
    benches = Benches()
    async with site(data, benches=benches) as here:
        (bench,) = benches.opened
        while len(bench.compiled) < 5:
            await asyncio.sleep(0.001)
        assert here.state(ids[0]) == "running"
        assert {here.state(each) for each in ids[1:]} == {"waiting"}
        assert bench.measured == []
        bench.gate.set()
        await here.ended(ids[-1])
        assert [each.template.source for each in bench.measured] == [
            source(words) for words in ("slow", "ms: 1", "ms: 2", "ms: 3", "ms: 4")
        ]
        assert len(bench.compiled) == 5


async def test_a_server_that_ends_in_order_gives_the_submission_back(data: Path) -> None:
    ids = prepared(data, "slow", "ms: 1")
    for _ in range(ATTEMPTS + 1):
        async with site(data) as here:
            while here.state(ids[0]) != "running":
                await asyncio.sleep(0.001)
        assert here.benches.opened[0].closed
    benches = Benches()
    async with site(data, benches=benches) as here:
        benches.opened[0].gate.set()
        assert await here.ended(ids[0]) == "passed"
        assert await here.ended(ids[1]) == "passed"
        seeds = {benches.opened[0].seed, here.service.store.adopt(listing())}
        assert len(seeds) == 1


async def test_a_submission_that_ends_every_server_is_given_up(data: Path) -> None:
    ids = prepared(data, "ms: 1", "ms: 2", attempts=ATTEMPTS)
    async with site(data) as here:
        assert await here.ended(ids[1]) == "passed"
        assert here.state(ids[0]) == "failed"
        assert [each.template.source for each in here.benches.opened[0].measured] == [source("ms: 2")]


async def test_a_device_that_is_away_fails_nobody(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "RETRY_S", 0.001)
    (submission,) = prepared(data, "ms: 1")
    benches = Benches()
    async with site(data, benches=benches) as here:
        assert await here.ended(submission) == "passed"
        benches.refuse = "the driver is gone"
        await here.service.evaluators["cpu"].close()
        sent = (await here.post(here.token("anna"), tag="later")).json()
        while sum("the driver is gone" in text for text in here.said) < ATTEMPTS + 2:
            await asyncio.sleep(0.001)
        benches.refuse = ""
        assert await here.ended(sent["id"]) == "passed"


async def test_every_problem_has_its_own_harness_and_seed(data: Path) -> None:
    async with site(data, "vector_add", "gemm", "softmax", "transpose") as here:
        token = here.token("anna")
        headers = {"Authorization": f"Bearer {token}"}
        body = {"source": source(), "mode": "ranked", "tag": "t"}
        for name in ("gemm", "softmax", "transpose", "gemm", "vector_add"):
            answer = await here.client.post(f"/api/boards/{name}/submissions", json=body, headers=headers)
            await here.ended(answer.json()["id"])
        opened = [bench.listing.problem.name for bench in here.benches.opened]
        assert opened == ["vector_add", "gemm", "softmax", "transpose", "vector_add"]
        assert len({bench.seed for bench in here.benches.opened}) == 4
        assert [bench.closed for bench in here.benches.opened] == [True, True, False, False, False]


async def test_a_device_that_cannot_be_used_is_known_at_once(data: Path) -> None:
    benches = Benches()
    benches.refuse = "no such device"
    with pytest.raises(HarnessError, match="no such device"):
        async with site(data, benches=benches):
            pass


async def test_times_of_other_devices_or_rules_are_never_mixed(data: Path) -> None:
    class Other(Benches):
        async def open(self, listing: object, device: str, seed: int) -> FakeBench:
            bench = await super().open(listing, device, seed)  # type: ignore[arg-type]
            bench.facts = FACTS.__class__(**{**FACTS.__dict__, "model": "another"})
            return bench

    async with site(data):
        pass
    with pytest.raises(UserError, match="was fake there and is another here"):
        async with site(data, benches=Other()):
            pass
    store = Store.open(data)
    full = listing().__class__.of("vector_add", slow_cases=False)
    with pytest.raises(UserError, match="times would not compare"):
        store.adopt(full)
    store.close()


async def test_the_candidate_is_what_was_sent(data: Path) -> None:
    async with site(data) as here:
        token = here.token("anna")
        sent = (await here.post(token, configuration={"X": 2}, file="my kernel.cu")).json()
        await here.ended(sent["id"])
        (measured,) = here.benches.opened[0].measured
        assert measured.id == candidate(X=2).id
        assert measured.template.name == "my kernel.cu"
        assert here.service.store.by_id(sent["id"]).draft.mode is Mode.RANKED  # type: ignore[union-attr]
        assert here.state(sent["id"]) is State.PASSED


async def test_the_vendor_library_is_an_entry_like_others(data: Path) -> None:
    async with site(data, device="cuda:0") as here:
        token = here.token("anna")
        for number, words in enumerate(("ms: 1", "ms: 3")):
            sent = await here.post(token, words, tag=f"t{number}", device="cuda:0")
            assert await here.ended(sent.json()["id"]) == "passed"
        rows = here.service.store.entries("vector_add", "cuda:0")
        assert [(row.label, row.score_s) for row in rows] == [("anna", 1e-3), ("(library)/PyTorch", 2e-3)]
    async with site(data, device="cuda:0") as here:  # once is enough
        assert (
            await here.ended((await here.post(here.token("bob"), device="cuda:0")).json()["id"]) == "passed"
        )
        assert here.benches.opened[0].duels == 0


async def test_a_library_that_was_missing_is_tried_again_by_the_next_server(data: Path) -> None:
    benches = Benches()
    benches.library_fails = True
    for entries in (0, 1):
        async with site(data, device="cuda:0", benches=benches) as here:
            store = here.service.store
            while store.queue_length("cuda:0"):
                await asyncio.sleep(0.002)
            assert len(store.entries("vector_add", "cuda:0")) == entries
            benches.library_fails = False


async def test_a_cpu_has_no_vendor_library(data: Path) -> None:
    async with site(data) as here:
        assert here.service.store.queue_length("cpu") == 0
