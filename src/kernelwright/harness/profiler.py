"""Nsight Compute on one candidate and one case.

One call of ``ncu`` around the watched process, which performs the plan once on real inputs; nothing but the
candidate's kernels is launched there, so no kernel has to be picked by name. Clocks are left as they are (locking
them would disturb others), caches are flushed before each replay.

Counters may need root (``NVreg_RestrictProfilingToAdminUsers``): then the last confinement leaves the process its
user. Candidates that are profiled have been measured before, by a worker with every layer.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Final

from kernelwright.core.launch import ResolvedPlan
from kernelwright.core.looking import is_there
from kernelwright.harness.processes import import_roots, scrubbed_environment
from kernelwright.harness.protocol import ProfileResult
from kernelwright.harness.sanitizer_job import (
    PROGRESS_FILE,
    Look,
    Progress,
    SanitizerJob,
    read_progress,
    write_job,
)
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.watched import Confinement, enclosed, find_tool, finished, head, watched_command
from kernelwright.profiling.metrics import HotLine
from kernelwright.profiling.names import LEVEL1, unknown_names
from kernelwright.profiling.ncu_csv import MAX_BYTES, NcuReport, read_names, read_raw, read_source

LIMIT_S: Final = 60.0
"""Seconds for one call, start of the process included."""
MOST_LAUNCHES: Final = 16
CHIPS: Final = {"sm_80": "ga100", "sm_90": "gh100", "sm_100": "gb100"}
CONFINEMENTS: Final = (
    Confinement(),
    Confinement(without=("seccomp",)),
    Confinement(walls=False, without=("seccomp",)),
    Confinement(walls=False, without=("seccomp", "landlock")),
    Confinement(walls=False, without=("seccomp", "landlock", "user", "capabilities", "ends with parent")),
)
"""Tried in order until counters come; once one has worked, none behind it is tried."""
FORBIDDEN: Final = (
    "hardware counters are not permitted: run as root, or set 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' "
    "in /etc/modprobe.d and load the driver anew (in a container: --cap-add SYS_ADMIN)"
)
_REPORT: Final = "report.csv"
_KEPT: Final = "report"
_SOURCE: Final = "candidate.cu"


@dataclass(frozen=True)
class _Run:
    """One call of the tool. ``code`` is ``None`` when it was ended after its limit."""

    code: int | None
    text: str
    report: NcuReport
    progress: Progress
    printed: str
    notes: tuple[str, ...]


class Profiler:
    """Runs ncu with one setup; keeps in mind which confinement worked. The caller keeps others off the device.

    ``setup`` is a device worker's, with a scratch folder of its own; ``arch`` such as ``sm_90a`` picks the chip
    whose names are looked up. ``executable`` is looked for when not given.
    """

    def __init__(
        self,
        setup: WorkerSetup,
        *,
        arch: str = "",
        executable: str | None = None,
        limit_s: float = LIMIT_S,
        confinements: Sequence[Confinement] = CONFINEMENTS,
        metrics: Sequence[str] = LEVEL1,
    ) -> None:
        self._setup = setup
        self._chip = CHIPS.get(arch.rstrip("af"), "")
        self._executable = executable or find_tool("ncu")
        self._limit_s = limit_s
        self._confinements = tuple(confinements)
        self._metrics = tuple(metrics)
        self._level, self._proven = 0, False
        self._listed: frozenset[str] | None = None

    async def run(self, artifact: str, case: str, plan: ResolvedPlan, source: str = "") -> ProfileResult:
        """Level 1; with the template's ``source`` also its hottest lines (the artifact has line numbers then)."""
        start = monotonic()
        if self._executable is None:
            reason = "ncu is not found: install Nsight Compute (CUDA toolkit) and put it into PATH"
            return ProfileResult("not_available", reason)
        setup = self._own()
        write_job(Path(setup.scratch), SanitizerJob(artifact, (Look(case, plan),)))
        options = ("--metrics", ",".join(self._metrics))
        launches = min(MOST_LAUNCHES, len(plan.launches))
        run = await self._confined(setup, launches, options)
        if refused := [name for name in self._metrics if name.partition(".")[0] in run.report.error]:
            self._metrics = tuple(name for name in self._metrics if name not in refused)
            run = await self._confined(setup, launches, ("--metrics", ",".join(self._metrics)))
        if not run.report.kernels:
            status, reason = _failure(run, self._limit_s)
            return ProfileResult(status, reason, seconds=monotonic() - start, notes=run.notes, raw=run.text)
        seconds = monotonic() - start
        lines = await self._hot_lines(setup, launches, source) if source else ()
        notes = (*run.notes, *await self._missing(setup, run.report))
        return ProfileResult("profiled", "", run.report.kernels, lines, seconds, notes, run.text)

    async def _confined(self, setup: WorkerSetup, launches: int, options: Sequence[str]) -> _Run:
        """One call, behind as much of the sandbox as the tool can live with."""
        while True:
            run = await self._watch(setup, self._confinements[self._level], launches, options)
            if run.report.kernels:
                self._proven = True
            of_candidate = bool(run.progress.error) and not run.report.error
            last = self._level + 1 == len(self._confinements)
            if run.report.kernels or of_candidate or self._proven or last:
                return run
            self._level += 1

    async def _watch(
        self, setup: WorkerSetup, confinement: Confinement, launches: int, options: Sequence[str]
    ) -> _Run:
        folder = Path(setup.scratch)
        for name in (_REPORT, PROGRESS_FILE):
            (folder / name).unlink(missing_ok=True)
        tool = [
            *(self._executable or "", "--csv", "--page", "raw", "--print-units", "base"),
            *("--clock-control", "none", "--cache-control", "all", "--replay-mode", "kernel"),
            *("--target-processes", "all", "--launch-count", f"{launches}"),
            *("--log-file", f"{folder}/{_REPORT}", *options),
        ]
        command, walls = enclosed([*tool, *watched_command(setup, confinement)], setup, confinement)
        code, printed = await finished(command, self._environment(setup), folder, self._limit_s)
        progress = read_progress(folder)
        missing = (*(() if walls else ("bubblewrap",)), *progress.missing)
        notes = (f"sandbox without: {', '.join(missing)}",) if missing else ()
        text = head(folder / _REPORT, MAX_BYTES)
        return _Run(code, text, read_raw(text), progress, printed, notes)

    async def _hot_lines(self, setup: WorkerSetup, launches: int, source: str) -> tuple[HotLine, ...]:
        """A second call with samples by instruction, read as lines of the source."""
        folder = Path(setup.scratch)
        (folder / _SOURCE).write_text(source, encoding="utf-8")
        collect = ("--section", "SourceCounters", "--import-source", "on", "--source-folders", f"{folder}")
        await self._confined(setup, launches, (*collect, "-f", "-o", f"{folder}/{_KEPT}"))
        kept = ("--import", f"{folder}/{_KEPT}.ncu-rep", "--page", "source", "--csv")
        return read_source(await self._ask(setup, *kept, "--print-source", "cuda,sass"), source)

    async def _missing(self, setup: WorkerSetup, report: NcuReport) -> tuple[str, ...]:
        """Which names did not come, and whether this version knows them at all."""
        missing = report.kernels[0].metrics.missing(self._metrics)
        if not missing:
            return ()
        if self._listed is None and self._chip:
            self._listed = await self._names(setup)
        unknown = unknown_names(missing, self._listed) if self._listed else ()
        told = [f"{name} (no such name for {self._chip})" if name in unknown else name for name in missing]
        return (f"unknown, not 0: {', '.join(told)}",)

    async def _names(self, setup: WorkerSetup) -> frozenset[str]:
        """Names of this version for the chip, asked once and kept in the cache."""
        version = await self._ask(setup, "--version")
        tag = "".join(c if c.isalnum() else "-" for c in version.splitlines()[-1]) if version else "unknown"
        kept = Path(self._setup.cache) / f"ncu-names-{self._chip}-{tag[:60]}.txt"
        if not (text := head(kept, MAX_BYTES)):
            query = ("--query-metrics", "--query-metrics-collection", "profiling", "--chips", self._chip)
            text = await self._ask(setup, *query)
            if read_names(text):
                kept.write_text(text, encoding="utf-8")
        return read_names(text)

    async def _ask(self, setup: WorkerSetup, *arguments: str) -> str:
        """What the tool writes when it is asked something without a candidate."""
        assert self._executable is not None
        path = Path(setup.scratch) / "answer.txt"
        path.unlink(missing_ok=True)
        shell = ["/bin/sh", "-c", 'out="$1"; shift; exec "$@" >"$out" 2>&1', "sh", f"{path}"]
        command = [*shell, self._executable, *arguments]
        await finished(command, self._environment(setup), Path(setup.scratch), self._limit_s)
        return head(path, MAX_BYTES)

    def _own(self) -> WorkerSetup:
        """The setup with a folder for one profile."""
        folder = Path(tempfile.mkdtemp(prefix="profile-", dir=self._setup.scratch))
        home = Path(self._executable or "/").resolve().parent.parent
        more = [str(path) for path in (home, Path("/opt/nvidia")) if is_there(path)]
        readable = tuple(dict.fromkeys((*self._setup.readable, *more)))
        return replace(self._setup, scratch=str(folder), readable=readable)

    def _environment(self, setup: WorkerSetup) -> dict[str, str]:
        scrubbed = scrubbed_environment(setup.scratch, import_roots(setup.maker), os.environ)
        # Else every call copies the tool's section files to its (new) home.
        return {**scrubbed, "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT": "1"}


def _failure(run: _Run, limit_s: float) -> tuple[str, str]:
    if run.report.forbidden or "ERR_NVGPUCTRPERM" in run.printed:
        return "not_permitted", FORBIDDEN
    if run.code is None:
        return "timed_out", f"ncu did not end within {limit_s:g} s"
    told = run.progress.error or run.report.error or run.printed or f"exit code {run.code}"
    return "failed", f"ncu gave no counters: {told}"[:500]
