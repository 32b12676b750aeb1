"""docs/design.md section 4, held by the machine: who may import whom, and how large things may grow."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "kernelwright"
OWN_SUFFIXES = {".py", ".cu", ".cpp", ".h", ".s"}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 40
PROCESS_BOUNDARIES = {"cli/main.py", "harness/worker/__main__.py"}

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "bundled" not in path.parts)
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in MODULES
}


def places(find: Callable[[ast.AST], Iterator[int]]) -> dict[str, list[int]]:
    """Lines that ``find`` gives, by file."""
    return {name: lines for name, tree in TREES.items() if (lines := list(find(tree)))}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the package in ``folder`` by the contracts in its pyproject.toml."""
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whoever changes it puts it back."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copy(ROOT / "pyproject.toml", folder)
    left_out = shutil.ignore_patterns("bundled", "native", "__pycache__")
    shutil.copytree(PACKAGE, folder / "kernelwright", ignore=left_out)
    return folder


def test_the_import_contracts_hold(copy: Path) -> None:
    done = lint_imports(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("core/outcome.py", "import kernelwright.memory.store", "Layers"),
        ("generation/catalogue.py", "import kernelwright.optimiser.base", "Layers"),
        ("harness/protocol.py", "def later():\n    from kernelwright.campaign import budget", "Layers"),
        ("telemetry.py", "", "Layers"),
        ("harness/worker/devices.py", "import kernelwright.memory.store", "Beside a candidate"),
        ("harness/protocol.py", "import kernelwright.memory.records", "Only the campaign writes"),
        ("campaign/budget.py", "def later():\n    import cupy", "Only devices.cuda"),
        ("devices/cpu/facts.py", "import kernelwright.devices.cuda", "The devices do not know"),
    ],
)
def test_a_wrong_import_is_caught(copy: Path, file: str, line: str, broken: str) -> None:
    path = copy / "kernelwright" / file
    before = path.read_text(encoding="utf-8") if path.exists() else None
    path.write_text(f"{before or ''}\n{line}\n", encoding="utf-8")
    done = lint_imports(copy)
    if before is None:
        path.unlink()
    else:
        path.write_text(before, encoding="utf-8")
    assert done.returncode == 1, done.stdout + done.stderr
    lines = [text for text in done.stdout.splitlines() if text.endswith("BROKEN")]
    assert any(text.startswith(broken) for text in lines), done.stdout


def test_no_file_is_long() -> None:
    lengths = {
        path.relative_to(PACKAGE).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in PACKAGE.rglob("*")
        if path.suffix in OWN_SUFFIXES and "bundled" not in path.parts
    }
    assert len(lengths) > 50
    assert {name: lines for name, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def test_functions_are_short() -> None:
    lengths = sorted(
        node.end_lineno - node.lineno + 1
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    )
    assert lengths[len(lengths) * 95 // 100] < MAX_FUNCTION_LINES


def test_modules_say_what_they_are_for() -> None:
    trees = {name: tree for name, tree in TREES.items() if tree.body}
    assert [name for name, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_no_function_changes_global_state() -> None:
    assert places(lambda tree: (n.lineno for n in ast.walk(tree) if isinstance(n, ast.Global))) == {}


def test_blind_excepts_are_at_the_process_boundaries_only() -> None:
    assert places(blind_excepts).keys() <= PROCESS_BOUNDARIES


def blind_excepts(tree: ast.AST) -> Iterator[int]:
    """Lines of handlers of every exception that do not raise it again."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            names = {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)} if node.type else {"all"}
            raised = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            if names & {"all", "Exception", "BaseException"} and not raised:
                yield node.lineno


def test_the_check_of_blind_excepts_sees_them() -> None:
    seen = "try: f()\nexcept (OSError, Exception): pass\ntry: f()\nexcept: pass\n"
    fine = "try: f()\nexcept BaseException:\n    g()\n    raise\ntry: f()\nexcept OSError: pass\n"
    assert list(blind_excepts(ast.parse(seen))) == [2, 4]
    assert list(blind_excepts(ast.parse(fine))) == []


def test_only_the_campaign_opens_the_memory_for_writing() -> None:
    found = places(memories_open_for_writing)
    assert "campaign/sitting.py" in found
    assert [name for name in found if not name.startswith("campaign/")] == []


def memories_open_for_writing(tree: ast.AST) -> Iterator[int]:
    """Lines of ``Memory.open(...)`` without ``read_only=True``."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="Memory"), attr="open"), keywords=keywords):
                reads = any(
                    k.arg == "read_only" and isinstance(k.value, ast.Constant) and k.value.value is True
                    for k in keywords
                )
                if not reads:
                    yield node.lineno


def test_the_check_of_opened_memories_sees_them() -> None:
    text = "Memory.open(p)\nMemory.open(p, read_only=False)\nMemory.open(p, read_only=True)\n"
    assert list(memories_open_for_writing(ast.parse(text))) == [1, 2]


def test_commands_start_without_what_only_tuning_needs() -> None:
    """Loading SciPy would take as long as all the rest, at every command's start."""
    code = "import sys, kernelwright.cli.app; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
