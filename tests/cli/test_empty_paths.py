"""An empty path, as of a shell's variable that is not set, is bad input everywhere, and never the current folder."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
import typer
from typer.models import ArgumentInfo

from kernelwright.cli.app import app
from kernelwright.cli.main import main

Words = tuple[str, ...]


def commands(of: typer.Typer, *words: str) -> Iterator[tuple[Words, Callable[..., Any]]]:
    for command in of.registered_commands:
        assert command.callback is not None
        yield (*words, command.name or command.callback.__name__), command.callback
    for group in of.registered_groups:
        assert group.typer_instance is not None
        yield from commands(group.typer_instance, *words, str(group.name))


def with_an_empty_path(words: Words, callback: Callable[..., Any]) -> Iterator[Words]:
    """Command lines in which one path is empty, and every other argument something else."""
    hints = get_type_hints(callback, include_extras=True)
    found = [(name, *get_args(hint)[:2]) for name, hint in hints.items() if get_origin(hint) is Annotated]
    arguments = [name for name, _, info in found if isinstance(info, ArgumentInfo)]
    for name, kind, info in found:
        if kind is not Path and Path not in get_args(kind):
            continue
        if name in arguments:
            yield (*words, *("" if name == other else "x" for other in arguments))
        else:
            declared = [info.default, *(info.param_decls or ())]  # typer puts the first name there
            yield (*words, next((d for d in declared if f"{d}"[:1] == "-"), f"--{name}"), "")


ALL = [line for words, callback in commands(app) for line in with_an_empty_path(words, callback)]


def test_every_command_is_looked_at() -> None:
    assert {("evaluate-batch", "--output", ""), ("import-batch", "x", ""), ("run", "--dir", "")} <= {*ALL}
    assert {("board", "import", "--root", ""), ("bench", "optimiser", "--spaces", "")} <= {*ALL}


BLANK = [("run", "vector_add", "--dir", " "), ("board", "import", " \t")]


@pytest.mark.parametrize("words", [*ALL, ("board", "import", ""), *BLANK], ids=" ".join)
def test_an_empty_path_is_one_line(
    words: Words, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    said = capsys.readouterr()
    assert (ended.value.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "it is empty: name a file or a folder ('.' is this folder)" in said.err
    assert not words[-2].startswith("-") or f"'{words[-2]}'" in said.err
    assert not list(tmp_path.iterdir())
