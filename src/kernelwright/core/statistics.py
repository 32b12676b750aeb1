"""Whether a challenger is faster than an incumbent: an interval on the ratio of their times, taken look by look.

Both sides run in turn, so what drifts (clock, temperature, a neighbour) hits both and cancels in the ratio. Round r
gives one log ratio d_r of the objective's cost over all cases. On these differences:

* **Student on the 20 % trimmed mean** (Yuen and Dixon, Biometrika 60, 1973: standard error from the winsorised
  variance, h - 1 degrees of freedom for h kept values). Not the bootstrap: with the 8 to 64 differences that a duel
  has, a percentile interval covers less than it claims, and at the levels that many challengers need (1e-4 and below)
  its ends are the sample's extremes; Student's tails reach there, and Yuen's statistic keeps its level under the rare
  long spikes of timings, which only inflate a mean and its error.
* **Serial correlation**: the variance is that of the effective sample size n (1 - rho) / (1 + rho) of an AR(1) series
  (Bayley and Hammersley, J. R. Stat. Soc. 8, 1946), rho >= 0 estimated at lag 1.
* **Quantised timers**: an event's time comes in steps of about half a microsecond (CUDA runtime API, cudaEventElapsedTime;
  finer steps are recognised). Noise above a step averages the error out; else a mean is off by up to half a step a side.
  The bias left under gaussian noise of deviation s is at most q/2 exp(-2 pi^2 s^2 / q^2) (Widrow and Kollar,
  Quantization Noise, 2008); it widens the interval, so equal readings never look like certainty.
* **Input sets**: runs rotate over a few sets of inputs, and a kernel whose time depends on its data has another ratio on
  each. Where an analysis of variance sees that beyond doubt, each set's own mean is taken out of its rounds (a fixed
  effect, paid for in degrees of freedom) and the ratio is the mean over the sets.
* **Many challengers**: duel k of a campaign may be promoted wrongly with probability total / (k (k + 1)), which sums to
  ``total`` over any number of duels; its looks share that equally (Bonferroni).
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, expm1, log, pi, sqrt
from statistics import fmean, median
from typing import Final, Protocol

import numpy as np

from kernelwright.core.objective import Objective

LOOKS: Final = (8, 16, 32, 64)
"""Rounds after which a duel is judged; the last is its bound."""
TOTAL_ERROR: Final = 0.01
"""Probability that a whole campaign promotes any challenger that is no faster."""
RELEVANT_GAIN: Final = 0.002
"""A challenger has to be faster by this share; below it two builds of one source can differ."""
CONFIDENCE: Final = 0.99
"""Of the interval that is shown, and (one side) of giving up on a challenger."""
SURE_GAIN: Final = 0.05
"""One batch alone may promote above this gain: no accident of where a module was loaded is as large."""
AGREEMENT: Final = 0.7
"""Share of the batches that have to be ahead by their medians."""
TRIM: Final = 0.2
INPUT_SETS: Final = 3
"""Over which rounds rotate (``devices.base.TimingProtocol``)."""
SET_LEVEL: Final = 1e-6
"""Probability that equal input sets are taken for unequal ones."""
SPIKE: Final = 4.0
"""Deviations beyond which a round is a spike when input sets are compared."""
EVENT_STEP_MS: Final = 0.0005
STEPS_MS: Final = {"events": EVENT_STEP_MS, "graph": EVENT_STEP_MS / 10, "clock": 1e-6}
"""Resolution of a sample by the method that took it."""
_LEAST_MS: Final = 1e-9
_COARSEST: Final = 2
"""Timers coarser than their documentation were seen, by this factor."""
_FINE: Final = 1e-4
"""Steps below this share of a time do not matter here."""


class Verdict(StrEnum):
    """What a duel says: the challenger takes the lead, the incumbent keeps it, or more rounds are needed."""

    PROMOTE = "promote"
    KEEP = "keep"
    MORE = "more"


class PairedSamples(Protocol):
    """Samples of one case in ms, entry i of both sides taken next to each other (``devices.base.DuelCase``)."""

    @property
    def case(self) -> str:
        """Id of the case."""
        ...

    @property
    def challenger_ms(self) -> Sequence[float]:
        """The challenger's samples."""
        ...

    @property
    def incumbent_ms(self) -> Sequence[float]:
        """The incumbent's samples."""
        ...

    @property
    def method(self) -> str:
        """How they were timed (``core.outcome.CaseTiming.method``)."""
        ...


