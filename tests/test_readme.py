"""Every command in the documents works: it is run here, or checked by the real parser with the reason why not run."""

import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from kernelwright.core.candidate import parse_template
from kernelwright.leaderboard.gpumode.user_tables import read_user_tables
from kernelwright.problems.loader import load_problem

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "kernelwright"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
BIN = Path(sys.executable).parent

# Run here, in a folder with a finished campaign; "check" with the cpu, which every machine has.
RUN = {"problem", "problems", "certificate", "doctor", "show", "report", "check", "--version", "--help"}
# Not run as they stand, since they take their time budget, but parsed; the named tests run them shorter.
SHORTER_IN = {
    "board": "tests/board_server/test_commands.py::test_a_board_from_the_first_token_to_the_table",
    "export-batch": "tests/harness/detached/test_whole_loop.py::test_a_campaign_with_its_device_elsewhere_survives_kills",
    "evaluate-batch": "tests/harness/detached/test_whole_loop.py::test_a_campaign_with_its_device_elsewhere_survives_kills",
    "import-batch": "tests/harness/detached/test_whole_loop.py::test_a_campaign_with_its_device_elsewhere_survives_kills",
    "run": "tests/test_readme.py::folder",
    "resume": "tests/test_readme.py::test_a_campaign_goes_on",
    "replay": "tests/replay/test_whole.py::test_rebuilt",
    "export": "tests/cli/test_exchange.py::test_to_kernel_tuner_and_back",
    "import-space": "tests/cli/test_exchange.py::test_a_kernel_tuner_space_becomes_the_beginning_of_a_plan",
    "gauntlet": "tests/cli/test_gauntlet.py::test_cheats_are_caught_and_the_honest_pass",
    "profile": "tests/cli/test_profile.py::test_the_cpu_has_a_digest_of_level_0",
    "bench": "tests/optimiser/test_replay.py::test_the_command_plays_in_parallel",
}
SHELLS = {"console", "bash", "sh", "shell"}
# What belongs to the system and not to us.
SYSTEM = {"apt-get", "cd", "git"}


@dataclass(frozen=True)
class Command:
    document: str
    line: int
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.document}:{self.line} {' '.join(self.words)}"


def commands_of(text: str, document: str) -> Iterator[Command]:
    """Commands of shell blocks. In console blocks they begin with ``$``; the other lines are output."""
    for fence in FENCE.finditer(text):
        language, block = fence.groups()
        if language not in SHELLS:
            continue
        first = text[: fence.start()].count("\n") + 2
        block = re.sub(r"\\\n\s*", "  ", block)
        for offset, raw in enumerate(block.splitlines()):
            line = raw.removeprefix("$ ") if language == "console" and raw.startswith("$ ") else raw
            if language == "console" and line == raw:
                continue
            for part in re.split(r"&&|;", re.sub(r"(^|\s)#.*", "", line)):
                if words := shlex.split(part):
                    yield Command(document, first + offset, tuple(words))


ALL = [c for path in DOCUMENTS for c in commands_of(path.read_text(encoding="utf-8"), path.name)]
INLINE = [
    Command(path.name, text[: found.start()].count("\n") + 1, tuple(shlex.split(found.group(1))))
    for path in DOCUMENTS
    for text in [path.read_text(encoding="utf-8")]
    for found in re.finditer(r"`((?:kernelwright|make|python bench/\S+)(?: [^`\n]+)?)`", text)
    if found.group(1) != "kernelwright"
]
OURS = [c for c in ALL if c.words[0].removeprefix(".venv/bin/") == "kernelwright"]
MAKE = [c for c in [*ALL, *INLINE] if c.words[0] == "make"]
SCRIPTS = [c for c in [*ALL, *INLINE] if c.words[0].rpartition("/")[2] in {"python", "python3"}]
HIDDEN = re.compile(r"^\s*(?:\$ )?(?:kernelwright|make|python) .*", re.MULTILINE)
FILE = re.compile(r"`([a-z_]+(?:/[a-z_0-9]+)*(?:/[a-z_0-9]+\.(?:py|cu|toml|md)|/))`")


def test_there_is_something_to_check() -> None:
    assert len(OURS) > 5
    assert {"run", "test"} <= {c.words[1] for c in MAKE if c.document == "README.md"}


def test_no_command_is_of_a_kind_that_nobody_checks() -> None:
    checked = {*OURS, *MAKE, *SCRIPTS}
    assert [str(c) for c in ALL if c not in checked and c.words[0] not in SYSTEM] == []
    assert [str(c) for c in OURS if c.words[1] not in {*RUN, *SHORTER_IN}] == []
    for place in SHORTER_IN.values():
        file, _, name = place.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_command_hides_where_nobody_looks(path: Path) -> None:
    """In a block without a shell's name, or an indented one."""
    text = path.read_text(encoding="utf-8")
    shells = {fence.group(0) for fence in FENCE.finditer(text) if fence.group(1) in SHELLS}
    assert HIDDEN.findall("".join(re.split("|".join(map(re.escape, shells)) or "$^", text))) == []


