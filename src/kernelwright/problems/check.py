"""What the types of a problem.toml cannot say: names that must agree, sizes that must make sense."""

from collections.abc import Iterator, Mapping
from math import prod

from kernelwright.core.case import ITEM_BYTES
from kernelwright.core.errors import ExpressionError
from kernelwright.core.expressions import parse
from kernelwright.core.names import FOR_SCRIPTS
from kernelwright.core.plan import DEVICE_NAMES
from kernelwright.core.toml_words import Place
from kernelwright.problems.inputs import INTEGER_DISTRIBUTIONS
from kernelwright.problems.spec import Argument, CaseSpec, ProblemSpec
from kernelwright.problems.values import distribution_fault, scalar_fault

MAX_CASE_BYTES = 64 * 2**30
"""More than this for the arrays of one case is taken for a slip."""

Fault = tuple[Place, str]
"""The keys that lead to it, and what is wrong with it, with how to mend it."""


def faults(spec: ProblemSpec) -> Iterator[Fault]:
    """All faults, in the order of the file. Empty for a good problem."""
    yield from _argument_faults(spec)
    yield from _input_faults(spec)
    yield from _name_faults(spec)
    found = list(_case_faults(spec))
    yield from found
    if not found:  # values can only be had from sound cases
        yield from _value_faults(spec)


def case_id(case: CaseSpec) -> str:
    """The case's own id, or one made of its sizes."""
    return case.id or ",".join(f"{name}={size}" for name, size in case.sizes.items())


def array_shape(argument: Argument, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of an array argument for a case's sizes. Raises ExpressionError."""
    return tuple(evaluate(text, sizes) for text in argument.shape or ())


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """Integer value of an expression over sizes. Raises ExpressionError."""
    value = parse(text).evaluate(sizes)
    if isinstance(value, float):
        raise ExpressionError(f"gives {value}, an integer is needed", text)
    return int(value)


def _argument_faults(spec: ProblemSpec) -> Iterator[Fault]:
    seen = set(spec.size_names)
    for index, argument in enumerate(spec.arguments):
        key: Place = ("arguments", index)
        if argument.name in seen:
            yield (*key, "name"), f"{argument.name!r} is already the name of a size or argument: rename one"
        elif argument.name in FOR_SCRIPTS:
            yield (
                (*key, "name"),
                f"{argument.name!r} is what reference.py is given beside the arguments: rename it",
            )
        seen.add(argument.name)
        if argument.role == "scalar":
            if argument.value is None:
                yield (*key, "value"), f"scalar {argument.name!r} has no value: add one"
            elif fault := scalar_fault(argument.value, argument.dtype):
                yield (*key, "value"), fault
            if argument.shape is not None:
                yield (*key, "shape"), f"scalar {argument.name!r} has a shape: remove it"
        else:
            if argument.shape is None:
                yield (
                    (*key, "shape"),
                    f"array {argument.name!r} has no shape: add a list of expressions over the sizes",
                )
            if argument.value is not None:
                yield (
                    (*key, "value"),
                    f"array {argument.name!r} has a value: use [inputs], or the role 'scalar'",
                )
        if argument.tolerance is not None and not argument.is_output:
            yield (*key, "tolerance"), f"{argument.name!r} is no output: remove the tolerance"
    if not any(argument.is_output for argument in spec.arguments):
        yield ("arguments",), "no argument has the role 'out' or 'inout': there is nothing to check, add one"


def _input_faults(spec: ProblemSpec) -> Iterator[Fault]:
    arguments = {a.name: a for a in spec.arguments if a.is_input}
    for name, entry in spec.inputs.items():
        key: Place = ("inputs", name)
        if name not in arguments:
            yield key, f"there is no input argument {name!r} (there are: {', '.join(arguments) or 'none'})"
            continue
        distributions = entry if isinstance(entry, tuple) else (entry,)
        if not distributions:
            yield key, "the list of distributions is empty: name at least one"
        for number, item in enumerate(distributions):
            key = ("inputs", name, number) if isinstance(entry, tuple) else ("inputs", name)
            if "int" in arguments[name].dtype and not isinstance(item, INTEGER_DISTRIBUTIONS):
                yield (
                    key,
                    f"{item.distribution!r} draws no {arguments[name].dtype}: use integers, ties, one_hot or constant",
                )
            elif fault := distribution_fault(item, arguments[name].dtype):
                yield key, fault
    for name in arguments:
        if name not in spec.inputs:
            yield (
                ("inputs", name),
                f'input {name!r} has no distribution: add {name} = "normal" under [inputs]',
            )


def _name_faults(spec: ProblemSpec) -> Iterator[Fault]:
    known = set(spec.size_names)
    texts: list[tuple[Place, str]] = [
        (("arguments", i, "shape"), text) for i, a in enumerate(spec.arguments) for text in a.shape or ()
    ]
    texts += [(("work", "bytes"), spec.work.bytes), (("work", "flops"), spec.work.flops)]
    for key, text in texts:
        if unknown := sorted(parse(text).names - known):
            if any(unknown[0] in case.sizes for case in (*spec.cases, *spec.slow_cases)):
                yield ("cases", 0, "sizes"), f"lacks the size {unknown[0]!r}, which another case has: add it"
                return
            yield (
                key,
                f"{text!r} uses {unknown[0]!r}, which is no size of the cases ({', '.join(spec.size_names)})",
            )


def _case_faults(spec: ProblemSpec) -> Iterator[Fault]:
    names = set(spec.size_names)
    if taken := sorted(names & DEVICE_NAMES):
        yield ("cases", 0, "sizes"), f"{taken[0]!r} is a name of the device in every plan: rename the size"
    for kind, cases in (("cases", spec.cases), ("slow_cases", spec.slow_cases)):
        seen: set[str] = set()
        for index, case in enumerate(cases):
            key: Place = (kind, index)
            if missing := sorted(names - set(case.sizes)):
                yield (*key, "sizes"), f"lacks the size {missing[0]!r}, which the first case has: add it"
            if extra := sorted(set(case.sizes) - names):
                yield (
                    (*key, "sizes"),
                    f"has the size {extra[0]!r}, which the first case lacks: all cases have the same sizes",
                )
            if case_id(case) in seen:
                yield key, f"the case {case_id(case)!r} is there twice: remove one or give it an id"
            seen.add(case_id(case))


def _value_faults(spec: ProblemSpec) -> Iterator[Fault]:
    for kind, cases in (("cases", spec.cases), ("slow_cases", spec.slow_cases)):
        for index, case in enumerate(cases):
            try:
                yield from (((kind, index), what) for what in _case_values(spec, case))
            except ExpressionError as error:
                yield (kind, index), f"{error} for the case {case_id(case)}"


def _case_values(spec: ProblemSpec, case: CaseSpec) -> Iterator[str]:
    total = 0
    for argument in spec.arrays:
        shape = array_shape(argument, case.sizes)
        if min(shape, default=1) < 1:
            yield f"{argument.name!r} gets the shape {shape}: every extent must be at least 1"
            return
        total += prod(shape) * ITEM_BYTES[argument.dtype]
    if total > MAX_CASE_BYTES:
        yield f"its arrays need {total / 2**30:.0f} GiB, the limit is {MAX_CASE_BYTES // 2**30} GiB: use smaller sizes"
    if evaluate(spec.work.bytes, case.sizes) < 1 or evaluate(spec.work.flops, case.sizes) < 0:
        yield "work.bytes must be at least 1 and work.flops at least 0"
