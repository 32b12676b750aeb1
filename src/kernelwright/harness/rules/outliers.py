"""Expressions of a source and of its plan that single out a case, found by their values at sizes around it."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tree_sitter import Node

from kernelwright.core.expression_nodes import Choice, Compare, Logic, Number
from kernelwright.core.expression_nodes import Name as PlanName
from kernelwright.core.expression_nodes import Node as PlanNode
from kernelwright.core.expressions import Expression
from kernelwright.core.lexer import Lexed
from kernelwright.core.plan import Launch, Plan
from kernelwright.core.rules import CandidateRules
from kernelwright.harness.rules.arithmetic import Array
from kernelwright.harness.rules.broken import Broken
from kernelwright.harness.rules.evaluate import Frame, Value, applied, called_name
from kernelwright.harness.rules.expand import Expanded, expand
from kernelwright.harness.rules.grounds import GRID, WHEN, Ground, children, names_of
from kernelwright.harness.rules.neighbours import SHARE, SHARE_OF_GRIDS, Column, Neighbours
from kernelwright.harness.rules.plans import expressions
from kernelwright.harness.rules.tree import operator, parse, text_of
from kernelwright.harness.rules.writes import Source, function_name, parameters_of, read

_JUDGED: Final = frozenset({
    "binary_expression", "unary_expression", "conditional_expression", "call_expression", "subscript_expression",
    "cast_expression",
})  # fmt: skip
_CONDITIONAL: Final = frozenset({
    "if_statement", "while_statement", "for_statement", "do_statement", "conditional_expression",
})  # fmt: skip
_MOST_CALLS: Final = 64
_CALLS_OF_ONE: Final = 8
_OTHER_VALUES: Final = 8
_MOST_VALUES: Final = 64
_OPEN: Final = 16
_HINT: Final = (
    "but the rules forbid code that tells the cases' sizes apart: decide by properties that hold for any size"
)
_SECONDS: Final = 1.5
"""Of this thread: other processes must not make a source too tangled."""
_EQUALITY: Final = re.compile(r"[=!]=|\^|!|\bnot\b|\bxor\b")
_SMALL_TUNABLE: Final = 64
_TILES: Final = 8

Changed = tuple[str, int | float] | None
ValueAt = Callable[[Ground], Value | None]
Look = Callable[[Frame], Value | None]


@dataclass(frozen=True, eq=False)
class _Call:
    """A kernel as a launch starts it, or a function as another one calls it."""

    body: Node
    launch: Launch | None
    caller: "_Call | None" = None
    arguments: tuple[Node, ...] = ()
    called: Node | None = None


def check_outliers(text: Lexed, rules: CandidateRules, plan: Plan | None) -> Broken | None:
    """The first expression of a plan or a source under ``no_size_branches`` whose value singles out a case."""
    look = _Outliers(rules, plan)
    try:
        with np.errstate(all="ignore"):
            if found := look.in_plan():
                return Broken(f"{found}, {_HINT}")
            if place := look.in_source(text):
                return Broken(f"line {text.line(place[0])}: {place[1]}, {_HINT}")
    except TimeoutError:
        return Broken("the source is too tangled to be looked through for branches on sizes: simplify it")
    return None


class _Outliers:
    """Looks through one source and its plan; raises TimeoutError when that takes too long."""

    def __init__(self, rules: CandidateRules, plan: Plan | None) -> None:
        self.plan = plan
        self.until = time.thread_time() + _SECONDS
        names = list(rules.sizes)
        cases = dict.fromkeys(zip(*rules.sizes.values(), strict=False))
        self.names = frozenset(names)
        self.near = Neighbours([dict(zip(names, values, strict=True)) for values in cases])
        tunables = plan.tunables if plan else ()
        numbers = {t.name: [v for v in t.values if not isinstance(v, str)] for t in tunables}
        self.choices = {name: values for name, values in numbers.items() if values and name not in self.names}
        self.first = {name: values[0] for name, values in self.choices.items()}
        self.grounds: dict[object, Ground] = {}
        self.frames: dict[tuple[_Call, Ground], Frame] = {}
        self.calls: list[_Call] = []

    def _ground(self, changed: Changed, columns: Mapping[str, Column]) -> Ground:
        key = (changed, id(columns))
        if key not in self.grounds:
            setting = {**self.first, **dict([changed] if changed else [])}
            self.grounds[key] = Ground(self.plan, columns, setting)
        return self.grounds[key]

    def in_time(self) -> None:
        if time.thread_time() > self.until:
            raise TimeoutError

    def _singled(self, value_at: ValueAt, text: str) -> str:
        """The case that an expression singles out; ``text`` is its own.

        A range that only some values of a tunable narrow to one size is a range; an equality, and a value of a
        tunable that no tile would have, is one at once.
        """
        value = value_at(self._ground(None, self.near.columns))
        if value is None or not value.uses & self.names:
            return ""
        changes: list[Changed] = [None]
        for name in sorted(value.uses & self.choices.keys()):
            others: list[Changed] = [(name, each) for each in self.choices[name][1:_MOST_VALUES]]
            changes += [each for at, each in enumerate(others) if at < _OTHER_VALUES or _odd(each)]
        equality = bool(_EQUALITY.search(text))
        first = self._case(value_at, value, None)
        if first and (equality or len(changes) == 1):
            return first
        cases = [first]
        for changed in changes[1:]:
            if not (first or equality or _odd(changed)):
                continue
            found = value_at(self._ground(changed, self.near.columns))
            cases.append(self._case(value_at, found, changed))
            if cases[-1] and (equality or _odd(changed)):
                return cases[-1]
        return first if first and all(cases) else ""

    def _case(self, value_at: ValueAt, value: Value | None, changed: Changed) -> str:
        """The case that a value singles out at one setting of the tunables."""
        if value is None:
            return ""

        def again(columns: Mapping[str, Column]) -> npt.NDArray[Any] | None:
            self.in_time()
            at = value_at(self._ground(changed, columns))
            return None if at is None else at.data if at.lost is None else np.where(at.lost, np.nan, at.data)

        share, used = SHARE_OF_GRIDS if GRID in value.uses else SHARE, len(value.uses & self.names)
        for case, name in self.near.suspects(value.data, value.lost):
            if self.near.singled_out(case, name, used, share, again):
                return f"{name} = {case[name]}"
        return ""

    # -- the plan -------------------------------------------------------------------------------------

    def in_plan(self) -> str:
        """The first part of one of the plan's expressions that singles out a case."""
        for place, expression in expressions(self.plan) if self.plan and self.near.rows else ():
            if not self._sized(self._ground(None, self.near.columns).value(expression)):
                continue
            for node, truth in _parts(expression.tree, whole=place == "when"):
                part = Expression(expression.text, names_of(node), node, expression.size)

                def value_at(ground: Ground, part: Expression = part, truth: bool = truth) -> Value | None:  # noqa: FBT001
                    return _truth(ground.value(part)) if truth else ground.value(part)

                if case := self._singled(value_at, "==" if _is_equality(node) else ""):
                    return f"{place}: {expression.text[:80]!r} singles out the case with {case}"
        return ""

    # -- the source -----------------------------------------------------------------------------------

    def in_source(self, text: Lexed) -> tuple[int, str] | None:
        """Offset and reason of the first expression that singles out a case."""
        kept = set(self.choices) | {name for name, _ in (self.plan.fixed_let if self.plan else ())}
        expanded = expand(text, kept)
        tree = parse(expanded.plain)
        if tree is None or not self.near.rows:
            return None
        self.source = read(tree, self.in_time)
        self.calls = list(self._kernels(self.source))
        found: list[tuple[int, str]] = []
        for call in self.calls:  # grows meanwhile
            found += self._in_call(call, expanded)
        return min(found, default=None)

    def _kernels(self, source: Source) -> Iterator[_Call]:
        bodies = [body for named in source.functions.values() for body in named]
        if self.plan is None:
            yield from (_Call(b, None) for b in bodies if self.names & {name for name, _ in parameters_of(b)})
            return
        for launch in self.plan.launches:
            name = launch.kernel.split("<", 1)[0].rsplit("::", 1)[-1]
            yield from (_Call(body, launch) for body in bodies if function_name(body) == name)

    def _frame(self, call: _Call, ground: Ground) -> Frame:
        if (call, ground) not in self.frames:
            if call.caller is not None:
                outer = self._frame(call.caller, ground)
                values = [outer.value(argument) for argument in call.arguments]
            else:
                outer = Frame(self.source, ground.known(call.launch), {}, None)
                if call.launch is not None:
                    values = [ground.value(argument) for argument in call.launch.args]
                else:
                    sized = (name if name in self.names else "" for name, _ in parameters_of(call.body))
                    values = [
                        Value(np.asarray(ground.columns[n]), ground.uses[n]) if n else None for n in sized
                    ]
            self.frames[call, ground] = outer.calling(call.body, values, call.called)
        return self.frames[call, ground]

    def _in_call(self, call: _Call, expanded: Expanded) -> Iterator[tuple[int, str]]:
        frame = self._frame(call, self._ground(None, self.near.columns))
        nodes = self.source.within(call.body)
        # Parts before wholes, and in the order of the text: no deep recursion.
        inner_first = list(reversed(nodes))
        inner_first.sort(key=lambda n: (n.end_byte, -n.start_byte))
        for node in inner_first:
            self.in_time()
            if node.type in _JUDGED:
                frame.value(node)
        looks = [(node, look, text_of(node)) for node, look in self._looks(nodes, frame)]
        # A path is no equality for one among its conditions: those are looked at by themselves.
        looks += [(node, look, "") for node, look in self._paths(call, nodes, frame)]
        for node, look, own in looks:
            self.in_time()

            def value_at(ground: Ground, look: Look = look) -> Value | None:
                return look(self._frame(call, ground))

            if case := self._singled(value_at, own):
                asked = node.child_by_field_name("value") if node.type == "condition_clause" else None
                shown = " ".join(text_of(asked or node).split())[:80]
                yield expanded.origin(node.start_byte), f"'{shown}' singles out the case with {case}"
        for node in nodes:
            if node.type == "call_expression":
                self._follow(node, call, frame)

    def _sized(self, value: Value | None) -> bool:
        return value is not None and bool(value.uses & self.names)

    def _follow(self, node: Node, call: _Call, frame: Frame) -> None:
        """A function that is called with what depends on sizes is looked through too."""
        called, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if called is None or arguments is None or len(self.calls) >= _MOST_CALLS:
            return
        given = tuple(arguments.named_children)
        if not any(self._sized(frame.value(argument)) for argument in given):
            return
        for body in self.source.functions.get(called_name(called), ())[:_CALLS_OF_ONE]:
            before = [c for c in self.calls if c.body.id == body.id]
            if len(before) < _CALLS_OF_ONE and call.body.id != body.id:
                self.calls.append(_Call(body, call.launch, call, given, called))

    def _looks(self, nodes: list[Node], frame: Frame) -> Iterator[tuple[Node, Look]]:
        """Values that may select something: expressions, truths of conditions, a switch's cases."""
        for node in nodes:
            if node.type in _JUDGED and self._sized(frame.value(node)):
                yield node, _value_of(node)
            parts = [node.child_by_field_name("condition")] if node.type in _CONDITIONAL else []
            if node.type == "binary_expression" and operator(node) in {"&&", "||", "and", "or"}:
                parts += [node.child_by_field_name("left"), node.child_by_field_name("right")]
            if node.type == "init_declarator" and node.parent is not None:
                kind = text_of(node.parent.child_by_field_name("type"))
                parts += [node.child_by_field_name("value")] if kind == "bool" else []
            for part in parts:
                if part is not None and self._sized(frame.value(part)):
                    yield part, _truth_of(part)
            if node.type == "switch_statement":
                yield from self._labels(node, frame)

    def _labels(self, node: Node, frame: Frame) -> Iterator[tuple[Node, Look]]:
        condition, body = (node.child_by_field_name(part) for part in ("condition", "body"))
        if body is None or not self._sized(frame.value(condition)):
            return
        for part in body.named_children:
            label = part.child_by_field_name("value") if part.type == "case_statement" else None
            if label is not None and condition is not None:
                yield part, _equal(condition, label)

    def _paths(self, call: _Call, nodes: list[Node], frame: Frame) -> Iterator[tuple[Node, Look]]:
        """Conditions together with those around them, and with those that left before."""
        taken: list[tuple[int, int, Look]] = [(0, call.body.end_byte, lambda f: f.known.get(WHEN))]
        for node in nodes:
            condition = node.child_by_field_name("condition") if node.type == "if_statement" else None
            if condition is None or not self._sized(frame.value(condition)):
                continue
            taken = [each for each in taken if each[1] > node.start_byte]
            around = [look for begin, _, look in taken if begin <= node.start_byte][-_OPEN:]

            yes, no = _truth_of(condition), _truth_of(condition, wanted=False)
            for last in (yes, no):
                yield condition, _all((*around, last))
            then, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
            for part, look in ((then, yes), (other, no)):
                if part is not None:
                    taken.append((part.start_byte, part.end_byte, look))
            if then is not None and _leaves(then):
                taken.append((node.end_byte, self.source.ends.get(node.id, node.end_byte), no))


