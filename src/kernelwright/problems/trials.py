"""Trials: inputs and sizes that a problem does not list, on which a general kernel is right all the same.

Each is cheap (below :data:`MAX_ELEMENTS` where the cases allow it) and checked once for every contender; those of
:mod:`kernelwright.problems.large_trials` are for whoever is about to lead. An id starts with ``stress`` or ``size`` and a space, which no id made of sizes does;
a case's own id may not.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import prod
from typing import Final

from pydantic import TypeAdapter

from kernelwright.core.errors import ExpressionError
from kernelwright.core.outcome import Check
from kernelwright.problems.case import Case, Trial
from kernelwright.problems.check import Fault, array_shape, evaluate
from kernelwright.problems.inputs import Distribution, Ends, Large, OneHot, Structured, Tiny, is_short_row
from kernelwright.problems.spec import Argument, CaseSpec, ProblemSpec
from kernelwright.problems.values import distribution_fault

MAX_ELEMENTS: Final = 2**20
"""Elements of all arrays of a trial off the list."""
MAX_FLOPS: Final = 2**28
CHEAP_ELEMENTS: Final = 2**22
"""A case of the list with at most so many elements is cheap enough for a second look."""
CHEAP_FLOPS: Final = 2**31
_ADAPTER: Final[TypeAdapter[tuple[Distribution, ...]]] = TypeAdapter(tuple[Distribution, ...])
WIDE: Final = _ADAPTER.validate_python(
    ("normal", "uniform", "large", "tiny", "negative", "ties", "one_hot", "structured")
)
NARROW: Final = tuple(
    Large(std=30.0) if isinstance(item, Large)
    else Tiny(std=1e-2) if isinstance(item, Tiny)
    else Structured(period=1021) if isinstance(item, Structured)
    else item
    for item in WIDE
)  # fmt: skip
"""For float16, whose largest value is 65504 and whose smallest normal one is 6e-5."""
CHANGED: Final = "changed"
ENDS: Final = "ends"
ONE_HOT: Final = "one_hot"
LONG: Final = (*(d for d in WIDE if d.distribution not in {"ties", ONE_HOT, "structured"}), Ends())
"""For large sizes: where many values are equal so are many addends, and rounding errors, all of one sign, add up."""
_PRIMES: Final = (31, 37, 61, 67, 97, 101, 127, 131)
_ODD: Final = (33, 35, 65, 39, 129, 71, 45, 51)
_FEW: Final = (3, 5, 2, 7)


def make_trials(spec: ProblemSpec, cases: Sequence[Case], every_case: Sequence[Case]) -> tuple[Trial, ...]:
    """Trials for a campaign on ``cases``; ``every_case`` are the slow ones too. Sizes off the list come last."""
    slow = bool(cases) and cases[0].slow
    by_work = sorted(cases, key=lambda case: work_of(spec, case.sizes))
    cheap = [case for case in by_work if is_cheap(spec, case.sizes)]
    found = list(stress(spec, by_work[0], slow=slow))
    if len(cheap) > 1 and cheap[len(cheap) // 2].sizes != by_work[0].sizes:
        found += list(stress(spec, cheap[len(cheap) // 2], slow=slow))[2:4]
    return (*found, *_off_the_list(spec, every_case, slow=slow))


def work_of(spec: ProblemSpec, sizes: Mapping[str, int]) -> int:
    """Bytes and operations: what tells a small case from a large one."""
    return evaluate(spec.work.bytes, sizes) + evaluate(spec.work.flops, sizes)


def is_cheap(
    spec: ProblemSpec, sizes: Mapping[str, int], most: int = CHEAP_ELEMENTS, flops: int = CHEAP_FLOPS
) -> bool:
    """Whether a case of these sizes may be had a second time."""
    return elements(spec, sizes) <= most and evaluate(spec.work.flops, sizes) <= flops


def elements(spec: ProblemSpec, sizes: Mapping[str, int]) -> int:
    """Elements of all arrays together. Raises ExpressionError."""
    return sum(prod(array_shape(argument, sizes)) for argument in spec.arrays)


def place_of(sizes: Mapping[str, int]) -> str:
    """Sizes as ids have them."""
    return ",".join(f"{name}={size}" for name, size in sizes.items())


def stress(spec: ProblemSpec, case: Case, *, slow: bool, large: bool = False) -> Iterator[Trial]:
    """A case with inputs unlike its own; on a ``large`` one, inputs whose ends alone count too."""
    place = place_of(case.sizes)
    first: Trial | None = None
    for number, (label, distributions) in enumerate(_mixtures(spec, case.sizes, large=large)):
        trial = Trial(f"stress {label} {place}", dict(case.sizes), slow, distributions=distributions)
        yield trial
        if number == 0:
            first = trial
    if first is not None and any("float" in a.dtype for a in spec.arrays if a.is_input):
        yield Trial(
            f"stress {CHANGED} {place}",
            dict(case.sizes),
            slow,
            distributions=first.distributions,
            changed_from=first.id,
        )


def _mixtures(
    spec: ProblemSpec, sizes: Mapping[str, int], *, large: bool
) -> Iterator[tuple[str, Mapping[str, Distribution]]]:
    """A label and a distribution for every input. Integers, and what ``keep`` names, are drawn as declared."""
    inputs = [argument for argument in spec.arrays if argument.is_input]
    kept = {a.name for a in inputs if "float" not in a.dtype or a.name in spec.trials.keep}
    if all(argument.name in kept for argument in inputs):
        rounds = max((len(declared(spec, a.name)) for a in inputs), default=0)
        for turn in range(rounds):
            yield f"inputs {turn}", {a.name: in_turn(spec, a.name, turn) for a in inputs}
        return
    seen: dict[str, int] = {}
    for turn, wide in enumerate(_wanted(spec, large=large)):
        seen[wide.distribution] = count = seen.get(wide.distribution, 0) + 1
        label = wide.distribution + (f" {count}" if count > 1 else "")
        yield (
            label,
            {
                a.name: in_turn(spec, a.name, turn)
                if a.name in kept or (isinstance(wide, Ends) and _is_beside(a, inputs, sizes))
                else _fitting(wide, a, spec)
                for a in inputs
            },
        )


def _wanted(spec: ProblemSpec, *, large: bool) -> Iterator[Distribution]:
    excluded = {*spec.trials.exclude}
    if ONE_HOT in excluded:  # hardly anything but zeros makes no sense there
        excluded.add(ENDS)
    for distribution in spec.trials.distributions or (LONG if large else WIDE):
        if distribution.distribution in excluded:
            continue
        yield distribution
        if large and isinstance(distribution, OneHot) and ENDS not in excluded:
            yield Ends(value=distribution.value)


def _is_beside(argument: Argument, inputs: Sequence[Argument], sizes: Mapping[str, int]) -> bool:
    """Whether others have long rows and this has none, as filters have: zeros in both would leave next to no output."""
    short = {a.name: is_short_row(array_shape(a, sizes)) for a in inputs}
    return short[argument.name] and not all(short.values())


def _fitting(distribution: Distribution, argument: Argument, spec: ProblemSpec) -> Distribution:
    """Of the default ones, the one that fits the argument's type."""
    if spec.trials.distributions or argument.dtype != "float16" or distribution not in WIDE:
        return distribution
    return NARROW[WIDE.index(distribution)]