@dataclass(frozen=True)
class Estimate:
    """Log ratio of the costs, challenger over incumbent. ``error`` has ``freedom`` degrees; ``bias`` is its bound."""

    value: float
    error: float
    freedom: int
    bias: float
    rounds: int

    def reach(self, alpha: float) -> float:
        """Half width of a one-sided interval at level ``alpha``."""
        from scipy.special import stdtrit

        return float(-stdtrit(self.freedom, alpha)) * self.error + self.bias


@dataclass(frozen=True)
class Decision:
    """Ratio of costs, challenger over incumbent (under 1 is faster), its two-sided interval at :data:`CONFIDENCE`.

    ``bound`` is what the ratio does not exceed at the level ``alpha`` that this look may spend; it decides. ``None``
    where nothing was measured.
    """

    verdict: Verdict
    reason: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    bound: float | None = None
    alpha: float | None = None
    rounds: int = 0


def look_alpha(challenger: int, *, total: float = TOTAL_ERROR, looks: int = len(LOOKS)) -> float:
    """One-sided error that each look of the campaign's duel number ``challenger`` (from 1) may spend."""
    return total / (challenger * (challenger + 1)) / looks


def decide(
    batches: Sequence[Iterable[PairedSamples]],
    objective: Objective,
    challenger: int,
    *,
    gain: float = RELEVANT_GAIN,
    rounds: int = LOOKS[-1],
) -> Decision:
    """Judge a duel after some batches; ``rounds`` is its bound. ValueError without a complete round.

    A clear gain in one batch promotes at once; a smaller one needs several batches that agree, since what depends on
    where a module was loaded is the same for a whole batch. A challenger that is surely not faster by ``gain``, or
    not even ahead after the second look, is given up.
    """
    alpha = look_alpha(challenger)
    whole = estimate([list(batch) for batch in batches], objective)
    ahead = [median(_log_ratios(list(batch), objective)) < 0 for batch in batches]
    shown = whole.reach((1 - CONFIDENCE) / 2)
    bound = whole.value + whole.reach(alpha)
    threshold = log(1 - gain)
    agreed = len(batches) > 1 and sum(ahead) > AGREEMENT * len(batches)
    sure = agreed or bound < log(1 - SURE_GAIN)
    verdict, reason = Verdict.MORE, "not decided yet"
    if bound < threshold and sure:
        verdict, reason = Verdict.PROMOTE, f"faster by {-100 * expm1(bound):.2g} % or more"
    elif whole.value - whole.reach(1 - CONFIDENCE) > threshold:
        verdict, reason = Verdict.KEEP, f"not faster by {100 * gain:.2g} %"
    elif whole.value >= 0 and len(batches) > 1:
        verdict, reason = Verdict.KEEP, "not ahead"
    elif whole.rounds >= rounds:
        verdict, reason = (
            Verdict.KEEP,
            f"not shown to be faster by {100 * gain:.2g} % in {whole.rounds} rounds",
        )
    return Decision(
        verdict=verdict,
        reason=reason,
        ratio=exp(whole.value),
        low=exp(whole.value - shown),
        high=exp(whole.value + shown),
        bound=exp(bound),
        alpha=alpha,
        rounds=whole.rounds,
    )


def estimate(batches: Sequence[Sequence[PairedSamples]], objective: Objective) -> Estimate:
    """The log ratio over all complete rounds of the batches. ValueError when there are fewer than two."""
    ratios = [_log_ratios(batch, objective) for batch in batches]
    rounds, lost = without_sets(ratios)
    if len(rounds) < 2:
        raise ValueError("a duel needs at least two complete rounds")
    value, error, freedom = trimmed_mean(rounds)
    error *= sqrt(freedom / (freedom - lost))
    return Estimate(value, error, freedom - lost, _bias(batches, objective), len(rounds))


def without_sets(batches: Sequence[Sequence[float]], sets: int = INPUT_SETS) -> tuple[list[float], int]:
    """All rounds without what their input set adds to them, and the degrees of freedom that this costs.

    Round ``i`` of every batch ran on set ``i`` modulo ``sets``. Unchanged, at no cost, where sets are alike, and at the
    first look: few rounds cannot tell.
    """
    from scipy.special import fdtrc

    values = np.array([value for batch in batches for value in batch])
    owner = np.array([index % sets for batch in batches for index in range(len(batch))])
    freedom = len(values) - sets
    if len(values) < LOOKS[1] or len(np.unique(owner)) < sets:
        return values.tolist(), 0
    middles = np.array([np.median(values[owner == each]) for each in range(sets)])
    rest = values - middles[owner]
    reach = SPIKE * 1.4826 * float(np.median(np.abs(rest))) or np.inf
    rest = np.clip(rest, -reach, reach)  # a spike must not hide what the rest shows
    means = middles + [rest[owner == each].mean() for each in range(sets)]
    within = float(((rest - (means - middles)[owner]) ** 2).sum()) / freedom
    between = float(((means - means[owner].mean())[owner] ** 2).sum()) / (sets - 1)
    if not between or (within and fdtrc(sets - 1, freedom, between / within) >= SET_LEVEL):
        return values.tolist(), 0
    return (values - middles[owner] + middles.mean()).tolist(), sets - 1


