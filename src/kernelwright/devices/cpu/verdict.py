"""From what a runner reported to a status and a reason."""

from dataclasses import dataclass

from kernelwright.core.outcome import Status
from kernelwright.devices.cpu.process import Report, signal_name


@dataclass(frozen=True)
class Verdict:
    """Why a case failed."""

    status: Status
    reason: str


def judge(report: Report, case: str, first_run: int, budget_s: float) -> Verdict | None:
    """What went wrong in a process, or ``None``. Findings come first: they are the cause of what follows."""
    where = f"case {case} (run {first_run + max(report.begun, 0)})"
    failing = [finding for finding in report.findings if not finding[0].startswith("note")]
    if failing:
        kind, text = failing[0]
        return Verdict(Status.WRONG, f"case {case}: {kind}: {text}")
    match report.ended:
        case "crash":
            return Verdict(Status.CRASHED, f"{where}: {report.message}")
        case "write-to-input":
            return Verdict(Status.WRONG, f"{where}: {report.message}")
        case "launch" if report.message.startswith("out of memory"):
            return Verdict(Status.CRASHED, f"case {case}: {report.message}")
        case "launch":
            return Verdict(Status.LAUNCH_FAILED, f"case {case}: {report.message}")
        case "end":
            return None
        case _:
            return _without_an_end(report, where, budget_s)


def _without_an_end(report: Report, where: str, budget_s: float) -> Verdict:
    if report.timed_out:
        return Verdict(Status.TIMED_OUT, f"{where}: still running when its {budget_s:.3g} s were over")
    name = signal_name(report.returncode) if report.returncode < 0 else "no signal"
    reasons = {
        "SIGXCPU": (Status.TIMED_OUT, "used up its CPU time"),
        "SIGKILL": (Status.CRASHED, "killed, most likely out of memory"),
        "SIGSYS": (Status.CRASHED, "made a system call, which device code cannot"),
    }
    status, text = reasons.get(name, (Status.CRASHED, f"ended early ({name})"))
    return Verdict(status, f"{where}: {text}")
