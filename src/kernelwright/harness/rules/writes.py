"""What a source writes to which name, and its functions: what an evaluation of its expressions looks up."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node, Tree

from kernelwright.harness.rules.tree import operator, text_of, walk

_REGIONS: Final = frozenset({
    "translation_unit", "function_definition", "compound_statement", "if_statement", "else_clause", "for_statement",
    "while_statement", "do_statement", "case_statement", "conditional_expression", "lambda_expression",
    "struct_specifier", "class_specifier", "namespace_definition", "template_declaration",
})  # fmt: skip
_LOOPS: Final = frozenset({"for_statement", "while_statement", "do_statement"})
_WRAPPED: Final = frozenset({"array_declarator", "reference_declarator", "parenthesized_expression"})


@dataclass(frozen=True, slots=True)
class Write:
    """What a name holds from here to the end of its region; ``None`` where that is unknown."""

    at: int
    begin: int
    end: int
    value: Node | None = None
    op: str = "="
    declared: Node | None = None
    step: int = 0
    """Added to the value before, or to that of an enumerator's neighbour."""
    regions: tuple[Node, ...] = ()

    @property
    def loops(self) -> Iterator[Node]:
        """The loops that it stands in."""
        return (region for region in self.regions if region.type in _LOOPS)

    def conditions(self, at: int) -> list[tuple[Node, bool]] | None:
        """Conditions that have to hold, or not to, for it to have happened at ``at``; ``None`` for other reasons."""
        found = []
        for region in self.regions:
            if region.start_byte <= at < region.end_byte or region.type in {
                "compound_statement",
                "else_clause",
            }:
                continue
            condition, then = (region.child_by_field_name(part) for part in ("condition", "consequence"))
            if region.type != "if_statement" or condition is None or then is None:
                return None
            found.append((condition, then.start_byte <= self.at <= then.end_byte))
        return found

    @property
    def changes(self) -> bool:
        """Whether it changes a name that was declared before."""
        return self.declared is None and self.op != "enum" and (self.value is not None or self.op == "++")


@dataclass(frozen=True)
class Source:
    """A tree with its functions, and what is written to which name, in the order of the text."""

    nodes: list[Node]
    in_time: Callable[[], None]
    """Called now and then; may raise."""
    functions: dict[str, list[Node]] = field(default_factory=dict)
    structs: dict[str, Node] = field(default_factory=dict)
    writes: dict[str, list[Write]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    """Where the region ends that a conditional statement stands in."""

    places: dict[int, int] = field(default_factory=dict)
    """Where functions stand among the nodes."""

    def in_function(self, write: Write) -> bool:
        """Whether a name is one of a function's own."""
        bodies = (body for named in self.functions.values() for body in named)
        return any(body.start_byte <= write.begin and write.end <= body.end_byte for body in bodies)

    def within(self, function: Node) -> list[Node]:
        """Nodes of a function, in the order of the text."""
        begin = self.places[function.id]
        end = next(
            (i for i in range(begin, len(self.nodes)) if self.nodes[i].start_byte >= function.end_byte), None
        )
        return self.nodes[begin:end]


def read(tree: Tree, in_time: Callable[[], None]) -> Source:
    """Go through a tree once. ``in_time`` is called now and then, and may raise."""
    source = Source([], in_time)
    regions: list[Node] = []
    for node in walk(tree):
        in_time()
        source.nodes.append(node)
        while regions and node.start_byte >= regions[-1].end_byte:
            regions.pop()
        if regions:
            _note(source, node, regions)
        if node.type in _REGIONS:
            regions.append(node)
    return source


def _note(source: Source, node: Node, regions: list[Node]) -> None:
    part, end = node.child_by_field_name, node.end_byte
    match node.type:
        case "function_definition":
            source.functions.setdefault(function_name(node), []).append(node)
            source.places[node.id] = len(source.nodes) - 1
        case "struct_specifier":
            source.structs[text_of(part("name"))] = node
        case "if_statement":
            source.ends[node.id] = regions[-1].end_byte
        case "init_declarator":
            kind = node.parent.child_by_field_name("type") if node.parent else None
            _write(source, regions, part("declarator"), part("value"), at=end, declared=kind)
        case "parameter_declaration" | "optional_parameter_declaration" | "for_range_loop" | "declaration":
            for declared in node.children_by_field_name("declarator"):
                _write(source, regions, declared, None, at=end)
        case "field_declaration" if part("default_value") is not None:
            _write(source, regions, part("declarator"), part("default_value"), at=end, declared=part("type"))
        case "assignment_expression":
            _write(source, regions, part("left"), part("right"), at=end, op=operator(node))
        case "update_expression":
            step = 1 if operator(node) == "++" else -1
            _write(source, regions, part("argument"), None, at=end, op="++", step=step)
        case "enumerator_list":
            before = None
            for each in node.named_children:
                name, value = (each.child_by_field_name(field) for field in ("name", "value"))
                step = int(value is None and before is not None)
                _write(source, regions, name, value or before, at=each.end_byte, op="enum", step=step)
                before = name


def _write(
    source: Source,
    regions: list[Node],
    name: Node | None,
    value: Node | None,
    *,
    at: int,
    op: str = "=",
    step: int = 0,
    declared: Node | None = None,
) -> None:
    if name is not None and name.type == "subscript_expression":
        name, value, op = name.child_by_field_name("argument"), None, "[]"
    while name is not None and name.type in _WRAPPED:
        name = name.child_by_field_name("declarator") or (
            name.named_children[-1] if name.named_children else None
        )
    if name is None or name.type not in {"identifier", "field_identifier"}:
        return
    region = regions[-1]
    found = Write(at, region.start_byte, region.end_byte, value, op, declared, step, tuple(regions))
    source.writes.setdefault(text_of(name), []).append(found)


def function_name(node: Node) -> str:
    """Name of a function, without what it is a member of."""
    declarator = _declarator(node)
    text = text_of(declarator.child_by_field_name("declarator")) if declarator else ""
    return text.rsplit("::", 1)[-1].replace(" ", "")


def parameters_of(node: Node) -> list[tuple[str, Node | None]]:
    """Names and types of a function's parameters; empty names for pointers, whose contents are no numbers."""
    declarator = _declarator(node)
    parameters = declarator.child_by_field_name("parameters") if declarator else None
    found = []
    for parameter in parameters.named_children if parameters else ():
        if parameter.type not in {"parameter_declaration", "optional_parameter_declaration"}:
            continue
        name = parameter.child_by_field_name("declarator")
        if name is not None and name.type == "reference_declarator":
            name = name.named_children[-1]
        plain = name is not None and name.type == "identifier"
        found.append((text_of(name) if plain else "", parameter.child_by_field_name("type")))
    return found


def template_parameters(node: Node) -> list[str]:
    """Names of a template's parameters that are numbers, empty ones for types, in their order."""
    above = node.parent
    parameters = (
        above.child_by_field_name("parameters") if above and above.type == "template_declaration" else None
    )
    found = parameters.named_children if parameters else []
    return [text_of(each.child_by_field_name("declarator")) for each in found]


def _declarator(node: Node) -> Node | None:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    return declarator
