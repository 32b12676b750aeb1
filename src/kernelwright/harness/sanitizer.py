"""NVIDIA's compute-sanitizer on one candidate, for those that may lead.

Its tools instrument the binary: memcheck sees accesses outside any allocation, racecheck hazards in shared memory
(``cp.async`` from compute capability 8.0; bulk copies of TMA and remote shared memory of clusters depend on the
tool's version), initcheck reads of global memory that nobody wrote, synccheck barriers that not all threads reach.

The watched process (:mod:`kernelwright.harness.worker.sanitized`) confines itself. The tool injects a library
into it and talks to it, which a full sandbox may forbid: then layers are left out in the order of
:data:`CONFINEMENTS`, and the result names what did not hold. What cannot be had is ``not_run``, never a pass.
"""

import asyncio
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Final

from kernelwright.core.outcome import Status
from kernelwright.devices.base import RunResult
from kernelwright.harness.processes import import_roots, scrubbed_environment
from kernelwright.harness.protocol import SanitizerResult
from kernelwright.harness.sanitizer_job import (
    PROGRESS_FILE,
    Look,
    Progress,
    SanitizerJob,
    read_progress,
    write_job,
)
from kernelwright.harness.sanitizer_log import SanitizerLog, read_log
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.watched import Confinement, enclosed, find_tool, finished, head, watched_command

__all__ = ["TOOLS", "Confinement", "Sanitizer", "checked_mode_result", "find_sanitizer"]

TOOLS: Final = ("memcheck", "racecheck", "initcheck", "synccheck")
LIMIT_S: Final = 20.0
"""Seconds for one tool, start of the process included; racecheck can be 100 times slower than the kernel."""
CONNECT_S: Final = 10
"""Seconds that the tool waits for the process to speak to it."""
FOUND_CODE: Final = 9
CHECKED_MODE: Final = "checked mode"
_INSTALL: Final = "install the CUDA toolkit and put its bin folder into PATH"
_LOG_FILE: Final = "report.log"
_LOG_BYTES: Final = 1 << 20


CONFINEMENTS: Final = (
    Confinement(),
    Confinement(without=("seccomp",)),
    Confinement(walls=False, without=("seccomp",)),
    Confinement(without=("seccomp", "landlock")),
)
"""Tried in order until the tool can work; behind the last one it is refused."""


@dataclass(frozen=True)
class _Run:
    """One tool's run. ``code`` is ``None`` when it was ended after its limit."""

    tool: str
    code: int | None
    log: SanitizerLog
    progress: Progress
    printed: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Verdict:
    """``found``: a bug of the candidate; ``blocked``: the tool could not start; neither with a reason: it failed."""

    reason: str = ""
    found: bool = False
    blocked: bool = False


