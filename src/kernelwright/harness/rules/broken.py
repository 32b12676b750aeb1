"""What a look at a candidate finds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Broken:
    """A rule that a candidate breaks: where, and how to mend it. One line that a model can act on."""

    reason: str
