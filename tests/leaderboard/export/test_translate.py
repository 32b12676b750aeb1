"""Translated expressions have the evaluator's value, or fail where it fails."""

from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kernelwright.core.errors import ExpressionError
from kernelwright.core.expressions import parse
from kernelwright.leaderboard.export import translate
from kernelwright.leaderboard.export.translate import to_cpp, to_python

from .support import run_cpp

RUNTIME = (Path(translate.__file__).parent / "runtime.h").read_text(encoding="utf-8")
NAMES = ("a", "b", "c", "d")
NUMBERS = st.one_of(
    st.integers(-9, 9), st.integers(-(2**63) + 1, 2**63 - 1), st.sampled_from([2**31, 2**62, 64, 1000])
)


def _join(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operator = st.sampled_from(["+", "-", "*", "/", "//", "%", "**"])
    compare = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds("({} {} {})".format, parts, operator, parts),
        st.builds("({} {} {})".format, parts, compare, parts),
        st.builds("({} {} {} {} {})".format, parts, compare, parts, compare, parts),
        st.builds("({} {} {})".format, parts, st.sampled_from(["and", "or"]), parts),
        st.builds("({} if {} else {})".format, parts, parts, parts),
        st.builds("({} {})".format, st.sampled_from(["not", "-", "+"]), parts),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max", "cdiv"]), parts, parts),
        st.builds("ceil_pow2({})".format, parts),
    )


EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from(NAMES), st.integers(0, 70).map(str)), _join, max_leaves=12
)
VALUES = st.fixed_dictionaries(dict.fromkeys(NAMES, NUMBERS))


def value_of(text: str, values: dict[str, int]) -> str:
    try:
        return str(int(parse(text).evaluate(values)))
    except ExpressionError:
        return "fault"


def cpp_values(cases: list[tuple[str, dict[str, int], frozenset[str]]], folder: Path) -> list[str]:
    """What a program prints for all expressions; the names in the last part are known when it is written."""
    lines = ["#include <cuda_runtime.h>", "#include <cstdio>", RUNTIME, "int main() {"]
    for text, values, known in cases:
        late = {name: name for name in values if name not in known}
        translated = to_cpp(parse(text), {name: values[name] for name in known}, late)
        given_ = " ".join(f"[[maybe_unused]] const int64_t {name} = {values[name]}LL;" for name in late)
        show = f'std::printf("%lld\\n", (long long)int64_t({translated}))'
        lines.append(
            f'{{ {given_} try {{ {show}; }} catch (const std::runtime_error&) {{ std::puts("fault"); }} }}'
        )
    return run_cpp("\n".join([*lines, "}"]), folder).split()


def test_cpp_has_the_evaluators_value(tmp_path: Path) -> None:
    cases: list[tuple[str, dict[str, int], frozenset[str]]] = []

    # One program for all examples: each alone would cost a second of compiling.
    @settings(max_examples=400, phases=[Phase.generate], derandomize=True, database=None, deadline=None)
    @given(text=EXPRESSIONS, values=VALUES, known=st.frozensets(st.sampled_from(NAMES)))
    def collect(text: str, values: dict[str, int], known: frozenset[str]) -> None:
        cases.append((text, values, known))

    collect()
    got = cpp_values(cases, tmp_path)
    wanted = [value_of(text, values) for text, values, _ in cases]
    wrong = [(case, w, g) for case, w, g in zip(cases, wanted, got, strict=True) if w != g]
    assert not wrong, wrong[:3]
    assert 40 < wanted.count("fault") < 300
    assert len(set(wanted)) > 25


CORNERS = [
    ("-7 // 2 + a", 0), ("-7 % 3 + a", 0), ("7 % -3 + a", 0), ("a ** 0", 0), ("2 ** a", 62), ("2 ** a", 63),
    ("(-2) ** a", 63), ("a / 3", 9), ("a / 3", 10), ("1 // a", 0), ("a != 0 and 8 // a > 1", 0),
    ("cdiv(a, 4)", -7), ("cdiv(7, a)", -2), ("ceil_pow2(a)", 1), ("ceil_pow2(a)", 2**62 + 1), ("ceil_pow2(a)", 0),
    ("1 < a < 3 < 2 // (a - 9)", 9), ("1 < a < 3 < 2 // (a - 9)", 1), ("(a > 1) + (a > 2)", 3), ("-(a > 1)", 3),
    ("a * a", 3037000500), ("a * a", 3037000499), ("a if a else 1 // a", 0), ("max(a, 3 > 2, -1)", 0),
    ("2147483647 + 1 + a", 0), ("-a - 9223372036854775807", 0), ("-a - 9223372036854775807", 1), ("not a", 0),
    ("a <= 1e6", 1000000), ("a < 2e0", 1),
]  # fmt: skip


def test_corners(tmp_path: Path) -> None:
    cases = [(text, {"a": value}, frozenset[str]()) for text, value in CORNERS]
    wanted = [value_of(text, values) for text, values, _ in cases]
    assert cpp_values(cases, tmp_path) == wanted
    for (text, values, _), value in zip(cases, wanted, strict=True):
        # Python's own numbers have no limit: only what is below it is compared.
        if value != "fault":
            translated = to_python(parse(text), {}, {"a": "a"})
            assert int(eval(translated, {"exact": lambda x, y: x // y, "a": values["a"]})) == int(value)


def test_known_parts_become_numbers() -> None:
    assert to_cpp(parse("cdiv(N, 4 * T)"), {"T": 256}, {"N": "v_N"}) == "kw::cdiv(v_N, 1024)"
    assert to_cpp(parse("N if T > 1 else nowhere"), {"T": 2}, {"N": "v_N"}) == "v_N"
    assert to_cpp(parse("2.0 * T > 3 and N"), {"T": 2}, {"N": "v_N"}) == "((1 != 0) && (v_N != 0))"


@pytest.mark.parametrize(
    ("text", "what"),
    [("N * 0.5", "decimal number 0.5"), ("N < 0.5", "decimal number 0.5"), ("M + N", "unknown name 'M'")],
)
def test_what_cannot_be_translated_says_so(text: str, what: str) -> None:
    for write in (to_cpp, to_python):
        with pytest.raises(ExpressionError, match=what):
            write(parse(text), {}, {"N": "v_N"})


def test_nested_chains_stay_small() -> None:
    text = "N"
    for _ in range(12):
        text = f"(0 < {text} < 9)"
    assert len(to_cpp(parse(text), {}, {"N": "v_N"})) < 3000