def declared(spec: ProblemSpec, argument: str) -> tuple[Distribution, ...]:
    """The problem's own distributions of an argument, one a set in turn."""
    entry = spec.inputs[argument]
    return entry if isinstance(entry, tuple) else (entry,)


def in_turn(spec: ProblemSpec, argument: str, turn: int) -> Distribution:
    """The declared one of an argument that set number ``turn`` draws from."""
    entry = declared(spec, argument)
    return entry[turn % len(entry)]


def _off_the_list(spec: ProblemSpec, cases: Sequence[Case], *, slow: bool) -> Iterator[Trial]:
    listed = [dict(case.sizes) for case in cases]
    wanted = spec.trials.other_sizes
    sizes = _derived(spec, cases) if isinstance(wanted, bool) else map(dict, wanted)
    if wanted is False:
        return
    seen: list[Mapping[str, int]] = list(listed)
    for number, entry in enumerate(sizes):
        if entry in seen:
            continue
        seen.append(entry)
        yield off_the_list(spec, entry, number, slow=slow)


def off_the_list(
    spec: ProblemSpec, sizes: Mapping[str, int], turn: int, *, slow: bool, told: str = ""
) -> Trial:
    """Sizes as a trial, with inputs as declared."""
    return Trial(
        f"size {place_of(sizes)}",
        sizes,
        slow,
        check=Check.OTHER_SIZES,
        distributions={a.name: in_turn(spec, a.name, turn) for a in spec.arrays if a.is_input},
        told=told,
    )


