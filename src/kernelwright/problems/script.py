"""A problem's own Python code: compiled, called, and at fault when it raises. Runs in the device worker only."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kernelwright.core.errors import ProblemError

REFERENCE_FAULTS = (
    ArithmeticError, AssertionError, AttributeError, BufferError, ImportError, LookupError, MemoryError, NameError,
    OSError, RuntimeError, SyntaxError, SystemExit, TypeError, ValueError,
)  # fmt: skip
"""What Python code goes wrong with; anything else that a reference raises ends at the worker's boundary."""


@dataclass(frozen=True)
class Script:
    """A file of a problem that defines one function. ``signature`` is what it looks like, for people."""

    path: Path
    source: str
    signature: str

    def call(self, *arguments: Any, **named: Any) -> Any:
        """Call the function. Raises ProblemError, with the line, for whatever it raises."""
        return self._called(self._function, *arguments, **named)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        name = self.signature.partition("(")[0]
        namespace: dict[str, Any] = {"__name__": name, "__file__": str(self.path)}
        try:
            code = compile(self.source, str(self.path), "exec")
        except SyntaxError as error:
            where = f"{self.path}:{error.lineno}" if error.lineno else f"{self.path}"
            raise ProblemError(f"{where}: not valid Python: {error.msg}") from None
        except (MemoryError, RecursionError, ValueError) as error:
            reason = str(error) or "nested too deeply"
            raise ProblemError(f"{self.path}: not valid Python: {reason}") from None
        self._called(exec, code, namespace)
        function = namespace.get(name)
        if not callable(function):
            raise ProblemError(f"{self.path}: has no function {name!r}: define {self.signature}")
        return function  # type: ignore[no-any-return]

    def _called(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """What the problem's own code raises is the problem's fault, with the line in the file."""
        try:
            return function(*arguments, **named)
        except REFERENCE_FAULTS as error:
            frames = traceback.extract_tb(error.__traceback__)
            line = next((f.lineno for f in reversed(frames) if f.filename == str(self.path)), None)
            text = " ".join(str(error).split())[:300].encode("ascii", "backslashreplace").decode()
            where = f"{self.path}:{line}" if line else str(self.path)
            raise ProblemError(f"{where}: {self.path.name} raised {type(error).__name__}: {text}") from None
