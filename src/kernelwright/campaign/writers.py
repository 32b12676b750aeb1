"""Puts the writing side of a campaign together: models, author, ledger, prompts, and what is kept of requests."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

from kernelwright.campaign.aim import Aim
from kernelwright.campaign.policy import Policy
from kernelwright.campaign.scene import Scene
from kernelwright.campaign.seeing import Seeing
from kernelwright.campaign.settings import Settings
from kernelwright.campaign.writing import Writing
from kernelwright.core.objective import Objective
from kernelwright.generation.author import Author
from kernelwright.generation.bandit import Bandit
from kernelwright.generation.base import Proposal
from kernelwright.generation.ledger import Asked, Ledger, Purpose
from kernelwright.generation.model import Model, ModelReply, ModelRequest, Usage
from kernelwright.generation.prompt import PromptBuilder
from kernelwright.harness.rules.text import describe
from kernelwright.harness.wire import Ceilings
from kernelwright.memory.records import RequestRecord
from kernelwright.problems.loader import Problem
from kernelwright.problems.rules import candidate_rules


def make_writing(
    scene: Scene,
    settings: Settings,
    policy: Policy,
    models: Mapping[str, Model],
    *,
    objective: Objective,
    problem: Problem,
    seeing: Seeing,
    aim: Aim,
    take_in: Callable[[Proposal], bool],
    wake: Callable[[], None],
    asking: asyncio.Lock,
) -> Writing:
    """The writing side; without models it only keeps notes."""
    cases = problem.cases(slow=settings.slow_cases)
    prompts = PromptBuilder(
        problem,
        scene.harness.facts,
        objective,
        cases,
        rules=describe(candidate_rules(problem)),
        ceilings=_in_words(scene.harness.ceilings),
    )
    writing = Writing(
        scene=scene,
        settings=settings,
        policy=policy,
        objective=objective,
        prompts=prompts,
        take_in=take_in,
        wake=wake,
        asking=asking,
        seeing=seeing,
        aim=aim,
    )
    if models:
        writing.author = _author(scene, settings, models, writing)
    return writing


def _in_words(ceilings: Ceilings) -> str:
    known = [
        f"{value / 1e12:.3g} {unit}"
        for value, unit in (
            (ceilings.bytes_per_s, "TB/s copied"),
            (ceilings.flops_per_s, "TFLOP/s fp32"),
            (ceilings.on_tensor_units and ceilings.tensor_flops_per_s, "TFLOP/s float16 on tensor units"),
        )
        if value
    ]
    return ", ".join(known)


def _author(scene: Scene, settings: Settings, models: Mapping[str, Model], writing: Writing) -> Author:
    """The author with what earlier sittings have asked and paid."""
    ledger = Ledger(
        keep=lambda asked: scene.memory.request(_record(scene.campaign, asked)),
        max_cost_usd=settings.max_cost_usd,
        max_requests=settings.max_requests,
    )
    bandit = Bandit(tuple(models))
    known: set[str] = set()
    waiting: list[RequestRecord] = []
    repaired: dict[str, Asked] = {}
    for record in scene.memory.requests(scene.campaign):
        if record.state == "asked":  # killed while it waited: the request is made again under the same number
            waiting.append(record)
            if record.purpose == "structure":
                writing.recall_waiting()
            continue
        known.add(record.id)
        asked = _asked(record)
        ledger.recall(asked)
        writing.recall(asked)
        if asked.purpose == "structure":
            repaired.clear()
        elif asked.reply is not None:
            repaired[asked.request.prompt] = asked
        if asked.model in bandit.records and asked.reply is not None:
            bandit.spent(asked.model, asked.reply.usage.cost_usd or 0.0, asked.reply.seconds)
    return Author(
        models=models,
        bandit=bandit,
        ledger=ledger,
        desk=writing,
        next_id=_Numbers(known, waiting),
        repairs=settings.repairs,
        timeout_s=settings.model_timeout_s,
        repaired=repaired,
    )


class _Numbers:
    """Numbers of requests. One that was only asked is asked again under its own: the same repair, or the next structure."""

    def __init__(self, known: set[str], waiting: Sequence[RequestRecord]) -> None:
        self._waiting = list(waiting)
        taken = known | {record.id for record in waiting}
        self._free: Iterator[str] = (
            number for number in map("{:04d}".format, count(1)) if number not in taken
        )

    def __call__(self, purpose: Purpose, prompt: str) -> str:
        same = [
            r for r in self._waiting if r.purpose == purpose and (purpose != "repair" or r.prompt == prompt)
        ]
        if not same:
            return next(self._free)
        self._waiting.remove(same[0])
        return same[0].id


def _record(campaign: str, asked: Asked) -> RequestRecord:
    reply = asked.reply
    return RequestRecord(
        campaign=campaign,
        id=asked.request.id,
        model=asked.model,
        purpose=asked.purpose,
        state=asked.state,
        prompt=asked.request.prompt,
        instructions=asked.request.instructions,
        reply=reply.text if reply else None,
        reason=asked.reason,
        input_tokens=reply.usage.input_tokens if reply else None,
        output_tokens=reply.usage.output_tokens if reply else None,
        cost_usd=reply.usage.cost_usd if reply else None,
        seconds=reply.seconds if reply else None,
    )


def _asked(record: RequestRecord) -> Asked:
    usage = Usage(record.input_tokens, record.output_tokens, record.cost_usd)
    reply = None if record.reply is None else ModelReply(record.reply, usage, record.seconds or 0.0)
    request = ModelRequest(record.id, record.instructions, record.prompt)
    return Asked(
        request,
        record.model,
        "repair" if record.purpose == "repair" else "structure",
        "answered" if reply else "failed",
        reply,
        record.reason,
    )