def _derived(spec: ProblemSpec, cases: Sequence[Case]) -> Iterator[dict[str, int]]:
    """A handful of sizes around those of the cases that the problem's shapes allow and that are cheap."""
    small = dict(min(cases, key=lambda case: elements(spec, case.sizes)).sizes)
    while max(small.values()) > 2 and _too_large(spec, {n: s + 1 for n, s in small.items()}):
        largest = max(small, key=lambda name: small[name])
        small[largest] //= 2
    for sizes in (*_around(small), *_nearly_listed(spec, cases)):
        if _allowed(spec, sizes):
            yield sizes


def _around(small: Mapping[str, int]) -> Iterator[dict[str, int]]:
    names = list(small)
    yield dict.fromkeys(names, 1)
    yield {name: size + 1 for name, size in small.items()}
    yield {name: max(1, size - 1) for name, size in small.items()}
    yield {name: _PRIMES[i % len(_PRIMES)] for i, name in enumerate(names)}
    yield {name: _ODD[i % len(_ODD)] for i, name in enumerate(names)}
    for name in names if len(names) > 1 else []:
        yield {**small, name: 1}


def _nearly_listed(spec: ProblemSpec, cases: Sequence[Case]) -> Iterator[dict[str, int]]:
    """As long as a case of the list but for one element: what is special about its length shows."""
    names = list(cases[0].sizes)
    few = {name: _FEW[i % len(_FEW)] for i, name in enumerate(names)}
    for name in names:
        sizes = sorted({case.sizes[name] for case in cases}, reverse=True)
        near = ({**few, name: size + 1} for size in sizes)
        yield from islice((entry for entry in near if _allowed(spec, entry)), 1 if len(names) > 2 else 2)


def _allowed(spec: ProblemSpec, sizes: Mapping[str, int]) -> bool:
    """Whether sizes make sound shapes, and cheap ones."""
    return is_sound(spec, sizes) and not _too_large(spec, sizes)


def _too_large(spec: ProblemSpec, sizes: Mapping[str, int]) -> bool:
    return is_sound(spec, sizes) and not is_cheap(spec, sizes, MAX_ELEMENTS, MAX_FLOPS)


def is_sound(spec: ProblemSpec, sizes: Mapping[str, int]) -> bool:
    """Whether sizes make shapes and work that a problem can have."""
    try:
        extents = [extent for argument in spec.arrays for extent in array_shape(argument, sizes)]
        flops, moved = evaluate(spec.work.flops, sizes), evaluate(spec.work.bytes, sizes)
    except ExpressionError:
        return False
    return min(extents, default=1) >= 1 and moved >= 1 and flops >= 0


def trial_faults(spec: ProblemSpec) -> Iterator[Fault]:
    """What is wrong with ``[trials]`` and with ids that would be taken for a trial's."""
    inputs = {a.name: a for a in spec.arrays if a.is_input}
    for name in spec.trials.keep:
        if name not in inputs:
            yield (
                ("trials", "keep"),
                f"there is no input array {name!r} (there are: {', '.join(inputs) or 'none'})",
            )
    floats = [a for a in inputs.values() if "float" in a.dtype and a.name not in spec.trials.keep]
    for index, item in enumerate(spec.trials.distributions):
        if fault := next(filter(None, (distribution_fault(item, a.dtype) for a in floats)), ""):
            yield ("trials", "distributions", index), fault
    known: set[str] = {distribution.distribution for distribution in spec.trials.distributions or WIDE}
    for name in spec.trials.exclude:
        if name not in known and not (name == ENDS and ONE_HOT in known):
            yield (
                ("trials", "exclude"),
                f"{name!r} is not among the distributions ({', '.join(sorted(known))})",
            )
    if known <= set(spec.trials.exclude):
        yield (
            ("trials", "exclude"),
            "leaves no distribution: name the inputs to be drawn as declared under keep",
        )
    yield from _size_faults(spec)
    for kind, cases in (("cases", spec.cases), ("slow_cases", spec.slow_cases)):
        for index, case in enumerate(cases):
            if _looks_like_a_trial(case):
                yield (kind, index, "id"), f"{case.id!r} starts as a trial's id does: choose another"


def _size_faults(spec: ProblemSpec) -> Iterator[Fault]:
    sizes = () if isinstance(spec.trials.other_sizes, bool) else spec.trials.other_sizes
    for index, entry in enumerate(sizes):
        key = ("trials", "other_sizes", index)
        if set(entry) != set(spec.size_names):
            yield key, f"needs the sizes {', '.join(spec.size_names)}, as the cases have"
        elif not is_sound(spec, entry):
            yield key, "gives no sound shapes and work: every extent must be at least 1, bytes too"


def _looks_like_a_trial(case: CaseSpec) -> bool:
    return case.id.startswith(("stress ", "size "))
