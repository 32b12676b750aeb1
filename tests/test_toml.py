"""What others write as TOML ends in one line, however odd it is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright import core
from kernelwright.core.candidate import parse_template
from kernelwright.core.errors import UserError
from kernelwright.core.toml import TomlFault, holds_long_integer, parse_toml
from kernelwright.gauntlet.entry import load_entries
from kernelwright.generation.models.keys import find_key
from kernelwright.leaderboard.board_file import read_board_file
from kernelwright.leaderboard.gpumode.files import read_task_folder
from kernelwright.leaderboard.gpumode.user_tables import read_user_tables
from kernelwright.problems.loader import load_problem
from tests.problems.folders import write_problem

ODD = {
    "digits": "x = " + "1" * 5000,
    "hex": "x = [0x" + "f" * 5000 + "]",
    "nested": f"x.y = {2**4096}",
    "deep": "x = " + "[" * 5000,
    "no value": "x =",
}


def gauntlet(folder: Path, text: str) -> None:
    (folder / "cheats").mkdir()
    (folder / "cheats" / "a.cu").write_text(f"// gauntlet: {text}")
    load_entries(folder)


def keys(folder: Path, text: str) -> None:
    (folder / "keys.toml").write_text(text)
    (folder / "keys.toml").chmod(0o600)
    find_key("openai", {"KERNELWRIGHT_KEYS": str(folder / "keys.toml")})


def board(folder: Path, text: str) -> None:
    (folder / "board.toml").write_text(text)
    read_board_file(folder)


def tables(folder: Path, text: str) -> None:
    (folder / "a.toml").write_text(text)
    read_user_tables(folder / "a.toml")


READERS: list[Callable[[Path, str], object]] = [
    gauntlet,
    keys,
    board,
    tables,
    lambda folder, text: load_problem(write_problem(folder / "p", text)),
    lambda folder, text: parse_template(f"/* kernelwright\n{text}\n*/\n", "a.cu"),
]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("kind", ODD)
def test_every_reader_ends_in_one_line(
    kind: str, read: Callable[[Path, str], object], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="not valid TOML") as caught:
        read(tmp_path, ODD[kind])
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "value", [ODD["digits"][4:], ODD["hex"][4:], "&a [*a, {1: *a, 2: " + hex(2**4096) + "}]"]
)
def test_a_task_in_yaml_too(value: str, tmp_path: Path) -> None:
    (tmp_path / "task.yml").write_text(f"x: {value}\n")
    with pytest.raises(UserError, match=r"task\.yml: not valid YAML: .*integer"):
        read_task_folder(tmp_path)


def test_lists_that_hold_each_other_are_looked_through_once() -> None:
    value: list[object] = []
    for _ in range(200):
        value = [value, value]
    value.append(value)
    assert not holds_long_integer(value)
    assert holds_long_integer([value, -(2**5000)])


def test_nobody_else_parses_toml() -> None:
    package = Path(core.__file__).parents[1]
    users = [path for path in package.rglob("*.py") if "tomllib" in path.read_text(encoding="utf-8")]
    assert [path.name for path in users] == ["toml.py"]


def test_a_fault_has_its_place() -> None:
    with pytest.raises(TomlFault) as caught:
        parse_toml("a = 1\nb ?")
    assert (caught.value.line, caught.value.column) == (2, 3)
    assert str(caught.value).endswith("(line 2, column 3)")
    assert "line" not in caught.value.message


def test_long_numbers_are_read_while_they_can_be_printed() -> None:
    assert parse_toml(f"a = [{2**4095}, {-(2**4095)}, true]") == {"a": [2**4095, -(2**4095), True]}


@pytest.mark.parametrize(
    "value", ["1" * 5000, "0x" + "f" * 5000, "1" * 1300, "0b" + "1" * 20_000, "1_1" * 2000]
)
def test_a_long_number_has_its_place(value: str) -> None:
    with pytest.raises(TomlFault) as caught:
        parse_toml(f"a = 1\nb = [{value}]\n")
    assert str(caught.value) == "not valid TOML: an integer of more than 4096 bits (line 2, column 6)"


def test_a_long_expression_of_a_plan_is_told_by_its_beginning() -> None:
    plan = f'/* kernelwright\n[constraints]\nx = "{"9" * 1900} ** 64"\n*/\n'
    with pytest.raises(
        UserError, match=r"^a\.cu:3:6: constraints\.x: '9{40}' is not a number below 2\*\*63"
    ) as caught:
        parse_template(plan, "a.cu")
    assert len(str(caught.value)) < 400
