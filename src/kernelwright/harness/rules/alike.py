"""What NVRTC judges must be what a board's compiler sees, in its pass for the host too.

NVRTC refuses host code that it sees. It does not see what a condition leaves out there and a macro of a header drops
there: so conditions ask only for what the text itself decides, and such macros are not for candidates.
"""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from kernelwright.core.compilers import ALIKE, GUARDS
from kernelwright.core.lexer import Directive, Lexed
from kernelwright.core.plan import DEVICE_NAMES, Plan
from kernelwright.harness.rules.macros import definitions, pasted, reached, takes_arguments

_OF_HEADERS: Final = re.compile(r"(?:NV|CCCL|CUB|THRUST|LIBCUDACXX)_[A-Z]\w*|_+[A-Z]\w*")
_OF_LANGUAGE: Final = frozenset(
    {"_Pragma", "_Float16", "_Bool", "_Static_assert", "__CUDA_ARCH__", "__VA_ARGS__"}
)


def unlike(text: Lexed, plan: Plan | None) -> Iterator[tuple[int, str]]:
    """Offset and reason of everything that compilers may read differently."""
    yield from _macros_of_headers(text)
    yield from _control(text)
    yield from _macros(text, plan)
    yield from _Conditions(text, _fixed(plan) if plan else frozenset()).faults()


def _fixed(plan: Plan) -> frozenset[str]:
    """The plan's macros, without what depends on the device: a board's may be another."""
    known = {tunable.name for tunable in plan.tunables}
    for name, expression in plan.fixed_let:
        if expression.names <= known:
            known.add(name)
    return frozenset(known - DEVICE_NAMES)


def macros_of(plan: Plan) -> frozenset[str]:
    """Names that a plan defines for the text."""
    return frozenset({tunable.name for tunable in plan.tunables} | {name for name, _ in plan.fixed_let})


def _macros_of_headers(text: Lexed) -> Iterator[tuple[int, str]]:
    """``NV_IF_TARGET`` and its like drop on one side what they keep on the other; ``__P`` keeps it on the host."""
    for token in text.all_tokens:
        if token.kind == "word" and _OF_HEADERS.fullmatch(token.text) and not _allowed(token.text):
            yield (
                token.offset,
                f"{token.text!r} may be a macro of a header, another one on the host: use another name",
            )


def _control(text: Lexed) -> Iterator[tuple[int, str]]:
    for token in text.all_tokens:
        if token.kind in {"string", "char"} and len(token.text.replace("\n", "").splitlines()) > 1:
            yield (
                token.offset,
                "a character in a string that some take for a line's end: write it as an escape",
            )


def _macros(text: Lexed, plan: Plan | None) -> Iterator[tuple[int, str]]:
    """An export renames macros, which it cannot where their names are pasted; of commas compilers drop not the same."""
    names = definitions(text).keys() | (macros_of(plan) if plan else frozenset())
    for word, offset in pasted(text, sorted(names)):
        yield offset, f"pastes tokens that give the macro {word!r}: write it out"
    for token in text.all_tokens:
        if token.kind == "word" and token.text.startswith("KERNELWRIGHT_") and token.text not in ALIKE:
            yield (
                token.offset,
                f"{token.text!r}: names with KERNELWRIGHT_ are not for candidates, use another",
            )
    for directive in text.directives:
        words = [token.text for token in directive.tokens]
        if directive.name in {"define", "undef"} and words and words[0] in ALIKE:
            yield (
                directive.offset,
                f"a macro named {words[0]!r} means something else already: use another name",
            )
        if any(words[i : i + 3] == [",", "##", "__VA_ARGS__"] for i in range(len(words))):
            yield directive.offset, "', ##__VA_ARGS__' is read differently by compilers: do without it"


def _allowed(name: str) -> bool:
    return name in _OF_LANGUAGE or bool(GUARDS.fullmatch(name))


# -- conditions -------------------------------------------------------------------------------------------


@dataclass
class _Frame:
    """A condition that is open: what the text had decided before it, and behind each of its branches."""

    before: frozenset[str]
    branches: list[frozenset[str]] = field(default_factory=list)
    complete: bool = False


