"""Names of bottlenecks, what each means, and the moves that are known to help."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Bottleneck(StrEnum):
    """What limits a kernel. The name is what prompts and reports show."""

    SMALL_GRID = "grid too small"
    SPILLS = "register spills"
    UNCOALESCED_LOADS = "uncoalesced loads"
    STRIDED_STORES = "strided stores"
    BANK_CONFLICTS = "shared bank conflicts"
    ATOMICS = "atomic contention"
    BARRIERS = "barrier stalls"
    DIVERGENCE = "divergence"
    TENSOR = "tensor-bound"
    COMPUTE = "compute-bound"
    DRAM = "DRAM-bound"
    L2 = "L2-bound"
    L1 = "L1-bound"
    TAIL = "tail effect"
    OCCUPANCY_REGISTERS = "low occupancy by registers"
    OCCUPANCY_SHARED = "low occupancy by shared memory"
    OCCUPANCY_BLOCKS = "low occupancy by block size"
    LATENCY = "latency-bound"
    UNKNOWN = "unknown"


HINTS: Final[Mapping[Bottleneck, tuple[str, ...]]] = {
    Bottleneck.SMALL_GRID: (
        "split the work over more blocks (split-K, several blocks a row, a second pass to combine)",
        "use smaller tiles where the case is small (a launch with 'when')",
    ),
    Bottleneck.SPILLS: (
        "keep fewer values alive: smaller tile a thread, shorter unroll",
        "raise maxrregcount or lower the block's threads in __launch_bounds__",
    ),
    Bottleneck.UNCOALESCED_LOADS: (
        "let neighbouring lanes read neighbouring addresses: swap the roles of the indices",
        "stage a tile through shared memory, read by rows",
    ),
    Bottleneck.STRIDED_STORES: (
        "transpose the tile in shared memory so that neighbouring lanes write neighbouring addresses",
    ),
    Bottleneck.BANK_CONFLICTS: ("pad the tile's rows by one element", "swizzle: xor the column with the row"),
    Bottleneck.ATOMICS: (
        "reduce in registers, warp and block first: one atomic a block",
        "write partial results to scratch and combine them in a second launch",
    ),
    Bottleneck.BARRIERS: (
        "balance the work between barriers over all warps",
        "double-buffer: one barrier a tile instead of two; __syncwarp where a warp suffices",
    ),
    Bottleneck.DIVERGENCE: (
        "let a whole warp take the same branch: group work by warp instead of by lane",
        "replace the branch by arithmetic or predication",
    ),
    Bottleneck.TENSOR: ("near the tensor units' peak: only less work or a smaller data type helps",),
    Bottleneck.COMPUTE: (
        "do less arithmetic: hoist, reuse, cheaper functions (fast math where allowed)",
        "move matrix products to tensor instructions where the rules allow",
    ),
    Bottleneck.DRAM: (
        "near the memory's peak: only fewer bytes help: fuse launches, read once, keep data on chip",
    ),
    Bottleneck.L2: ("reuse data in shared memory or registers: larger tiles", "order blocks for reuse in L1"),
    Bottleneck.L1: ("keep operands in registers: larger tile a thread", "wider loads (float4)"),
    Bottleneck.TAIL: (
        "make the grid a whole number of waves: other tile size, or persistent blocks that take tiles in turn",
    ),
    Bottleneck.OCCUPANCY_REGISTERS: (
        "fewer registers a thread: smaller tile, __launch_bounds__, maxrregcount",
        "or more independent loads in flight a thread",
    ),
    Bottleneck.OCCUPANCY_SHARED: (
        "smaller tile or fewer stages in shared memory",
        "keep part of it in registers",
    ),
    Bottleneck.OCCUPANCY_BLOCKS: ("more threads a block (128 to 512)",),
    Bottleneck.LATENCY: (
        "more independent work in flight: unroll, several elements a thread, wide loads, prefetch (cp.async)",
        "break the chain of dependent loads or operations",
    ),
    Bottleneck.UNKNOWN: (),
}
