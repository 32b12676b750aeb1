"""The CUDA side of an export: the plan's values and launches as C++ that needs the CUDA runtime only."""

import struct
from collections.abc import Iterator
from typing import Final

from kernelwright.core.errors import UserError
from kernelwright.core.expressions import Expression, parse
from kernelwright.core.plan import Launch
from kernelwright.core.resolve import MAX_BLOCK, MAX_CLUSTER, MAX_GRID
from kernelwright.leaderboard.export.names import DEVICE_ATTRIBUTES, Subject
from kernelwright.leaderboard.export.translate import to_cpp
from kernelwright.problems.spec import Argument

SCALARS: Final = {
    "float32": "float",
    "float64": "double",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
}
"""C++ types of scalar arguments; a constant float16 goes as its bits."""


class Launcher:
    """Writes ``kernelwright_extents`` and ``kernelwright_launch``, and says with what they are called.

    The first gives the sizes of everything that has to be allocated: the shapes of outputs that the board does not
    hand over, then elements of scratch buffers. Raises UserError for a plan that cannot be exported.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.plan = subject.candidate.template.plan
        self.names = {size: subject.value(size) for size in subject.sizes}
        self.facts = [name for name in DEVICE_ATTRIBUTES if name in self._used()]
        self.names |= {name: subject.value(name) for name in self.facts}
        for name, _ in self.plan.let:
            if name not in subject.known:
                self.names[name] = subject.value(name)

    def _used(self) -> frozenset[str]:
        """Names in all expressions of the plan."""
        every = [e for _, e in self.plan.let] + [e for s in self.plan.scratch for e in s.shape]
        for x in self.plan.launches:
            every += [*x.grid, *x.block, *x.args, *x.cluster, x.dynamic_shared_bytes]
            every += [x.when] if x.when else []
        return frozenset(name for expression in every for name in expression.names)

    @property
    def allocated(self) -> tuple[Argument, ...]:
        """Outputs that the board does not hand over."""
        items = self.subject.abi.items
        return tuple(a for a in self.subject.arrays if a.name not in items)

    @property
    def size_parameters(self) -> list[str]:
        """Of both functions."""
        return [f"int64_t {self.subject.value(size)}" for size in self.subject.sizes]

    @property
    def given_scalars(self) -> list[tuple[Argument, str]]:
        """Scalar arguments that the board hands over, and their C++ type."""
        found = []
        for argument in self.subject.arguments:
            if argument.role == "scalar" and argument.name in self.subject.abi.items:
                if argument.dtype not in SCALARS:
                    raise UserError(
                        f"the board hands over the {argument.dtype} {argument.name!r}, which cannot be exported"
                    )
                found.append((argument, SCALARS[argument.dtype]))
        return found

    @property
    def declarations(self) -> tuple[str, str]:
        """Of the two functions, without the semicolon."""
        subject = self.subject
        buffers = [a.name for a in subject.arrays] + [s.name for s in self.plan.scratch]
        parameters = [f"void* {subject.buffer(name)}" for name in buffers]
        parameters += [f"{kind} {subject.value(a.name)}" for a, kind in self.given_scalars]
        parameters += self.size_parameters
        extents = ", ".join(["int64_t* extents", *self.size_parameters])
        return f"void kernelwright_extents({extents})", f"void kernelwright_launch({', '.join(parameters)})"

    def write(self) -> str:
        """The C++ behind the device code and ``runtime.h``."""
        extents, launch = self.declarations
        sizes = ", ".join(self.subject.value(size) for size in self.subject.sizes)
        values = f"    const kw::Values values{{{sizes}}};\n"
        parts = ["namespace kw {\n", *self._values(), "}  // namespace kw\n"]
        parts += [f"\n{extents}\n{{\n", values, *self._extents(), "}\n"]
        parts += [f"\n{launch}\n{{\n", values, "    int launched = 0;\n"]
        for launch_ in self.plan.launches:
            parts += self._launch(launch_)
        parts += [
            '    if (launched == 0)\n        kw::fail("no launch of the plan is for this case");\n',
            "}\n",
        ]
        return "".join(parts)

    # -- parts --------------------------------------------------------------------------------------------

    def _cpp(self, expression: Expression, *, inside: bool = False) -> str:
        names = self.names if inside else {name: f"values.{text}" for name, text in self.names.items()}
        return to_cpp(expression, self.subject.known, names)

    def _values(self) -> Iterator[str]:
        """Sizes as given, then everything that is computed of them, in the plan's order."""
        yield "struct Values {\n"
        for size in self.subject.sizes:
            yield f"    int64_t {self.names[size]};\n"
        for name in self.facts:
            yield f"    int64_t {self.names[name]} = kw::device({DEVICE_ATTRIBUTES[name]});\n"
        for name, expression in self.plan.let:
            if name not in self.subject.known:
                yield f"    int64_t {self.names[name]} = {self._cpp(expression, inside=True)};\n"
        yield "};\n"

    def _extents(self) -> Iterator[str]:
        index = 0
        for argument in self.allocated:
            for text in argument.shape or ():
                yield self._extent(index, [parse(text)], argument.name)
                index += 1
        for scratch in self.plan.scratch:
            yield self._extent(index, list(scratch.shape), scratch.name)
            index += 1
        if index == 0:
            yield "    (void)extents;\n    (void)values;\n"

    def _extent(self, index: int, shape: list[Expression], name: str) -> str:
        what = f'"shape of {self.subject.renames[name]}"'
        text = f"kw::between(1, {self._cpp(shape[0])}, INT64_MAX, {what})"
        for expression in shape[1:]:
            text = f"kw::multiply({text}, kw::between(1, {self._cpp(expression)}, INT64_MAX, {what}))"
        return f"    extents[{index}] = {text};\n"

    def _dims(self, expressions: tuple[Expression, ...], limits: tuple[int, int, int], what: str) -> str:
        dims = zip(expressions, limits, "xyz", strict=False)
        return ", ".join(f'kw::dim({self._cpp(e)}, {limit}, "{what}.{axis}")' for e, limit, axis in dims)

    def _launch(self, launch: Launch) -> Iterator[str]:
        kernel = self.subject.renames[launch.kernel]
        yield f"    if ({self._cpp(launch.when)}) {{\n" if launch.when else "    {\n"
        addresses = []
        for index, argument in enumerate(launch.args):
            declared, address = self._argument(argument, index, kernel)
            addresses.append(address)
            yield f"        {declared}\n" if declared else ""
        yield f"        void* arguments[] = {{{', '.join(f'(void*)&{a}' for a in addresses)}}};\n"
        yield "        kw::Shape shape = {};\n"
        yield f"        shape.grid = dim3({self._dims(launch.grid, MAX_GRID, f'{kernel}: grid')});\n"
        yield f"        shape.block = dim3({self._dims(launch.block, MAX_BLOCK, f'{kernel}: block')});\n"
        shared = (
            f'kw::between(0, {self._cpp(launch.dynamic_shared_bytes)}, INT32_MAX, "{kernel}: shared memory")'
        )
        yield f"        shape.shared_bytes = {shared};\n"
        if launch.cluster:
            yield "        shape.clusters = true;\n"
            dims = self._dims(launch.cluster, (MAX_CLUSTER,) * 3, f"{kernel}: cluster")
            yield f"        shape.cluster = dim3({dims});\n"
        if launch.cooperative:
            yield "        shape.cooperative = true;\n"
        yield f'        kw::launch("{kernel}", (const void*){kernel}, shape, arguments);\n'
        yield "        ++launched;\n    }\n"

    def _argument(self, argument: Expression, index: int, kernel: str) -> tuple[str, str]:
        """A declaration, where one is needed, and the name whose address is passed."""
        subject, name = self.subject, argument.text.strip()
        found = subject.by_name.get(name)
        if found is not None and found.role != "scalar":
            return "", subject.buffer(name)
        if any(scratch.name == name for scratch in self.plan.scratch):
            return "", subject.buffer(name)
        if found is not None:
            if any(a is found for a, _ in self.given_scalars):
                return "", subject.value(name)
            return f"{_constant(found, f'a{index}')}", f"a{index}"
        value = self._cpp(argument)
        return f'int32_t a{index} = kw::as_int32({value}, "{kernel}: argument {index + 1}");', f"a{index}"


def _constant(argument: Argument, name: str) -> str:
    """A scalar whose value the problem fixes."""
    value = argument.value
    assert value is not None
    if argument.dtype == "float16":
        bits = struct.unpack("<H", struct.pack("<e", float(value)))[0]
        return f"uint16_t {name} = {bits}; // bits of the float16 {float(value)!r}"
    kind = SCALARS[argument.dtype]
    if argument.dtype in {"float32", "float64"}:
        return f"{kind} {name} = static_cast<{kind}>({float(value).hex()});"
    return f"{kind} {name} = {int(value)};"
