"""What a device cannot do is not believed; what cannot run is told before it is tried."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kernelwright.core.device import DeviceFacts
from kernelwright.core.outcome import Check, Outcome, StaticMetrics, Status
from kernelwright.harness.wire import Ceilings
from kernelwright.problems.loader import Case, Problem

TOO_FAST: Final = 0.8
"""A time below this share of the physical floor is not believed."""


def for_problem(ceilings: Ceilings, problem: Problem) -> Ceilings:
    """With the rate of arithmetic that bounds the problem: of tensor units for float16 inputs where the rules allow them."""
    half = any(a.is_input and a.dtype == "float16" for a in problem.spec.arguments)
    return replace(ceilings, on_tensor_units=half and not problem.spec.rules.no_tensor_cores)


def believed_floor_ms(problem: Problem, case: Case, ceilings: Ceilings, facts: DeviceFacts) -> float:
    """The floor as a limit of belief: data that fits in L2 may come from there, tensor cores are faster."""
    moved, flops = problem.work(case)
    from_memory = moved if moved > 2 * facts.l2_bytes else 0
    return ceilings.floor_ms(from_memory, flops if problem.spec.rules.no_tensor_cores else 0)


def believe(
    outcome: Outcome, problem: Problem, cases: Sequence[Case], ceilings: Ceilings, facts: DeviceFacts
) -> Outcome:
    """Quarantine times that the device cannot have."""
    times = outcome.times_ms()
    for case in cases if outcome.status is Status.MEASURED else ():
        floor = believed_floor_ms(problem, case, ceilings, facts)
        if times[case.id] < TOO_FAST * floor:
            reason = f"case {case.id}: {times[case.id]:.4g} ms, the device needs at least {floor:.4g} ms"
            return replace(outcome, status=Status.TOO_FAST, reason=reason, check=Check.FLOOR)
    return outcome


def cannot_run(static: StaticMetrics | None) -> str:
    """Why no block of a kernel fits on the device, known without using it; empty when all fit or it is unknown."""
    for kernel in static.kernels if static else ():
        if kernel.theoretical_occupancy == 0:
            return (
                f"no block of kernel {kernel.name!r} fits on a multiprocessor: {kernel.registers} registers a thread, "
                f"{kernel.threads_per_block} threads, "
                f"{(kernel.static_shared_bytes or 0) + (kernel.dynamic_shared_bytes or 0)} bytes of shared memory "
                f"(limited by {kernel.occupancy_limiter})"
            )
    return ""
