"""The author: from replies to measured templates, with bounded repair."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from kernelwright.core.candidate import Template
from kernelwright.core.errors import HarnessError, MemoryFileError, MissingError, ProblemError, UserError
from kernelwright.core.outcome import CaseTiming, Outcome, Status
from kernelwright.generation.author import Author, Broken, Prompt
from kernelwright.generation.bandit import Bandit
from kernelwright.generation.base import Proposal
from kernelwright.generation.ledger import Asked, Ledger
from kernelwright.generation.model import ModelError, ModelReply, ModelRequest, Usage

PLAN = '/* kernelwright\n[[launch]]\nkernel = "k"\ngrid = [1]\nblock = [32]\nargs = [1]\n*/\n'
GOOD = Outcome(Status.MEASURED, cases=(CaseTiming("a", (1.0,), "events"),))
BAD = Outcome(Status.COMPILE_FAILED, "line 9: no such thing", check="compiler")

UNKNOWN = "<proposal>\nkind: edit\nparent: nobody\n```\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n</proposal>\n"
"""An edit of a template that nobody knows."""


def reply(body: str = "", *, direction: str = "tiles") -> str:
    """A template with something in its body."""
    code = f'{PLAN}extern "C" __global__ void k(int n) {{{body}}}\n'
    return f"<proposal>\nkind: template\ndirection: {direction}\n```\n{code}```\n</proposal>\n"


@dataclass
class Scripted:
    """A model that says what it was told to say."""

    texts: list[str | Exception]
    name: str = "scripted:x"
    asked: list[ModelRequest] = field(default_factory=list)

    async def ask(self, request: ModelRequest) -> ModelReply:
        """The next text."""
        self.asked.append(request)
        await asyncio.sleep(0)
        text = self.texts.pop(0)
        if isinstance(text, Exception):
            raise text
        return ModelReply(text, Usage(10, 20, 0.25), 1.0)

    async def close(self) -> None:
        """Nothing."""


@dataclass
class FakeDesk:
    """A campaign in which the first trials have the given outcomes and later ones are good."""

    outcomes: list[Outcome | None] = field(default_factory=list)
    tried: list[Proposal] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    twins: dict[str, str] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    drafts: list[set[str]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def structure_prompt(self, wanted: int) -> Prompt:
        """A prompt."""
        return Prompt("instructions", f"{wanted} please")

    def repair_prompt(self, broken: Broken) -> Prompt:
        """Another."""
        self.broken.append(broken)
        return Prompt("instructions", f"mend: {broken.reason}")

    def source_of(self, template: str) -> str | None:
        """One known parent."""
        return f'{PLAN}extern "C" __global__ void k(int n) {{ int a; }}\n' if template == "known" else None

    def twin_of(self, template: Template, drafts: Collection[str] = ()) -> str | None:
        """As scripted, by a word in the source."""
        self.drafts.append(set(drafts))
        return next((twin for word, twin in self.twins.items() if word in template.source), None)

    def is_paused(self, direction: str) -> bool:
        """As scripted."""
        return direction in self.paused

    async def trial(self, proposal: Proposal) -> Outcome | None:
        """The next outcome."""
        self.tried.append(proposal)
        await asyncio.sleep(0)
        return self.outcomes.pop(0) if self.outcomes else GOOD

    def tell(self, model: str, reason: str, what: str = "") -> None:
        """Kept in order."""
        self.told.append(f"{model}: {what}{reason}")


def author(model: Scripted, desk: FakeDesk, kept: list[Asked] | None = None, **ledger: float) -> Author:
    """An author with one model."""
    numbers = iter(range(1, 1000))
    book = Ledger((kept if kept is not None else []).append, **ledger)  # type: ignore[arg-type]
    return Author({model.name: model}, Bandit((model.name,)), book, desk, lambda *_: f"{next(numbers):04d}")


async def test_a_good_reply_is_tried_and_kept() -> None:
    desk, kept = FakeDesk(), list[Asked]()
    model = Scripted([reply() + reply(" int b; ", direction="split k")])
    done = await author(model, desk, kept).round(2)
    assert len(done.templates) == 2
    assert not done.dropped
    assert [p.direction for p in desk.tried] == ["tiles", "split k"]
    assert desk.tried[0].proposer == "scripted:x"
    assert desk.tried[0].template.name == "tiles-0001"
    assert [entry.state for entry in kept] == ["asked", "answered"]


async def test_a_repair_is_tried_though_its_direction_is_paused_meanwhile() -> None:
    class Pausing(FakeDesk):
        """Numbers of the draft that failed besides have paused its direction."""

        def repair_prompt(self, broken: Broken) -> Prompt:
            self.paused.add(broken.direction)
            return super().repair_prompt(broken)

    desk = Pausing([BAD])
    done = await author(Scripted([reply(), reply(" int c; ")]), desk).round(1)
    assert done.templates == [desk.tried[-1].template.id]
    again = await author(Scripted([reply(" int d; ")]), desk).round(1)
    assert again.dropped == ["the direction 'tiles' is paused"]


async def test_failures_go_back_until_it_works() -> None:
    desk = FakeDesk([BAD, Outcome(Status.WRONG, "3 values wrong", check="values")])
    model = Scripted([reply(), "nothing useful", reply(" int c; "), reply(" int d; ")])
    done = await author(model, desk).round(1)
    assert done.templates == [desk.tried[-1].template.id]
    assert done.repairs == 3
    assert [b.reason for b in desk.broken] == [
        "compile_failed: line 9: no such thing",
        "the reply holds no proposal: neither a line 'kind: ...' nor a code block",
        "wrong: 3 values wrong",
    ]
    assert [b.attempt for b in desk.broken] == [1, 2, 3]
    ids = [p.template.id for p in desk.tried]
    assert desk.drafts == [set(), {ids[0]}, {ids[0], ids[1]}]
    assert desk.tried[-1].direction == "tiles"


async def test_repair_is_bounded_and_then_the_proposal_is_dropped() -> None:
    desk = FakeDesk([BAD] * 9)
    model = Scripted([reply(f" int x{i}; ") for i in range(9)])
    done = await author(model, desk).round(1)
    assert not done.templates
    assert done.dropped == ["compile_failed: line 9: no such thing"]
    assert len(model.asked) == 4


async def test_what_fails_is_told_while_another_proposal_is_still_tried() -> None:
    class Slow(FakeDesk):
        """Trials do not end."""

        async def trial(self, proposal: Proposal) -> Outcome | None:
            await asyncio.Event().wait()
            raise AssertionError

    desk = Slow()
    writer = author(Scripted([reply() + UNKNOWN, UNKNOWN, ModelError("429", retry_after_s=60.0)]), desk)
    round_ = asyncio.create_task(writer.round(2))
    async with asyncio.timeout(5):
        while len(desk.told) < 3:
            await asyncio.sleep(0)
    assert not round_.done()
    round_.cancel()
    await asyncio.wait([round_])
    assert desk.told == [
        "scripted:x: asked again after 0001: there is no template 'nobody' to edit",
        "scripted:x: asked again after 0002: there is no template 'nobody' to edit",
        "scripted:x: a proposal was dropped: 429",
    ]


async def test_twins_and_paused_directions_cost_no_device_time_and_no_repair() -> None:
    desk = FakeDesk(twins={"twin": "softmax-3"}, paused={"dead end"})
    model = Scripted([reply("/* twin */") + reply(direction="dead end")])
    done = await author(model, desk).round(2)
    assert done.dropped == ["the same as softmax-3", "the direction 'dead end' is paused"]
    assert not desk.tried
    assert len(model.asked) == 1


async def test_edits_on_a_known_parent() -> None:
    text = (
        "kind: edit\nparent: known\ndirection: wider\n"
        "```\n<<<<<<< SEARCH\nint a;\n=======\nlong a;\n>>>>>>> REPLACE\n```"
    )
    desk = FakeDesk()
    done = await author(Scripted([text]), desk).round(1)
    assert len(done.templates) == 1
    assert "long a;" in desk.tried[0].template.source
    assert desk.tried[0].parents == ("known",)


async def test_an_edit_of_nothing_known_is_repaired() -> None:
    text = "kind: edit\nparent: other\n```\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```"
    desk = FakeDesk()
    await author(Scripted([text, reply()]), desk).round(1)
    assert desk.broken[0].reason == "there is no template 'other' to edit"


async def test_tune_and_stop_are_passed_on() -> None:
    text = (
        "<proposal>\nkind: tune\nparent: known\nfocus: BM = [64]\nrationale: it peaks there\n</proposal>\n"
        "<proposal>\nkind: stop\n</proposal>"
    )
    done = await author(Scripted([text]), FakeDesk()).round(2)
    assert done.focus[0].values == {"BM": (64,)}
    assert done.stops == 1


async def test_a_model_that_fails_is_noted_and_its_wait_is_kept() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    kept: list[Asked] = []
    model = Scripted([ModelError("429: too many requests", retry_after_s=7.0)])
    writer = author(model, FakeDesk(), kept)
    writer.sleep = sleep
    done = await writer.round(1)
    assert done.failed == "429: too many requests"
    assert waits == [7.0]
    assert kept[-1].state == "failed"


async def test_of_two_models_the_failing_one_is_left_alone() -> None:
    bad = Scripted([ModelError("down")] * 9, "bad:x")
    good = Scripted([reply(f" int x{i}; ") for i in range(20)], "good:x")
    numbers = iter(range(1000))
    book = Ledger(lambda _: None)
    writer = Author(
        {"bad:x": bad, "good:x": good},
        Bandit(("bad:x", "good:x")),
        book,
        FakeDesk(),
        lambda *_: str(next(numbers)),
    )
    for _ in range(12):
        await writer.round(1)
    assert len(bad.asked) == 3
    assert len(good.asked) == 9


async def test_what_is_used_up_is_told_once_and_asked_no_more_for_anything() -> None:
    class Used(Scripted):
        """Has one reply."""

        async def ask(self, request: ModelRequest) -> ModelReply:
            if not self.texts:
                self.asked.append(request)
                raise ModelError("first:x: none left", is_over=True)
            return await super().ask(request)

    first = Used([UNKNOWN * 3], "first:x")
    other, desk = Scripted([reply()], "other:x"), FakeDesk()
    writer = author(first, desk)
    assert len((await writer.round(3)).dropped) == 3
    assert len(first.asked) == 2
    assert [told for told in desk.told if "none left" in told] == [
        "first:x: asked no more: first:x: none left"
    ]
    assert writer.is_over
    writer.models = {"first:x": first, "other:x": other}
    writer.bandit = Bandit(("first:x", "other:x"))
    assert not writer.is_over
    assert (await writer.round(1)).model == "other:x"


@pytest.mark.parametrize(("cap", "requests"), [(0.6, 2), (0.25, 1), (0.2, 1), (10.0, 4)])
async def test_the_spend_cap_holds_to_the_last_request(cap: float, requests: int) -> None:
    desk = FakeDesk([BAD] * 9)
    model = Scripted([reply(f" int x{i}; ") for i in range(9)])
    writer = author(model, desk, max_cost_usd=cap)
    assert writer.ledger.allows
    await writer.round(1)
    assert len(model.asked) == requests
    assert writer.ledger.spent_usd <= max(cap, 0.25)


async def test_a_number_of_requests_is_a_cap_too() -> None:
    desk = FakeDesk([BAD] * 9)
    model = Scripted([reply(f" int x{i}; ") for i in range(9)])
    writer = author(model, desk, max_requests=2)
    await writer.round(1)
    assert len(model.asked) == 2
    assert not writer.ledger.allows


@dataclass
class Breaking(FakeDesk):
    """A campaign with a fault of ours in what it does with templates."""

    error: Exception | None = None
    where: str = "trial"

    def twin_of(self, template: Template, drafts: Collection[str] = ()) -> str | None:
        """Breaks where it shall."""
        if self.where == "twin_of" and "bad" in template.source:
            raise OverflowError("int too\nlarge")
        return None

    async def trial(self, proposal: Proposal) -> Outcome | None:
        """Breaks where it shall."""
        if self.where == "trial" and "bad" in proposal.template.source:
            raise self.error or OverflowError("int too\nlarge")
        return await super().trial(proposal)


@pytest.mark.parametrize("where", ["twin_of", "trial"])
async def test_a_fault_of_ours_costs_the_proposal_alone_and_is_kept(where: str) -> None:
    desk, kept = Breaking(where=where), list[Asked]()
    writer = author(Scripted([reply(" int bad; ") + reply(" int b; ")]), desk, kept)
    done = await writer.round(2)
    assert done.templates == [desk.tried[-1].template.id]
    (reason,) = done.dropped
    assert reason.startswith("a fault of kernelwright, please report it: OverflowError: int too large (")
    assert f" {where})" in reason
    assert (kept[-1].state, kept[-1].reason) == ("answered", reason)
    again = await writer.take_up(kept[-1])  # as resume does
    assert again.dropped == [reason]
    assert len(again.templates) == 1


@pytest.mark.parametrize(
    "error",
    [
        HarnessError("no device"),
        MemoryFileError("damaged"),
        MissingError("pip install it"),
        ProblemError("reference.py ends"),
        OSError("full"),
    ],
)
async def test_what_is_no_fault_of_a_reply_is_raised(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        await author(Scripted([reply(" int bad; ")]), Breaking(error=error)).round(1)


async def test_what_is_wrong_with_a_text_is_no_fault_of_ours() -> None:
    desk = Breaking(error=UserError("a name that is taken"))
    done = await author(Scripted([reply(" int bad; ")]), desk).round(1)
    assert done.dropped == ["a name that is taken"]


async def test_a_reply_that_cannot_even_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> None:
        raise RecursionError(text)

    monkeypatch.setattr("kernelwright.generation.author.parse_reply", broken)
    kept: list[Asked] = []
    writer = author(Scripted(["hello"] * 4), FakeDesk(), kept)
    done = await writer.round(1)
    assert "RecursionError: hello" in done.dropped[0]
    assert "RecursionError: hello" in kept[-1].reason
    assert (await writer.take_up(kept[1])).dropped


HUGE = ["1" * 4501, "0x" + "f" * 5000, f'"{"9" * 1900} ** 64"', "[" * 5000]


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("key", ["grid = [{}]", "args = [{}]", "dynamic_shared_bytes = {}", "x = {}"])
async def test_numbers_beyond_all_bounds_in_a_reply_are_a_wrong_plan(key: str, value: str) -> None:
    text = reply().replace("args = [1]", f"args = [1]\n{key.format(value)}").replace("grid = [1]\n", "")
    desk = FakeDesk()
    done = await author(Scripted([text, reply()]), desk).round(1)
    assert len(done.templates) == 1
    assert len(desk.broken) == 1
    assert "fault of kernelwright" not in desk.broken[0].reason
