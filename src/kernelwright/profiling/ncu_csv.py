"""What ``ncu --csv`` prints, as records. It comes from beside a candidate: anything odd is unknown, nothing raises.

``--page raw``: lines of the tool (``==...``), maybe lines of the program, a header row, a row of units, one row for
each launch; numbers carry thousands separators. Of a report that was cut off the whole rows count.
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kernelwright.profiling.metrics import HotLine, KernelProfile, Metrics

MAX_BYTES: Final = 64 << 20
_NUMBER: Final = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d*)?([eE][+-]?\d+)?|[+-]?\.\d+")
_HEAD: Final = ("ID", "Kernel Name", "Grid Size")
_NAMES: Final = re.compile(r"^([a-z][a-z0-9]*__[A-Za-z0-9_]+)\s", re.MULTILINE)
_TROUBLE: Final = re.compile(r"==ERROR==\s*(.*)")
_LINE: Final = "Line No"
_SAMPLES: Final = ("# Samples", "Warp Stall Sampling (All Samples)")
_LONG: Final = {"sb": "scoreboard", "inst": "instruction", "math": "math_pipe_throttle", "lg": "lg_throttle"}
"""Stall reasons are cut short on the source page."""


@dataclass(frozen=True)
class NcuReport:
    """``kernels`` in order of their launches; ``error`` is the tool's own, on one line, empty without one."""

    kernels: tuple[KernelProfile, ...] = ()
    error: str = ""

    @property
    def forbidden(self) -> bool:
        """Whether counters are not permitted on this machine."""
        return "ERR_NVGPUCTRPERM" in self.error


def read_raw(text: str) -> NcuReport:
    """A report of ``--csv --page raw``."""
    error = " ".join(found[1] for found in _TROUBLE.finditer(text))[:500]
    rows = _rows(text)
    header: Sequence[str] = ()
    kernels = []
    for row in rows:
        if all(name in row for name in _HEAD):
            header = row
        elif header and len(row) == len(header) and row[header.index("ID")].strip().isdigit():
            kernels.append(_kernel(dict(zip(header, row, strict=True))))
    return NcuReport(tuple(kernels), " ".join(error.split()))


def trimmed(text: str, names: Iterable[str]) -> str:
    """The same report with the launches and these columns only: small, and without names of machines."""
    kept = ("ID", "Kernel Name", "Block Size", "Grid Size", "CC", *names)
    out, columns = io.StringIO(), []
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    for row in _rows(text):
        if all(name in row for name in _HEAD):
            columns = [row.index(name) for name in kept if name in row]
        if columns and len(row) > max(columns):
            writer.writerow([row[at] for at in columns])
    return out.getvalue()


def number(text: str) -> float | None:
    """``3,138,496`` or ``0.30``; ``None`` for what is no finite number."""
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        return None
    value = float(stripped.replace(",", ""))
    return value if math.isfinite(value) else None


def read_names(text: str) -> frozenset[str]:
    """Base names that ``ncu --query-metrics`` lists."""
    return frozenset(_NAMES.findall(text))


def read_source(text: str, source: str, most: int = 3) -> tuple[HotLine, ...]:
    """The hottest lines of ``--csv --page source --print-source cuda,sass``, with the template's own text.

    Rows with a line number sum up their instructions, which follow without one. Empty when it cannot be read.
    """
    lines = source.splitlines()
    samples: dict[int, float] = {}
    stalls: dict[int, dict[str, float]] = {}
    for row in _source_rows(text):
        line = number(row[_LINE])
        count = number(next((row[name] for name in _SAMPLES if name in row), ""))
        if line is None or not count or not 1 <= line <= len(lines):
            continue
        at = int(line)
        samples[at] = samples.get(at, 0.0) + count
        mine = stalls.setdefault(at, {})
        for reason, value in _stalls(row):
            mine[reason] = mine.get(reason, 0.0) + value
    total = sum(samples.values())
    hottest = sorted(samples, key=lambda at: (-samples[at], at))[:most]
    return tuple(
        HotLine(at, samples[at] / total, lines[at - 1].strip()[:100], _top(stalls[at])) for at in hottest
    )


def _rows(text: str) -> Iterator[list[str]]:
    for line in text[:MAX_BYTES].splitlines():
        if line.startswith('"'):
            try:
                yield next(csv.reader([line]), [])
            except csv.Error:
                continue


def _kernel(row: Mapping[str, str]) -> KernelProfile:
    values = {name: number(text) for name, text in row.items() if "__" in name}
    known = {name: value for name, value in values.items() if value is not None}
    grid, block = (row.get(name, "").replace(" ", "") for name in ("Grid Size", "Block Size"))
    kernel = row["Kernel Name"].partition("(")[0].strip()
    return KernelProfile(kernel, grid, block, Metrics(known), row.get("CC", ""))


def _source_rows(text: str) -> Iterator[dict[str, str]]:
    """Rows of lines. Quotes within the source are not doubled: fields are cut where three characters say so."""
    header: list[str] = []
    for line in text[:MAX_BYTES].splitlines():
        row = line.strip().removeprefix('"').removesuffix('"').split('","')
        if row[0] == _LINE:
            header = row if any(name in row for name in _SAMPLES) else []
        elif header and row[0] and len(row) >= len(header):
            tail = len(header) - 2
            yield dict(zip(header[2:], row[-tail:], strict=True)) | {_LINE: row[0]}


def _stalls(row: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for name, text in row.items():
        value = number(text)
        if name.startswith("stall_") and "Not Issued" not in name and name != "stall_selected" and value:
            *head, last = name.removeprefix("stall_").split("_")
            yield "_".join((*head, _LONG.get(last, last))), value


def _top(stalls: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    total = sum(stalls.values())
    first = sorted(stalls.items(), key=lambda item: (-item[1], item[0]))[:2]
    return tuple((reason, value / total) for reason, value in first)
