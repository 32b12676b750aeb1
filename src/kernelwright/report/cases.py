"""Per-case times against the baseline, a strong reference and the roofline."""

from typing import Any

from kernelwright.core.errors import KernelwrightError
from kernelwright.harness.wire import Ceilings
from kernelwright.memory.problems import recorded_problem
from kernelwright.memory.store import Memory
from kernelwright.profiling import roofline
from kernelwright.report.models import CaseRow, Cases, Roofline
from kernelwright.report.records import Records

Work = dict[str, tuple[int, int]]
"""Bytes and floating point operations by case."""


def cases(memory: Memory, records: Records) -> Cases:
    """Of the incumbent; empty while nobody leads."""
    ceilings = _ceilings(records)
    strongest = records.note("strongest")
    ceiling = Roofline(
        ceilings.bytes_per_s,
        ceilings.operations_per_s,
        _why_no_roofline(records, ceilings),
        "tensor units" if ceilings.on_tensor_units else "fp32",
    )
    if records.incumbent is None or records.baseline is None:
        return Cases((), ceiling, "")
    work, base = _work(memory, records), records.baseline.outcome.times_ms()
    rows = [
        _row(case, (base[case], time), work.get(case, (0, 0)), ceilings, strongest)
        for case, time in records.incumbent.outcome.times_ms().items()
        if base.get(case)
    ]
    return Cases(tuple(rows), ceiling, _reference(strongest, records.incumbent.candidate))


def floors_ms(memory: Memory, records: Records) -> dict[str, float]:
    """Physical floor by case, where the ceilings of the device are known."""
    ceilings = _ceilings(records)
    floors = {case: ceilings.floor_ms(*work) for case, work in _work(memory, records).items()}
    return {case: floor for case, floor in floors.items() if floor}


def _row(
    case: str, times: tuple[float, float], work: tuple[int, int], ceilings: Ceilings, strongest: Any
) -> CaseRow:
    (base, time), (moved, flops) = times, work
    known = strongest.get("cases", {})
    roof = roofline(
        moved,
        flops,
        bytes_per_s=ceilings.bytes_per_s,
        operations_per_s=ceilings.operations_per_s,
        time_ms=time,
    )
    return CaseRow(
        case=case,
        baseline_ms=base,
        incumbent_ms=time,
        ratio=time / base,
        floor_ms=roof.floor_ms if roof else None,
        bound=roof.bound if roof else "unknown",
        attained=roof.share if roof else None,
        distance=roof.distance if roof else None,
        reference_ms=known.get(case) if isinstance(known, dict) else None,
        intensity=flops / moved if moved and flops else None,
        flops=flops,
        bytes=moved,
    )


def _reference(strongest: Any, incumbent: str) -> str:
    """What the strong reference is; its ratio where that is the incumbent's and not the baseline's of the beginning."""
    if "name" not in strongest or "ratio" not in strongest:
        return ""
    if strongest.get("candidate", incumbent) != incumbent:
        return f"The strong reference is {strongest['name']}; the leader was not compared with it."
    interval, source = "", strongest.get("source")
    if strongest.get("low") and strongest.get("high"):
        interval = f", 99 % interval {strongest['low']:.3f} to {strongest['high']:.3f}"
    where = f" ({source})" if source else ""
    return f"The leader takes {strongest['ratio']:.3f} of the time of {strongest['name']}{interval}{where}."


def _ceilings(records: Records) -> Ceilings:
    note = records.note("ceilings")
    copied, fp32, tensor = (
        float(note.get(name) or 0) for name in ("bytes_per_s", "flops_per_s", "tensor_flops_per_s")
    )
    return Ceilings(copied, fp32, tensor, on_tensor_units=bool(note.get("on_tensor_units")))


def _why_no_roofline(records: Records, ceilings: Ceilings) -> str:
    if ceilings.bytes_per_s and ceilings.operations_per_s:
        return ""
    if records.device.get("kind") == "cpu":
        return "The cpu device has no ceilings: its times say nothing about a GPU."
    return "The ceilings of the device were not measured."


def _work(memory: Memory, records: Records) -> Work:
    """Empty when the recorded problem cannot be read by this version."""
    try:
        problem = recorded_problem(memory.problem(records.campaign.problem_id))
        slow = bool(records.settings.get("slow_cases"))
        return {case.id: problem.work(case) for case in problem.cases(slow=slow)}
    except KernelwrightError:
        return {}
