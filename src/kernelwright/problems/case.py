"""One case of a problem, and one trial: a case that is only checked, never timed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwright.core.outcome import Check
from kernelwright.problems.inputs import Distribution


@dataclass(frozen=True)
class Case:
    """One input size. ``slow`` marks the smaller set that only slow devices (the cpu) run."""

    id: str
    sizes: Mapping[str, int] = field(hash=False)
    slow: bool = False


@dataclass(frozen=True)
class Trial(Case):
    """A case off the list, or inputs unlike the problem's own: what shows a candidate that is right by assumption.

    ``distributions`` has one for every argument that is read. ``changed_from`` is the id of the trial whose inputs
    this one has, but for a few elements. ``told`` stands for the trial where candidates come from, when its sizes are
    to stay unknown there: what is known by name is excluded by name.
    """

    check: Check = Check.STRESS_INPUTS
    distributions: Mapping[str, Distribution] = field(default_factory=dict, hash=False)
    changed_from: str = ""
    told: str = ""
