"""Errors of the project.

::

    KernelwrightError
    ├── UserError            bad input; one clear line, exit code 2
    │   ├── ExpressionError  an expression of a plan or a problem (text, column)
    │   ├── PlanError        a template's plan (origin, line, column)
    │   ├── ProblemError     a problem folder (file, key)
    │   ├── NoSuchFile       a file that is not there
    │   ├── MemoryFileError  the memory's file: newer version, not writable, damaged
    │   └── MissingError     something to install; carries the install line
    ├── HarnessError         our side of the harness failed; never blamed on a candidate
    │   ├── WorkerDied       a child ended without an answer
    │   └── DeviceLost       the device cannot be used any more
    └── ReplyError           a model's reply cannot be used

A bad candidate is never an exception: it is an :class:`~kernelwright.core.outcome.Outcome` with a status.
"""

import contextlib
from collections.abc import Iterator
from typing import Final

MAX_SHOWN: Final = 200
"""Characters of an expression that a message repeats."""


class KernelwrightError(Exception):
    """Base of all errors raised on purpose."""


class UserError(KernelwrightError):
    """Bad input from the user: the message is one line saying what, where, and how to mend it."""


class ExpressionError(UserError):
    """An expression cannot be parsed or evaluated.

    ``column`` is 1-based within ``text``; 0 when the fault is not tied to a place. ``shown`` is the text for messages.
    """

    def __init__(self, message: str, text: str, column: int = 0) -> None:
        where = f" at column {column}" if column else ""
        self.shown = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
        super().__init__(f"{message}{where} in expression {self.shown!r}")
        self.message = message
        self.text = text
        self.column = column


class PlanError(UserError):
    """A template's plan is wrong. ``line`` and ``column`` are 1-based in the template file, 0 if unknown.

    ``key`` is what is wrong, for who can find its line (see ``core.plan_faults``).
    """

    def __init__(self, message: str, origin: str, line: int = 0, column: int = 0, key: str = "") -> None:
        place = origin + (f":{line}" if line else "") + (f":{column}" if line and column else "")
        super().__init__(f"{place}: {message}")
        self.message = message
        self.origin = origin
        self.line = line
        self.column = column
        self.key = key


class ProblemError(UserError):
    """A problem folder is wrong: names the file and the key."""


class NoSuchFile(UserError):  # noqa: N818 - reads as what happened
    """There is no file of that name."""


class MemoryFileError(UserError):
    """The memory's file cannot be used: newer version, not writable, or damaged."""


class MissingError(UserError):
    """Something has to be installed first; the message carries the install line."""


class HarnessError(KernelwrightError):
    """The harness itself failed; never blamed on a candidate."""


class WorkerDied(HarnessError):  # noqa: N818 - reads as what happened
    """A child process ended without an answer."""


class DeviceLost(HarnessError):  # noqa: N818 - reads as what happened
    """The device cannot be used any more."""


class ReplyError(KernelwrightError):
    """A language model's reply cannot be used; the reason goes back to the model."""


@contextlib.contextmanager
def in_flight(what: str, goes_on: str) -> Iterator[None]:
    """Whatever is raised inside says what was in flight, for who reports it as a fault of ours, and what goes on from there."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in flight: {what}; what is recorded is kept: {goes_on} goes on")
        raise
