"""``no_size_branches``: code that tells the sizes of the cases apart by their numbers.

Looked for are comparisons and switches of what depends on nothing but a case's sizes with a number that is one of
them. What a kernel's parameters hold is read from its plan; through initialisations and calls it is followed.
Divisibility (``N % 4 == 0``), comparisons of sizes with tunables' macros and thread indices stay free here; what else
singles out a case ``outliers.py`` finds by evaluating it. This is advice: that a candidate is right off the list of
sizes shows by running it there.
"""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tree_sitter import Node, Tree

from kernelwright.core.lexer import Lexed
from kernelwright.core.plan import Plan
from kernelwright.core.rules import CandidateRules
from kernelwright.harness.rules.broken import Broken
from kernelwright.harness.rules.tree import constant, number, operator, parse, text_of, walk

_EQUAL: Final = frozenset({"==", "!=", "^"})
_ORDER: Final = frozenset({"<", "<=", ">", ">="})
_TRIVIAL: Final = 1
_DERIVED_FROM: Final = 128
"""Smaller numbers that a size was divided down to are numbers of warps, lanes or tiles."""
_ROUNDS: Final = 8
_OVERLOADS: Final = 16
_SECONDS: Final = 0.6
_HEAD_CHARACTERS: Final = 400
_INTEGER: Final = re.compile(r"[\w\s()+*/%<>|&-]+")
_COMPARES: Final = re.compile(r"[=!]=|[<>^]|\bswitch\b")
_COMPARABLE: Final = frozenset({
    "identifier", "number_literal", "binary_expression", "parenthesized_expression", "unary_expression",
    "cast_expression", "condition_clause", "type_descriptor", "primitive_type", "sized_type_specifier",
    "type_identifier",
})  # fmt: skip
_HINT: Final = (
    "the rules forbid code that tells the cases' sizes apart: decide by properties that hold for any size"
)


@dataclass
class _Scope:
    """One function, or the file: what depends on sizes only, and what changes."""

    name: str = ""
    parameters: list[str] = field(default_factory=list)
    sized: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    computed: set[str] = field(default_factory=set)
    offset: int | None = None
    """Where the macro stands whose text this is."""


def check_sizes(text: Lexed, rules: CandidateRules, plan: Plan | None) -> Broken | None:
    """The first branch on a case's size in a source under ``no_size_branches``; a plan tells which arguments are sizes."""
    tree = parse(text.plain)
    if tree is None:
        return Broken(
            "the source is nested too deeply to be looked through for branches on sizes: simplify it"
        )
    try:
        return _Look(tree, text, rules, plan).run()
    except TimeoutError:
        return Broken("the source is too tangled to be looked through for branches on sizes: simplify it")


