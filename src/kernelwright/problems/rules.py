"""A problem's rules as candidates are held to them."""

from kernelwright.core.rules import CandidateRules
from kernelwright.problems.loader import Problem


def candidate_rules(problem: Problem) -> CandidateRules:
    """The rules of a problem, with the sizes of its cases by name, in the order of the cases (slow ones last)."""
    cases = list(problem.cases(slow=False))
    cases += [case for case in problem.cases(slow=True) if case.slow]
    names = problem.spec.size_names
    return CandidateRules(
        **problem.spec.rules.model_dump(),
        sizes={name: tuple(case.sizes[name] for case in cases) for name in names},
    )
