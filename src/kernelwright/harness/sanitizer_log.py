"""Reads the reports of NVIDIA's compute-sanitizer.

Source: "Compute Sanitizer User Manual" (memcheck, racecheck, initcheck, synccheck). Both spellings of a place are
known: ``at 0x70 in file.cu:12:kernel(int*)`` (before 2023) and ``at kernel(int*)+0x70 in file.cu:12``.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "========="
_SUMMARY: Final = re.compile(r"ERROR SUMMARY: ([\d,]+) errors?")
_HAZARDS: Final = re.compile(r"RACECHECK SUMMARY: .*\(([\d,]+) errors?, ([\d,]+) warnings?\)")
_FINDING: Final = re.compile(
    r"Invalid __|Invalid (?!value|device|argument|option)\S+ .*(read|write|atomic|access)|Uninitialized |Barrier error"
    r"|Misaligned |Out-of-range |Stack overflow|Malloc/Free|Warp |Lane "
    r"|(Fatal UVM|Hardware) |Error: (Race reported|Potential )",
    re.IGNORECASE,
)
_WARNING: Final = re.compile(r"Warning: (Race reported|Potential )", re.IGNORECASE)
_OF_THE_API: Final = re.compile(r"Program hit ")
_OWN_FAULT: Final = re.compile(
    r"(Error: )?(Target application (terminated|returned)|No attachable process|Unable to|Device not supported)"
    r"|Internal Sanitizer Error|Error: |Process didn't terminate",
    re.IGNORECASE,
)
_AT_KERNEL: Final = re.compile(
    r"\bat (?:.*?\bin )??(?P<kernel>[A-Za-z_]\w*)(?:\([^)]*\))?\+0x[0-9a-f]+(?: in (?P<file>[^\s:]+):(?P<line>\d+))?"
)
_AT_ADDRESS: Final = re.compile(
    r"\bat 0x[0-9a-f]+ in (?:(?P<file>[^\s:]+):(?P<line>\d+):)?(?P<kernel>[A-Za-z_]\w*)"
)
_THREAD: Final = re.compile(r"by thread \([\d, ]+\)(?: to \([\d, ]+\))? in block \([\d, ]+\)")
_NEAREST: Final = re.compile(
    r"([\d,]+) bytes? (after|before|inside) the nearest allocation at 0x([0-9a-f]+) of size ([\d,]+)"
)
_NOISE: Final = re.compile(r"\s*\bat (?:0x[0-9a-f]+ in .*|[A-Za-z_][^+]*\+0x[0-9a-f]+.*)$")


@dataclass(frozen=True)
class SanitizerLog:
    """What a report says. ``errors`` is the tool's own count, ``None`` without a summary: it did not get that far.

    ``findings`` and ``warnings`` are one line each; ``api_errors`` are refused driver calls (the harness's own);
    ``fault`` is what the tool says of itself.
    """

    errors: int | None = None
    findings: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    api_errors: int = 0
    fault: str = ""


@dataclass(frozen=True)
class _Entry:
    head: str
    details: tuple[str, ...]


def read_log(text: str, buffers: Mapping[str, int] | None = None) -> SanitizerLog:
    """A report's text. ``buffers`` gives addresses names."""
    entries = list(_entries(text))
    errors: int | None = None
    for entry in entries:
        if found := _SUMMARY.search(entry.head) or _HAZARDS.search(entry.head):
            errors = _number(found[1])
    told = [e for e in entries if not _SUMMARY.search(e.head) and not _HAZARDS.search(e.head)]
    findings = [e for e in told if _FINDING.match(e.head)]
    faults = [e.head for e in told if e not in findings and _OWN_FAULT.match(e.head)]
    names = buffers or {}
    return SanitizerLog(
        errors=errors,
        findings=tuple(_describe(e, names) for e in findings),
        warnings=tuple(_describe(e, names) for e in told if _WARNING.match(e.head)),
        api_errors=sum(1 for e in told if _OF_THE_API.match(e.head)),
        fault=faults[0][:300] if faults else "",
    )


def _entries(text: str) -> Iterator[_Entry]:
    """Heads begin one space behind the prefix, their details are indented further."""
    head, details = "", list[str]()
    for line in text.splitlines():
        if not line.startswith(PREFIX):
            continue
        content = line[len(PREFIX) :]
        if content.startswith("  ") and head:
            details.append(content.strip())
            continue
        if head:
            yield _Entry(head, tuple(details))
        head, details = content.strip(), []
    if head:
        yield _Entry(head, tuple(details))


def _describe(entry: _Entry, buffers: Mapping[str, int]) -> str:
    """What, where in the source, by whom, next to which buffer: one line."""
    text = " ".join((entry.head, *entry.details))
    what = re.sub(r"^(Error|Warning): ", "", _NOISE.sub("", entry.head), flags=re.IGNORECASE)
    parts = [what.strip().rstrip(".:")]
    places = list(dict.fromkeys(_places(entry)))
    if places:
        parts.append("in " + " and ".join(places[:2]))
    if thread := _THREAD.search(text):
        parts.append(thread[0])
    if nearest := _NEAREST.search(text):
        count, side, address, size = nearest.groups()
        name = next((n for n, at in buffers.items() if at == int(address, 16)), "")
        parts.append(
            f"{count} bytes {side} {repr(name) if name else 'the nearest allocation'} of {size} bytes"
        )
    return " ".join(" ".join(parts).split())[:500]


def _places(entry: _Entry) -> Iterator[str]:
    for line in (entry.head, *entry.details):
        if line.startswith(("Saved host", "Host Frame", "Device Frame")):
            return
        if found := _AT_KERNEL.search(line) or _AT_ADDRESS.search(line):
            source = f" ({found['file']}:{found['line']})" if found["line"] else ""
            yield f"kernel {found['kernel']!r}{source}"


def _number(text: str) -> int:
    return int(text.replace(",", ""))
