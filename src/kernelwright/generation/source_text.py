"""Sources as models may see them, and fingerprints by which near twins are found before anything is compiled."""

import hashlib
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from kernelwright.core.candidate import Template
from kernelwright.core.configuration import Value
from kernelwright.core.expressions import Expression
from kernelwright.core.lexer import lex
from kernelwright.core.plan import CPP_KEYWORDS, split_source
from kernelwright.core.plan_format import format_plan
from kernelwright.harness.rules.tree import parse

SHINGLE: Final = 5
SHORT: Final = 0xFFFF_FFFF
"""Bits of a hash that are kept: two of some thousand are equal by chance once in a thousand templates."""
NEAR: Final = 0.97
"""Share of common shingles from which two templates with equal launches count as near twins."""
_HEADER: Final = re.compile(r"^\s*#\s*include\s*(.*?)\s*$", re.MULTILINE)
_DECLARING: Final = frozenset(
    {
        "parameter_declaration",
        "optional_parameter_declaration",
        "declaration",
        "field_declaration",
        "init_declarator",
        "function_declarator",
        "array_declarator",
        "pointer_declarator",
        "reference_declarator",
        "preproc_def",
        "preproc_function_def",
    }
)


def without_comments(template: Template) -> str:
    """The template with its plan in canonical form and no comment in the code.

    Text that an earlier model wrote can carry instructions to the next one; code is all that it needs.
    """
    _, _, body = split_source(template.source, template.name)
    lines = [line.rstrip() for line in lex(body).plain.splitlines()]
    kept = [line for line, before in zip(lines, ["", *lines], strict=False) if line or before]
    return format_plan(template.plan) + "\n" + "\n".join(kept).strip("\n") + "\n"


@dataclass(frozen=True)
class Fingerprint:
    """What stays of a template without names, comments and layout; small, for a campaign keeps one of each template.

    ``digest`` is equal for templates that differ in names, comments, layout, headers and values of tunables only;
    ``shingles`` are short hashes of all runs of :data:`SHINGLE` tokens, each once. ``values`` are the tunables'.
    """

    digest: str
    shingles: "array[int]"
    plan: str
    values: Mapping[str, frozenset[Value]]
    headers: frozenset[str]

    def is_same(self, other: "Fingerprint") -> bool:
        """Whether the same candidates come of both."""
        alike = self.digest == other.digest and self.headers == other.headers
        return alike and self.values == other.values

    def adds_nothing_to(self, other: "Fingerprint") -> bool:
        """Whether the other has this kernel with all of its numbers, or nearly this kernel."""
        if self.digest != other.digest:
            return self.is_near(other)
        return all(values <= other.values.get(name, frozenset()) for name, values in self.values.items())

    def likeness(self, other: "Fingerprint") -> float:
        """Jaccard index of the shingles, 0 to 1."""
        own = set(self.shingles)
        common = len(own.intersection(other.shingles))
        union = len(own) + len(other.shingles) - common
        return common / union if union else 1.0

    def is_near(self, other: "Fingerprint") -> bool:
        """Whether the other does nearly the same, with a different number in its text here and there."""
        return self.plan == other.plan and self.likeness(other) >= NEAR


def fingerprint(template: Template) -> Fingerprint:
    """Fingerprint of a template. Values of tunables do not count: numbers are the optimiser's."""
    _, _, body = split_source(template.source, template.name)
    lexed = lex(body)
    own = _declared(lexed.plain) | {t.name for t in template.plan.tunables}
    own |= {name for name, _ in template.plan.let} | {s.name for s in template.plan.scratch}
    numbers: dict[str, str] = {}
    tokens = []
    for token in lexed.all_tokens:
        text = token.text
        if token.kind == "word" and text in own and text not in CPP_KEYWORDS:
            text = numbers.setdefault(text, f"${len(numbers)}")
        tokens.append(text)
    plan = _plan(template, numbers)
    digest = hashlib.sha256("\0".join((plan, *tokens)).encode()).hexdigest()
    runs = {hash(tuple(tokens[i : i + SHINGLE])) & SHORT for i in range(len(tokens) - SHINGLE + 1)}
    values = {numbers.get(t.name, t.name): frozenset(t.values) for t in template.plan.tunables}
    values |= {t.name: frozenset(t.values) for t in template.plan.compiler}
    return Fingerprint(digest, array("I", runs), plan, values, frozenset(_HEADER.findall(lexed.plain)))


def _plan(template: Template, numbers: dict[str, str]) -> str:
    """Launches, scratch and named values with own names numbered as in the code."""
    plan = template.plan
    parts = [f"tunables {len(plan.tunables)} {' '.join(t.name for t in plan.compiler)}"]
    parts += [f"{name} = {value.text}" for name, value in plan.let]
    parts += [f"{s.name} {s.dtype} {_texts(s.shape)}" for s in plan.scratch]
    for launch in plan.launches:
        dims = " by ".join(_texts(part) for part in (launch.grid, launch.block, launch.cluster, launch.args))
        when = launch.when.text if launch.when else ""
        parts.append(f"{launch.kernel} {dims} {launch.dynamic_shared_bytes.text} {launch.cooperative} {when}")
    names = [t.name for t in plan.tunables] + [n for n, _ in plan.let] + [s.name for s in plan.scratch]
    names += [launch.kernel for launch in plan.launches]
    for name in names:
        numbers.setdefault(name, f"${len(numbers)}")
    # Arguments of the problem keep their names, whatever the code calls its parameters.
    numbers = {name: numbers[name] for name in names}
    return " ; ".join(
        " ".join(numbers.get(t.text, t.text) if t.kind == "word" else t.text for t in lex(part).all_tokens)
        for part in parts
    )


def _texts(expressions: Sequence[Expression]) -> str:
    return " , ".join(expression.text for expression in expressions)


def _declared(plain: str) -> set[str]:
    """Names that a source declares itself; what is not declared there (built-ins) keeps its name."""
    tree = parse(plain)
    return set() if tree is None else set(_names(tree.root_node))


def _names(root: Node) -> Iterator[str]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type in _DECLARING:
            for field in ("declarator", "name"):
                for child in node.children_by_field_name(field):
                    if child.type in {"identifier", "field_identifier", "type_identifier"} and child.text:
                        yield child.text.decode()
        stack.extend(node.children)