@pytest.mark.parametrize("command", MAKE, ids=str)
def test_the_make_target_exists(command: Command) -> None:
    done = subprocess.run(
        ["make", "--dry-run", *command.words[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", SCRIPTS, ids=str)
def test_the_script_exists_and_knows_its_options(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run here: as processes of their own they would all import the same for seconds."""
    script = ROOT / command.words[1]
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    with pytest.raises(SystemExit) as done:
        runpy.run_path(str(script), run_name="__main__")
    assert done.value.code == 0
    shown = capsys.readouterr().out
    for option in (word for word in command.words if word.startswith("--")):
        assert option.partition("=")[0] in shown


@pytest.mark.parametrize("command", [*OURS, *(c for c in INLINE if c.words[0] == "kernelwright")], ids=str)
def test_the_command_and_its_options_exist(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert parsed(command.words[1:]) == 0, capsys.readouterr().err
    assert "Usage: kernelwright" in capsys.readouterr().out


def test_that_check_sees_commands_and_options_that_do_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["fly"], ["run", "gemm", "--fast"], ["problems", "fly"]):
        assert parsed(words) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def parsed(words: Sequence[str]) -> object:
    """Exit code of the command with ``--help`` at its end: what stands before is parsed, and nothing is done."""
    with pytest.raises(SystemExit) as done:
        main([*words, "--help"])
    return done.value.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a reader is after following the README so far: a campaign, the file ``mine.cu``, a problem."""
    path = tmp_path_factory.mktemp("reader")
    sources = [block for language, block in FENCE.findall(README) if language == "cuda"]
    (path / "mine.cu").write_text(sources[0], encoding="utf-8")
    shutil.copytree(ROOT / "src/kernelwright/problems/bundled/vector_add", path / "my_problem")
    done = kernelwright("run", "vector_add", "--device", "cpu", "--evaluations", "2", "--json", folder=path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["experiments"] == 2
    return path


@pytest.mark.parametrize("command", [c for c in OURS if c.words[1] in RUN], ids=str)
def test_the_command_runs(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_cpu = ("--device", "cpu") if command.words[1] in {"check", "doctor"} else ()
    monkeypatch.chdir(folder)
    for written in folder.glob("report.*"):  # of another document, whose reader has another folder
        written.unlink()
    with pytest.raises(SystemExit) as done:
        main([*command.words[1:], *on_cpu])
    shown = capsys.readouterr()
    assert done.value.code == 0, shown.out + shown.err
    assert shown.out


def test_a_campaign_goes_on(folder: Path) -> None:
    done = kernelwright("resume", "last", "--evaluations", "4", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["experiments"] == 4
    shown = json.loads(kernelwright("show", "last", "--json", folder=folder).stdout)
    assert shown["experiments"] == 4


def kernelwright(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "kernelwright", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=100
    )


def test_the_plans_in_the_documents_are_plans() -> None:
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    blocks = [b for text in texts for language, b in FENCE.findall(text) if language == "cuda"]
    assert len(blocks) >= 2
    for block in blocks:
        assert parse_template(block).plan.launches


def blocks_of(document: str, language: str) -> list[str]:
    text = next(path for path in DOCUMENTS if path.name == document).read_text(encoding="utf-8")
    return [block for found, block in FENCE.findall(text) if found == language]


def test_the_problem_in_its_document_is_one(tmp_path: Path) -> None:
    (tmp_path / "problem.toml").write_text(blocks_of("problems.md", "toml")[0], encoding="utf-8")
    (tmp_path / "reference.py").write_text(blocks_of("problems.md", "python")[0], encoding="utf-8")
    plan = '/* kernelwright\n[[launch]]\nkernel = "k"\ngrid = [1]\nblock = [1]\nargs = ["X", "Y"]\n*/\n'
    (tmp_path / "baseline.cu").write_text(plan, encoding="utf-8")
    problem = load_problem(str(tmp_path))
    assert (problem.name, problem.script_faults()) == ("scale", {})
    assert [case.id for case in problem.cases(slow=False)] == ["R=4096,C=4096", "odd"]


def test_the_tables_of_an_import_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(blocks_of("boards.md", "toml")[0], encoding="utf-8")
    tables = read_user_tables(tmp_path / "a.toml")
    assert [argument.name for argument in tables.arguments] == ["x", "y"]
    assert tables.abi is not None


def test_what_the_documents_import_is_there() -> None:
    imports = [
        line
        for path in DOCUMENTS
        for block in blocks_of(path.name, "python")
        for line in block.splitlines()
        if line.startswith("from kernelwright")
    ]
    assert len(imports) >= 3
    exec("\n".join(imports), {})


def test_modules_that_are_run_are_there() -> None:
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    runs = [found for text in texts for found in re.findall(r"`python -m ([\w.]+)([^`]*)`", text)]
    assert runs
    for module, options in runs:
        source = (ROOT / module.replace(".", "/") / "__main__.py").read_text(encoding="utf-8")
        assert all(f'"{option}"' in source for option in re.findall(r"--[a-z-]+", options))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    targets = [t for t in LINK.findall(path.read_text(encoding="utf-8")) if "://" not in t]
    assert [t for t in targets if not (path.parent / t).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_are_there(path: Path) -> None:
    """From the root, from the package, or of the gauntlet; ``board/`` is made by an import."""
    named = FILE.findall(path.read_text(encoding="utf-8"))
    tops = (ROOT, PACKAGE, ROOT / "tests" / "gauntlet")
    missing = {name for name in named if not any((top / name).exists() for top in tops)}
    assert missing <= {"board/"}
    if path.name == "design.md":
        assert {"cli/run.py", "memory/store.py", "harness/sandbox/"} <= set(named)


def test_the_gauntlet_is_as_large_as_it_is_said_to_be() -> None:
    files = {kind: sorted((ROOT / "tests/gauntlet" / kind).glob("*.cu")) for kind in ("cheats", "honest")}
    table = (ROOT / "docs/gauntlet.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `((?:cheats|honest)/[^`]+)`", table, re.MULTILINE)
    assert rows == [f"{kind}/{file.name}" for kind, found in files.items() for file in found]
    cheats, honest = len(files["cheats"]), len(files["honest"])
    assert f"{cheats} cheats and {honest} honest candidates" in README
    assert f"{cheats} cheats, " in table


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_anchors_are_headings(path: Path) -> None:
    for name, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", path.read_text(encoding="utf-8")):
        text = ((path.parent / name) if name else path).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
