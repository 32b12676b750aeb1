"""A duel on any device: whole runs of the two sides in turn."""

import time
from dataclasses import replace
from typing import Final

from kernelwright.core.outcome import Status
from kernelwright.devices.base import (
    CaseSource,
    Contestant,
    DuelCase,
    DuelRequest,
    DuelResult,
    Runner,
    RunRequest,
)

BLOCK_RUNS: Final = 3
"""Timed runs of one side in one block, beside the dropped ones."""

Samples = dict[str, list[float]]


def alternate(runner: Runner, request: DuelRequest, source: CaseSource) -> DuelResult:
    """Blocks of :data:`BLOCK_RUNS` runs, in the order ABBA: slow drift of the device hits both sides alike.

    Stops at the first block in which a side fails.
    """
    started = time.perf_counter()
    samples: dict[str, Samples] = {"challenger": {}, "incumbent": {}}
    methods: dict[str, str] = {}
    findings: dict[str, None] = {}
    for name in _order(-(-request.rounds // BLOCK_RUNS)):
        side = getattr(request, name)
        result = runner.run(_block(request, side), source)
        findings.update(dict.fromkeys(result.findings))
        if result.status is not Status.MEASURED:
            seconds = time.perf_counter() - started
            return DuelResult(result.status, result.reason, result.check, name, (), tuple(findings), seconds)
        for timing in result.timings:
            methods[timing.case] = timing.method
            samples[name].setdefault(timing.case, []).extend(timing.samples_ms)
    cases = tuple(_paired(case, samples, methods[case], request.rounds) for case in methods)
    return DuelResult(
        Status.MEASURED, cases=cases, findings=tuple(findings), seconds=time.perf_counter() - started
    )


def _order(blocks: int) -> list[str]:
    pairs = (("challenger", "incumbent"), ("incumbent", "challenger"))
    return [name for block in range(blocks) for name in pairs[block % 2]]


def _block(request: DuelRequest, side: Contestant) -> RunRequest:
    timing = replace(request.timing, runs=request.timing.dropped + BLOCK_RUNS)
    return RunRequest(side.artifact, side.cases, timing, timeout_s=request.timeout_s)


def _paired(case: str, samples: dict[str, Samples], method: str, rounds: int) -> DuelCase:
    challenger, incumbent = samples["challenger"][case], samples["incumbent"][case]
    number = min(len(challenger), len(incumbent), rounds)
    return DuelCase(case, tuple(challenger[:number]), tuple(incumbent[:number]), method)