class _Look:
    def __init__(self, tree: Tree, text: Lexed, rules: CandidateRules, plan: Plan | None) -> None:
        self.text = text
        self.sizes = {v for values in rules.sizes.values() for v in values if v > _TRIVIAL}
        self.near = {v + d for v in self.sizes for d in (-1, 0, 1)} - {0, 1, 2}
        self.names = frozenset(rules.sizes)
        self.plan = plan
        self.file = _Scope()
        self.scopes: dict[int, _Scope] = {}
        self.constants: dict[str, int] = {}
        self.until = time.thread_time() + _SECONDS
        self.nodes = list(self._place(tree))
        self._macro_bodies()

    def run(self) -> Broken | None:
        self._constants()
        self._changes()
        self._seed()
        self._spread()
        for node, scope in self.nodes:
            self._in_time()
            what = self._fault(node, scope)
            if what:
                offset = node.start_byte if scope.offset is None else scope.offset
                return Broken(f"line {self.text.line(offset)}: {what}; {_HINT}")
        return None

    def _in_time(self) -> None:
        if time.thread_time() > self.until:
            raise TimeoutError

    def _place(self, tree: Tree) -> Iterator[tuple[Node, _Scope]]:
        """Nodes with the function they stand in."""
        scope, end = self.file, 0
        for node in walk(tree):
            self._in_time()
            if node.start_byte >= end:
                scope = self.file
            if node.type == "function_definition" and scope is self.file:
                scope, end = _function(node), node.end_byte
                self.scopes[node.id] = scope
            yield node, scope

    def _macro_bodies(self) -> None:
        """Macros that compare become functions of their own."""
        for node, _ in list(self.nodes):
            if node.type not in {"preproc_function_def", "preproc_def"}:
                continue
            body = text_of(node.child_by_field_name("value"))
            if not _COMPARES.search(body):
                continue
            tree = parse(f"void macro() {{ {body.replace(chr(92), ' ')} ; }}")
            self._in_time()
            if tree is None:
                raise TimeoutError
            parameters = node.child_by_field_name("parameters")
            names = [text_of(p) for p in parameters.named_children] if parameters else []
            scope = _Scope(text_of(node.child_by_field_name("name")), names, offset=node.start_byte)
            self.scopes[-len(self.scopes) - 1] = scope
            self.nodes.extend((inner, scope) for inner in walk(tree))

    def _constants(self) -> None:
        tunables = {t.name for t in self.plan.tunables} if self.plan else set()
        for node, scope in self.nodes:
            self._in_time()
            if node.type == "preproc_def":
                value = _macro_value(text_of(node.child_by_field_name("value")), self.constants)
                name = text_of(node.child_by_field_name("name"))
            elif node.type in {"init_declarator", "enumerator"}:
                name = text_of(node.child_by_field_name("declarator") or node.child_by_field_name("name"))
                value = constant(node.child_by_field_name("value"), self.constants)
            else:
                continue
            if value is not None and name not in tunables and name not in scope.changed:
                self.constants[name] = value

    def _changes(self) -> None:
        """Variables that are written after their start are no function of the sizes, and no constants."""
        for node, scope in self.nodes:
            self._in_time()
            target = None
            if node.type == "update_expression":
                target = node.child_by_field_name("argument")
            elif node.type == "assignment_expression":
                target = node.child_by_field_name("left")
            if target is not None and target.type == "identifier":
                scope.changed.add(text_of(target))
                self.constants.pop(text_of(target), None)

    def _seed(self) -> None:
        """Parameters of kernels that get a size, by the plan's arguments (without a plan: by their names)."""
        tunables = {t.name for t in self.plan.tunables} if self.plan else set()
        self.file.sized |= self.names - tunables
        if self.plan is None:
            for scope in self.scopes.values():
                scope.sized |= self.names & set(scope.parameters)
            return
        sized = set(self.names)
        for name, expression in self.plan.let:
            if expression.names & sized:
                sized.add(name)
        for launch in self.plan.launches:
            for scope in (s for s in self.scopes.values() if s.name == launch.kernel):
                pairs = zip(scope.parameters, launch.args, strict=False)
                for name, argument in pairs:
                    if argument.names & sized:
                        scope.sized.add(name)
                        scope.computed |= set() if argument.text in self.names else {name}

    def _spread(self) -> None:
        by_name: dict[str, list[_Scope]] = {}
        for scope in self.scopes.values():
            by_name.setdefault(scope.name, []).append(scope)
        kinds = {"init_declarator", "call_expression"}
        sources = [(node, scope) for node, scope in self.nodes if node.type in kinds]
        for _ in range(_ROUNDS):
            before = sum(len(scope.sized) for scope in self.scopes.values())
            for node, scope in sources:
                self._in_time()
                if node.type == "init_declarator":
                    target, value = (node.child_by_field_name(f) for f in ("declarator", "value"))
                    if value is not None and self._depends(value, scope):
                        scope.sized.add(text_of(target))
                        if value.type != "identifier" or text_of(value) in scope.computed:
                            scope.computed.add(text_of(target))
                else:
                    self._call(node, scope, by_name)
            if sum(len(scope.sized) for scope in self.scopes.values()) == before:
                break
        # An object-like macro reads the names where it is used.
        everywhere = set().union(*(scope.sized for scope in self.scopes.values()))
        for scope in self.scopes.values():
            if scope.offset is not None:
                scope.sized |= everywhere - set(scope.parameters) if scope.parameters else everywhere

    def _call(self, node: Node, scope: _Scope, by_name: Mapping[str, list[_Scope]]) -> None:
        called = text_of(node.child_by_field_name("function")).split("<", 1)[0].rsplit("::", 1)[-1]
        arguments = node.child_by_field_name("arguments")
        if arguments is None or called not in by_name:
            return
        for index, argument in enumerate(arguments.named_children):
            if self._depends(argument, scope):
                for target in by_name[called][:_OVERLOADS]:
                    target.sized.update(target.parameters[index : index + 1])
                    if argument.type != "identifier" or text_of(argument) in scope.computed:
                        target.computed.update(target.parameters[index : index + 1])

    def _depends(self, node: Node, scope: _Scope) -> bool:
        """Whether an expression depends on sizes and constants, and on nothing else."""
        todo, sized = [node], False
        seen = 0
        while todo:
            part = todo.pop()
            seen += 1
            if part.type not in _COMPARABLE or seen > 200:
                return False
            if part.type == "identifier":
                name = text_of(part)
                if name in scope.sized and name not in scope.changed:
                    sized = True
                elif name not in self.constants:
                    return False
            todo.extend(part.named_children)
        return sized

    # -- what is refused ------------------------------------------------------------------------------

    def _fault(self, node: Node, scope: _Scope) -> str:
        if node.type == "binary_expression":
            return self._comparison(node, scope)
        if node.type == "switch_statement":
            return self._switch(node, scope)
        if node.type == "template_declaration":
            return self._specialisation(node)
        return ""

    def _comparison(self, node: Node, scope: _Scope) -> str:
        op = operator(node)
        left, right = (node.child_by_field_name(f) for f in ("left", "right"))
        if op not in _EQUAL | _ORDER or left is None or right is None:
            return ""
        for one, other in ((left, right), (right, left)):
            value = constant(other, self.constants)
            if value is not None and self._depends(one, scope) and self._tells(op, value, one, scope):
                return f"'{text_of(node)[:80]}' compares a size with {value}"
        return ""

    def _tells(self, op: str, value: int, expression: Node, scope: _Scope) -> bool:
        """Whether comparing with this number tells cases apart: a size, or what is computed from one."""
        text = text_of(expression)
        computed = expression.type != "identifier" or text in scope.computed
        if op in _ORDER:
            return value in self.near and not computed
        if not computed:
            return value in self.sizes
        return value >= _DERIVED_FROM and "%" not in text and "&" not in text

    def _switch(self, node: Node, scope: _Scope) -> str:
        condition, body = (node.child_by_field_name(f) for f in ("condition", "body"))
        if condition is None or body is None or not self._depends(condition, scope):
            return ""
        for part in body.named_children:
            value = constant(part.child_by_field_name("value"), self.constants)
            if value is not None and self._tells("==", value, condition.named_children[0], scope):
                return f"'switch {text_of(condition)[:60]}' has a case {value}"
        return ""

    def _specialisation(self, node: Node) -> str:
        """``template <> struct Kernel<4096>`` of a template whose parameter is named as a size."""
        parameters = node.child_by_field_name("parameters")
        if parameters is None or parameters.named_child_count or not self.names:
            return ""
        name, opened, arguments = self._head(node, parameters).partition("<")
        primary = self._primaries.get(name.split()[-1], []) if name.split() else []
        given = arguments.split(">", 1)[0].split(",") if opened else []
        for parameter, text in zip(primary, given, strict=False):
            value = number(text.strip())
            if parameter in self.names and value in self.sizes:
                return f"the specialisation for {parameter} = {value} is for one size"
        return ""

    def _head(self, node: Node, parameters: Node) -> str:
        """What stands between ``template <...>`` and the body."""
        start = parameters.end_byte
        end = min(node.end_byte, start + _HEAD_CHARACTERS)
        return self.text.plain[start:end].split("{", 1)[0].split("(", 1)[0]

    @cached_property
    def _primaries(self) -> dict[str, list[str]]:
        """Names of templates with the names of their parameters."""
        found = {}
        for node, scope in self.nodes:
            parameters = (
                node.child_by_field_name("parameters") if node.type == "template_declaration" else None
            )
            if parameters is not None and parameters.named_child_count and scope.offset is None:
                words = self._head(node, parameters).split()
                found[words[-1] if words else ""] = [
                    text_of(p).split()[-1] for p in parameters.named_children
                ]
        return found


def _function(node: Node) -> _Scope:
    """Name and parameters of a function; its declarator may be wrapped in pointers and attributes."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    if declarator is None:
        return _Scope()
    name = text_of(declarator.child_by_field_name("declarator")).rsplit("::", 1)[-1]
    parameters = declarator.child_by_field_name("parameters")
    return _Scope(name, [_declared(p) for p in parameters.named_children] if parameters else [])


def _declared(parameter: Node) -> str:
    """Name of a scalar parameter; empty for pointers, whose contents are no sizes."""
    declarator = parameter.child_by_field_name("declarator")
    if declarator is not None and declarator.type == "reference_declarator":
        declarator = declarator.named_children[-1]
    return text_of(declarator) if declarator is not None and declarator.type == "identifier" else ""


def _macro_value(text: str, known: Mapping[str, int]) -> int | None:
    """Value of a macro that is one integer expression."""
    if not text or len(text) > 200:
        return None
    if (value := number(text.strip("() "))) is not None:
        return value
    tree = parse(f"int x = {text};") if _INTEGER.fullmatch(text) else None
    if tree is None:
        return None
    found = next((n for n in walk(tree) if n.type == "init_declarator"), None)
    return constant(found.child_by_field_name("value"), known) if found else None
