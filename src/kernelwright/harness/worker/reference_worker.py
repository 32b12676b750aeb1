"""Looks at a problem's reference and tolerance: the only child that runs ``reference.py`` without a device."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from math import prod
from typing import Final

import numpy as np

from kernelwright.core.case import Array, Buffer
from kernelwright.core.errors import HarnessError, ProblemError
from kernelwright.core.outcome import Check
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.self_test import (
    LOOK_FLOPS,
    RAISES,
    TRIALS,
    SelfTestRequest,
    SelfTestRow,
    Verdict,
    multiples,
)
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.wire import Hello, Reply, Request
from kernelwright.harness.worker.impostors import IMPOSTORS, MAY_BE_RIGHT, Answered, Judge, stored
from kernelwright.problems.case import Trial
from kernelwright.problems.loader import load_problem
from kernelwright.problems.source import ProblemSource
from kernelwright.problems.tolerance import DOWNGRADES, is_single_precision
from kernelwright.problems.trials import declared, is_cheap

MAX_SETS: Final = 4
_FAR: Final = 1000
"""Input sets so far apart are of other seeds and, in steps of the sets, of the same distributions."""
_BY_CHANCE: Final = 8
"""So few values may be right by chance on one input set."""
_TIGHTEN: Final = "tighten rtol, atol or rms, or give inputs whose outputs differ more"
_CANNOT_TELL: Final = (
    "these are exactly the right values, whatever the inputs: no tolerance can tell them from a right answer, so leave "
    "the case out, or give it sizes or inputs whose right output nobody knows beforehand"
)


class ReferenceService:
    """Answers self-test requests for one problem."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._source = ProblemSource(load_problem(setup.problem), setup.seed, setup.slow_cases)

    def greet(self, report: SandboxReport) -> Hello:
        """Has no toolchain."""
        return Hello(report)

    def answer(self, request: Request) -> Reply:
        """Rows for one case, or for the trials."""
        if request.self_test is None:
            raise HarnessError("a reference worker was asked for something else than a self-test")
        rows = examine(self._source, request.self_test)
        return Reply(request.id, self_tested=tuple(rows))


def examine(source: ProblemSource, request: SelfTestRequest) -> list[SelfTestRow]:
    """Everything about one case, or the trials. Raises ProblemError for a reference that fails outright."""
    with np.errstate(all="ignore"):
        if request.case == TRIALS:
            return list(_look_at_trials(source, quick=request.quick))
        return list(_Examination(source, request).rows())


