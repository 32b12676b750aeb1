"""Theoretical occupancy of a kernel by formula; imports no CUDA package.

Source: NVIDIA's occupancy calculator (``cuda_occupancy.h`` of the toolkit) and the table "Technical
Specifications per Compute Capability" of the CUDA C++ Programming Guide. Registers are given to warps in units
of 256 out of a quarter of the register file (four SM sub-partitions); shared memory in units of 128 bytes, and
the system reserves 1 KiB for every block on compute capability 8.0 and later.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kernelwright.core.device import DeviceFacts
from kernelwright.core.outcome import KernelStatics, StaticMetrics

WARP = 32
REGISTER_UNIT = 256
SUB_PARTITIONS = 4
SHARED_UNIT = 128
RESERVED_SHARED = 1024


@dataclass(frozen=True)
class SmLimits:
    """What one streaming multiprocessor holds at most."""

    threads: int
    blocks: int
    registers: int
    shared_bytes: int


LIMITS: Final[Mapping[int, SmLimits]] = {
    80: SmLimits(2048, 32, 65536, 164 * 1024),
    86: SmLimits(1536, 16, 65536, 100 * 1024),
    87: SmLimits(1536, 16, 65536, 164 * 1024),
    89: SmLimits(1536, 24, 65536, 100 * 1024),
    90: SmLimits(2048, 32, 65536, 228 * 1024),
    100: SmLimits(2048, 32, 65536, 228 * 1024),
    103: SmLimits(2048, 32, 65536, 228 * 1024),
    110: SmLimits(1536, 24, 65536, 228 * 1024),
    120: SmLimits(1536, 24, 65536, 100 * 1024),
    121: SmLimits(1536, 24, 65536, 100 * 1024),
}
"""By compute capability times ten; used where a device's facts do not say."""


def limits_of(facts: DeviceFacts) -> SmLimits | None:
    """Limits the device reports, completed from the table; ``None`` if neither knows."""
    match = re.fullmatch(r"sm_(\d+)[af]?", facts.arch)
    known = LIMITS.get(int(match[1])) if match else None
    given = SmLimits(
        facts.max_threads_per_sm, facts.max_blocks_per_sm, facts.registers_per_sm, facts.shared_bytes_per_sm
    )
    if known is None:
        complete = min(given.threads, given.blocks, given.registers, given.shared_bytes) > 0
        return given if complete else None
    return SmLimits(
        given.threads or known.threads,
        given.blocks or known.blocks,
        given.registers or known.registers,
        given.shared_bytes or known.shared_bytes,
    )


def occupancy(limits: SmLimits, threads: int, registers: int, shared_bytes: int) -> tuple[float, str]:
    """Share of the SM's warps that can be resident (0 to 1) and what limits it.

    ``threads`` a block, ``registers`` a thread, ``shared_bytes`` static plus dynamic a block. The limiter is
    ``threads``, ``registers``, ``shared memory`` or ``blocks``; of equal ones the first in this order.
    """
    warps = -(-threads // WARP)
    max_warps = limits.threads // WARP
    per_warp = max(REGISTER_UNIT, _round_up(registers * WARP, REGISTER_UNIT))
    warps_by_registers = limits.registers // SUB_PARTITIONS // per_warp * SUB_PARTITIONS
    shared = _round_up(shared_bytes, SHARED_UNIT) + RESERVED_SHARED
    bounds = {
        "threads": max_warps // warps,
        "registers": warps_by_registers // warps,
        "shared memory": limits.shared_bytes // shared,
        "blocks": limits.blocks,
    }
    limiter = min(bounds, key=lambda name: bounds[name])
    return bounds[limiter] * warps / max_warps, limiter


def with_occupancy(
    static: StaticMetrics,
    threads_by_kernel: Mapping[str, int],
    dynamic_shared_by_kernel: Mapping[str, int],
    facts: DeviceFacts,
) -> StaticMetrics:
    """The same metrics with launch sizes and theoretical occupancy filled in where they are known.

    A kernel launched more than once should come with its largest block and shared memory.
    """
    limits = limits_of(facts)

    def complete(kernel: KernelStatics) -> KernelStatics:
        threads = threads_by_kernel.get(kernel.name)
        if not threads:
            return kernel
        dynamic = dynamic_shared_by_kernel.get(kernel.name, 0)
        known = replace(kernel, threads_per_block=threads, dynamic_shared_bytes=dynamic)
        if limits is None or kernel.registers is None or kernel.static_shared_bytes is None:
            return known
        share, limiter = occupancy(limits, threads, kernel.registers, kernel.static_shared_bytes + dynamic)
        return replace(known, theoretical_occupancy=share, occupancy_limiter=limiter)

    return replace(static, kernels=tuple(complete(kernel) for kernel in static.kernels))


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
