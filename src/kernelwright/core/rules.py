"""What a candidate may not do, as data: a problem's and a board's rules, held on its source and on its binary."""

from dataclasses import dataclass, field
from typing import Final

MAX_SOURCE_BYTES: Final = 256 * 1024
MAX_TABLE_BYTES: Final = 64 * 1024
"""Constants and initialised data together: more is a precomputed answer, not code."""


@dataclass(frozen=True)
class CandidateRules:
    """Rules that one candidate is held to; the defaults are what every candidate must keep.

    ``sizes`` are the sizes of the problem's cases by name: ``no_size_branches`` refuses code that tells them apart.
    ``allowed_headers`` empty means: every header of device code. ``portable``: the text will be compiled elsewhere, for
    a host too (a board's): all compilers must read it alike.
    """

    no_tensor_cores: bool = False
    no_inline_ptx: bool = False
    no_launch_bounds: bool = False
    no_size_branches: bool = False
    deterministic: bool = False
    portable: bool = False
    max_registers: int | None = None
    max_source_bytes: int = MAX_SOURCE_BYTES
    allowed_headers: tuple[str, ...] = ()
    banned_words: tuple[str, ...] = ()
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)


def too_large_tables(nbytes: int) -> str:
    """Why a binary with so many bytes of tables is refused."""
    return (
        f"the binary holds {nbytes} bytes of constant tables, {MAX_TABLE_BYTES} are allowed: compute instead"
    )
