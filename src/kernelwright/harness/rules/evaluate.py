"""Values of a source's expressions at given sizes: a small evaluator over the syntax tree, for many sizes at once.

Known are literals, constants (of classes and templates too) and tables of them, names whose last write before the use
is known, operators, casts, ``sizeof`` of simple types, the functions of ``arithmetic.py`` and functions of the source
that only return an expression. What depends on anything else (threads, memory) is unknown, and nothing is said of it. In a loop's
condition a variable has the value that the loop begins with.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Final

import numpy as np
from tree_sitter import Node

from kernelwright.harness.rules.arithmetic import (
    Array,
    binary,
    character,
    common,
    convert,
    function,
    literal,
    type_of,
    unary,
)
from kernelwright.harness.rules.tree import operator, text_of
from kernelwright.harness.rules.writes import Source, Write, parameters_of, template_parameters

_DEEPEST: Final = 60
_QUOTES: Final = 2
_MOST_PERHAPS: Final = 16
_CASTS: Final = frozenset({"static_cast", "const_cast", "reinterpret_cast"})


@dataclass(frozen=True)
class Value:
    """Numbers, one for every size asked for (or one for all), and the names that they depend on."""

    data: Array
    uses: frozenset[str] = frozenset()
    lost: Array | None = None
    """Where there is no value: a plan's division that leaves a rest."""


