"""What a campaign gives back, from its state."""

from collections.abc import Mapping
from typing import Any

from kernelwright.campaign.aim import Aim
from kernelwright.campaign.result import CampaignResult, Confirmation, Leader, sanitizer_json
from kernelwright.campaign.scene import Scene
from kernelwright.campaign.settings import Settings
from kernelwright.campaign.standing import Entry
from kernelwright.campaign.succession import Succession
from kernelwright.problems.loader import Problem


def summary(
    scene: Scene,
    settings: Settings,
    *,
    problem: Problem,
    state: str,
    baseline: Entry,
    counts: Mapping[str, int],
    succession: Succession,
    confirmation: Confirmation | None,
    aim: Aim,
    board: dict[str, Any] | None,
) -> CampaignResult:
    """The result of a campaign whose baseline was measured."""
    leader, facts = scene.standing.incumbent, scene.harness.facts
    assert leader is not None, "the baseline leads until something better comes"
    return CampaignResult(
        campaign=scene.campaign,
        problem=problem.name,
        device=facts.name,
        device_model=facts.model,
        objective=scene.standing.objective.name,
        state=state,
        slow_cases=settings.slow_cases and bool(problem.spec.slow_cases),
        baseline=_leader(scene, baseline),
        incumbent=_leader(scene, leader),
        experiments=sum(counts.values()),
        seconds=scene.budget.used,
        statuses=dict(sorted(counts.items())),
        confirmation=confirmation,
        duels=succession.fought,
        sanitizer=sanitizer_json(succession.sanitized(leader.candidate)),
        goal=str(aim.goal) if aim.goal else None,
        goal_reached=aim.reached(baseline),
        board=board,
    )


def _leader(scene: Scene, entry: Entry) -> Leader:
    candidate, objective = scene.candidates[entry.candidate], scene.standing.objective
    return Leader(
        entry.candidate, str(candidate), objective.time(entry.times), entry.score, dict(entry.times)
    )
