"""What a person sees of a running campaign."""

import os
import sys
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kernelwright.campaign.events import Progress
from kernelwright.cli.plain import PlainConsole
from kernelwright.core.candidate import Candidate
from kernelwright.core.outcome import Outcome, Status
from kernelwright.core.text import one_line
from kernelwright.memory.records import Duel

RECENT = 6


class PatientConsole(PlainConsole):
    """Goes silent when nobody reads any more (``| head -1``): the campaign is worth more than its display."""

    def on_broken_pipe(self) -> None:
        """Nothing more is written; also not at exit, when Python flushes."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class LiveView:
    """A small board that is redrawn in place on a terminal; a line per new incumbent elsewhere."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._trying = Text("preparing: inputs, references, baseline")
        self._recent: list[tuple[str, str, str]] = []
        self._progress: Progress | None = None
        self._leader = ""
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def trying(self, candidate: Candidate, why: str) -> None:
        """Show what is on the device."""
        self._trying = Text.assemble(("trying  ", "bold"), str(candidate), ("  " + why, "dim"))

    def finished(self, candidate: Candidate, outcome: Outcome, progress: Progress) -> None:
        """Show how it ended."""
        self._progress = progress
        detail = one_line(outcome.reason)
        if outcome.status is Status.MEASURED:
            detail = f"{sum(outcome.times_ms().values()) / len(outcome.cases):.4g} ms mean"
        self._recent = [*self._recent, (outcome.status, str(candidate), detail)][-RECENT:]

    def leads(self, candidate: Candidate, progress: Progress) -> None:
        """A line that stays: the new incumbent."""
        self._progress, self._leader = progress, str(candidate)
        ratio = f"{progress.ratio:.3f}x of the baseline's time" if progress.ratio else ""
        self._console.print(
            Text.assemble(
                (f"{progress.seconds:7.1f} s", "green"),
                f"  {progress.incumbent_ms or 0:.4g} ms  ",
                (ratio, "bold"),
                f"  {candidate}",
            )
        )

    def dueled(self, duel: Duel) -> None:
        """A row among the recent ones."""
        self._recent = [*self._recent, ("duel", duel.challenger, duel.summary)][-RECENT:]

    def note(self, text: str) -> None:
        """A line that stays."""
        self._console.print(Text.assemble(("note ", "yellow"), one_line(text)))

    def _render(self) -> RenderableType:
        parts: list[RenderableType] = [Text(self._title, style="bold")]
        progress = self._progress
        if progress is not None:
            rate = progress.experiments / max(progress.seconds, 1e-9)
            bar = Table.grid(padding=(0, 2))
            bar.add_row(
                ProgressBar(total=progress.budget_seconds, completed=progress.seconds, width=30),
                f"{progress.seconds:.0f} of {progress.budget_seconds:.0f} s",
                f"{progress.experiments} experiments, {progress.measured} measured, {rate:.2f}/s",
            )
            parts.append(bar)
            if progress.ratio:
                parts.append(
                    Text(
                        f"best    {progress.ratio:.3f}x of the baseline's time: {self._leader}", style="green"
                    )
                )
            if progress.paused:
                parts.append(Text(f"paused  {', '.join(progress.paused)}", style="yellow"))
        parts.append(self._trying)
        recent = Table.grid(padding=(0, 2))
        for status, candidate, detail in self._recent:
            recent.add_row(
                Text(status, style="" if status in {Status.MEASURED, "duel"} else "red"),
                Text(candidate),
                Text(detail, style="dim"),
            )
        return Group(*parts, recent)
