"""A plan that can be launched nowhere is bad input where the file is the user's own, and faults name that file."""

import re
from dataclasses import replace
from typing import Final

from kernelwright.core.candidate import Candidate, Template
from kernelwright.core.errors import PlanError
from kernelwright.core.outcome import Check, Outcome, Status
from kernelwright.core.plan_faults import plan_fault
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import CompileResult
from kernelwright.problems.plans import tried_plans

_COMPILED: Final = re.compile(r"(?<![\w./-])candidate\.cu(?=:)")
_LINE: Final = re.compile(r"line (\d+): ")
_ARGUMENTS: Final = re.compile(
    r"kernel '?(\w+)'?(?: takes \d+ arguments|: parameter \d| argument \d"
    r"| cannot be launched: (?:the kernel has \d+ arguments|argument \d))"
)
"""As the devices' launchers say that a plan's ``args`` are not the kernel's: no case can change that."""


def refuse_plan(candidate: Candidate, compiled: CompileResult, harness: LocalHarness) -> None:
    """Raises PlanError for a plan that launches what the source lacks, or that no case of the problem can be run by."""
    if compiled.check != Check.PLAN:
        return
    if compiled.status is Status.COMPILE_FAILED:
        raise _unknown_kernel(candidate.template, compiled.reason)
    plans, faults = tried_plans(candidate, harness.cases, harness.facts, harness.problem.signature)
    if not plans:
        raise next(iter(faults.values()))


def refuse_arguments(candidate: Candidate, outcome: Outcome) -> None:
    """Raises PlanError for ``args`` that are not the kernel's parameters."""
    found = _ARGUMENTS.search(outcome.reason) if outcome.status is Status.LAUNCH_FAILED else None
    if found:
        key = _launch_of(candidate.template, found[1])
        raise plan_fault(candidate.template, outcome.reason[found.start() :], f"{key}.args")


def in_file(outcome: Outcome, name: str) -> Outcome:
    """Places in the source, which compilers know by another name, as places in the user's file."""
    reason = outcome.reason
    if outcome.status in {Status.COMPILE_FAILED, Status.RULE_BROKEN}:
        reason = (
            _LINE.sub(lambda line: f"{name}:{line[1]}: ", reason, count=1) if _LINE.match(reason) else reason
        )
    findings = tuple(_COMPILED.sub(lambda _: name, finding) for finding in outcome.findings)
    return replace(outcome, reason=_COMPILED.sub(lambda _: name, reason), findings=findings)


def _unknown_kernel(template: Template, reason: str) -> PlanError:
    name = next((kernel for kernel in template.kernels if repr(kernel) in reason), template.kernels[0])
    message = reason.removeprefix("candidate.cu: ")
    return plan_fault(template, message, f"{_launch_of(template, name)}.kernel", name)


def _launch_of(template: Template, kernel: str) -> str:
    names = [launch.kernel for launch in template.plan.launches]
    return f"launch[{names.index(kernel)}]" if kernel in names else "launch"
