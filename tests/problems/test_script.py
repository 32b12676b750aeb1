"""What can be told of a problem's Python files without executing them; and what they may not end."""

import os
import posix
import threading
from pathlib import Path

import pytest

from kernelwright.core.errors import ProblemError
from kernelwright.problems.loader import bundled_names, load_problem
from kernelwright.problems.script import MAX_THREADS, Script

DEEP = "(" * 5000 + ")" * 5000


def fault(source: str) -> str:
    return Script(Path("library.py"), source, "library(torch, sizes, ...)").fault()


@pytest.mark.parametrize(
    "source",
    [
        "raise SystemExit\ndef library(torch, sizes): pass",
        "library = lambda torch, sizes: None",
        "try:\n    from fast import mul as library\nexcept ImportError:\n    def library(torch): pass",
        "from elsewhere import *",
        "if True:\n    class library: pass",
        "x = '\\d'\ndef library(torch): pass",
    ],
)
def test_what_may_define_the_function_is_no_fault(source: str) -> None:
    assert fault(source) == ""


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def library(:", "library.py:1: not valid Python: invalid syntax"),
        ("\nreturn 1", "library.py:2: not valid Python: 'return' outside function"),
        ("x = '\0'", "library.py: not valid Python: "),
        (DEEP, "library.py:1: not valid Python: too many nested parentheses"),
        ("", "library.py: has no function 'library': define library(torch, sizes, ...)"),
        ("def outer():\n    def library(): pass", "library.py: has no function 'library'"),
        ("class A:\n    def library(self): pass", "library.py: has no function 'library'"),
        ("print(library)", "library.py: has no function 'library'"),
        ("import library.more as other", "library.py: has no function 'library'"),
    ],
)
def test_what_cannot_is_told_in_a_line(source: str, told: str) -> None:
    found = fault(source)
    assert found.startswith(told)
    assert "\n" not in found


def test_bundled_problems_have_no_faults() -> None:
    assert [load_problem(name).script_faults() for name in bundled_names()] == [{}] * len(bundled_names())


FORKS = """
import os
def reference(xp, sizes):
    child = os.fork()
    if child == 0:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("os._exit(3)", "exit code 3"),
        ("__import__('posix')._exit(0)", "exit code 0"),
        ("os._exit()", "os._exit"),
        ("os.abort()", "os.abort"),
        ("os.execl('/bin/true', 'true')", "os.execv"),
        ("os.execvpe('true', ['true'], {})", "os.execve"),
    ],
)
def test_the_end_of_the_process_is_the_file_s_own_fault(end: str, how: str) -> None:
    before = [
        getattr(module, name) for module in (os, posix) for name in ("_exit", "abort", "execv", "execve")
    ]
    ends = Script(Path("reference.py"), f"import os\ndef reference(): {end}\n", "reference(xp, sizes, ...)")
    with pytest.raises(ProblemError) as caught:
        ends.call()
    assert f"{caught.value}".startswith(
        f"reference.py:2: reference.py ended the process ({how}): return values"
    )
    assert before == [
        getattr(module, name) for module in (os, posix) for name in ("_exit", "abort", "execv", "execve")
    ]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # it ends at once
def test_a_process_that_the_code_starts_itself_may_end() -> None:
    assert Script(Path("reference.py"), FORKS, "reference(xp, sizes)").call(None, {}) == 7


THREADS = """
import threading
def reference(end, number):
    for _ in range(number):
        threading.Thread(target=end.wait, daemon=True).start()
"""


def test_threads_that_are_left_are_the_file_s_own_fault() -> None:
    end, known = threading.Event(), set(threading.enumerate())
    leaves = Script(Path("reference.py"), THREADS, "reference(end, number)")
    try:
        leaves.call(end, 3)
        with pytest.raises(ProblemError, match=r"reference.py left \d+ threads at work: end what"):
            leaves.call(end, MAX_THREADS)
    finally:
        end.set()
        for thread in set(threading.enumerate()) - known:
            thread.join()


def test_what_is_raised_without_a_word_ends_without_a_colon() -> None:
    silent = Script(Path("reference.py"), "def reference(): raise MemoryError", "reference()")
    with pytest.raises(ProblemError, match=r"^reference.py:1: reference.py raised MemoryError$"):
        silent.call()
