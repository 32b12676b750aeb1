"""First values of the host's constants: what NVRTC finds constant may be a call for nvcc, where a header's macro differs."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from kernelwright.core.lexer import Directive, Lexed, Token
from kernelwright.harness.rules.macros import reached, takes_arguments
from kernelwright.harness.rules.templates import TAKES, behind_angles, device_macros

_SCOPES: Final = frozenset({"namespace", "struct", "class", "union"})
_DEVICE: Final = frozenset(
    {
        "__device__",
        "__global__",
        "__constant__",
        "__shared__",
        "constexpr",
        "using",
        "enum",
        "static_assert",
        "_Pragma",
        "operator",
    }
)
_TAKES: Final = TAKES | {"deprecated", "nodiscard", "launch_bounds", "maxnreg", "block_size", "cluster_dims"}
_CLASSES: Final = frozenset({"struct", "class", "union"})
_CASTS: Final = frozenset(
    [
        "sizeof",
        "alignof",
        "bool",
        "char",
        "short",
        "int",
        "long",
        "unsigned",
        "signed",
        "float",
        "double",
        "size_t",
    ]
)
_CHANGES: Final = frozenset({"=", "-=", "new", "delete", "throw"})
_PAIRS: Final = {"(": ")", "{": "}", "[": "]"}


def host_values(text: Lexed) -> Iterator[tuple[int, str]]:
    """Offset and reason of every constant outside of functions that is neither ``constexpr`` nor free of calls.

    Macros that stand outside of functions are looked into as if they were written out.
    """
    defines: dict[str, list[Directive]] = {}
    for directive in text.directives:
        if directive.name == "define" and directive.tokens:
            defines.setdefault(directive.tokens[0].text, []).append(directive)
    look = _Look({name for name, says in device_macros(text).items() if says}, _calling(text), defines.keys())
    yield from look.outside(text.tokens, look.calling)
    done: set[str] = set()
    while look.used - done:
        name = min(look.used - done)
        done.add(name)
        for directive in defines[name]:
            body = directive.tokens[1:]
            own: frozenset[str] = frozenset()
            if takes_arguments(directive):
                end = next((i for i, token in enumerate(body) if token.text == ")"), len(body))
                own, body = frozenset(token.text for token in body[:end]), body[end + 1 :]
            yield from look.outside(body, look.calling | own | {"__VA_ARGS__"})


class _Look:
    """Goes through declarations; ``used`` collects the macros that stand among them."""

    def __init__(self, device: set[str], calling: frozenset[str], macros: AbstractSet[str]) -> None:
        self.device = _DEVICE | device
        self.calling = calling
        self.macros = macros
        self.used: set[str] = set()

    def outside(self, tokens: Sequence[Token], calling: frozenset[str]) -> Iterator[tuple[int, str]]:
        at, classes = 0, [False]
        while at < len(tokens):
            begin, words = at, []
            while at < len(tokens) and tokens[at].text not in {"(", "{", "}", ";", "="}:
                words += [tokens[at].text] if tokens[at].kind == "word" else []
                at += 1
                if at < len(tokens) and tokens[at].text == "(" and words and words[-1] in _TAKES:
                    at = _behind(tokens, at)
                elif at < len(tokens) and tokens[at].text == "<" and words and words[-1] == "template":
                    at = behind_angles(tokens, at)
            self.used.update(self.macros & set(words))
            ending = tokens[at].text if at < len(tokens) else ""
            if ending in {"", "}", ";"}:
                classes = classes[:-1] or [False] if ending == "}" else classes
                at += 1
                continue
            is_block = len(tokens[begin:at]) == 2 and words == ["extern"]
            if (
                ending == "{"
                and (is_block or _SCOPES & set(words))
                and not {"const", "static", "auto"} & set(words)
            ):
                classes = [*classes[-99:], bool(_CLASSES & set(words))]
                at += 1
                continue
            closed = _behind(tokens, at) if ending == "(" else at
            is_use = ending == "(" and len(words) == 1 and words[0] in self.macros
            end = closed if is_use else _statement(tokens, at)
            if not is_use and ending == "(" and [t.text for t in tokens[closed : closed + 1]] == ["{"]:
                at = end  # a function: NVRTC refuses those of the host
                continue
            kept = not classes[-1] or {"static", "inline"} & set(words) or self.macros & set(words)
            if kept and not self.device & set(words) and _calls(tokens[at + 1 : end], calling):
                yield (
                    tokens[begin].offset,
                    "a constant whose value calls or changes something: write constexpr",
                )
            at = end


def _calling(text: Lexed) -> frozenset[str]:
    """Macros that may stand for a call."""
    users: dict[str, list[str]] = {}
    todo = []
    for directive in (d for d in text.directives if d.name == "define" and d.tokens):
        name, *value = directive.tokens
        todo += [name.text] if _calls(value, frozenset()) else []
        for token in value:
            users.setdefault(token.text, []).append(name.text)
    return frozenset(reached(todo, users))


def _calls(tokens: Sequence[Token], calling: frozenset[str]) -> bool:
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        if token.text in _CHANGES or token.text in calling:
            return True
        if [t.text for t in tokens[index : index + 2]] in (["+", "+"], ["-", "-"]):
            return True
        if token.text in {"(", "{"} and before and before.kind == "word" and before.text not in _CASTS:
            return True
        if token.text == "(" and before and before.text in {")", "]", ">"}:
            return True
    return False


def _statement(tokens: Sequence[Token], at: int) -> int:
    """The index behind a declaration: its ``;``, or a body."""
    while at < len(tokens):
        text = tokens[at].text
        if text == ";":
            return at + 1
        at = _behind(tokens, at) if text in _PAIRS else at + 1
        if text == "{" and (at >= len(tokens) or tokens[at].text not in {";", ","}):
            return at
    return at


def _behind(tokens: Sequence[Token], at: int) -> int:
    opening, closing, depth = tokens[at].text, _PAIRS[tokens[at].text], 0
    for index in range(at, len(tokens)):
        depth += (tokens[index].text == opening) - (tokens[index].text == closing)
        if depth == 0:
            return index + 1
    return len(tokens)
