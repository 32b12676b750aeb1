"""Limits that the user's shell sets on every process (``ulimit``), where they are too narrow to work under.

A compiler or a runner that meets one fails in ways that look like a candidate's fault, and OpenBLAS, when it is
loaded, asks for memory for ever. Loaded before all else: nothing but the standard library is imported.
"""

import os
import resource
from collections.abc import Iterable
from dataclasses import dataclass

from kernelwright.core.errors import UserError


@dataclass(frozen=True)
class Least:
    """The narrowest limit that will do, in bytes, or in pieces where it is ``counted``; ``option`` is that of ``ulimit``."""

    kind: int
    what: str
    option: str
    nbytes: int
    counted: bool = False

    def shown(self, value: int) -> str:
        """A value of this limit in words."""
        return f"{value}" if self.counted else f"{value / (1 << 20):.4g} MiB"


# A stack in each of two OpenBLAS for every CPU, and what Python and NumPy take themselves.
_TO_LOAD = (1 << 30) + (os.cpu_count() or 1) * (16 << 20)
TO_LOAD = (
    Least(resource.RLIMIT_AS, "address space", "-v", _TO_LOAD),
    Least(resource.RLIMIT_DATA, "memory", "-d", _TO_LOAD),
)
TO_WORK = (
    Least(resource.RLIMIT_AS, "address space", "-v", max(4 << 30, _TO_LOAD)),
    Least(resource.RLIMIT_DATA, "memory", "-d", max(4 << 30, _TO_LOAD)),
    Least(resource.RLIMIT_FSIZE, "the size of a file", "-f", 256 << 20),
    Least(resource.RLIMIT_NOFILE, "open files", "-n", 128, counted=True),
    Least(resource.RLIMIT_NPROC, "processes", "-u", 64, counted=True),
)
"""What loading NumPy and SciPy takes, and what compilers and workers take."""

TOO_MANY = "this user has too many processes: end some, or raise the limit (ulimit -u)"
"""What ``EAGAIN`` means where a process or a thread is started: those of all commands of a user count."""


def narrow_limit(least: Iterable[Least]) -> str:
    """The first limit that is too narrow, and what to do; empty when all will do."""
    for limit in least:
        soft, _ = resource.getrlimit(limit.kind)
        if soft != resource.RLIM_INFINITY and soft < limit.nbytes:
            return (
                f"the limit on {limit.what} (ulimit {limit.option}) is {limit.shown(soft)}, at least"
                f" {limit.shown(limit.nbytes)} are needed: start it from a shell with a wider one, or none"
            )
    return ""


def refuse_narrow_limits(least: Iterable[Least] = TO_WORK) -> None:
    """Raises UserError where a limit is too narrow: no candidate is to be blamed for it."""
    if told := narrow_limit(least):
        raise UserError(told)
