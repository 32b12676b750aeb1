"""What is wrong with a problem.toml is told in TOML's words, whatever it is; and nothing of a wrong type passes."""

import re
from pathlib import Path

import pytest

from kernelwright.core.errors import ProblemError
from kernelwright.core.toml_words import key_text
from kernelwright.problems.loader import load_problem

from .folders import GOOD, write_problem

INTERNAL = re.compile(
    r"function-|tagged-union|tuple|\[bool|Input should|valid (string|number)|dictionary|pydantic|instance"
)
INPUTS = '["normal", { distribution = "uniform", low = 0.0, high = 2.0 }]'
SCALAR = 'dtype = "float32", role = "scalar", value = 0.1'
CASES = GOOD[GOOD.index("cases = ") :]
SHAPE = 'shape = ["N"], role = "in"'
HUGE = "1" + "0" * 400


def scalar(dtype: str, value: str) -> tuple[str, str]:
    return SCALAR, f'dtype = "{dtype}", role = "scalar", value = {value}'


def top(line: str) -> tuple[str, str]:
    return "tolerance = {", f"{line}\ntolerance = {{"


WRONG = [
    (("rtol = 1e-6", 'rtol = "1e-6"'), "tolerance.rtol: must be a number, not '1e-6'"),
    (("rtol = 1e-6", "rtol = true"), "tolerance.rtol: must be a number, not true"),
    (("rtol = 1e-6", f"atol = {HUGE}"), "tolerance.atol: must be a number, not such a large number"),
    (("{ rtol = 1e-6 }", "3"), "tolerance: must be a table, not 3"),
    (("tolerance = { rtol = 1e-6 }\n", ""), "tolerance: is missing: add it"),
    (scalar("float32", "nan"), 'arguments[1] "factor".value: must be a number that is neither nan nor infinite'),
    (scalar("float32", '"1.5"'), 'arguments[1] "factor".value: must be a number, not \'1.5\''),
    (scalar("float32", "1e39"), 'arguments[1] "factor".value: 1e+39 is no float32 (at most 3.40282e+38)'),
    (scalar("float32", "1e-300"), 'arguments[1] "factor".value: 1e-300 is 0 as float32: choose another dtype'),
    (scalar("float64", HUGE), "is no float64"),
    (scalar("float16", "65520"), "65520 is no float16 (at most 65504)"),
    (scalar("int32", "true"), 'arguments[1] "factor".value: must be a number, not true'),
    (scalar("int32", "99999999999"), "99999999999 is no int32 (-2147483648 to 2147483647)"),
    (scalar("int32", "1.5"), "1.5 is no int32: use an integer"),
    (scalar("int32", HUGE), "such a large number is no int32"),
    (scalar("uint8", "-1"), "-1 is no uint8 (0 to 255)"),
    (scalar("int64", "9223372036854775808"), "is no int64"),
    (top('rules = { no_inline_ptx = "yes" }'), "rules.no_inline_ptx: must be true or false, not 'yes'"),
    (top("rules = { deterministic = 1 }"), "rules.deterministic: must be true or false, not 1"),
    (top('rules = { banned_words = "asm" }'), 'rules.banned_words: must be a list such as ["asm"], not \'asm\''),
    *(
        (top(f"rules = {{ banned_words = [{word}] }}"), f"rules.banned_words[0]: {word} cannot stand in code: a comment")
        for word in ("'\"'", "'//x'", "'#define'", "'a /* b */'", "'a // b'", "'R\"('")
    ),
    (top("rules = { max_registers = 1 }"), "rules.max_registers: must be at least 16, not 1"),
    (top("trials = { other_sizes = [{ R = 0, C = 1 }] }"), "trials.other_sizes[0].R: must be at least 1, not 0"),
    (top("trials = { other_sizes = [{ N = 1.0 }] }"), "trials.other_sizes[0].N: must be a whole number, not 1.0"),
    (top("trials = { other_sizes = 3 }"), "trials.other_sizes: must be true or false or a list, not 3"),
    (top('trials = { other_sizes = "yes" }'), "trials.other_sizes: must be true or false or a list, not 'yes'"),
    (top('trials = { distributions = ["norml"] }'), "trials.distributions[0]: 'norml' is no distribution: use normal,"),
    (top('trials = { distributions = "normal" }'), 'trials.distributions: must be a list such as ["normal"]'),
    (top('trials = { distributions = [{ distribution = "large", std = 1e39 }] }'), "'large' draws 1e+39"),
    (top("goal = { speedup = 0.5 }"), "goal: speedup: must be more than 1.0, not 0.5"),
    (top("goal = { speedp = 5.0 }"), "goal: speedp: is an unknown key"),
    (top("goal = 3"), 'goal: must be a text such as "time<=0.5ms", or a table, not 3'),
    (top("objective = 3"), "objective: must be 'seed', 'geomean', 'mean' or 'last', not 3"),
    ((INPUTS, '"norml"'), "inputs.X: 'norml' is no distribution: use normal, uniform"),
    ((INPUTS, "3"), 'inputs.X: must be a name such as "normal", a table, or a list of these, not 3'),
    ((INPUTS, '[["normal"]]'), 'inputs.X[0]: must be a name such as "normal", a table'),
    ((INPUTS, "{ low = 1 }"), "inputs.X: lacks the key 'distribution': add it"),
    ((INPUTS, '{ distribution = "normal", mean = "0" }'), "inputs.X.mean: must be a number, not '0'"),
    ((INPUTS, '{ distribution = "constant" }'), "inputs.X.value: is missing: add it"),
    ((INPUTS, '{ distribution = "uniform", low = -3e38, high = 3e38 }'), "is wider than float32"),
    ((SHAPE, 'shape = "N, C", role = "in"'), 'arguments[0] "X".shape: must be a list such as ["N", "C"], not \'N, C\''),
    ((SHAPE, 'shape = [], role = "in"'), 'arguments[0] "X".shape: is empty'),
    ((SHAPE, 'shape = [true], role = "in"'), "must be an integer or an expression in quotes, not true"),
    (('bytes = "8 * N"', f'bytes = "{"9" * 1900} ** 64"'), "work.bytes: '99999999"),
    (('bytes = "8 * N"', f"bytes = {HUGE}"), "work.bytes: '10000000"),
    (('bytes = "8 * N"', "bytes = 8.5"), "work.bytes: must be an integer or an expression in quotes, not 8.5"),
    ((CASES, "[cases]\nsizes = { N = 3 }\n"), "cases: must be a list of tables (in TOML [[cases]] above each), not a table"),
    ((CASES, "cases = []\n"), "cases: is empty"),
    (('id = "big"', r'id = "a\u0000b\u202e\n"'), "cases[1].id: holds control characters or marks of direction"),
    (('id = "big"', 'id = "   "'), "holds blanks only"),
    (('id = "big"', "id = 3"), "cases[1].id: must be a text in quotes, not 3"),
    (('"Scaled copy"', '" "'), "title: holds blanks only"),
    (('"Scaled copy"', r'"a\u202eb"'), "title: holds control characters"),
    (('"Scaled copy"', "2020-01-01"), "title: must be a text in quotes, not a date or a time"),
    (('description = "Y', r'description = "a\u000bY'), "description: holds control characters"),
    (('name = "factor"', 'name = "for"'), 'arguments[1] "for".name: \'for\' is a word of Python'),
    (('name = "factor"', 'name = "int"'), "'int' is a word of C++"),
    (('name = "factor"', 'name = "sizes"'), "'sizes' is what reference.py is given beside the arguments"),
    (('name = "factor"', f'name = "{"x" * 101}"'), "is a name of 101 characters: use at most 100"),
    (('name = "factor"', f'name = "{"!" * 10_000}"'), "'!!!!!!"),
    (('name = "scale"', f'{"x" * 10_000} = 3\nname = "scale"'), 'xxx...": is an unknown key'),
    (('name = "factor"', "name = 3"), "arguments[1].name: must be a text in quotes, not 3"),
    (('name = "scale"', r'"a\u001b[31m" = 3' + '\nname = "scale"'), r'"a\u001b[31m": is an unknown key: remove it, or see docs'),
]  # fmt: skip


