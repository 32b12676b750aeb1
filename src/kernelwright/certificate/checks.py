"""Every check by its name with its evidence.

A candidate is recorded as measured only when no check of its device refused it: those that every measured run has to
pass are evidenced by the runs; those that run apart (trials, compute-sanitizer) by what the campaign noted.
"""

import json
from math import isfinite

from kernelwright.certificate.evidence import TrialRun
from kernelwright.certificate.facts import Facts
from kernelwright.certificate.models import CheckPart
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import TIMED_BEFORE, TimingProtocol
from kernelwright.harness.protocol import SanitizerResult
from kernelwright.harness.sanitizer import CHECKED_MODE

NOT_RECORDED = "not recorded by the campaign"


def check_parts(facts: Facts) -> tuple[CheckPart, ...]:
    """All checks, in the order in which an experiment meets them."""
    found = {part.check: part for part in (*_before(facts), *_of_runs(facts), *_apart(facts))}
    return tuple(found.get(check) or _not_run(check, NOT_RECORDED) for check in Check)


def _passed(check: Check, evidence: str) -> CheckPart:
    return CheckPart(check=check, result="passed", evidence=evidence)


def _not_run(check: Check, why: str) -> CheckPart:
    return CheckPart(check=check, result="not run", evidence=why)


def _before(facts: Facts) -> list[CheckPart]:
    """What is known before the device is used."""
    launches = sum(len(plan.launches) for plan in facts.plans.values())
    rules = facts.problem.spec.rules.model_dump(mode="json", exclude_defaults=True)
    held = f"the problem's rules: {json.dumps(rules)}" if rules else "the rules of every candidate"
    seconds = facts.experiment.outcome.seconds.get("compile", 0.0)
    source = len(facts.template.source.encode())
    static = facts.experiment.outcome.static
    kernels = static.kernels if static else ()
    resources = "; ".join(
        f"{k.name}: {k.registers if k.registers is not None else 'unknown'} registers, "
        f"{k.spill_bytes if k.spill_bytes is not None else 'unknown'} bytes spilled"
        for k in kernels
    )
    return [
        _passed(Check.PLAN, f"{launches} launches resolved for {len(facts.plans)} cases"),
        _passed(Check.SOURCE_RULES, f"{source} bytes of source kept {held}"),
        _passed(Check.BINARY_RULES, f"{_binary(facts, held)}; {resources or 'no resource report'}"),
        _passed(Check.COMPILER, f"compiled by {facts.device.toolchain}"),
        _passed(Check.COMPILE_LIMITS, f"compiled in {seconds:.3g} s within its limits"),
        _passed(Check.LAUNCH_LIMITS, "every launch was accepted"),
    ]


def _binary(facts: Facts, held: str) -> str:
    digest = facts.experiment.outcome.artifact_digest[:16]
    if facts.device.kind == "cpu":
        return f"symbols and sections of binary {digest}; rules on GPU instructions have no meaning here"
    return f"binary {digest} kept {held}"


def _of_runs(facts: Facts) -> list[CheckPart]:
    """What every measured run has passed."""
    outcome, plan = facts.experiment.outcome, next(iter(facts.plans.values()))
    timings = outcome.cases
    samples = sum(len(timing.samples_ms) for timing in timings)
    errors = [timing.max_error for timing in timings if isfinite(timing.max_error)]
    runs = f"{samples} timed runs of {len(timings)} cases and an untimed first run each"
    worst = f"worst error {max(errors):.3g} of the tolerance" if errors else "errors not recorded"
    timing = _timing(facts)
    sets = f"; {timing.input_sets} input sets a case" if timing else ""
    parts = [
        _passed(Check.RUN_LIMITS, f"{runs} ended within their limits"),
        _passed(Check.CRASH, f"{runs} ended without a crash"),
        _passed(Check.VALUES, f"{runs}, each compared with the float64 reference: {worst}{sets}"),
        _floor(facts),
    ]
    if timing is not None:  # noted since the harness makes these checks in every run
        parts += _of_every_run(atomic_noise=plan.atomic_noise)
    if facts.device.kind == "cpu":
        case = min(facts.cases, key=lambda c: sum(facts.problem.work(c))).id
        parts.append(_passed(Check.CHECKED_MODE, f"case {case} ran in the checked build before it was timed"))
    else:
        parts.append(_not_run(Check.CHECKED_MODE, f"the device {facts.device.kind} has none"))
    return parts


def _of_every_run(*, atomic_noise: bool) -> list[CheckPart]:
    noise = "the plan declares atomic noise: equal runs may differ within the tolerance"
    return [
        _passed(Check.INPUTS_UNCHANGED, "inputs were as before after the runs of every case"),
        _passed(Check.GUARD_BANDS, "random canaries around every buffer intact after the runs of every case"),
        _passed(Check.POISON, "outputs and scratch filled with unlike patterns before runs: none showed"),
        _not_run(Check.REPEAT, noise)
        if atomic_noise
        else _passed(Check.REPEAT, "equal inputs under unlike poison gave equal output bits"),
    ]


def _floor(facts: Facts) -> CheckPart:
    floors = {case.id: facts.ceilings.floor_ms(*facts.problem.work(case)) for case in facts.cases}
    shares = {
        timing.case: floors[timing.case] / timing.median_ms
        for timing in facts.experiment.outcome.cases
        if floors.get(timing.case)
    }
    if not shares:
        return _not_run(Check.FLOOR, "the ceilings of the device are not known")
    nearest = max(shares, key=lambda case: shares[case])
    return _passed(
        Check.FLOOR,
        f"{shares[nearest]:.0%} of the floor's speed in case {nearest}, the nearest of {len(shares)} cases",
    )


def _apart(facts: Facts) -> list[CheckPart]:
    """What only contenders and incumbents get."""
    evidence = facts.evidence
    parts = [] if evidence.sanitizer is None else [_sanitizer(evidence.sanitizer)]
    for check in () if evidence.trials is None else (Check.STRESS_INPUTS, Check.OTHER_SIZES):
        trials = [trial for trial in evidence.trials or () if trial.check == check]
        why = "the problem has no such trials"
        parts.append(_passed(check, _trials(trials)) if trials else _not_run(check, why))
    return parts


def _sanitizer(result: SanitizerResult) -> CheckPart:
    tools = f"{', '.join(result.tools)} found nothing" if result.tools else ""
    if result.tools == (CHECKED_MODE,):  # of the cpu device; the tool itself did not run
        return _not_run(Check.SANITIZER, f"a tool for GPUs; instead, on two cases and small trials: {tools}")
    if result.status is Status.MEASURED and tools:
        notes = f" ({'; '.join(result.notes)})" if result.notes else ""
        return _passed(Check.SANITIZER, tools + notes)
    why = result.reason or f"the answer was {result.status!s}"
    return _not_run(Check.SANITIZER, "; ".join(filter(None, (why, tools))))


def _trials(trials: list[TrialRun]) -> str:
    return f"{len(trials)} trials passed: {', '.join(trial.id for trial in trials)}"


def _timing(facts: Facts) -> TimingProtocol | None:
    note = facts.notes.get("timing")
    if note is None:
        return None
    return TimingProtocol(**(dict(TIMED_BEFORE) | json.loads(note)))
