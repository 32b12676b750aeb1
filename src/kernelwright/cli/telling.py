"""What commands say on stderr beside their output: what a harness waits for or lacks, and how far they are."""

from collections.abc import Callable
from time import monotonic
from typing import Final

import typer

from kernelwright.campaign.events import Silent
from kernelwright.core.text import one_line
from kernelwright.harness.device_lock import told_once

PERIOD_S: Final = 10.0
"""Between two lines of a progress that nobody watches on a terminal."""


def teller() -> Callable[[str], None]:
    """Tells messages of harnesses, each once however many say it."""
    return told_once(lambda message: typer.echo(f"kernelwright: note: {one_line(message)}", err=True))


class Noting(Silent):
    """Listens to notes alone, and tells them."""

    def __init__(self) -> None:
        self._tell = teller()

    def note(self, text: str) -> None:
        """Once each, however often it is noted."""
        self._tell(text)


class Count:
    """How many of ``total`` are done: every line on a terminal; elsewhere bad ones, and the others at intervals."""

    def __init__(self, total: int, show: Callable[[str], None], *, all_lines: bool) -> None:
        self._total = total
        self._show = show
        self._all_lines = all_lines
        self._done = 0
        self._told = monotonic()

    def add(self, line: str, *, bad: bool = False) -> None:
        """One more, and what became of it."""
        self._done += 1
        now = monotonic()
        if self._all_lines or bad or now - self._told >= PERIOD_S:
            self._told = now
            self._show(f"{self._done} of {self._total}: {line}")
