"""One line from a compiler's output that a model can act on."""

import re

from kernelwright.core.outcome import Check, Status
from kernelwright.devices.cpu.source_rules import CANDIDATE, Refusal, missing_header, not_run

MAX_LOG_BYTES = 8192

_ERROR = re.compile(
    r"^([^\s:][^:\n]*):(\d+):(?:\d+:)? (?:fatal |internal compiler )?error: (.*)$", re.MULTILINE
)
_FROM = re.compile(rf"^{re.escape(CANDIDATE)}:(\d+):\d+:\s+required from", re.MULTILINE)
_ANY_ERROR = re.compile(r"^.*?(?:error|undefined reference).*$", re.MULTILINE | re.IGNORECASE)
_NO_HEADER = re.compile(r"([^\s:]+): No such file or directory$")
_UNDECLARED = re.compile(r"[\u2018'`](\w+)[\u2019'] was not declared in this scope")
_POISONED = re.compile(r'attempt to use poisoned "(\w+)"')
_MEMORY = re.compile(r"out of memory|virtual memory exhausted|cannot allocate memory", re.IGNORECASE)


def explain(output: str, kernels: tuple[str, ...]) -> Refusal:
    """The first error of g++ as a status and a reason."""
    found = _ERROR.search(output)
    if found is None:
        return _without_place(output)
    name, line, message = found[1], int(found[2]), found[3]
    header = _NO_HEADER.search(message)
    if header is not None:
        return missing_header(header[1], line)
    poisoned = _POISONED.search(message)
    if poisoned is not None:
        reason = f"{poisoned[1]!r} is a name of the cpu device's own, no device code (line {line})"
        return Refusal(Status.RULE_BROKEN, reason)
    undeclared = _UNDECLARED.search(message)
    if name != CANDIDATE:
        caller = _FROM.search(output, found.start()) or _FROM.search(output)
        if name.startswith("plan") and undeclared is not None and undeclared[1] in kernels:
            reason = f"{CANDIDATE}: the plan launches {undeclared[1]!r}, which the source does not define"
            return Refusal(Status.COMPILE_FAILED, reason, Check.PLAN)
        if caller is not None:
            line = int(caller[1])
        elif name.startswith("plan"):
            return Refusal(Status.COMPILE_FAILED, f"{CANDIDATE}: {message}")
    if undeclared is not None and undeclared[1].startswith("__"):
        # A name reserved for the implementation: more likely a gap of ours than a slip of the author's.
        return not_run(f"the intrinsic {undeclared[1]}", line)
    return Refusal(Status.COMPILE_FAILED, f"{CANDIDATE}:{line}: {message}")


def _without_place(output: str) -> Refusal:
    if _MEMORY.search(output):
        reason = "the compiler ran out of memory on this source"
        return Refusal(Status.COMPILE_FAILED, reason, Check.COMPILE_LIMITS)
    found = _ANY_ERROR.search(output)
    return Refusal(
        Status.COMPILE_FAILED, found[0][:300] if found else "the compiler failed without a message"
    )


def trim_log(output: str) -> str:
    """At most 8 KiB, from the start: the first error is the one that counts."""
    data = output.encode()
    if len(data) <= MAX_LOG_BYTES:
        return output
    return data[: MAX_LOG_BYTES - 16].decode(errors="ignore") + "\n[cut]\n"
