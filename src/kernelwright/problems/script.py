"""A problem's own Python code: compiled, called, and at fault when it raises. Runs in the device worker only."""

import ast
import os
import posix
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from kernelwright.core.errors import ProblemError
from kernelwright.core.text import one_line

REFERENCE_FAULTS = (
    ArithmeticError, AssertionError, AttributeError, BufferError, ImportError, LookupError, MemoryError, NameError,
    OSError, RuntimeError, SyntaxError, SystemExit, TypeError, ValueError,
)  # fmt: skip
"""What Python code goes wrong with; anything else that a reference raises ends at the worker's boundary."""

MAX_THREADS: Final = 64
"""That may be left behind a call: more take what the harness itself needs to go on, which would then seem at fault."""

_ENDS: Final = ("_exit", "abort", "execv", "execve")
"""Of ``os`` and of ``posix``, where ``os`` has them from; its other ``exec`` functions call these."""


@dataclass(frozen=True)
class Script:
    """A file of a problem that defines one function. ``signature`` is what it looks like, for people."""

    path: Path
    source: str
    signature: str

    def call(self, *arguments: Any, **named: Any) -> Any:
        """Call the function. Raises ProblemError, with the line, for whatever it raises."""
        return self._called(self._function, *arguments, **named)

    def fault(self) -> str:
        """What can be told of the file without executing it: one line, empty where nothing is wrong."""
        try:
            self._compiled()
            names = defined(self._compiled(ast.PyCF_ONLY_AST))
        except ProblemError as error:
            return str(error)
        return "" if {self._name, "*"} & names else self._lacks()

    @property
    def _name(self) -> str:
        return self.signature.partition("(")[0]

    def _lacks(self) -> str:
        return f"{self.path}: has no function {self._name!r}: define {self.signature}"

    @cached_property
    def _function(self) -> Callable[..., Any]:
        namespace: dict[str, Any] = {"__name__": self._name, "__file__": str(self.path)}
        self._called(exec, self._compiled(), namespace)
        function = namespace.get(self._name)
        if not callable(function):
            raise ProblemError(self._lacks())
        return function  # type: ignore[no-any-return]

    def _compiled(self, flags: int = 0) -> Any:
        """Raises ProblemError. What Python only warns of is the author's own business."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return compile(self.source, str(self.path), "exec", flags)
        except SyntaxError as error:
            where = f"{self.path}:{error.lineno}" if error.lineno else f"{self.path}"
            raise ProblemError(f"{where}: not valid Python: {error.msg}") from None
        except (MemoryError, RecursionError, ValueError) as error:
            reason = str(error) or "nested too deeply"
            raise ProblemError(f"{self.path}: not valid Python: {reason}") from None

    def _called(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """What the problem's own code raises is the problem's fault, with the line in the file."""
        try:
            with _no_exit():
                result = function(*arguments, **named)
        except REFERENCE_FAULTS as error:
            frames = traceback.extract_tb(error.__traceback__)
            line = next((f.lineno for f in reversed(frames) if f.filename == str(self.path)), None)
            text = one_line(str(error)[:300]).encode("ascii", "backslashreplace").decode()
            where = f"{self.path}:{line}" if line else str(self.path)
            if isinstance(error, _ProcessEnded):
                raise ProblemError(
                    f"{where}: {self.path.name} ended the process ({error.how}): "
                    "return values and leave the process alone (no os._exit)"
                ) from None
            what = ": ".join(filter(None, (type(error).__name__, text)))
            raise ProblemError(f"{where}: {self.path.name} raised {what}") from None
        if (left := threading.active_count()) > MAX_THREADS:
            raise ProblemError(
                f"{self.path}: {self.path.name} left {left} threads at work: end what it starts"
            )
        return result


class _ProcessEnded(SystemExit):
    """In place of the end of a process; ``how`` for people."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


@contextmanager
def _no_exit() -> Iterator[None]:
    """What ends a process raises: a worker that is gone could not tell whose doing it was, and the candidate would be blamed.

    In a process or thread that the code starts itself it does what it always does.
    """
    here = os.getpid(), threading.get_ident()
    real = {name: getattr(posix, name) for name in _ENDS}

    def told(name: str, *arguments: Any) -> None:
        if (os.getpid(), threading.get_ident()) != here:
            real[name](*arguments)
        raise _ProcessEnded(f"exit code {arguments[0]}" if name == "_exit" and arguments else f"os.{name}")

    for name in _ENDS:
        for module in (os, posix):
            setattr(module, name, partial(told, name))
    try:
        yield
    finally:
        for name, function in real.items():
            for module in (os, posix):
                setattr(module, name, function)


def defined(module: ast.Module) -> set[str]:
    """Names that a module may have once it was executed; ``*`` for names that only an import knows."""
    names: set[str] = set()
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue  # what is defined inside stays there
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        waiting += ast.iter_child_nodes(node)
    return names
