"""Which candidate comes next: a bandit over templates, each with an optimiser of its own numbers.

A template's worth is the expected improvement (in log time) of its next configuration over the incumbent, times
the share of its experiments that were measured, per second that such an experiment has cost: the GPU's time goes
where most is expected of it. A new template
first gets a short numeric budget; now and then the least tried one has its turn, since a surrogate with few
points can be wrong, and failures can have been bad luck. A template of which nothing passed yet waits after a few tries
while models may still mend it or bring another.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from kernelwright.campaign.settings import Settings
from kernelwright.core.candidate import Candidate
from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import Outcome, StaticMetrics, Status
from kernelwright.core.space import SearchSpace
from kernelwright.generation.base import Proposal
from kernelwright.optimiser.base import Observation, Optimiser

OptimiserFactory = Callable[[SearchSpace, int], Optimiser]
LEAST_TRIED_SHARE = 0.02
SATURATED = 1e-4
"""Expected gain in log time below which a surrogate's word is no better than chance."""
CLOSENESS = 10
FOCUS_LOOKS = 2000
FOCUS_TRIES = 8
LEAST_FOR_FINDINGS = 12
LEAST_SHARE = 0.03


@dataclass(frozen=True)
class Work:
    """A candidate to evaluate, and why it was chosen."""

    candidate: Candidate
    proposal: Proposal
    why: str


@dataclass
class Arm:
    """One template with its optimiser and what it has cost so far."""

    proposal: Proposal
    optimiser: Optimiser
    asked: int = 0
    told: int = 0
    measured: int = 0
    best: float = inf
    seconds: float = 0.0
    compile_failures: int = 0
    paused_until: int = 0

    @property
    def seconds_each(self) -> float:
        """Mean cost of one experiment; optimistic while unknown."""
        return max(self.seconds / self.told, 1e-3) if self.told else 1e-3

    @property
    def success(self) -> float:
        """Share of its experiments that were measured: 0 for a template none of whose candidates passed yet."""
        return self.measured / self.told if self.told else 1.0