class Frame:
    """One call of a function (or the file): what its parameters hold, and values found so far."""

    def __init__(
        self,
        source: Source,
        known: Mapping[str, Value],
        bound: Mapping[str, Value],
        body: Node | None,
        depth: int = 0,
    ) -> None:
        self.source = source
        self.known = known
        self.bound = bound
        self.body = body
        self.depth = depth
        self.memo: dict[int, Value | None] = {}

    def value(self, node: Node | None) -> Value | None:
        """Value of an expression; ``None`` where it is unknown."""
        if node is None or self.depth > _DEEPEST:
            return None
        if node.id not in self.memo:
            self.memo[node.id] = None
            self.depth += 1
            self.memo[node.id] = self._value(node)
            self.depth -= 1
        return self.memo[node.id]

    def _value(self, node: Node) -> Value | None:
        part = node.child_by_field_name
        match node.type:
            case "identifier":
                return self.name(text_of(node), node.start_byte)
            case "parenthesized_expression" | "argument_list" | "initializer_list":
                return self.value(node.named_children[0]) if node.named_child_count == 1 else None
            case "cast_expression" | "compound_literal_expression":
                return self._cast(text_of(part("type")), part("value"))
            case "unary_expression":
                return applied(lambda a: unary(operator(node), a), self.value(part("argument")))
            case "binary_expression":
                sides = self.value(part("left")), self.value(part("right"))
                return applied(lambda a, b: binary(operator(node), a, b), *sides)
            case "conditional_expression":
                three = map(part, ("condition", "consequence", "alternative"))
                return applied(_choose, *map(self.value, three))
            case _:
                other = self._OTHERS.get(node.type)
                return other(self, node) if other else None

    def _literal(self, node: Node) -> Value | None:
        if node.type in {"true", "false"}:
            return Value(np.asarray(node.type == "true"))
        if node.type == "char_literal":
            return Value(character(text_of(node)))
        if node.type == "number_literal":
            number = literal(text_of(node))
            return None if number is None else Value(number)
        digits, suffix = node.named_children[0], text_of(node.named_children[-1])
        number = literal(text_of(digits))
        if number is None:
            return None
        wide = convert(number, np.dtype("float64" if number.dtype.kind == "f" else "uint64"))
        return self.returned(f'operator""{suffix}', [Value(wide)])

    def name(self, name: str, at: int) -> Value | None:
        """What a name holds where it stands: by its last write before, and by those under conditions since."""
        writes = self.source.writes.get(name, ())
        perhaps: list[Write] = []
        for write in reversed(writes):
            if write.at <= at and write.begin <= at < write.end:
                settled = not any(self._again(change, write, at) for change in writes if change.changes)
                return self._changed(self._written(name, write), perhaps, at) if settled else None
            if write.at <= at and write.changes and self.body and write.at > self.body.start_byte:
                perhaps.append(write)
                if write.op != "=" or len(perhaps) > _MOST_PERHAPS:
                    return None
        return None if perhaps else self.known.get(name)

    def _changed(self, value: Value | None, perhaps: list[Write], at: int) -> Value | None:
        """A value after assignments that happened under conditions."""
        for write in reversed(perhaps):
            conditions = write.conditions(at)
            if conditions is None:
                return None
            new = self.value(write.value)
            for condition, wanted in reversed(conditions):
                sides = (new, value) if wanted else (value, new)
                new = applied(_choose, self.value(condition), *sides)
            value = new
        return value

    @staticmethod
    def _again(change: Write, write: Write, at: int) -> bool:
        """Whether a loop may have changed since what ``write`` wrote; its condition sees the beginning."""
        for loop in change.loops:
            condition = loop.child_by_field_name("condition")
            first = condition is not None and condition.start_byte <= at < condition.end_byte
            if loop.start_byte <= at < loop.end_byte and not first and write.begin <= loop.start_byte:
                return True
        return False

    def _written(self, name: str, write: Write) -> Value | None:
        body = self.body
        parameter = write.value is None and write.op == "=" and body is not None and name in self.bound
        if parameter and body and write.begin <= body.start_byte and body.end_byte <= write.end:
            return self.bound[name]
        if write.op == "enum":
            if write.step:
                found = self.name(text_of(write.value), write.at)
            else:
                found = self.value(write.value) if write.value else Value(np.asarray(0, np.int32))
            return applied(lambda a: a + np.int32(write.step), found)
        if write.op in {"=", "[]"}:
            found = self.value(write.value)
            return converted(found, write.declared)
        before = self.name(name, (write.value.start_byte if write.value else write.at) - 1)
        if write.op == "++":
            return applied(lambda a: binary("+", a, np.asarray(write.step, np.int32)), before)
        return applied(lambda a, b: binary(write.op[:-1], a, b), before, self.value(write.value))

    def _cast(self, to: str, value: Node | None) -> Value | None:
        found = self.value(value)
        return applied(lambda a: convert(a, type_of(to)), found)

    def _call(self, node: Node) -> Value | None:
        called, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if called is None or arguments is None:
            return None
        name = called_name(called)
        if called.type == "primitive_type" or name in _CASTS or type_of(name) is not None:
            to = (
                text_of(called.child_by_field_name("arguments")).strip("<> ")
                if name in _CASTS
                else text_of(called)
            )
            return self._cast(to, arguments)
        values = [self.value(argument) for argument in arguments.named_children]
        known = [value for value in values if value is not None]
        if name in self.source.functions:
            return self.returned(name, values, called)
        return applied(lambda *data: function(name, data), *known) if len(known) == len(values) else None

    def returned(self, name: str, values: list[Value | None], called: Node | None = None) -> Value | None:
        """What a function of the source returns whose body is one ``return``, perhaps behind declarations."""
        for body in self.source.functions.get(name, ()):
            block = body.child_by_field_name("body")
            parameters = parameters_of(body)
            if block is None or len(parameters) != len(values):
                continue
            statements = [s for s in block.named_children if s.type not in {"declaration", "comment"}]
            if len(statements) != 1 or statements[0].type != "return_statement":
                continue
            frame = self.calling(body, values, called)
            found = frame.value(statements[0].named_children[0] if statements[0].named_children else None)
            return converted(found, body.child_by_field_name("type"))
        return None

    def calling(self, body: Node, values: list[Value | None], called: Node | None = None) -> "Frame":
        """The frame of a call; ``called`` may give arguments of a template."""
        self.source.in_time()
        given = zip(parameters_of(body), values, strict=False)
        known = ((name, converted(value, declared)) for (name, declared), value in given if name)
        bound = self._template(body, called) | {name: value for name, value in known if value is not None}
        return Frame(self.source, self.known, bound, body, self.depth + 1)

    def _template(self, body: Node, called: Node | None) -> dict[str, Value]:
        """What the numbers among a template's parameters are."""
        while called is not None and called.type == "qualified_identifier":
            called = called.child_by_field_name("name")
        given = called.child_by_field_name("arguments") if called is not None else None
        found = {}
        for name, argument in zip(
            template_parameters(body), given.named_children if given else (), strict=False
        ):
            words = text_of(argument).rsplit("::", 1)
            plain = argument.type == "type_descriptor"  # a name, for all that the parser can tell
            value = (
                (self._constant(words[-1], None) or self.name(words[-1], argument.start_byte))
                if plain
                else None
            )
            value = value or self.value(argument)
            if name and value is not None:
                found[name] = value
        return found

    def _qualified(self, node: Node) -> Value | None:
        """``S::value`` or ``S<3>::value``."""
        name = node.child_by_field_name("name")
        while name is not None and name.type == "qualified_identifier":
            node, name = name, name.child_by_field_name("name")
        return self._constant(text_of(name), node.child_by_field_name("scope"))

    def _constant(self, name: str, scope: Node | None) -> Value | None:
        """A constant of a class or a namespace; of several of one name the last."""
        named = (scope.child_by_field_name("name") or scope) if scope else None
        struct = self.source.structs.get(text_of(named))
        frame = self
        if struct is not None:
            frame = Frame(self.source, self.known, self._template(struct, scope), struct, self.depth + 1)
        for write in reversed(self.source.writes.get(name, ())):
            self.source.in_time()
            inside = struct is None or (struct.start_byte <= write.begin and write.end <= struct.end_byte)
            if inside and not write.changes and not self.source.in_function(write):
                return frame._written(name, write)
        return None

    def _element(self, node: Node) -> Value | None:
        """An element of a table of constants."""
        table, indices = node.child_by_field_name("argument"), node.child_by_field_name("indices")
        if table is None or table.type != "identifier" or indices is None or indices.named_child_count != 1:
            return None
        writes = [w for w in self.source.writes.get(text_of(table), ()) if w.at <= node.start_byte]
        if not writes or writes[-1].value is None or writes[-1].value.type != "initializer_list":
            return None
        to = type_of(text_of(writes[-1].declared))
        elements = [self.value(element) for element in writes[-1].value.named_children]
        index = self.value(indices.named_children[0])
        known = [e for e in elements if e is not None]
        if index is None or not known or len(known) != len(elements) or index.data.dtype.kind == "f":
            return None

        def pick(at: Array, *data: Array) -> Array:
            columns = np.broadcast_arrays(*(convert(d, to) for d in (common(*data) if to is None else data)))
            inside = np.clip(at.astype(np.int64), 0, len(columns) - 1)
            shape = np.broadcast_shapes(inside.shape, columns[0].shape)
            rows = np.stack([np.broadcast_to(c, shape) for c in columns])
            return np.asarray(np.take_along_axis(rows, np.broadcast_to(inside, shape)[None], axis=0)[0])

        return applied(pick, index, *known)

    def _size_of(self, node: Node) -> Value | None:
        asked = node.child_by_field_name("type") or node.child_by_field_name("value")
        text = text_of(asked).strip("() ")
        if text.startswith('"') and "\\" not in text and text.count('"') == _QUOTES:
            return Value(np.asarray(len(text) - 1, np.uint64))
        simple = type_of(text)
        if simple is not None:
            return Value(np.asarray(simple.itemsize, np.uint64))
        struct = self.source.structs.get(text.removeprefix("struct "))
        members = struct.child_by_field_name("body") if struct else None
        total = 0
        for member in members.named_children if members else ():
            kind = type_of(text_of(member.child_by_field_name("type")))
            if member.type != "field_declaration" or kind is None:
                return None
            for declarator in member.children_by_field_name("declarator"):
                dimensions = [self.value(n.child_by_field_name("size")) for n in _arrays(declarator)]
                total += kind.itemsize * prod(
                    int(d.data) for d in dimensions if d is not None and d.data.ndim == 0
                )
        return Value(np.asarray(total, np.uint64)) if total else None

    _OTHERS: ClassVar[Mapping[str, Callable[["Frame", Node], Value | None]]] = {
        **dict.fromkeys(
            ("number_literal", "char_literal", "true", "false", "user_defined_literal"), _literal
        ),
        "field_expression": lambda frame, node: frame.known.get("".join(text_of(node).split())),
        "condition_clause": lambda frame, node: frame.value(node.child_by_field_name("value")),
        "comma_expression": lambda frame, node: frame.value(node.child_by_field_name("right")),
        "call_expression": _call,
        "subscript_expression": _element,
        "sizeof_expression": _size_of,
        "qualified_identifier": _qualified,
    }


def _arrays(declarator: Node | None) -> Iterator[Node]:
    while declarator is not None and declarator.type == "array_declarator":
        yield declarator
        declarator = declarator.child_by_field_name("declarator")


def called_name(called: Node) -> str:
    """Name of what is called, without namespaces, objects and template arguments."""
    part = called.child_by_field_name("field") or called
    return text_of(part).split("<", 1)[0].rsplit("::", 1)[-1].strip()


def converted(value: Value | None, declared: Node | None) -> Value | None:
    """A value in the type that a declaration names."""
    to = type_of(text_of(declared))
    return applied(lambda a: convert(a, to), value)


def _choose(condition: Array, then: Array, other: Array) -> Array:
    return np.where(condition != 0, *common(then, other))


def applied(call: Callable[..., Array | None], *values: Value | None) -> Value | None:
    """What a function gives for the values; unknown where one of them is."""
    known = [value for value in values if value is not None]
    data = call(*(value.data for value in known)) if len(known) == len(values) else None
    if data is None:
        return None
    lost = [value.lost for value in known if value.lost is not None]
    uses = frozenset().union(*(value.uses for value in known))
    return Value(np.asarray(data), uses, np.logical_or.reduce(lost) if lost else None)
