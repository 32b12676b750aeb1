"""A candidate's plan for several cases; what is wrong in some of them only is told with the case's name."""

from collections.abc import Mapping, Sequence

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import PlanError
from kernelwright.core.launch import ResolvedPlan
from kernelwright.core.resolve import Signature, resolve
from kernelwright.problems.case import Case


def plans_for(
    candidate: Candidate, cases: Sequence[Case], facts: DeviceFacts, signature: Signature
) -> dict[str, ResolvedPlan]:
    """The plan for every case, by its id. Raises PlanError, the first."""
    plans, faults = tried_plans(candidate, cases, facts, signature)
    for fault in faults.values():
        raise fault
    return plans


def tried_plans(
    candidate: Candidate, cases: Sequence[Case], facts: DeviceFacts, signature: Signature
) -> tuple[dict[str, ResolvedPlan], dict[str, PlanError]]:
    """The plans of the cases that have one, and what is wrong in the others."""
    plans: dict[str, ResolvedPlan] = {}
    faults: dict[str, PlanError] = {}
    for case in cases:
        try:
            plans[case.id] = resolve(candidate, case.sizes, facts, signature)
        except PlanError as fault:
            faults[case.id] = fault
    return plans, _named(faults, len(cases))


def _named(faults: Mapping[str, PlanError], cases: int) -> dict[str, PlanError]:
    """With the case, but for a fault that all of several cases have alike: that one is no case's."""
    if cases > 1 and len(faults) == cases and len({str(fault) for fault in faults.values()}) == 1:
        return dict(faults)
    return {
        case: PlanError(f"{fault.message} (case {case})", fault.origin, fault.line, fault.column, fault.key)
        for case, fault in faults.items()
    }
