"""A plan resolved for one case: plain numbers, ready for a launcher."""

from dataclasses import dataclass, field

from kernelwright.core.rules import CandidateRules


@dataclass(frozen=True)
class KernelArgument:
    """One kernel argument: a buffer by name, or a scalar with its dtype (``int32``, ``float32``, ...)."""

    name: str
    dtype: str
    value: int | float | None = None

    @property
    def is_buffer(self) -> bool:
        """Buffers carry no value."""
        return self.value is None


@dataclass(frozen=True)
class LaunchSpec:
    """One kernel launch. ``cluster`` is (1, 1, 1) without clusters; bytes are per block."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int
    arguments: tuple[KernelArgument, ...]
    cluster: tuple[int, int, int] = (1, 1, 1)
    cooperative: bool = False


@dataclass(frozen=True)
class ScratchSpec:
    """A scratch buffer of the plan: ``elements`` of ``dtype``, contents undefined before the first launch."""

    name: str
    dtype: str
    elements: int


@dataclass(frozen=True)
class ResolvedPlan:
    """All launches of one candidate on one case, in order.

    ``atomic_noise``: the plan declares that equal runs may differ within the tolerance (float atomics).
    """

    launches: tuple[LaunchSpec, ...]
    scratch: tuple[ScratchSpec, ...] = ()
    atomic_noise: bool = False


@dataclass(frozen=True)
class BuildRequest:
    """What a compile worker gets. ``options`` are compiler settings from the allow-list only.

    ``line_info`` keeps which instruction comes from which line, for a profiler; the code stays the same.
    """

    source: str
    macros: dict[str, int]
    options: dict[str, bool | int]
    kernels: tuple[str, ...]
    arch: str
    mode: str = "fast"
    rules: CandidateRules = field(default_factory=CandidateRules)
    line_info: bool = False


COMPILER_OPTIONS: dict[str, type] = {"use_fast_math": bool, "maxrregcount": int}
"""Allow-list of compiler settings that a plan may tune (``[tune.compiler]``)."""
