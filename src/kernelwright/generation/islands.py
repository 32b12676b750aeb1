"""Which template a model is shown as the one to work from, and what it is asked for.

Templates live on a few islands (Whitley, Rana, Heckendorn, "The island model genetic algorithm", 1999): each round
of requests belongs to one, works from its best, and leaves what it brings there. Every few rounds the best of all
migrates: everyone works from it. So several lines of thought stay alive while one of them leads.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kernelwright.generation.notebook import Notebook, Seen

ISLANDS: Final = 3
MIGRATE_EVERY: Final = 4


class Aim(StrEnum):
    """What a round asks for."""

    IMPROVE = "improve"
    EXPLORE = "explore"
    CROSS = "cross"


_WORDS: Final = {
    Aim.IMPROVE: "Aim at what costs most: the cases and the bottleneck where the shown template is farthest from the "
    "floor. A change that helps several cases is worth most.",
    Aim.EXPLORE: "Leave the beaten track: propose structures that none of the directions so far has tried.",
    Aim.CROSS: "Combine what makes the shown templates good: different cases may want different kernels "
    "(launches with `when`), or one kernel can take over an idea of the other.",
}


@dataclass(frozen=True)
class Choice:
    """What one round works from: ``lead``, other good templates ``mates``, the aim in words."""

    island: int
    aim: Aim
    lead: Seen
    mates: tuple[Seen, ...]

    @property
    def emphasis(self) -> str:
        """The aim as a sentence for the prompt."""
        return _WORDS[self.aim]


@dataclass
class Islands:
    """Rounds in turn over islands; one with nothing on it yet works from the best of all."""

    count: int = ISLANDS
    migrate_every: int = MIGRATE_EVERY
    home: dict[str, int] = field(default_factory=dict)

    def settle(self, template: str, island: int) -> None:
        """A template that came in with a round stays on its island."""
        self.home.setdefault(template, island)

    def choose(self, number: int, notebook: Notebook, *, stagnant: bool) -> Choice | None:
        """The choice for round ``number`` (from 0); ``None`` while nothing has been measured."""
        best = notebook.best(64)
        if not best:
            return None
        island = number % self.count
        own = [seen for seen in best if self.home.get(seen.template) == island]
        migrating = number % self.migrate_every == 0
        lead = best[0] if migrating or not own else own[0]
        aim = self._aim(number, stagnant=stagnant, several=len(best) > 1)
        others = [seen for seen in best if seen.template != lead.template]
        mates: tuple[Seen, ...] = ()
        if aim is Aim.CROSS:
            mates = tuple(notebook.different(1, [lead])) or tuple(others[:1])
        elif lead is not best[0]:
            mates = (best[0],)
        return Choice(island, aim, lead, mates)

    def _aim(self, number: int, *, stagnant: bool, several: bool) -> Aim:
        order = (Aim.EXPLORE, Aim.CROSS) if stagnant else (Aim.IMPROVE, Aim.EXPLORE, Aim.IMPROVE, Aim.CROSS)
        aim = order[number % len(order)]
        return Aim.IMPROVE if aim is Aim.CROSS and not several else aim