@dataclass
class Policy:
    """The bandit. Not thread-safe: the campaign serialises its calls."""

    settings: Settings
    make_space: Callable[[Proposal], SearchSpace]
    make_optimiser: OptimiserFactory
    arms: dict[str, Arm] = field(default_factory=dict)
    finished: int = 0
    _urgent: deque[Work] = field(default_factory=deque)

    def __post_init__(self) -> None:
        """Its own random numbers, so that a campaign repeats with its seed."""
        self._rng = np.random.default_rng([self.settings.seed, 0x9E37])

    def add(self, proposal: Proposal) -> None:
        """Take a template in; one already known is ignored."""
        if proposal.template.id not in self.arms:
            seed = self.settings.seed * 1009 + len(self.arms)
            optimiser = self.make_optimiser(self.make_space(proposal), seed)
            self.arms[proposal.template.id] = Arm(proposal, optimiser)

    def next(
        self,
        best_cost: float | None,
        *,
        fresh: bool = False,
        unproven: Callable[[Proposal], float] = lambda _: inf,
    ) -> Work | None:
        """The next candidate, or ``None`` when nothing can be asked now.

        ``fresh`` asks of new templates only. ``unproven`` says the most tries of a template of which nothing passed yet:
        a fault of the structure fails with all numbers alike, and they would be spent before its repair comes.
        """
        if self._urgent:
            return self._urgent.popleft()
        open_arms = [a for a in self._open() if not fresh or a.asked < self.settings.young_budget]
        open_arms = [a for a in open_arms if a.measured or a.asked < unproven(a.proposal)]
        arms = [arm for arm in open_arms if arm.paused_until <= self.finished] or open_arms
        while arms:
            arm, why = self._choose(arms, best_cost)
            suggestions = arm.optimiser.ask(1)
            if suggestions:
                arm.asked += 1
                return self._work(arm, suggestions[0].configuration, f"{why}; {suggestions[0].reason}")
            arms.remove(arm)
        return None

    def _open(self) -> list[Arm]:
        """Templates of which something is left to ask."""
        most = inf if self.settings.tuning else 1
        return [arm for arm in self.arms.values() if arm.asked < most and not arm.optimiser.exhausted]

    def first(self, template: str) -> Candidate | None:
        """The first configuration of a known template; ``None`` when it has none that can be listed."""
        arm = self.arms[template]
        space = self.make_space(arm.proposal)
        if not space.enumerable or len(space) == 0:
            return None
        return Candidate(arm.proposal.template, space.configuration(0))

    def urge(self, template: str) -> Work | None:
        """The first configuration of a template comes next; ``None`` when it has none that can be listed."""
        arm, candidate = self.arms[template], self.first(template)
        if candidate is None:
            return None
        arm.asked += 1
        work = self._work(arm, candidate.configuration, "first configuration of a new structure")
        self._urgent.append(work)
        return work

    def never_passed(self, template: str) -> bool:
        """Whether candidates of a known template were tried, and none was measured."""
        arm = self.arms.get(template)
        return arm is not None and arm.told > 0 and arm.measured == 0

    def take_up(self, template: str, configuration: Configuration) -> None:
        """What was in flight when the campaign was interrupted comes next."""
        arm = self.arms[template]
        arm.asked += 1
        self._urgent.append(self._work(arm, configuration, "was in flight before"))

    def focus(self, template: str, values: Mapping[str, Sequence[int]]) -> bool:
        """Try some configurations with these values next; whether there are any."""
        arm = self.arms[template]
        space = self.make_space(arm.proposal)
        if not space.enumerable or not set(values) <= set(space.names):
            return False
        chosen = self._rng.permutation(len(space))[:FOCUS_LOOKS]
        matching = [
            configuration
            for configuration in map(space.configuration, map(int, chosen))
            if all(int(configuration[name]) in allowed for name, allowed in values.items())
        ]
        for configuration in matching[:FOCUS_TRIES]:
            arm.asked += 1
            self._urgent.append(self._work(arm, configuration, "a model asked to search there"))
        return bool(matching)

    @property
    def young(self) -> int:
        """Templates that have not had their short numeric budget, as far as they have numbers left."""
        return sum(arm.asked < self.settings.young_budget for arm in self._open())

    @property
    def is_exhausted(self) -> bool:
        """Whether no optimiser has anything left to ask that may pass."""
        return not self._urgent and all(
            not arm.measured and arm.told >= self.settings.young_budget for arm in self._open()
        )

    def numeric_rate(self, best_cost: float | None) -> float:
        """Expected gain in log time per second of the device, of the best next configuration."""
        arms = self._open()
        return max(
            (arm.optimiser.expected_gain(best_cost) * arm.success / arm.seconds_each for arm in arms),
            default=0.0,
        )

    def findings(self, template: str) -> list[str]:
        """What its optimiser knows of a template's tunables, in a few words."""
        arm = self.arms.get(template)
        if arm is None or arm.measured < LEAST_FOR_FINDINGS:
            return []
        analysis = arm.optimiser.analysis()
        shares = [
            f"{' x '.join(entry.tunables)} {entry.share:.0%}"
            for entry in (*analysis.importance[:4], *analysis.interactions[:2])
            if entry.share > LEAST_SHARE
        ]
        found = [f"of the variance over its numbers, by tunable: {', '.join(shares)}"] if shares else []
        if arm.optimiser.exhausted:
            found.append("every configuration of it was tried")
        return found

    def _choose(self, arms: list[Arm], best_cost: float | None) -> tuple[Arm, str]:
        young = [arm for arm in arms if arm.asked < self.settings.young_budget]
        if young:
            arm = min(young, key=lambda a: a.asked)
            return (
                arm,
                f"new template, configuration {arm.asked + 1} of {self.settings.young_budget} before judging",
            )
        if self._rng.random() < LEAST_TRIED_SHARE:
            return min(arms, key=lambda a: a.asked), "least tried template"
        gains = [arm.optimiser.expected_gain(best_cost) for arm in arms]
        if max(gains) < SATURATED:
            return self._near_the_best(arms), "nothing more is expected of any template: around the best ones"
        rates = [gain * arm.success / arm.seconds_each for gain, arm in zip(gains, arms, strict=True)]
        best = int(np.argmax(rates))
        return arms[best], f"expected gain {100 * gains[best]:.2g} %"

    def _near_the_best(self, arms: list[Arm]) -> Arm:
        """A template drawn by how close its best is to the best of all."""
        best = min(arm.best for arm in arms)
        weights = np.array([(best / arm.best) ** CLOSENESS if np.isfinite(arm.best) else 0.0 for arm in arms])
        total = weights.sum()
        return arms[int(self._rng.choice(len(arms), p=weights / total if total else None))]

    def _work(self, arm: Arm, configuration: Configuration, why: str) -> Work:
        return Work(Candidate(arm.proposal.template, configuration), arm.proposal, why)

    def static(self, candidate: Candidate, static: StaticMetrics) -> None:
        """Tell what the compiler says before the device has spoken."""
        arm = self.arms.get(candidate.template.id)
        if arm is not None:
            arm.optimiser.tell_static(candidate.configuration, static)

    def record(self, candidate: Candidate, outcome: Outcome, cost: float | None) -> bool:
        """Learn from an outcome; true when this pauses the candidate's direction."""
        self.finished += 1
        arm = self.arms.get(candidate.template.id)
        if arm is None:
            return False
        arm.told += 1
        arm.asked = max(arm.asked, arm.told)
        arm.measured += outcome.status is Status.MEASURED
        arm.best = min(arm.best, inf if cost is None else cost)
        arm.seconds += sum(outcome.seconds.get(key, 0.0) for key in ("check", "time", "overhead"))
        arm.seconds += outcome.seconds.get("compile", 0.0) / self.settings.compile_workers
        observation = Observation(
            value=cost,
            status=outcome.status,
            noise=outcome.relative_noise(),
            cases=outcome.times_ms() or None,
            static=outcome.static,
        )
        arm.optimiser.tell(candidate.configuration, observation)
        return outcome.status is Status.COMPILE_FAILED and self._count_failure(arm)

    def _count_failure(self, arm: Arm) -> bool:
        lineage = [a for a in self.arms.values() if a.proposal.direction == arm.proposal.direction]
        arm.compile_failures += 1
        if sum(a.compile_failures for a in lineage) <= self.settings.pause_after:
            return False
        for member in lineage:
            member.compile_failures = 0
            member.paused_until = self.finished + self.settings.pause_experiments
        return True

    def paused(self) -> Iterable[str]:
        """Directions that wait after too many compile failures."""
        return sorted({a.proposal.direction for a in self.arms.values() if a.paused_until > self.finished})
