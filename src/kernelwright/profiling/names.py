"""Names of Nsight Compute's metrics that are asked for, valid on sm_80 and sm_90.

Source: ``ncu --query-metrics`` of 2025.3 for ga100 and gh100. A name that a version does not know gives no error and
no column: what came is always compared with what was asked.
"""

from collections.abc import Iterable
from typing import Final

TIME: Final = "gpu__time_duration.sum"
SM: Final = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY: Final = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM: Final = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_READ: Final = "dram__bytes_read.sum"
DRAM_WRITTEN: Final = "dram__bytes_write.sum"
L2: Final = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
L2_HIT: Final = "lts__t_sector_hit_rate.pct"
L2_SECTORS: Final = "lts__t_sectors.sum"
L1: Final = "l1tex__throughput.avg.pct_of_peak_sustained_active"
L1_HIT: Final = "l1tex__t_sector_hit_rate.pct"
OCCUPANCY: Final = "sm__warps_active.avg.pct_of_peak_sustained_active"
ISSUE: Final = "smsp__issue_active.avg.pct_of_peak_sustained_active"
ELIGIBLE: Final = "smsp__warps_eligible.avg.per_cycle_active"
LANES: Final = "smsp__thread_inst_executed_per_inst_executed.ratio"
INSTRUCTIONS: Final = "smsp__inst_executed.sum"
LOCAL: Final = ("smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum")
ATOMIC_SECTORS: Final = ("lts__t_sectors_srcunit_tex_op_red.sum", "lts__t_sectors_srcunit_tex_op_atom.sum")
WARP_LATENCY: Final = "smsp__average_warp_latency_per_inst_issued.ratio"
TENSOR: Final = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
PIPES: Final = {
    "fma": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "alu": "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",
    "fp64": "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
    "special functions": "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
}
STALLS: Final = (
    "barrier",
    "branch_resolving",
    "drain",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "no_instruction",
    "not_selected",
    "selected",
    "short_scoreboard",
    "wait",
)

# Free with every row of ``--page raw``: they are no names of ``--query-metrics`` that cost a pass.
THEORETICAL: Final = "sm__maximum_warps_per_active_cycle_pct"
GRID: Final = "launch__grid_size"
BLOCK: Final = "launch__block_size"
WAVES: Final = "launch__waves_per_multiprocessor"
SMS: Final = "launch__sm_count"
REGISTERS: Final = "launch__registers_per_thread"
SHARED: Final = "launch__shared_mem_per_block"
LIMITS: Final = {
    "blocks": "launch__occupancy_limit_blocks",
    "threads": "launch__occupancy_limit_warps",
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
}
"""Of equal limits the first counts. Shared memory is last: the driver's own 1 KB a block alone gives it a limit."""
PASSES: Final = "profiler__replayer_passes"
FREE: Final = (THEORETICAL, GRID, BLOCK, WAVES, SMS, REGISTERS, SHARED, *LIMITS.values(), PASSES)


def efficiency(kind: str) -> str:
    """Share of each fetched sector that lanes use, in percent; ``kind`` is ``ld`` or ``st``."""
    return f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{kind}.pct"


def sectors(kind: str) -> str:
    """Sectors of global accesses."""
    return f"l1tex__t_sectors_pipe_lsu_mem_global_op_{kind}.sum"


def requests(kind: str) -> str:
    """Requests (warp instructions) of global accesses."""
    return f"l1tex__t_requests_pipe_lsu_mem_global_op_{kind}.sum"


def conflicts(kind: str) -> str:
    """Shared memory wavefronts that conflicts added."""
    return f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{kind}.sum"


def wavefronts(kind: str) -> str:
    """Shared memory wavefronts, with those that conflicts added."""
    return f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{kind}.sum"


def stall(reason: str) -> str:
    """Warps that wait for ``reason`` while one issues, on average."""
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"


LEVEL1: Final[tuple[str, ...]] = (
    *(TIME, SM, MEMORY, DRAM, DRAM_READ, DRAM_WRITTEN, L2, L2_HIT, L2_SECTORS, L1, L1_HIT),
    *(OCCUPANCY, ISSUE, ELIGIBLE, LANES, INSTRUCTIONS, *LOCAL, *ATOMIC_SECTORS),
    *(make(kind) for make in (efficiency, sectors, requests, conflicts, wavefronts) for kind in ("ld", "st")),
    *(TENSOR, *PIPES.values(), WARP_LATENCY, *map(stall, STALLS)),
)
"""What a level-1 profile asks for, in one call."""


def unknown_names(asked: Iterable[str], listed: Iterable[str]) -> tuple[str, ...]:
    """Names whose base ``ncu --query-metrics`` does not list (it lists bases, without suffixes)."""
    known = frozenset(listed)
    return tuple(name for name in asked if name.partition(".")[0] not in known)
