"""How the Python entry of a board hands over a problem's arguments.

GPU MODE calls ``custom_kernel(data)``: ``data`` is a tuple (or one tensor, or a dictionary) of inputs, sometimes with
the output's buffer among them. The importer finds this out, the exporter writes code for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Axis:
    """A size that is read off a tensor: ``argument.shape[axis]``."""

    argument: str
    axis: int


@dataclass(frozen=True)
class Abi:
    """``items`` names what ``data`` holds, in order; names that are no arguments of the problem are passed over.

    ``sizes`` says where every size of the problem's cases comes from; a size that is itself in ``items`` needs no
    entry. ``returns`` is the output that the entry has to return; outputs that are not in ``items`` are allocated.
    """

    items: tuple[str, ...]
    returns: str
    style: Literal["tuple", "single", "dict"] = "tuple"
    sizes: Mapping[str, Axis] = field(default_factory=dict)
    entry: str = "custom_kernel"
