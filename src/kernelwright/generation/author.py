"""From a model's reply to templates that are worth tuning: parse, refuse twins, try, repair a few times.

The author knows neither device nor memory. It is told how to try a proposal (``trial``: its first configuration
goes through the harness) and learns what came of it; the reason goes back to the model at most ``repairs`` times,
then the proposal is dropped. Nothing that a model says decides whether a candidate passes, fails or ranks.

Replies are untrusted: a fault of ours that one brings to light costs that proposal, never the campaign, and is kept
with the request. What is wrong with anything else is no fault of a reply, and is raised.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from kernelwright.core.candidate import Template, parse_template
from kernelwright.core.errors import (
    MemoryFileError,
    MissingError,
    PlanError,
    ProblemError,
    UserError,
)
from kernelwright.core.outcome import Outcome, Status
from kernelwright.core.text import one_line
from kernelwright.generation.bandit import Bandit
from kernelwright.generation.base import Proposal
from kernelwright.generation.ledger import Asked, Ledger, Purpose
from kernelwright.generation.model import Model, ModelError, ModelRequest
from kernelwright.generation.reply import Proposed, ReplyFault, apply_edits, parse_reply, quoted

REPAIRS: Final = 3
MOST_WAIT_S: Final = 300.0
FAULTS: Final = (ArithmeticError, LookupError, RecursionError, TypeError, UserError, ValueError)
"""What a text unlike all that were foreseen makes code raise."""
NOT_OF_A_REPLY: Final = (MemoryFileError, MissingError, ProblemError)
"""UserErrors that every other proposal would meet too."""
DROPPED: Final = "a proposal was dropped: "
MOST_FRAMES: Final = 6
FAILURES_TO_REST: Final = 3
"""A model that failed so often in a row is asked only when no other is left."""


@dataclass(frozen=True)
class Prompt:
    """Texts of a request."""

    instructions: str
    prompt: str


@dataclass(frozen=True)
class Broken:
    """A draft to be repaired: its code as far as there is any, what is wrong, which attempt this is."""

    code: str
    reason: str
    attempt: int
    attempts: int
    direction: str = ""
    log: str = ""


@dataclass(frozen=True)
class Focus:
    """Where a model wants numbers searched: allowed values by tunable of a known template."""

    template: str
    values: Mapping[str, tuple[int, ...]]
    rationale: str


@dataclass
class Round:
    """What came of one request for structure.

    ``again``: it is followed again, its proposals may be known already.
    """

    model: str = ""
    request: str = ""
    templates: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    focus: list[Focus] = field(default_factory=list)
    stops: int = 0
    repairs: int = 0
    failed: str = ""
    again: bool = False


class Desk(Protocol):
    """What the author needs of the campaign."""

    def structure_prompt(self, wanted: int) -> Prompt:
        """Ask for ``wanted`` proposals of structure."""
        ...

    def repair_prompt(self, broken: Broken) -> Prompt:
        """Ask to mend a draft."""
        ...

    def source_of(self, template: str) -> str | None:
        """Text of a known template by its id or an unambiguous start of it."""
        ...

    def twin_of(self, template: Template, drafts: Collection[str] = ()) -> str | None:
        """Name of a known template that is the same but for names, comments and layout.

        One of ``drafts`` (ids), which it mends, may be nearly the same.
        """
        ...

    def is_paused(self, direction: str) -> bool:
        """Whether a direction waits after repeated failures."""
        ...

    async def trial(self, proposal: Proposal) -> Outcome | None:
        """Evaluate a proposal's first configuration, or tell what came of it in an earlier sitting.

        ``None`` when the campaign ends before.
        """
        ...

    def tell(self, model: str, reason: str, what: str = "") -> None:
        """What went wrong, when it does: a round may go on for long behind it, or be cut off."""
        ...


@dataclass
class Author:
    """Asks models for structure. ``next_id`` numbers requests through the whole campaign, by purpose and prompt.

    ``repaired`` are answered repairs of the round that :meth:`take_up` follows again, by prompt: paid for once.
    ``over`` are models that have nothing left.
    """

    models: Mapping[str, Model]
    bandit: Bandit
    ledger: Ledger
    desk: Desk
    next_id: Callable[[Purpose, str], str]
    repairs: int = REPAIRS
    timeout_s: float = 600.0
    max_output_tokens: int = 16_000
    repaired: dict[str, Asked] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def round(self, wanted: int) -> Round:
        """One request for ``wanted`` proposals, each brought to its first measurement or dropped.

        Returns with ``failed`` set when no model answered; waits as long as a rate limit asks for.
        """
        name = self._choose()
        done = Round(model=name)
        prompt = self.desk.structure_prompt(wanted)
        asked, found = await self._ask(name, prompt, "structure", done)
        done.request = asked.request.id
        return await self._follow_all(asked, found, done)

    async def take_up(self, asked: Asked) -> Round:
        """Follow an answered request of an earlier sitting again, with what came of its proposals then."""
        done = Round(model=asked.model, request=asked.request.id, again=True)
        return await self._follow_all(asked, _read(asked.reply.text) if asked.reply else [], done)

    async def _follow_all(self, asked: Asked, found: Sequence[Proposed | ReplyFault], done: Round) -> Round:
        await asyncio.gather(*(self._follow(each, asked, done) for each in found))
        return done

    # -- one request ----------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether no model has anything left; each was told when it had not."""
        return self.over.issuperset(self.models)

    def _choose(self) -> str:
        left = frozenset(self.models) - self.over
        awake = frozenset(n for n in left if self.bandit.records[n].failures < FAILURES_TO_REST)
        return self.bandit.choose(awake or left or None)

    async def _ask(
        self, name: str, prompt: Prompt, purpose: Purpose, done: Round
    ) -> tuple[Asked, Sequence[Proposed | ReplyFault]]:
        """The request as it ended and what its reply says; nothing when there is no reply."""
        request = ModelRequest(
            self.next_id(purpose, prompt.prompt),
            prompt.instructions,
            prompt.prompt,
            self.timeout_s,
            self.max_output_tokens,
        )
        asked = self.ledger.ask(request, name, purpose)
        record = self.bandit.records[name]
        try:
            reply = await self.models[name].ask(request)
        except ModelError as error:
            record.failures += 1
            asked = self.ledger.failed(asked, str(error))
            self._unanswered(asked, done, is_over=error.is_over)
            if error.retry_after_s is not None:
                await self.sleep(min(error.retry_after_s, MOST_WAIT_S))
            return asked, []
        record.failures = 0
        found = _read(reply.text)
        faults = [part.reason for part in found if isinstance(part, ReplyFault)]
        asked = self.ledger.answered(asked, reply, "; ".join(faults)[:500])
        self.bandit.spent(name, reply.usage.cost_usd or 0.0, reply.seconds)
        return asked, found

    def _unanswered(self, asked: Asked, done: Round, *, is_over: bool) -> None:
        if is_over:
            self.over.add(asked.model)
        told = "asked no more: " if is_over else ""
        if asked.purpose == "structure":
            done.failed = asked.reason
            self.desk.tell(asked.model, asked.reason, told)
        else:
            self._drop(done, asked.reason, told or DROPPED)

    def _drop(self, done: Round, reason: str, told: str = DROPPED) -> None:
        done.dropped.append(reason)
        self.desk.tell(done.model, reason, told)

    def _may_ask(self, model: str) -> bool:
        return self.ledger.allows and model not in self.over

    async def _repair(
        self, name: str, prompt: Prompt, done: Round
    ) -> tuple[Asked, Sequence[Proposed | ReplyFault]]:
        before = self.repaired.pop(prompt.prompt, None)
        if before is not None and before.reply is not None:
            return before, _read(before.reply.text)
        return await self._ask(name, prompt, "repair", done)

    # -- one proposal ---------------------------------------------------------------------------------

    async def _follow(self, found: Proposed | ReplyFault, asked: Asked, done: Round) -> None:
        """Bring one proposal to its end, whatever it is."""
        try:
            await self._bring(found, asked, done)
        except NOT_OF_A_REPLY:
            raise
        except FAULTS as error:
            self.ledger.kept(asked, reason := _fault(error))
            self._drop(done, reason)

    async def _bring(self, found: Proposed | ReplyFault, asked: Asked, done: Round) -> None:
        """With repairs on the way."""
        direction, drafts = "", set[str]()
        for attempt in range(self.repairs + 1):
            if isinstance(found, Proposed):
                direction = found.direction or direction
                if found.kind == "stop":
                    done.stops += 1
                    return
                if found.kind == "tune":
                    done.focus.append(Focus(found.parent, found.focus, found.rationale))
                    return
            result = await self._try(found, asked, direction, drafts, again=done.again)
            if isinstance(result, str):
                done.templates.append(result)
                return
            if result is None or not result.reason or attempt == self.repairs:
                self._drop(done, (result.reason or result.log) if result else "the campaign ended")
                return
            broken = Broken(result.code, result.reason, attempt + 1, self.repairs, direction, result.log)
            prompt = self.desk.repair_prompt(broken)
            if prompt.prompt not in self.repaired and not self._may_ask(asked.model):
                self._drop(done, result.reason)
                return
            done.repairs += 1
            self.desk.tell(done.model, f"{asked.request.id}: {result.reason}", "asked again after ")
            asked, answers = await self._repair(asked.model, prompt, done)
            if not answers:
                return
            found = answers[0]

    async def _try(
        self, found: Proposed | ReplyFault, asked: Asked, direction: str, drafts: set[str], *, again: bool
    ) -> "str | _Failed | None":
        """Id of a template that was measured, what to repair (no reason: nothing can be), or nothing at the end.

        ``drafts`` are templates that it is to mend; it becomes one of them.
        """
        code = self._code(found)
        if isinstance(code, ReplyFault):
            return _Failed(quoted(code.text), code.reason)
        assert isinstance(found, Proposed)
        name = found.name or direction or "proposal"
        try:
            template = parse_template(code, f"{_slug(name)}-{asked.request.id}")
        except PlanError as error:
            return _Failed(code, str(error))
        itself = again and self.desk.source_of(template.id) is not None
        if not itself and (twin := self.desk.twin_of(template, drafts)):
            return _Failed(code, "", f"the same as {twin}")
        new = not itself and not drafts  # a repair was asked for
        if new and self.desk.is_paused(direction):
            return _Failed(code, "", f"the direction {direction!r} is paused")
        drafts.add(template.id)
        parent = found.parent if found.kind == "edit" else ""
        proposal = Proposal(
            template=template,
            direction=direction or name,
            proposer=asked.model,
            rationale=found.rationale,
            predicted=found.predicted,
            parents=(parent,) if parent else (),
        )
        outcome = await self.desk.trial(proposal)
        if outcome is None:
            return None
        if outcome.status in {Status.MEASURED, Status.NOT_RUN}:
            return template.id
        return _Failed(code, f"{outcome.status}: {outcome.reason}")

    def _code(self, found: Proposed | ReplyFault) -> str | ReplyFault:
        if isinstance(found, ReplyFault):
            return found
        if found.kind != "edit":
            return found.code
        source = self.desk.source_of(found.parent)
        if source is None:
            return ReplyFault(f"there is no template {found.parent[:40]!r} to edit")
        return apply_edits(source, found.edits)


@dataclass(frozen=True)
class _Failed:
    """``reason`` is empty when a repair would be of no use; ``log`` says why for people."""

    code: str
    reason: str
    log: str = ""


def _read(text: str) -> Sequence[Proposed | ReplyFault]:
    try:
        return parse_reply(text)
    except FAULTS as error:
        return [ReplyFault(_fault(error))]


def _fault(error: Exception) -> str:
    """One line: what is wrong with the text, or a fault of ours with the way that led there."""
    if isinstance(error, UserError):
        return one_line(str(error))
    frames = traceback.extract_tb(error.__traceback__)[-MOST_FRAMES:]
    way = ", ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
    return f"a fault of kernelwright, please report it: {type(error).__name__}: {one_line(str(error))[:300]} ({way})"


def _slug(text: str) -> str:
    kept = "".join(c if c.isalnum() and c.isascii() else "-" for c in text.lower())
    return "-".join(part for part in kept.split("-") if part)[:40] or "proposal"
