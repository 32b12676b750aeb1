"""C's arithmetic on columns of numbers: types are numpy's, one number a row."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_COMPARE: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "not_eq": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_PLAIN: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
_BITS: Final = frozenset({"&", "|", "^", "bitand", "bitor", "xor", "%", "<<", ">>"})
_LITERAL: Final = re.compile(r"(0[xX][\da-fA-F]+|0[bB][01]+|\d+)([uUlLzZ]*)\Z")
_EXACT: Final = re.compile(r"u?int(?:8|16|32|64)_t\Z")
_NAMED: Final = {"size_t": "uint64", "uint": "uint32", "ushort": "uint16", "uchar": "uint8", "ulong": "uint64",
                 "ptrdiff_t": "int64", "float": "float32", "double": "float64", "bool": "bool"}  # fmt: skip
_CONVERSION: Final = re.compile(r"__(?:float|double|u?int|u?ll)2(float|double|u?int|u?ll)_r[nzud]\Z")
_CHARACTER: Final = re.compile(r"\\x([\da-fA-F]+)|\\([0-7]{1,3})|\\(.)|([^\\])", re.DOTALL)
_ESCAPES: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_SIGNED_MAX: Final = 1 << 31


def type_of(text: str) -> np.dtype[Any] | None:
    """The type that a declaration's words name; ``None`` for one that is no plain number."""
    words = text.replace("std::", "").split()
    for word in words:
        if word in _NAMED:
            return np.dtype(_NAMED[word])
        if _EXACT.match(word):
            return np.dtype(word.removesuffix("_t"))
    known = {"char", "short", "int", "long", "unsigned", "signed"}
    if not known & set(words):
        return None
    bits = 8 if "char" in words else 16 if "short" in words else 64 if "long" in words else 32
    return np.dtype(f"{'u' if 'unsigned' in words else ''}int{bits}")


def literal(text: str) -> Array | None:
    """A number as C++ writes it."""
    text = text.replace("'", "")
    if match := _LITERAL.match(text):
        digits, suffix = match[1], match[2].lower()
        octal = digits.startswith("0") and digits.isdigit()
        try:
            value = int(digits, 8 if octal else 0)
        except ValueError:
            return None
        unsigned, wide = "u" in suffix, "l" in suffix or "z" in suffix or value >= 2 * _SIGNED_MAX
        wide |= value >= _SIGNED_MAX and digits.isdigit() and not octal and not unsigned
        unsigned |= (value >= _SIGNED_MAX and not wide) or value >= 1 << 63
        return np.asarray(value & (2**64 - 1), np.uint64).astype(
            f"{'u' if unsigned else ''}int{64 if wide else 32}"
        )
    kind = np.float32 if text[-1:] in "fF" and not text.lower().startswith("0x") else np.float64
    try:
        number = float.fromhex(text) if text.lower().startswith("0x") else float(text.rstrip("fFlL"))
    except (ValueError, OverflowError):
        return None
    return np.asarray(number, kind)


def character(text: str) -> Array:
    """A character as C++ writes it, or several: ``'ab'`` is a number too."""
    value = 0
    for match in _CHARACTER.finditer(text[text.find("'") + 1 : -1]):
        code = int(match[1], 16) if match[1] else int(match[2], 8) if match[2] else ord(match[3] or match[4])
        value = value << 8 | (_ESCAPES.get(match[3], code) if match[3] else code) & 0xFF
    return np.asarray(value & 0x7FFFFFFF, np.int32)


def convert(value: Array, to: np.dtype[Any] | None) -> Array:
    """A cast; ``None`` leaves the value as it is."""
    return value if to is None or value.dtype == to else value.astype(to)


def promoted(value: Array) -> Array:
    """Small integers and truth compute as ``int``."""
    return value.astype(np.int32) if value.dtype.kind == "b" or value.dtype.itemsize < 4 else value


def common(*values: Array) -> list[Array]:
    """Values in the type that C computes with."""
    types = [promoted(np.zeros((), v.dtype)).dtype for v in values]
    for name in ("float64", "float32", "uint64", "int64", "uint32", "int32"):
        if np.dtype(name) in types:
            return [v.astype(name) for v in values]
    return list(values)


