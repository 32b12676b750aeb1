"""What the memory keeps. Frozen; an experiment never changes after it is recorded."""

from dataclasses import dataclass

from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import Outcome
from kernelwright.core.statistics import Decision, Verdict
from kernelwright.devices.base import DuelCase


@dataclass(frozen=True)
class ProblemRecord:
    """A problem as it was when a campaign began: the texts, so that a result can be repeated from the memory."""

    id: str
    name: str
    spec: str
    reference: str
    baseline: str


@dataclass(frozen=True)
class CampaignRecord:
    """A campaign. ``settings`` and ``device`` are JSON; ``seconds`` is the time used in all sittings.

    ``started`` is Unix time; ``state`` is ``running``, ``interrupted``, ``finished`` or ``failed`` (no baseline). A killed campaign stays
    ``running``.
    """

    id: str
    problem_id: str
    settings: str
    device: str
    objective: str
    started: float
    state: str = "running"
    seconds: float = 0.0


@dataclass(frozen=True)
class TemplateRecord:
    """A template's text and how a campaign came to it."""

    id: str
    name: str
    source: str
    proposer: str
    direction: str
    rationale: str = ""
    predicted: str = ""
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One candidate and what came of it.

    ``seconds`` counts from the campaign's start, all sittings together. ``cost_ms`` is what the search minimises.
    ``twin_of`` is the candidate whose measurement was taken over (equal binary). ``number`` and ``recorded`` (Unix
    time) are given by the memory.
    """

    campaign: str
    candidate: str
    template: str
    configuration: Configuration
    outcome: Outcome
    why: str
    seconds: float
    cost_ms: float | None = None
    score: float | None = None
    eligible: bool = False
    twin_of: str = ""
    number: int = 0
    recorded: float = 0.0


@dataclass(frozen=True)
class Milestone:
    """A new incumbent: when, by which strategy, how good against the baseline (time, under 1 is faster)."""

    campaign: str
    experiment: int
    seconds: float
    strategy: str
    ratio: float
    rank: int | None = None


@dataclass(frozen=True)
class Duel:
    """A candidate against the incumbent, side by side: what was decided and the raw samples.

    ``at_fault`` is the candidate that failed a check during the duel (``decision.reason`` says how); empty for a
    duel that ran to its end. The confirmation at a campaign's end is kept as a duel that decides nothing.
    ``seconds`` counts like an experiment's; ``number`` and ``recorded`` are given by the memory.
    """

    campaign: str
    challenger: str
    incumbent: str
    decision: Decision
    cases: tuple[DuelCase, ...]
    seconds: float
    at_fault: str = ""
    confirmation: bool = False
    number: int = 0
    recorded: float = 0.0

    @property
    def promoted(self) -> bool:
        """Whether the challenger took the lead by it."""
        return self.decision.verdict is Verdict.PROMOTE and not self.confirmation

    @property
    def summary(self) -> str:
        """Ratio with its interval, and what came of it, in a few words."""
        decision = self.decision
        ending = "confirmation" if self.confirmation else decision.verdict.value
        if decision.ratio is None or decision.low is None or decision.high is None:
            return f"{ending}: {decision.reason}"
        interval = f"{decision.ratio:.4f} [{decision.low:.4f}, {decision.high:.4f}]"
        return f"{interval} in {decision.rounds} rounds, {ending}: {decision.reason}"


@dataclass(frozen=True)
class CertificateRecord:
    """A certificate as it was issued; ``document`` is its JSON, ``recorded`` Unix time."""

    number: int
    campaign: str
    candidate: str
    document: str
    recorded: float


@dataclass(frozen=True)
class ProfileRecord:
    """A profile of a candidate on a case: the name of its bottleneck, the digest as it was shown, the counters.

    ``metrics`` is JSON: by launch, name to value. ``occasion`` says why it was made. ``number`` and ``recorded``
    are given by the memory.
    """

    campaign: str
    candidate: str
    case_id: str
    level: int
    bottleneck: str
    digest: str
    metrics: str
    occasion: str
    seconds: float
    number: int = 0
    recorded: float = 0.0


@dataclass(frozen=True)
class RequestRecord:
    """A request to a language model and what came of it. ``state`` is ``asked``, ``answered`` or ``failed``.

    ``id`` is unique in the campaign; a request without an answer is made again when the campaign goes on.
    """

    campaign: str
    id: str
    model: str
    purpose: str
    state: str
    instructions: str
    prompt: str
    reply: str | None = None
    reason: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class SubmissionRecord:
    """A candidate that was, or was to be, sent to a leaderboard. ``tag`` is unique in the campaign.

    ``state`` is ``intended`` (written before it is sent: whether it was is not known after a kill), ``postponed``
    (surely not taken: a quota), ``refused`` (the board or we said no), ``unclear`` (nobody knows, never sent again),
    or a state of the board. ``seconds`` counts from the campaign's start, ``intended`` and ``sent`` are Unix times;
    ``score_s`` in seconds; ``cases`` is JSON: what the board measured, case by case; ``rank`` the place afterwards.
    """

    campaign: str
    tag: str
    candidate: str
    mode: str
    state: str
    seconds: float
    intended: float
    sent: float | None = None
    submission: str = ""
    score_s: float | None = None
    reason: str = ""
    cases: str = "[]"
    rank: int | None = None


@dataclass(frozen=True)
class PlaceRecord:
    """The own place in a rank table at one moment; scores in seconds. ``ahead_s`` is the score of the next place.

    ``rank`` is ``None`` where nothing of ours is in the table.
    """

    campaign: str
    seconds: float
    rank: int | None
    entries: int
    score_s: float | None = None
    ahead_s: float | None = None
