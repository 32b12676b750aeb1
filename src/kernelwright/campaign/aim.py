"""What a campaign aims at, and how far it is: the goal, the place on a board, the weakest case."""

from collections.abc import Callable, Mapping

from kernelwright.campaign.places import Places
from kernelwright.campaign.standing import Entry, Standing
from kernelwright.core.goal import Attained, Goal
from kernelwright.generation.prompt import BoardPlace


class Aim:
    """``floors_ms`` gives the physical floor by case; empty where no ceiling is known."""

    def __init__(
        self,
        goal: Goal | None,
        standing: Standing,
        floors_ms: Callable[[], Mapping[str, float]],
        places: Places | None = None,
    ) -> None:
        self.goal = goal
        self.places = places
        self._standing = standing
        self._floors_ms = floors_ms

    def attained(self, baseline: Entry | None) -> Attained:
        """How far the campaign is now."""
        leader, objective = self._standing.incumbent, self._standing.objective
        rank = self.places.won if self.places else None
        if leader is None:
            return Attained(rank=rank)
        time = objective.time(leader.times)
        floors = self._floors_ms()
        roofline = None
        if all(floors.get(case) for case in leader.times):
            roofline = objective.time({case: floors[case] for case in leader.times}) / time
        speedup = objective.time(baseline.times) / time if baseline else None
        return Attained(time, roofline, speedup, rank)

    def reached(self, baseline: Entry | None) -> bool:
        """Whether the goal is met."""
        return self.goal is not None and self.goal.reached(self.attained(baseline))

    @property
    def pressing(self) -> bool:
        """Whether a place is asked for that is not held yet: numbers alone will hardly bring it."""
        wanted = self.goal.rank if self.goal else None
        rank = self.places.won if self.places else None
        return wanted is not None and (rank is None or rank > wanted)

    def place(self) -> BoardPlace | None:
        """For a prompt: what is left to the next place and to the one that is asked for, and where to look."""
        now = self.places.now if self.places else None
        if self.places is None or now is None or now.rank is None or now.score_s is None:
            return None
        wanted = self.goal.rank if self.goal and self.goal.rank else now.rank
        case, ratio, against = self._weakest()
        return BoardPlace(
            rank=now.rank,
            entries=now.entries,
            score_ms=1e3 * now.score_s,
            next_gap=self.places.gap(now.rank - 1),
            wanted=wanted if wanted < now.rank - 1 else None,
            wanted_gap=self.places.gap(wanted),
            case=case,
            ratio=ratio,
            against=against,
        )

    def _weakest(self) -> tuple[str, float, str]:
        """The case farthest from its floor, or from the best that is known of it."""
        leader = self._standing.incumbent
        assert leader is not None, "a place on a board follows a measurement"
        floors = self._floors_ms()
        against, limits = "its floor", {case: floors[case] for case in leader.times if floors.get(case)}
        if not limits:
            against, limits = "the best known there", dict(self._standing.best_known)
        ratios = {case: leader.times[case] / limit for case, limit in limits.items() if case in leader.times}
        case = max(ratios, key=lambda each: ratios[each], default="")
        return case, ratios.get(case, 1.0), against
