"""From what a runner reported to a status and a reason."""

import re
from dataclasses import dataclass, replace
from typing import Final

from kernelwright.core.launch import ResolvedPlan
from kernelwright.core.outcome import KILLED, Check, Status
from kernelwright.devices.cpu.process import MAX_REPORT_BYTES, Report, RunSeen, signal_name

SLACK_NS: Final = 100_000
SLACK_OF_A_THREAD_NS: Final = 25_000
"""What CPU time may exceed the wall time of all threads by: going to sleep, and being stopped, costs some.

A busy thread cannot have used more than the wall time; all that is told beyond it was used behind the told end.
"""
SIGHTINGS_OF_LATE_WORK: Final = 3
SIGHTINGS_OF_A_KILL: Final = 2
"""As a device's worker: what takes all memory is not to do so many times."""
_FROM_OUTSIDE: Final = {"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"}
"""What no process of a job sends itself: a run cannot make the system call, the watcher does not."""

_NOTHING_WRITTEN: Final = re.compile(
    r": unwritten: (?P<all>\d+) of (?P=all) values of (\w+) were never written$"
)
_CHECK_OF_FINDING: Final = {
    "unwritten": Check.POISON,
    "write-to-input": Check.INPUTS_UNCHANGED,
    "assert": Check.CRASH,
}


@dataclass(frozen=True)
class Verdict:
    """Why a case failed, and the check that says so (none for what cannot run here).

    ``sightings`` is how often it must be seen, one time after the other, to count: more than once what a machine at
    fault or a person looks like too.
    """

    status: Status
    reason: str
    check: str = ""
    sightings: int = 1


def judge(report: Report, case: str, first_run: int, budget_s: float, threads: int) -> Verdict | None:
    """What went wrong in a process, or ``None``. Findings come first: they are the cause of what follows."""
    where = f"case {case} (run {first_run + max(report.begun, 0)})"
    failing = [finding for finding in report.findings if not finding[0].startswith("note")]
    if failing:
        kind, text = failing[0]
        check = _CHECK_OF_FINDING.get(kind, Check.CHECKED_MODE)
        return Verdict(Status.WRONG, f"case {case}: {kind}: {text}", check)
    match report.ended:
        case "crash":
            return Verdict(Status.CRASHED, f"{where}: {report.message}", Check.CRASH)
        case "write-to-input":
            return Verdict(Status.WRONG, f"{where}: {report.message}", Check.INPUTS_UNCHANGED)
        case "launch" if report.message.startswith("out of memory"):
            return Verdict(Status.CRASHED, f"case {case}: {report.message}", Check.RUN_LIMITS)
        case "launch":
            return Verdict(Status.LAUNCH_FAILED, f"case {case}: {report.message}", Check.LAUNCH_LIMITS)
        case "end":
            return _late_work(report, case, first_run, threads)
        case _:
            return _without_an_end(report, where, budget_s)


def with_cause(verdict: Verdict | None, plan: ResolvedPlan) -> Verdict | None:
    """The verdict, and why nothing of an output was written where the plan of the case shows it."""
    found = _NOTHING_WRITTEN.search(verdict.reason) if verdict else None
    return (
        replace(verdict, reason=verdict.reason + left_out(plan, found[2])) if verdict and found else verdict
    )


def left_out(plan: ResolvedPlan, output: str) -> str:
    """Says so where no launch of a case could have written an output; else empty."""
    if any(argument.name == output for launch in plan.launches for argument in launch.arguments):
        return ""
    return f": no launch with {output} among its args ran, look at every 'when'"


def _late_work(report: Report, case: str, first_run: int, threads: int) -> Verdict | None:
    """A run that said it had ended, and went on: its time would be a lie.

    A host that takes a virtual CPU away just then looks like it: what it took is booked as CPU time of who ran there.
    """
    slack = SLACK_NS + SLACK_OF_A_THREAD_NS * threads
    for index, run in sorted(report.runs.items()):
        if run.cpu_ns > threads * run.ns + slack:
            where = f"case {case} (run {first_run + index})"
            return Verdict(Status.CRASHED, f"{where}: {_more(run)}", Check.RUN_LIMITS, SIGHTINGS_OF_LATE_WORK)
    return None


def _more(run: RunSeen) -> str:
    return (
        f"worked for {run.cpu_ns / 1e6:.3g} ms of CPU time, but said it had ended after {run.ns / 1e6:.3g} ms"
    )


def _without_an_end(report: Report, where: str, budget_s: float) -> Verdict:
    if report.timed_out:
        reason = f"{where}: still running when its {budget_s:.3g} s were over"
        return Verdict(Status.TIMED_OUT, reason, Check.RUN_LIMITS)
    if report.flooded:
        return Verdict(
            Status.CRASHED, f"{where}: reported more than {MAX_REPORT_BYTES >> 20} MiB", Check.RUN_LIMITS
        )
    name = signal_name(report.returncode) if report.returncode < 0 else "no signal"
    if name in _FROM_OUTSIDE and (report.watcher_ended or name != "SIGKILL"):
        reason = f"{where}: the cpu runner was ended from outside ({name}) once more: by a person, or for lack of memory"
        return Verdict(Status.NOT_RUN, reason, KILLED, SIGHTINGS_OF_A_KILL)
    reasons = {
        "SIGXCPU": (Status.TIMED_OUT, "used up its CPU time", Check.RUN_LIMITS),
        "SIGKILL": (Status.CRASHED, "killed, and killed again, most likely out of memory", Check.RUN_LIMITS),
        "SIGSYS": (Status.CRASHED, "made a system call, which device code cannot", Check.CRASH),
    }
    status, text, check = reasons.get(name, (Status.CRASHED, f"ended early ({name})", Check.CRASH))
    return Verdict(status, f"{where}: {text}", check, SIGHTINGS_OF_A_KILL if name == "SIGKILL" else 1)
