"""Findings and memory metrics of the checked mode, with their source lines."""

import re
import subprocess
from pathlib import Path

from kernelwright.core.errors import HarnessError
from kernelwright.devices.cpu.process import Report
from kernelwright.devices.cpu.source_rules import CANDIDATE
from kernelwright.devices.traffic import Traffic

_PLACE = re.compile(r"@0x([0-9a-f]+) ")
UNKNOWN = "?"


class Symboliser:
    """Source lines of the return addresses in a report."""

    def __init__(self, artifact: Path, report: Report) -> None:
        places = {m[1] for _, text in report.findings for m in _PLACE.finditer(text)}
        places |= {values[0].removeprefix("0x") for values in report.metrics}
        self._lines = _look_up(artifact, report.base, sorted(places)) if places and report.base else {}

    def line(self, address: str) -> str:
        """Line of an address in hexadecimal, as far as it is known."""
        return self._lines.get(address.removeprefix("0x"), UNKNOWN)

    def place(self, findings: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Findings with ``line N: `` in place of addresses."""
        return [(kind, _PLACE.sub(lambda m: f"line {self.line(m[1])}: ", text)) for kind, text in findings]


def _look_up(artifact: Path, base: int, addresses: list[str]) -> dict[str, str]:
    # A return address is behind its call: one byte less is inside.
    addresses = [address for address in addresses if int(address, 16) > base]
    offsets = [hex(int(address, 16) - 1 - base) for address in addresses]
    command = ["addr2line", "-a", "-i", "-e", str(artifact), *offsets]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"addr2line does not work: {error}") from error
    answers = re.split(r"^0x[0-9a-f]+\n", done.stdout, flags=re.MULTILINE)[1:]
    lines = {}
    for address, answer in zip(addresses, answers, strict=False):
        # Inlined frames come innermost first: the first one in the candidate is the access itself.
        found = re.search(rf"{re.escape(CANDIDATE)}:(\d+)", answer)
        if found is not None:
            lines[address] = found[1]
    return lines


def finding_lines(case: str, report: Report) -> list[str]:
    """Findings, notes, and what the kernel printed, a line each."""
    lines = [f"{kind}: {text} (case {case})" for kind, text in report.findings]
    return lines + [f"printed: {text}" for text in report.printed]


def metric_lines(case: str, report: Report, symbols: Symboliser) -> list[str]:
    """Modelled memory traffic by source line, for the source as written and the first blocks only."""
    totals: dict[tuple[str, str, str, int], list[int]] = {}
    for address, space, operation, size, *counts in report.metrics:
        total = totals.setdefault((symbols.line(address), space, operation, int(size)), [0] * 4)
        for i, count in enumerate(counts):
            total[i] += int(count)
    return [
        Traffic(
            *key,
            units=units / requests,
            ideal=ideal / requests,
            lanes=lanes / requests,
            requests=requests,
            case=case,
        ).text
        for key, (requests, lanes, units, ideal) in sorted(totals.items())
    ]
