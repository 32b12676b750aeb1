"""Putting specialists together: when the best candidates for ranges of sizes should beat the incumbent as one."""

from collections.abc import Mapping, Sequence
from typing import Final

from kernelwright.campaign.policy import Policy
from kernelwright.campaign.standing import Standing
from kernelwright.core.candidate import Candidate
from kernelwright.generation.base import Proposal
from kernelwright.generation.dispatch import DISPATCH, dispatch, divide
from kernelwright.problems.loader import Case, Problem

DISPATCH_GAIN: Final = 0.99
"""It pays when the expected cost is below this share of the incumbent's."""


def put_together(
    problem: Problem,
    standing: Standing,
    policy: Policy,
    candidates: Mapping[str, Candidate],
    cases: Sequence[Case],
) -> Proposal | None:
    """A template of specialists when that should beat the incumbent."""
    leader, objective = standing.incumbent, standing.objective
    if leader is None:
        return None

    def is_dispatch(candidate: str) -> bool:
        # Its parts are specialists themselves: a dispatch of dispatches would gain nothing.
        return policy.arms[candidates[candidate].template.id].proposal.direction == DISPATCH

    expression, work = problem.size_of(cases)
    times = standing.specialists(lambda name: not is_dispatch(name))
    division = divide(work, times)
    expected = {case: times[name][case] for name, group in division for case in group}
    ordered = {case.id: expected[case.id] for case in cases}
    if len(division) < 2 or objective.cost(ordered) > DISPATCH_GAIN * objective.cost(leader.times):
        return None
    return dispatch(candidates, work, expression, division)
