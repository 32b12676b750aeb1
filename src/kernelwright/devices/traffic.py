"""How a GPU would serve the memory accesses of a source line, as a device without counters models it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_TEXT: Final = re.compile(
    r"metric (?:\(modelled\) )?line (?P<line>\d+|\?): (?P<space>global|shared) (?P<operation>load|store) of (?P<width>\d{1,4}) bytes: "
    r"(?P<units>\d+\.\d\d) (?:sectors|wavefronts) a request \(ideal (?P<ideal>\d+\.\d\d)\), "
    r"(?P<lanes>\d+\.\d) lanes, (?P<requests>\d+) requests \(case (?P<case>[^\n]*)\)"
)


@dataclass(frozen=True)
class Traffic:
    """One line's accesses of one kind and width (bytes a lane). A request is one instruction of one warp.

    ``units`` a request: sectors of 32 bytes of global memory, wavefronts of shared memory; ``ideal`` is what the
    bytes need at least. ``lanes`` a request, ``requests`` of the blocks that were looked at. ``line`` is ``?``
    where it is unknown.
    """

    line: str
    space: str
    operation: str
    width: int
    units: float
    ideal: float
    lanes: float
    requests: int
    case: str = ""

    @property
    def wasted(self) -> float:
        """Share of the units that a better order of the addresses would save, 0 to 1."""
        return max(0.0, 1 - self.ideal / self.units) if self.units > 0 else 0.0

    @property
    def excess(self) -> float:
        """Units more than the ideal, over all requests."""
        return max(0.0, self.units - self.ideal) * self.requests

    @property
    def brief(self) -> str:
        """``line 4: global load of 4 bytes: 32.00 sectors a request (ideal 4.00)``."""
        unit = "sectors" if self.space == "global" else "wavefronts"
        return (
            f"line {self.line}: {self.space} {self.operation} of {self.width} bytes: "
            f"{self.units:.2f} {unit} a request (ideal {self.ideal:.2f})"
        )

    @property
    def text(self) -> str:
        """As a finding of a run; :func:`read_traffic` reads it."""
        return f"metric (modelled) {self.brief}, {self.lanes:.1f} lanes, {self.requests} requests (case {self.case})"


def read_traffic(findings: Iterable[str]) -> Iterator[Traffic]:
    """The modelled accesses among findings, in their order; others are passed over."""
    for finding in findings:
        if found := _TEXT.fullmatch(finding):
            part = found.groupdict()
            yield Traffic(
                line=part["line"],
                space=part["space"],
                operation=part["operation"],
                width=int(part["width"]),
                units=float(part["units"]),
                ideal=float(part["ideal"]),
                lanes=float(part["lanes"]),
                requests=int(part["requests"]),
                case=part["case"],
            )