@pytest.mark.parametrize(("change", "told"), WRONG, ids=[told[:50] for _, told in WRONG])
def test_every_fault_in_the_words_of_toml(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    assert change[0] in GOOD
    folder = write_problem(tmp_path / "p", GOOD.replace(*change, 1))
    with pytest.raises(ProblemError) as caught:
        load_problem(folder)
    message = str(caught.value)
    assert told in message
    assert message.isprintable()
    assert len(message) < 500
    assert not INTERNAL.search(message)


DRAWN = [
    ("int32", '{ distribution = "integers", high = 99999999999 }', "draws 99999999998, which is no int32"),
    ("uint8", '{ distribution = "integers", low = -5 }', "draws -5, which is no uint8 (0 to 255)"),
    ("uint8", '{ distribution = "ties", levels = 300 }', "draws 299, which is no uint8"),
    ("int64", '{ distribution = "constant", value = 16777217 }', "makes whole numbers up to 16777216 only"),
    ("int32", '{ distribution = "one_hot", value = 0.5 }', "makes whole numbers up to"),
    (
        "float16",
        '{ distribution = "uniform", high = 1e5 }',
        "draws 100000, which is no float16 (at most 65504)",
    ),
    ("float16", '{ distribution = "negative", std = 1e5 }', "which is no float16"),
    ("float64", '{ distribution = "normal", mean = 1e300 }', "values are made in float32"),
    ("int32", '{ distribution = "integers", high = 2147483648 }', ""),
    ("uint8", '{ distribution = "integers", high = 256 }', ""),
    ("float32", '{ distribution = "constant", value = 3.4028235e38 }', ""),
    ("float16", '{ distribution = "large", std = 1e4 }', ""),
]


@pytest.mark.parametrize(("dtype", "entry", "told"), DRAWN)
def test_what_is_drawn_fits_the_dtype(tmp_path: Path, dtype: str, entry: str, told: str) -> None:
    toml = GOOD.replace(INPUTS, entry).replace('"X", dtype = "float32"', f'"X", dtype = "{dtype}"')
    folder = write_problem(tmp_path / "p", toml)
    if not told:
        load_problem(folder)
        return
    with pytest.raises(ProblemError, match=re.escape(told)) as caught:
        load_problem(folder)
    assert "problem.toml: inputs.X: " in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rtol = 1e-6", "rtol = 0"),
        ("value = 0.1", "value = 3"),
        (SCALAR, 'dtype = "int32", role = "scalar", value = 3.0'),
        ('bytes = "8 * N"', "bytes = 800"),
        ('description = "Y', r'description = "Y\n\tand'),
    ],
)
def test_a_whole_number_is_a_number_and_an_expression(tmp_path: Path, old: str, new: str) -> None:
    assert old in GOOD
    load_problem(write_problem(tmp_path / "p", GOOD.replace(old, new, 1)))


def test_a_key_is_told_as_it_was_written() -> None:
    table = {"a b": [{"name": "x\x1b"}, {"id": "y"}]}
    assert key_text(("a b", 0, "c"), table) == '"a b"[0].c'
    assert key_text(("a b", 1, "c", 7), table) == '"a b"[1] "y".c[7]'


def test_a_size_cannot_have_a_name_of_the_device(tmp_path: Path) -> None:
    toml = re.sub(r"\bN\b", "warp_size", GOOD)
    with pytest.raises(ProblemError, match=r"cases\[0\]\.sizes: 'warp_size' is a name of the device"):
        load_problem(write_problem(tmp_path / "p", toml))