def binary(op: str, left: Array, right: Array) -> Array | None:
    """``left op right``; what C leaves undefined is some number."""
    if op in {"&&", "and"}:
        return np.logical_and(left, right)
    if op in {"||", "or"}:
        return np.logical_or(left, right)
    if op in {"<<", ">>"}:
        a, b = promoted(left), promoted(right)
        return None if "f" in a.dtype.kind + b.dtype.kind else _shift(op, a, b)
    a, b = common(left, right)
    if op in _BITS and a.dtype.kind == "f":
        return None
    if op in _COMPARE:
        return _COMPARE[op](a, b)
    if op in _PLAIN:
        return _PLAIN[op](a, b)
    return _divide(op, a, b) if op in {"/", "%"} else None


def _shift(op: str, a: Array, b: Array) -> Array:
    by = (b.astype(np.int64) & (8 * a.dtype.itemsize - 1)).astype(a.dtype)
    return np.asarray(np.left_shift(a, by) if op == "<<" else np.right_shift(a, by))


def _divide(op: str, a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    zero = b == 0
    safe = np.where(zero, np.ones((), b.dtype), b)
    rest = np.fmod(a, safe)
    if op == "%":
        return np.where(zero, a, rest)
    return np.where(zero, ~np.zeros((), a.dtype), (a - rest) // safe)


def unary(op: str, value: Array) -> Array | None:
    """``op value``."""
    if op in {"!", "not"}:
        return np.logical_not(value)
    value = promoted(value)
    if op in {"~", "compl"}:
        return None if value.dtype.kind == "f" else np.invert(value)
    return np.negative(value) if op == "-" else value if op == "+" else None


def function(name: str, values: Sequence[Array]) -> Array | None:
    """A call of a function that every device has; ``None`` for any other."""
    if conversion := _CONVERSION.match(name):
        to = {"ll": "int64", "ull": "uint64", "int": "int32", "uint": "uint32"}.get(
            conversion[1], _NAMED.get(conversion[1])
        )
        return convert(values[0], np.dtype(to)) if len(values) == 1 and to else None
    known = _FUNCTIONS.get(name)
    if known is None or len(values) != known[0]:
        return None
    return np.asarray(known[1](*common(*values)))


def _bit_count(value: Array) -> Array:
    left, count = value.astype(np.uint64), np.zeros(value.shape, np.int32)
    for _ in range(8 * value.dtype.itemsize):
        count = count + (left & np.uint64(1)).astype(np.int32)
        left = left >> np.uint64(1)
    return count


def _leading(value: Array) -> Array:
    bits = 8 * value.dtype.itemsize
    left = value.astype(f"uint{bits}")
    for by in (1, 2, 4, 8, 16, 32):
        left = left | (left >> left.dtype.type(by)) if by < bits else left
    return np.asarray(bits - _bit_count(left), np.int32)


_FUNCTIONS: Final[Mapping[str, tuple[int, Callable[..., Array]]]] = {
    **dict.fromkeys(("min", "fminf", "fmin", "umin", "llmin", "ullmin"), (2, np.minimum)),
    **dict.fromkeys(("max", "fmaxf", "fmax", "umax", "llmax", "ullmax"), (2, np.maximum)),
    **dict.fromkeys(("abs", "fabsf", "fabs", "llabs", "labs"), (1, np.abs)),
    **dict.fromkeys(("__popc", "__popcll"), (1, _bit_count)),
    **dict.fromkeys(("__clz", "__clzll"), (1, _leading)),
    **dict.fromkeys(("floorf", "floor"), (1, np.floor)),
    **dict.fromkeys(("ceilf", "ceil"), (1, np.ceil)),
    **dict.fromkeys(("truncf", "trunc"), (1, np.trunc)),
    **dict.fromkeys(("sqrtf", "sqrt"), (1, np.sqrt)),
    **dict.fromkeys(("fmodf", "fmod"), (2, np.fmod)),
    "__mul24": (2, np.multiply),
    "__umul24": (2, np.multiply),
}