class Sanitizer:
    """Runs the tools with one setup; keeps in mind which confinement worked. Nothing is timed meanwhile.

    ``setup`` is a device worker's, with a scratch folder of its own. ``executable`` is looked for when not given.
    """

    def __init__(
        self,
        setup: WorkerSetup,
        *,
        executable: str | None = None,
        tools: Sequence[str] = TOOLS,
        limit_s: float = LIMIT_S,
        confinements: Sequence[Confinement] = CONFINEMENTS,
    ) -> None:
        self._setup = setup
        self._executable = executable or find_sanitizer()
        self._tools = tuple(tools)
        self._limit_s = limit_s
        self._confinements = tuple(confinements)
        self._level = 0

    async def run(self, artifact: str, looks: Sequence[Look]) -> SanitizerResult:
        """All tools at once, each with a process of its own that takes look after look; the first finding counts."""
        start = monotonic()
        if self._executable is None:
            return SanitizerResult(Status.NOT_RUN, f"compute-sanitizer is not found: {_INSTALL}")
        job = SanitizerJob(artifact, tuple(looks))
        tried = await asyncio.gather(*(self._try(tool, job) for tool in self._tools))
        notes = tuple(dict.fromkeys(note for run, _ in tried for note in run.notes))
        clean = tuple(run.tool for run, verdict in tried if not verdict.reason)
        reasons = [(f"{run.tool}: {verdict.reason}", verdict) for run, verdict in tried if verdict.reason]
        found = [reason for reason, verdict in reasons if verdict.found]
        if found:
            return SanitizerResult(Status.WRONG, found[0], clean, monotonic() - start, notes)
        status = Status.NOT_RUN if reasons else Status.MEASURED
        told = "; ".join(reason for reason, _ in reasons)
        return SanitizerResult(status, told, clean, monotonic() - start, notes)

    async def _try(self, tool: str, job: SanitizerJob) -> tuple[_Run, _Verdict]:
        """One tool, behind as much of the sandbox as it can live with."""
        setup = self._own(tool)
        write_job(Path(setup.scratch), job)
        while True:
            level = self._level
            run = await self._watch(tool, setup, self._confinements[level])
            verdict = _judge(run, self._limit_s)
            if not verdict.blocked or level + 1 == len(self._confinements):
                return run, verdict
            self._level = max(self._level, level + 1)

    def _own(self, tool: str) -> WorkerSetup:
        """The setup with a folder for one run; candidates may be looked at side by side."""
        folder = Path(tempfile.mkdtemp(prefix=f"{tool}-", dir=self._setup.scratch))
        home = str(Path(self._executable or "/").resolve().parent.parent)  # the injected library lies there
        readable = tuple(dict.fromkeys((*self._setup.readable, home)))
        return replace(self._setup, scratch=str(folder), readable=readable)

    async def _watch(self, tool: str, setup: WorkerSetup, confinement: Confinement) -> _Run:
        folder = Path(setup.scratch)
        for name in (_LOG_FILE, PROGRESS_FILE):
            (folder / name).unlink(missing_ok=True)
        command, walls = enclosed(self._command(tool, setup, confinement), setup, confinement)
        code, printed = await finished(command, self._environment(setup), folder, self._limit_s)
        progress = read_progress(folder)
        log = read_log(head(folder / _LOG_FILE, _LOG_BYTES), progress.buffers)
        missing = (*(() if walls else ("bubblewrap",)), *progress.missing)
        notes = [f"{tool}: {warning}" for warning in log.warnings]
        if missing:
            notes.append(f"sandbox without: {', '.join(missing)}")
        return _Run(tool, code, log, progress, printed, tuple(notes))

    def _command(self, tool: str, setup: WorkerSetup, confinement: Confinement) -> list[str]:
        assert self._executable is not None
        return [
            self._executable,
            *("--tool", tool, "--error-exitcode", f"{FOUND_CODE}", "--print-limit", "3"),
            # The launcher asks the driver about limits that it may refuse: no fault of a candidate.
            *("--report-api-errors", "no", "--show-backtrace", "no"),
            *("--launch-timeout", f"{CONNECT_S}", "--log-file", f"{setup.scratch}/{_LOG_FILE}"),
            *watched_command(setup, confinement),
        ]

    def _environment(self, setup: WorkerSetup) -> dict[str, str]:
        return scrubbed_environment(setup.scratch, import_roots(setup.maker), os.environ)


def find_sanitizer() -> str | None:
    """Path of compute-sanitizer, from PATH, CUDA_HOME, CUDA_PATH or the toolkit's usual folder."""
    return find_tool("compute-sanitizer")


def checked_mode_result(result: RunResult, seconds: float) -> SanitizerResult:
    """The cpu device's counterpart: its checked mode watches bounds, races, barriers and unwritten memory itself."""
    found = result.findings
    if result.status is Status.MEASURED:
        return SanitizerResult(Status.MEASURED, tools=(CHECKED_MODE,), seconds=seconds, findings=found)
    slow = {Status.NOT_RUN, Status.TIMED_OUT}  # the checked mode is slow by itself
    status = Status.NOT_RUN if result.status in slow else Status.WRONG
    return SanitizerResult(status, f"{CHECKED_MODE}: {result.reason}", seconds=seconds, findings=found)


def _judge(run: _Run, limit_s: float) -> _Verdict:
    """A pass needs all of it: the plan performed, a summary without errors, exit code 0."""
    if run.log.findings:
        return _Verdict(run.log.findings[0], found=True)
    stage = run.progress.stage
    started = stage in {"loaded", "performed"}
    if run.code is None:
        return _Verdict(f"did not end within {limit_s:g} s", blocked=not started)
    told = run.progress.error or run.log.fault or run.printed or f"exit code {run.code}"
    if not started:
        return _Verdict(f"the tool could not start the process: {told}", blocked=True)
    if stage != "performed":
        return _Verdict(f"the plan could not be performed: {told}")
    return _judge_summary(run, told)


def _judge_summary(run: _Run, told: str) -> _Verdict:
    log = run.log
    if log.errors is None:
        return _Verdict(f"the tool gave no summary: {told}", blocked=True)
    if log.errors and log.api_errors >= log.errors:
        return _Verdict("the tool reported calls of the launcher only")
    if log.errors or run.code == FOUND_CODE:
        return _Verdict(f"{log.errors} errors that its report does not explain", found=True)
    return _Verdict(told if run.code else "")