def _parts(tree: PlanNode, *, whole: bool) -> Iterator[tuple[PlanNode, bool]]:
    """Parts of a plan's expression, and whether only their truth counts."""
    todo = [(tree, whole)]
    while todo:
        node, truth = todo.pop()
        if not isinstance(node, Number) and (truth or not isinstance(node, PlanName)):
            yield node, truth
        asked = node.condition if isinstance(node, Choice) else None
        todo += [(part, isinstance(node, Logic) or part is asked) for part in children(node)]


def _is_equality(node: PlanNode) -> bool:
    return isinstance(node, Compare) and not {"==", "!="}.isdisjoint(node.ops)


def _odd(changed: Changed) -> bool:
    return changed is not None and changed[1] > _SMALL_TUNABLE and changed[1] % _TILES != 0


def _leaves(node: Node) -> bool:
    last = node.named_children[-1] if node.type == "compound_statement" and node.named_children else node
    return last.type in {"return_statement", "continue_statement", "break_statement"}


def _value_of(node: Node) -> Look:
    return lambda frame: frame.value(node)


def _truth_of(node: Node, *, wanted: bool = True) -> Look:
    return lambda frame: _truth(frame.value(node), wanted=wanted)


def _equal(left: Node, right: Node) -> Look:
    return lambda frame: applied(lambda a, b: a == b, frame.value(left), frame.value(right))


def _all(looks: tuple[Look, ...]) -> Look:
    """Whether all hold; what is unknown may, but for the last."""

    def look(frame: Frame) -> Value | None:
        values = [each(frame) for each in looks]
        known = [value for value in values if value is not None]
        return applied(_every, *known) if values[-1] is not None else None

    return look


def _every(*data: Array) -> Array:
    return np.asarray(np.logical_and.reduce(np.broadcast_arrays(*(each != 0 for each in data))))


def _truth(value: Value | None, *, wanted: bool = True) -> Value | None:
    return applied(lambda a: (a != 0) == wanted, value)