class _Conditions:
    """Follows which macros the text itself decides, whatever branches are taken."""

    def __init__(self, text: Lexed, fixed: frozenset[str]) -> None:
        self.text = text
        self.fixed = fixed | ALIKE
        self.own = self.fixed
        self.frames: list[_Frame] = []
        self.strange = self._strange()

    def faults(self) -> Iterator[tuple[int, str]]:
        for index, directive in enumerate(self.text.directives):
            name = directive.name
            if name in {"elifdef", "elifndef"}:
                yield directive.offset, f"#{name} is unknown to some compilers: write #elif defined"
            if name in {"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef"}:
                if any(token.kind in {"char", "string"} or token.text == "#" for token in directive.tokens):
                    yield (
                        directive.offset,
                        "a character in a condition differs from host to host: write a number",
                    )
                word = self._foreign(directive)
                if word and not self._guards(index):
                    yield (
                        directive.offset,
                        (
                            f"the condition asks for {word!r}, which the source does not decide by itself: use tunables of"
                            " the plan, or define it before, under no condition"
                        ),
                    )
            self._follow(directive)

    def _foreign(self, directive: Directive) -> str:
        words = (token.text for token in directive.tokens if token.kind == "word")
        return next((w for w in words if w not in self.own and not GUARDS.fullmatch(w)), "")

    def _follow(self, directive: Directive) -> None:
        name = directive.name
        if name in {"if", "ifdef", "ifndef"}:
            self.frames.append(_Frame(self.own))
        elif name in {"elif", "elifdef", "elifndef", "else"} and self.frames:
            frame = self.frames[-1]
            frame.branches.append(self.own)
            frame.complete |= name == "else"
            self.own = frame.before
        elif name == "endif" and self.frames:
            frame = self.frames.pop()
            ends = [*frame.branches, self.own, *([] if frame.complete else [frame.before])]
            self.own = frozenset.intersection(*ends)
        elif name == "include":
            self.own = self.fixed
        elif name in {"define", "undef"} and directive.tokens:
            self._define(directive)

    def _define(self, directive: Directive) -> None:
        name = directive.tokens[0].text
        plain = all(token.kind in {"word", "number", "punct"} for token in directive.tokens)
        closed = plain and name not in self.strange and _uses(directive) <= self.own
        self.own = self.own | {name} if closed else self.own - {name}

    def _strange(self) -> AbstractSet[str]:
        """Macros with a definition somewhere that holds, itself or through others, what is no macro of the text."""
        defines = [d for d in self.text.directives if d.name == "define" and d.tokens]
        users: dict[str, set[str]] = {}
        for directive in defines:
            for word in _uses(directive):
                users.setdefault(word, set()).add(directive.tokens[0].text)
        known = {d.tokens[0].text for d in defines} | self.fixed
        todo = [user for word, names in users.items() if word not in known for user in names]
        todo += [d.tokens[0].text for d in defines if any(t.kind in {"char", "string"} for t in d.tokens)]
        return reached(todo, users).keys()

    def _guards(self, index: int) -> bool:
        """``#ifndef X``, ``#define X`` of a value and perhaps more values, ``#endif``: defaults, no code between."""
        opening, *rest = self.text.directives[index:]
        values = list(takewhile(lambda d: d.name == "define" and _is_value(d), rest))
        closing = rest[len(values) : len(values) + 1]
        if (
            opening.name != "ifndef"
            or not opening.tokens
            or not values
            or [d.name for d in closing] != ["endif"]
        ):
            return False
        if values[0].tokens[0].text != opening.tokens[0].text:
            return False
        return not any(opening.offset < token.offset < closing[0].offset for token in self.text.tokens)


def _is_value(directive: Directive) -> bool:
    """Nothing that could stand before a declaration, nor take arguments and drop them."""
    if len(directive.tokens) < 2 or takes_arguments(directive):
        return False
    first = directive.tokens[1]
    called = first.kind == "word" and [t.text for t in directive.tokens[2:3]] == ["("]
    return called or first.kind == "number" or first.text in {"(", "-"}


def _uses(directive: Directive) -> frozenset[str]:
    """Words of a definition, without its parameters."""
    rest = directive.tokens[1:]
    parameters: set[str] = set()
    if takes_arguments(directive):
        end = next((i for i, token in enumerate(rest) if token.text == ")"), len(rest))
        parameters = {"__VA_ARGS__", *(token.text for token in rest[:end])}
        rest = rest[end:]
    return frozenset(token.text for token in rest if token.kind == "word" and token.text not in parameters)
