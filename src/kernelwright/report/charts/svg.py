"""Small SVG by hand: elements, whose texts and attributes are escaped, and axes. Coordinates in pixels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

from markupsafe import Markup, escape

from kernelwright.report.text import visible

WIDE: Final = 920
NARROW: Final = 350
"""Widths of a chart on a desk and on a phone; each is drawn for its width, so that texts stay readable."""
LETTER: Final = 7.6
"""About how wide a letter of 12 px is, capitals among them."""


def element(tag: str, *content: str, **attributes: object) -> Markup:
    """An element. ``class_`` is ``class``; underscores of other names are hyphens."""
    written = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _text(value))
        for name, value in attributes.items()
    )
    inside = Markup("").join(escape(visible(part)) for part in content)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), written, inside)  # noqa: S704 - our own tags


def picture(label: str, width: float, height: float, parts: Iterable[Markup], kind: str) -> Markup:
    """A whole chart; ``label`` says in words what it shows."""
    return element(
        "svg",
        *parts,
        role="img",
        aria_label=label,
        viewBox=f"0 0 {_text(width)} {_text(height)}",
        width=width,
        height=height,
        class_=f"chart {kind}",
    )


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> Markup:
    """A line of text."""
    return element("text", content, x=x, y=y, text_anchor=anchor, class_=f"label {kind}".strip())


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def titled(shape: str, hint: str, **attributes: object) -> Markup:
    """A shape with a hint that browsers show under the pointer."""
    return element(shape, element("title", hint), **attributes)


def shortened(content: str, room: float) -> str:
    """The text, cut to about so many pixels."""
    content = f"{visible(content)}"
    most = max(4, int(room / LETTER))
    return content if len(content) <= most else f"{content[: most - 1]}…"


@dataclass(frozen=True)
class Scale:
    """From a value between ``low`` and ``high`` to a pixel between ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Pixel of a value; values outside lie on the edge."""
        inside = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.logarithmic:
            inside, low, high = log10(inside), log10(low), log10(high)
        share = (inside - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> list[float]:
        """Round values, at most about so many."""
        found = self._decades(most) if self.logarithmic else _round_steps(self.low, self.high, most)
        return [value for value in found if self.low <= value <= self.high]

    def _decades(self, most: int) -> list[float]:
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        for digits in ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
            values = [digit * 10.0**power for power in powers for digit in digits]
            inside = [value for value in values if self.low <= value <= self.high]
            if len(inside) <= most:
                break
        if len(inside) >= 2:
            return inside[:: ceil(len(inside) / most)]
        return _round_steps(self.low, self.high, most)


def _round_steps(low: float, high: float, most: int) -> list[float]:
    if high <= low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough)
    return [step * index for index in range(ceil(low / step), floor(high / step) + 1)]


def apart(wanted: Sequence[float], distance: float, low: float, high: float) -> list[float]:
    """Places near the wanted ones (in rising order), at least ``distance`` apart while there is room."""
    distance = min(distance, (high - low) / max(len(wanted) - 1, 1))
    places: list[float] = []
    for value in wanted:
        places.append(max(value, low if not places else places[-1] + distance))
    limit = high
    for index in range(len(places) - 1, -1, -1):
        places[index] = min(places[index], limit)
        limit = places[index] - distance
    return places


def _text(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else f"{visible(value)}"
