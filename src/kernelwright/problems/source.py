"""A problem as a source of cases for a device's runner."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kernelwright.core.case import Buffer, CaseInputs, Tolerance
from kernelwright.problems.case import Case
from kernelwright.problems.loader import Problem


@dataclass(frozen=True)
class ProblemSource:
    """Implements :class:`~kernelwright.devices.base.CaseSource` for cases and trials.

    ``seed`` is the campaign's, unknown to candidates.
    """

    problem: Problem
    seed: int
    slow: bool

    @cached_property
    def _cases(self) -> dict[str, Case]:
        trials = self.problem.every_trial(slow=self.slow, seed=self.seed)
        return {case.id: case for case in (*self.problem.cases(slow=self.slow), *trials)}

    def case(self, case: str) -> Case:
        """The case or trial of that id."""
        return self._cases[case]

    def buffers(self, case: str) -> tuple[Buffer, ...]:
        """Array arguments of the case."""
        return self.problem.buffers(self._cases[case])

    def inputs(self, case: str, index: int) -> CaseInputs:
        """Input set number ``index``."""
        return CaseInputs(self.problem.make_inputs(self._cases[case], index, self.seed))

    def expected(self, case: str, inputs: Mapping[str, Any], xp: Any) -> Mapping[str, Any]:
        """Right outputs in float64, as arrays of ``xp``."""
        return self.problem.reference(self._cases[case], inputs, xp)

    def tolerance(self, case: str, output: str, expected_rms: float) -> Tolerance:  # noqa: ARG002 - same in all cases
        """Tolerance of one output, with the part that scales by the output's root mean square worked in."""
        argument = next(a for a in self.problem.spec.arrays if a.name == output)
        spec = argument.tolerance or self.problem.spec.tolerance
        return Tolerance(rtol=spec.rtol, atol=spec.atol + spec.rms * expected_rms)

    def library(self, case: str, tensors: Mapping[str, Any], torch: Any) -> Callable[[], object]:
        """A vendor library's way from inputs to outputs, as one call."""
        return self.problem.library(self._cases[case], tensors, torch)