def trimmed_mean(values: Sequence[float]) -> tuple[float, float, int]:
    """Mean without the :data:`TRIM` smallest and largest, its standard error, degrees of freedom.

    The error allows for serial correlation in the given order.
    """
    number = len(values)
    cut = int(TRIM * number)
    ordered = sorted(values)
    kept = ordered[cut : number - cut]
    low, high = kept[0], kept[-1]
    winsorised = [min(max(value, low), high) for value in values]
    centre = fmean(winsorised)
    squares = sum((value - centre) ** 2 for value in winsorised)
    error = sqrt(squares / (len(kept) * (len(kept) - 1)))
    correlation = _lag_one(winsorised, centre, squares)
    return fmean(kept), error * sqrt((1 + correlation) / (1 - correlation)), len(kept) - 1


def _lag_one(values: Sequence[float], centre: float, squares: float) -> float:
    """Correlation with the value before, between 0 and 0.9; the estimate's own bias of -1/n is put back."""
    if not squares:
        return 0.0
    products = sum((a - centre) * (b - centre) for a, b in itertools.pairwise(values))
    return min(max(products / squares + 1 / len(values), 0.0), 0.9)


def _log_ratios(batch: Sequence[PairedSamples], objective: Objective) -> list[float]:
    complete = min((min(len(c.challenger_ms), len(c.incumbent_ms)) for c in batch), default=0)
    return [
        log(
            objective.cost({c.case: max(c.challenger_ms[r], _LEAST_MS) for c in batch})
            / objective.cost({c.case: max(c.incumbent_ms[r], _LEAST_MS) for c in batch})
        )
        for r in range(complete)
    ]


def _bias(batches: Sequence[Sequence[PairedSamples]], objective: Objective) -> float:
    """Bound of what the timer's steps add to the log ratio, both sides together."""
    methods = {pairs.case: pairs.method for batch in batches for pairs in batch}
    sides = [_samples(batches, side) for side in ("challenger_ms", "incumbent_ms")]
    steps = {
        case: _step([s for side in sides for s in side[case]], STEPS_MS.get(method, EVENT_STEP_MS))
        for case, method in methods.items()
    }
    total = 0.0
    for side in sides:
        times = {case: max(median(samples), _LEAST_MS) for case, samples in side.items()}
        least = {
            case: max(time - _rounding(side[case], steps[case]), time / 10) for case, time in times.items()
        }
        total += log(objective.cost(times) / objective.cost(least))
    return total


def _step(samples: Sequence[float], known: float) -> float:
    """The timer's step in ms: the smallest distance of two readings; ``known`` when there is one reading only.

    0 when readings lie closer than matters here.
    """
    readings = np.unique(samples)
    if len(readings) == 1:
        return known
    gaps = np.diff(readings)
    gaps = gaps[gaps > _FINE * readings[0]]
    return min(float(gaps.min()), _COARSEST * known) if len(gaps) else 0.0


def _rounding(samples: Sequence[float], step: float) -> float:
    """Bound in ms of a mean's error by the timer's steps.

    Where the middle of the samples has one or two readings, the noise does not reach over a step.
    """
    cut = int(TRIM * len(samples))
    middle = np.sort(samples)[cut : len(samples) - cut]
    if not step or len(np.unique(middle)) <= 2:
        return step / 2
    return step / 2 * exp(-2 * (pi * float(middle.std()) / step) ** 2)


def _samples(batches: Sequence[Iterable[PairedSamples]], side: str) -> dict[str, list[float]]:
    """Samples in ms of one side by case, over all batches."""
    samples: dict[str, list[float]] = {}
    for batch in batches:
        for pairs in batch:
            samples.setdefault(pairs.case, []).extend(getattr(pairs, side))
    return samples


def medians(batches: Sequence[Iterable[PairedSamples]], side: str) -> dict[str, float]:
    """Median in ms by case of one side (``challenger_ms`` or ``incumbent_ms``) over all batches."""
    return {case: median(values) for case, values in _samples(batches, side).items()}
