"""One runner process: started, watched, ended; and what it reported."""

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelwright.core.errors import HarnessError
from kernelwright.devices.cpu.bounded import kill_session
from kernelwright.devices.cpu.data import write_all

MAX_REPORT_BYTES = 1 << 20
MAX_PRINTED = 4096
_METRIC = re.compile(r"0x[0-9a-f]+\t(global|shared)\t(load|store)(\t[1-9][0-9]{0,18}){5}")


@dataclass(frozen=True)
class RunSeen:
    """What was seen of one run from outside of its process: wall and CPU time in ns, its status as of waitpid."""

    complete: bool
    ns: int
    cpu_ns: int
    status: int

    def milliseconds(self, threads: int) -> float:
        """How long the run took: as long as it says, but no shorter than so many threads need for its CPU time.

        What is done between the word that ends a run and its being stopped is no gift.
        """
        return max(self.ns, self.cpu_ns / threads) / 1e6


@dataclass
class Report:
    """What was seen of a job, and what its runs said of themselves.

    ``runs`` is by the index of the run in the job. ``ended`` is ``end`` after a job that went through, else the
    word that ended it. What candidates can forge (findings, crashes, printed text) can only speak against them.
    ``returncode`` is that of the last run's process, or of the watching one when ``watcher_ended``, which runs nothing of
    the candidate's; ``flooded``: more was reported than is read.
    """

    runs: dict[int, RunSeen] = field(default_factory=dict)
    begun: int = -1
    findings: list[tuple[str, str]] = field(default_factory=list)
    ended: str = ""
    message: str = ""
    printed: list[str] = field(default_factory=list)
    metrics: list[list[str]] = field(default_factory=list)
    base: int = 0
    closed: bool = False
    timed_out: bool = False
    flooded: bool = False
    watcher_ended: bool = False
    returncode: int = 0
    seconds: float = 0.0

    def take(self, line: str) -> None:
        """One line of the watching process (native/runtime/main.cpp): a word, then fields after tabs."""
        word, *fields = line.split("\t")
        match word, fields:
            case "start", []:
                self.begun += 1
            case "say", [spoken, *text]:
                self._hear(spoken, text)
            case "ran", [*seen]:
                complete, ns, cpu_ns, status = map(int, seen)
                self.runs[self.begun] = RunSeen(bool(complete), ns, cpu_ns, status)
            case (("launch" | "fault"), [*text]):
                self.ended, self.message, self.closed = word, " ".join(text), True
            case "end", []:
                all_ran = all(run.complete for run in self.runs.values())
                self.ended, self.closed = self.ended or ("end" if all_ran else ""), True
            case "printed", [*text]:
                if sum(map(len, self.printed)) < MAX_PRINTED:
                    self.printed.append(" ".join(text))
            case _:
                pass

    def _hear(self, word: str, text: list[str]) -> None:
        """A line from the process that runs the candidate: nothing in it can be relied on."""
        match word, text:
            case "finding", [kind, *rest]:
                self.findings.append((kind, " ".join(rest)))
            case (("crash" | "write-to-input" | "launch"), [*rest]):
                self.ended, self.message = word, " ".join(rest)
            case "metric", [*values] if _METRIC.fullmatch("\t".join(values)):
                self.metrics.append(values)
            case "base", [address] if re.fullmatch(r"[0-9]+", address):
                self.base = int(address)
            case _:
                pass  # "begin", "note": nothing to act on


def run_process(
    runner: Path, artifact: str, job: Sequence[str], *, files: Sequence[int], tls_bytes: int, seconds: float
) -> Report:
    """Run a job to its end, or kill it after ``seconds``.

    ``files`` are the descriptors that the job names. The process has no environment but what its loader needs, and no
    argument that differs from job to job. It watches one child a run, which cannot make system calls once the candidate's
    code runs. Raises HarnessError when it cannot start.
    """
    begin = time.monotonic()
    parts = [part.encode() for part in job]
    job_fd = _memory_file("kernelwright-job", b"".join(b"%016d" % len(part) + part for part in parts))
    errors = _memory_file("kernelwright-errors", b"")
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    try:
        process = subprocess.Popen(
            [str(runner), artifact],
            # Room in the static TLS block for the candidate's shared memory (glibc manual, "Dynamic Linking
            # Tunables"): it is loaded after the start, and its code uses the initial-exec model.
            env={"GLIBC_TUNABLES": f"glibc.rtld.optional_static_tls={tls_bytes}"},
            cwd="/",
            stdin=job_fd,
            stdout=write_end,
            stderr=errors,
            pass_fds=tuple(files),
            start_new_session=True,
        )
        with process:
            os.close(write_end)
            write_end = -1
            try:
                report = _watch(read_end, begin + seconds)
            finally:
                kill_session(process)
        last = report.runs.get(report.begun)
        if last and last.complete and not report.closed:
            last = None  # a complete run is ended by its watcher: what ended later was not this one
        report.watcher_ended = last is None and not (report.timed_out or report.flooded)
        report.returncode = os.waitstatus_to_exitcode(last.status) if last else process.returncode
        report.seconds = time.monotonic() - begin
        if process.returncode > 0:
            message = os.pread(errors, 500, 0).decode(errors="replace").strip()
            raise HarnessError(f"the cpu runner ended with status {process.returncode}: {message}")
    except OSError as error:
        raise HarnessError(f"the cpu runner cannot be started: {error}") from error
    finally:
        for fd in (job_fd, errors, read_end, write_end):
            if fd >= 0:
                os.close(fd)
    if report.ended == "fault":
        raise HarnessError(f"the cpu runner refused its job: {report.message}")
    return report


def _memory_file(name: str, content: bytes) -> int:
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    write_all(fd, memoryview(content), 0)
    return fd


def _watch(fd: int, deadline: float) -> Report:
    report = Report()
    rest, total = b"", 0
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                report.timed_out = True
                return report
            data = os.read(fd, 65536)
            total += len(data)
            report.flooded = total > MAX_REPORT_BYTES
            if not data or report.flooded:
                return report
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                report.take(line.decode(errors="replace"))
            if report.closed:
                return report


def signal_name(returncode: int) -> str:
    """Name of the signal that ended a process."""
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"
