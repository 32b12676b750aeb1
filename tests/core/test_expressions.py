"""Expressions: the language, its limits, and one meaning for single numbers and for arrays."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.core.errors import ExpressionError
from kernelwright.core.expressions import parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(BM / TM) * (BN / TN)", 64),
        ("7 // 2 + 7 % 4 - 2 ** 3", -2),
        ("32 <= BM <= 64 < 65", True),
        ("32 < BM < 64", False),
        ("not BM == 64 or BN == 64", True),
        ("1 if BM > 100 else 2", 2),
        ("min(3, BM, 2) + max(1, 5)", 7),
        ("cdiv(7, 2) + cdiv(-7, 2)", 1),
        ("ceil_pow2(1) + ceil_pow2(33)", 65),
        ("1.5 * 2", 3.0),
        ("3.0 / 2", 1.5),
        ("BM != 64 and BM / 0 == 1", False),
        ("BM > 0 > 1 / 0", "division by zero"),
        ("1 +\n 2", 3),
        ("  - 2 + flag", -1),
    ],
)
def test_values(text: str, expected: float | str) -> None:
    values = {"BM": 64, "BN": 64, "TM": 8, "TN": 8, "flag": True}
    if isinstance(expected, str):
        with pytest.raises(ExpressionError, match=expected):
            parse(text).evaluate(values)
    else:
        result = parse(text).evaluate(values)
        assert result == expected
        assert type(result) is type(expected)


def test_names_and_equality() -> None:
    expression = parse("min(a, b) if c else a")
    assert expression.names == {"a", "b", "c"}
    assert expression == parse("min(a, b) if c else a") != parse("a")
    assert len({expression, parse("min(a, b) if c else a")}) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("1 if", "not an expression"),
        ("f(2)", "unknown function 'f'"),
        ("min(1)", "min takes 2 or more"),
        ("cdiv(1, 2, 3)", "cdiv takes 2"),
        ("9" * 1900 + " ** 64", "is not a number below"),
        ("9" * 1900, "is not a number below"),
        ("0x" + "f" * 1900, "is not a number below"),
        ("1e999", "is not a number below"),
        ("min(1, *a)", "not part of the expression language"),
        ("a.b", "not part of the expression language"),
        ("a[0]", "not part of the expression language"),
        ("lambda: 1", "not part of the expression language"),
        ("'x'", "not a number"),
        ("1e400", "not a number"),
        ("9223372036854775808", "not a number"),
        ("a & b", "not part of the expression language"),
        ("a in b", "not part of the expression language"),
        ("x\0", "not an expression"),
        ("(" * 1_000_000, "longer than"),
        ("-" * 1900 + "1", "nested"),
        ("(" * 900 + "1" + ")" * 900, "nested"),
        ("+".join(["1"] * 900), "nested|parts"),
    ],
)
def test_what_is_not_in_the_language_is_refused_quickly(text: str, message: str) -> None:
    start = time.process_time()
    with pytest.raises(ExpressionError, match=message):
        parse(text)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9**9**9", "exponent"),
        ("2**63", "2\\*\\*63"),
        ("4611686018427387904 ** 17", "2\\*\\*63"),
        ("9223372036854775807 * 9223372036854775807", "2\\*\\*63"),
        ("a / 2", "7 / 2 does not divide exactly"),
        ("a / 0", "division by zero"),
        ("a // 0", "division by zero"),
        ("a % 0", "division by zero"),
        ("cdiv(a, 0)", "division by zero"),
        ("2 ** -1", "no integer"),
        ("(0.0 - 1) ** 0.5", "no real number"),
        ("1e18 ** 64", "too large"),
        ("ceil_pow2(0)", "positive"),
        ("ceil_pow2(1.5)", "integers"),
        ("b + a", "known: a, layout"),
        ("layout + 1", "text"),
    ],
)
def test_failing_evaluations_say_why(text: str, message: str) -> None:
    expression = parse(text)
    with pytest.raises(ExpressionError, match=message) as caught:
        expression.evaluate({"a": 7, "layout": "NHWC"})
    assert caught.value.column >= 1
    assert caught.value.text == text


def test_the_column_is_that_of_the_failing_part() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("  1 + (a.b)")
    assert caught.value.column == 8


def test_arrays_are_lazy_where_numbers_are() -> None:
    expression = parse("a != 0 and b % a == 0 or b / 2 == 1")
    assert expression.evaluate_many({"a": np.array([0, 1, 3]), "b": 2}).tolist() == [True, True, True]
    values, exists = parse("b / a").evaluate_where({"a": np.array([0, 3, 4]), "b": np.array([8, 8, 8])})
    assert exists.tolist() == [False, False, True]
    assert values[2] == 2
    with pytest.raises(ExpressionError, match="division by zero"):
        parse("b / a").evaluate_many({"a": np.array([1, 0]), "b": 8})
    with pytest.raises(ExpressionError, match="unknown name 'c'"):
        parse("c + a").evaluate_many({"a": np.array([1])})


def test_arrays_near_the_limit_take_the_exact_way() -> None:
    big = np.array([2**31, 2**32], dtype=np.int64)
    values, exists = parse("a * a").evaluate_where({"a": big})
    assert exists.tolist() == [True, False]
    assert values[0] == 2**62


def test_a_hostile_expression_cannot_take_long() -> None:
    text = " + ".join(["min(a, 1.5)"] * 40)
    many = np.arange(400_000)
    with pytest.raises(ExpressionError, match="too many combinations"):
        parse(text).evaluate_where({"a": many})
    assert parse(text).evaluate_many({"a": many[:100]})[5] == 60


LEAVES = st.sampled_from(["a", "b", "c", "0", "1", "2", "3", "7", "1.5", "4611686018427387904"])


def _grown(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "<", "==", ">=", "and", "or"])
    return st.one_of(
        st.builds("({} {} {})".format, parts, binary, parts),
        st.builds("({} < {} <= {})".format, parts, parts, parts),
        st.builds("({} if {} else {})".format, parts, parts, parts),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max", "cdiv"]), parts, parts),
        st.builds("ceil_pow2({})".format, parts),
        st.builds("(not {})".format, parts),
        st.builds("(-{})".format, parts),
    )


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(LEAVES, _grown, max_leaves=8),
    st.lists(st.tuples(*[st.integers(-9, 40)] * 2, st.booleans()), min_size=1, max_size=6),
)
def test_arrays_and_numbers_agree(text: str, rows: list[tuple[int, int, bool]]) -> None:
    expression = parse(text)
    columns = {name: np.array(column) for name, column in zip("abc", zip(*rows, strict=True), strict=True)}
    values, exists = expression.evaluate_where(columns)
    values, exists = np.broadcast_to(values, len(rows)), np.broadcast_to(exists, len(rows))
    for row, value, there in zip(rows, values, exists, strict=True):
        try:
            expected = expression.evaluate(dict(zip("abc", row, strict=True)))
        except ExpressionError:
            assert not there
        else:
            assert there
            assert value == expected


def test_a_long_expression_is_told_by_its_beginning() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("1 + " * 400 + "x(")
    assert len(str(caught.value)) < 400