class _Examination:
    """One case, on every input set of the problem's own distributions."""

    def __init__(self, source: ProblemSource, request: SelfTestRequest) -> None:
        self._source, self._quick = source, request.quick
        self._case = source.case(request.case)
        self._buffers = source.problem.buffers(self._case)
        self._outputs = [b for b in self._buffers if b.role != "in"]
        spec = source.problem.spec
        entries = [len(declared(spec, a.name)) for a in spec.arrays if a.is_input]
        self._sets = min(MAX_SETS, max(entries, default=1))
        self._judge = Judge(source)

    def rows(self) -> Iterator[SelfTestRow]:
        """In the order of a reader's interest."""
        answered = [self._answered(index) for index in range(self._sets)]
        yield self._right_passes(answered)
        yield from (self._impostor(name, answered) for name in IMPOSTORS)
        yield from self._reference_is_sound(answered)
        for name in answered[0].inputs:
            yield self._reacts(name, answered)
        if not self._quick:
            yield from self._downgrades(answered)

    def _row(self, name: str, verdict: Verdict, detail: str = "", mend: str = "") -> SelfTestRow:
        return SelfTestRow(name, self._case.id, verdict, detail, mend)

    def _answered(self, index: int) -> Answered:
        inputs = self._inputs(index)
        other = self._inputs(index + _FAR * self._sets)
        return Answered(self._case.id, inputs, self._expected(inputs), self._expected(other))

    def _inputs(self, index: int) -> Mapping[str, Array]:
        return self._source.inputs(self._case.id, index).arrays

    def _expected(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        outputs = self._source.expected(self._case.id, inputs, np)
        return {name: np.asarray(values, np.float64) for name, values in outputs.items()}

    # -- the comparison -------------------------------------------------------------------------------

    def _right_passes(self, answered: list[Answered]) -> SelfTestRow:
        for index, each in enumerate(answered):
            for buffer in self._outputs:
                found = self._judge.compare(each, buffer, stored(each.expected[buffer.name], buffer))
                if found.wrong:
                    detail = f"input set {index}: {found.message(buffer.name)}"
                    mend = f"widen the tolerance to what {buffer.dtype} can hold"
                    return self._row("right output", Verdict.FAILED, detail, mend)
        return self._row("right output", Verdict.OK)

    def _impostor(self, name: str, answered: list[Answered]) -> SelfTestRow:
        """Refused by at least one input set on every output: a candidate has to pass all sets."""
        if name == "float16 rounding" and not is_single_precision(self._source.problem.spec):
            return self._row(name, Verdict.SKIPPED, "the problem itself works in float16")
        weak: list[str] = []
        judged = False
        for buffer in self._outputs:
            results = [self._worst(name, each, buffer) for each in answered]
            passing = [index for index, (passes, _) in enumerate(results) if passes]
            known = [index for index, (passes, _) in enumerate(results) if passes is not None]
            judged |= bool(known)
            if passing:
                worst = multiples(max(results[index][1] for index in passing))
                detail = f"passes for {buffer.name} with {worst}"
                if len(passing) == len(known):
                    exact = all(results[index][1] == 0 for index in passing)
                    mend = _CANNOT_TELL if exact else _TIGHTEN
                    return self._row(name, Verdict.FAILED, detail, mend)
                if prod(buffer.shape) > _BY_CHANCE:
                    weak.append(f"{detail} on input set {', '.join(map(str, passing))} of {len(answered)}")
        if weak:
            return self._row(name, Verdict.WARNING, "; ".join(weak), "the other input sets refuse it")
        return self._row(name, Verdict.OK if judged else Verdict.SKIPPED)

    def _worst(self, name: str, answered: Answered, buffer: Buffer) -> tuple[bool | None, float]:
        """Whether a variant passes (``None``: there is none), and the smallest error of one, in tolerances."""
        passes: bool | None = None
        least = float("inf")
        right = stored(answered.expected[buffer.name], buffer)
        for variant in IMPOSTORS[name](answered, buffer):
            if name in MAY_BE_RIGHT and variant.tobytes() == right.tobytes():
                continue
            found = self._judge.compare(answered, buffer, variant)
            passes = bool(passes) or found.wrong == 0
            least = min(least, found.worst)
        return passes, least

    # -- the reference --------------------------------------------------------------------------------

    def _reference_is_sound(self, answered: list[Answered]) -> Iterator[SelfTestRow]:
        problem, first = self._source.problem, answered[0]
        wide = problem.widened(first.inputs)
        before = {name: np.array(array) for name, array in wide.items()}
        again = problem.answer(self._case, wide, np)
        changed = [name for name in wide if not _same(before[name], wide[name])]
        if changed:
            yield self._row("inputs unchanged", Verdict.FAILED, f"the reference changes {', '.join(changed)}",
                            "work on a copy in reference.py")  # fmt: skip
        else:
            yield self._row("inputs unchanged", Verdict.OK)
        differing = [
            n for n in first.expected if not _same(first.expected[n], np.asarray(again[n], np.float64))
        ]
        if differing:
            yield self._row("deterministic", Verdict.FAILED,
                            f"equal inputs give another {', '.join(differing)}",
                            "no random numbers and no state in reference.py")  # fmt: skip
        else:
            yield self._row("deterministic", Verdict.OK)
        bad = [
            f"{name} on input set {index}"
            for index, each in enumerate(answered)
            for name, values in each.expected.items()
            if not np.isfinite(values).all()
        ]
        detail = f"not finite: {', '.join(bad)}; there only the place of such values is compared"
        yield (
            self._row("finite", Verdict.WARNING, detail, "choose inputs that give finite values")
            if bad
            else (self._row("finite", Verdict.OK))
        )

    def _reacts(self, name: str, answered: list[Answered]) -> SelfTestRow:
        label = f"reacts to {name}"
        results = []
        for index, each in enumerate(answered):
            other = self._unlike(each.inputs[name], name, index)
            if other is None:
                continue
            if self._changes(each, name, other):
                return self._halves(label, name, each, other)
            results.append(index)
        if not results:
            return self._row(label, Verdict.SKIPPED, f"{name} is constant")
        return self._row(label, Verdict.FAILED, f"with another {name} the outputs stay within the tolerance",
                         f"use {name} in reference.py, or choose inputs and sizes for which it matters")  # fmt: skip

    def _halves(self, label: str, name: str, answered: Answered, other: Array) -> SelfTestRow:
        """Whether each half matters, not only the whole."""
        if self._quick or other.size < 2:
            return self._row(label, Verdict.OK)
        half = other.size // 2
        for word, part in (("first", slice(None, half)), ("second", slice(half, None))):
            mixed = answered.inputs[name].copy()
            mixed.reshape(-1)[part] = other.reshape(-1)[part]
            if not self._changes(answered, name, mixed):
                detail = f"another {word} half of {name} leaves the outputs within the tolerance"
                return self._row(
                    label, Verdict.WARNING, detail, "candidates need not read it: is that meant?"
                )
        return self._row(label, Verdict.OK)

    def _unlike(self, array: Array, name: str, index: int) -> Array | None:
        """The same argument drawn anew; constants are scaled and shifted; ``None`` for constant integers."""
        other = self._inputs(index + 2 * _FAR * self._sets)[name]
        if not _same(array, other):
            return other
        return (array * 1.5 + 0.5).astype(array.dtype) if array.dtype.kind == "f" else None

    def _changes(self, answered: Answered, name: str, array: Array) -> bool:
        changed = self._expected({**answered.inputs, name: array})
        return any(
            self._judge.compare(answered, buffer, stored(changed[buffer.name], buffer)).wrong
            for buffer in self._outputs
        )

    def _downgrades(self, answered: list[Answered]) -> Iterator[SelfTestRow]:
        """How far results of rounded inputs are off: at worst over the input sets, then over the stress trials."""
        spec = self._source.problem.spec
        floats = {a.name for a in spec.arrays if a.is_input and a.dtype == "float32"}
        if not floats or not is_single_precision(spec):
            return
        for label, rounded in DOWNGRADES.items():
            off = [self._rounded(each, floats, rounded) for each in answered]
            worst, refused = max(error for error, _ in off), any(wrong for _, wrong in off)
            detail, mend = multiples(worst), ""
            if not refused and (trial := self._refusing_trial(floats, rounded)):
                detail, refused = f"{detail}; the trial {trial!r} refuses it", True
            elif not refused:
                mend = "neither the tolerance nor a trial can tell it from float32"
            verdict = Verdict.NOTE if refused or not spec.rules.no_tensor_cores else Verdict.WARNING
            yield self._row(f"inputs rounded to {label}", verdict, detail, mend)

    def _rounded(
        self, answered: Answered, floats: Collection[str], rounded: Callable[[Array], Array]
    ) -> tuple[float, bool]:
        """Worst error in tolerances with rounded inputs, and whether it is refused."""
        inputs = {n: rounded(a) if n in floats else a for n, a in answered.inputs.items()}
        got = self._source.expected(answered.case, inputs, np)
        found = [self._judge.compare(answered, b, stored(got[b.name], b))
                 for b in self._source.buffers(answered.case) if b.role != "in"]  # fmt: skip
        return max(each.worst for each in found), any(each.wrong for each in found)

    def _refusing_trial(self, floats: Collection[str], rounded: Callable[[Array], Array]) -> str:
        """The first stress trial that refuses results of rounded inputs; empty when none does."""
        for trial in _cheap(self._source, self._source.problem.trials(slow=self._source.slow)):
            if trial.check is Check.STRESS_INPUTS:
                answered = _trial_answered(self._source, trial)
                if self._rounded(answered, floats, rounded)[1]:
                    return trial.id
        return ""


def _look_at_trials(source: ProblemSource, *, quick: bool) -> Iterator[SelfTestRow]:
    """The reference has to answer every trial with values that outputs can hold. Quickly: sizes off the list only."""
    judge = Judge(source)
    problem, slow = source.problem, source.slow
    trials = problem.trials(slow=slow) if quick else problem.every_trial(slow=slow, seed=source.seed)
    for trial in _cheap(source, trials):
        if not quick or trial.check is Check.OTHER_SIZES:
            yield from _look_at_trial(source, judge, trial)
    special = "; candidates may be specialised to the listed sizes" if problem.specialised else ""
    yield SelfTestRow("trials", "", Verdict.NOTE, f"{len(trials)} trials{special}")


def _cheap(source: ProblemSource, trials: Iterable[Trial]) -> Iterator[Trial]:
    """Those that a CPU answers in no time."""
    spec = source.problem.spec
    return (trial for trial in trials if is_cheap(spec, trial.sizes, flops=LOOK_FLOPS))


def _trial_answered(source: ProblemSource, trial: Trial) -> Answered:
    inputs = source.inputs(trial.id, 0).arrays
    outputs = source.expected(trial.id, inputs, np)
    expected = {name: np.asarray(values, np.float64) for name, values in outputs.items()}
    return Answered(trial.id, inputs, expected, expected)


def _look_at_trial(source: ProblemSource, judge: Judge, trial: Trial) -> Iterator[SelfTestRow]:
    mend = "exclude it under [trials], or give [trials] distributions of your own"
    if trial.check is Check.OTHER_SIZES:
        mend = "list the sizes that make sense as other_sizes under [trials], or set it to false"
    try:
        answered = _trial_answered(source, trial)
    except ProblemError as error:
        yield SelfTestRow(RAISES, trial.id, Verdict.FAILED, str(error), mend)
        return
    for buffer in source.buffers(trial.id):
        if buffer.role == "in":
            continue
        values = answered.expected[buffer.name]
        if not np.isfinite(values).all():
            detail = f"{buffer.name} is not finite"
            yield SelfTestRow("trial", trial.id, Verdict.WARNING, detail, mend)
        elif (found := judge.compare(answered, buffer, stored(values, buffer))).wrong:
            yield SelfTestRow("trial", trial.id, Verdict.FAILED, found.message(buffer.name), mend)


def _same(left: Array, right: Array) -> bool:
    equal_nan = np.asarray(left).dtype.kind == "f"
    return bool(np.array_equal(left, right, equal_nan=equal_nan))
