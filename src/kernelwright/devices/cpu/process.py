"""One runner process: started, watched, ended; and what it reported."""

import os
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


@dataclass
class Report:
    """What a runner said, and how it ended. Times are in ns by the index of the run in the job."""

    times: dict[int, int] = field(default_factory=dict)
    begun: int = -1
    findings: list[tuple[str, str]] = field(default_factory=list)
    ended: str = ""
    message: str = ""
    printed: list[str] = field(default_factory=list)
    metrics: list[list[str]] = field(default_factory=list)
    base: int = 0
    timed_out: bool = False
    returncode: int = 0
    seconds: float = 0.0

    def take(self, line: str) -> None:
        """One line of the runner (native/runtime/report.h): a word, then fields after tabs."""
        word, *fields = line.split("\t")
        match word, fields:
            case "begin", [index]:
                self.begun = int(index)
            case "time", [index, ns]:
                self.times[int(index)] = int(ns)
            case "finding", [kind, *text]:
                self.findings.append((kind, " ".join(text)))
            case (("crash" | "write-to-input" | "launch" | "fault"), [*text]):
                self.ended, self.message = word, " ".join(text)
            case "end", []:
                self.ended = "end"
            case "printed", [*text]:
                self.printed.append(" ".join(text))
            case "metric", [*values]:
                self.metrics.append(values)
            case "base", [address]:
                self.base = int(address)
            case _:
                pass  # "note": nothing to act on


def run_process(
    runner: Path, artifact: str, job: str, *, files: Sequence[int], tls_bytes: int, seconds: float
) -> Report:
    """Run a job to its end, or kill it after ``seconds``.

    ``files`` are the descriptors that the job names. The process has no environment but what its loader needs,
    and cannot make system calls once the candidate's code runs. Raises HarnessError when it cannot start.
    """
    begin = time.monotonic()
    job_fd = _memory_file("kernelwright-job", job.encode())
    errors = _memory_file("kernelwright-errors", b"")
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    try:
        process = subprocess.Popen(
            [str(runner), artifact, str(job_fd), str(write_end)],
            # Room in the static TLS block for the candidate's shared memory (glibc manual, "Dynamic Linking
            # Tunables"): it is loaded after the start, and its code uses the initial-exec model.
            env={"GLIBC_TUNABLES": f"glibc.rtld.optional_static_tls={tls_bytes}"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=(job_fd, write_end, *files),
            start_new_session=True,
        )
        with process:
            os.close(write_end)
            write_end = -1
            try:
                report = _watch(read_end, begin + seconds)
            finally:
                kill_session(process)
        report.returncode = process.returncode
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
            if not data or total > MAX_REPORT_BYTES:
                return report
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                report.take(line.decode(errors="replace"))
            if report.ended:
                return report


def signal_name(returncode: int) -> str:
    """Name of the signal that ended a process."""
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"
