"""Recorded milestones against the changes of the lead that follow."""

from collections.abc import Sequence

from kernelwright.memory.records import Milestone


class Leads:
    """Takes the leader after each event and says when the recorded milestones tell otherwise.

    A lead by a rule is noted only after the search has learned from the experiment: one that did not last as long has
    no milestone. A campaign that was killed (not ``complete``) may lack its last one.
    """

    def __init__(self, milestones: Sequence[Milestone], *, complete: bool) -> None:
        self._milestones = milestones
        self._complete = complete
        self._leader: int | None = None
        self._brief = ""
        self.confirmed = 0

    def follow(self, leader: int, ratio: float, *, by_rule: bool) -> str:
        """After an event experiment ``leader`` leads; what deviates, empty while nothing does."""
        if leader == self._leader:
            return ""
        first, self._leader = self._leader is None, leader
        due = self._milestones[self.confirmed] if self.confirmed < len(self._milestones) else None
        if due is not None and due.experiment == leader:
            self.confirmed += 1
            self._brief = ""
            return (
                ""
                if due.ratio == ratio
                else f"the milestone of experiment {leader} is recorded with ratio {due.ratio}, {ratio} follows"
            )
        if self._brief and self.confirmed and self._milestones[self.confirmed - 1].experiment == leader:
            self._brief = ""
            return ""
        recorded = f"experiment {due.experiment}" if due else "none"
        fault = f"experiment {leader} takes the lead, the next recorded milestone is {recorded}"
        if self._brief or first or not by_rule:
            return fault if self._matters(due) else ""
        self._brief = fault
        return ""

    def _matters(self, due: Milestone | None) -> bool:
        return self._complete or due is not None

    def rest(self) -> str:
        """What deviates when nothing more is recorded."""
        if self.confirmed < len(self._milestones):
            due = self._milestones[self.confirmed]
            return (
                f"a milestone is recorded for experiment {due.experiment}, but nothing recorded makes it lead"
            )
        return self._brief if self._complete else ""
