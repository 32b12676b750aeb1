"""When a candidate is worth a profile (the seed setting: every 20 experiments, and at news)."""

from dataclasses import dataclass
from typing import Final

from kernelwright.profiling.digest import Digest

EVERY: Final = 20


@dataclass(frozen=True)
class Moment:
    """A campaign's state.

    ``since_profile``: experiments since the last one; ``new_structure``: the incumbent's template has not been
    profiled; ``asked``: somebody wants one.
    """

    since_profile: int
    new_structure: bool = False
    stagnating: bool = False
    asked: bool = False


def should_profile(moment: Moment, every: int = EVERY) -> str:
    """Why the incumbent is to be profiled now; empty when it is not."""
    if moment.asked:
        return "asked for"
    if moment.new_structure:
        return "a new structure leads"
    if moment.stagnating and moment.since_profile > 0:
        return "the search stagnates"
    return f"{every} experiments since the last profile" if moment.since_profile >= every else ""


def digest_for_prompt(digest: Digest | None) -> str:
    """The section of a prompt; empty when nothing is known."""
    return digest.text if digest else ""
