"""The report as data: what the HTML, the Markdown and the JSON show alike.

Times of kernels in ms, times of the campaign in seconds from its start; ratios are time over the baseline's time,
under 1 is faster. ``None`` is unknown or not recorded. Texts come from the memory as they are: untrusted.
"""

from dataclasses import dataclass

from kernelwright.report.board import BoardPart

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Headline:
    """What came of the campaign. ``verdict`` is one sentence, ``notes`` are what a reader has to know beside it."""

    campaign: str
    problem: str
    device: str
    device_model: str
    state: str
    objective: str
    started: str
    seconds: float
    experiments: int
    measured: int
    verdict: str
    notes: tuple[str, ...]
    incumbent: str
    incumbent_name: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    source: str = ""


@dataclass(frozen=True)
class NotRun:
    """A check that was not run, and why."""

    check: str
    why: str


@dataclass(frozen=True)
class Layer:
    """A layer of the sandbox."""

    name: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class CertificateSummary:
    """The certificate in short. ``state`` is ``issued``, ``computed`` (from the memory, not issued) or ``none``."""

    state: str
    reason: str
    passed: tuple[str, ...] = ()
    not_run: tuple[NotRun, ...] = ()
    content_sha256: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class MilestoneRow:
    """A new leader. ``jump`` numbers those that brought another template (from 1), 0 for new numbers only."""

    seconds: float
    experiment: int
    candidate: str
    template: str
    name: str
    configuration: str
    strategy: str
    cost_ms: float | None
    ratio: float
    rank: int | None
    jump: int


@dataclass(frozen=True)
class Mark:
    """An experiment of the chart: the how-manieth, when, and its cost; without cost it failed."""

    position: int
    seconds: float
    cost_ms: float | None


@dataclass(frozen=True)
class Step:
    """The incumbent's cost from here on."""

    position: int
    seconds: float
    cost_ms: float
    name: str
    jump: int


@dataclass(frozen=True)
class Trajectory:
    """How the search went. ``marks`` are thinned to what a chart can show; costs above ``top_ms`` lie on its edge."""

    experiments: int
    seconds: float
    baseline_ms: float | None
    bottom_ms: float
    top_ms: float
    marks: tuple[Mark, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class CaseRow:
    """One case. ``intensity`` is floating point operations per byte, rates per second.

    ``bound`` says what the floor is made of (``memory``, ``compute`` or ``unknown``), ``attained`` which share of the
    floor's speed the leader has, ``distance`` how many times its floor it takes; ``None`` is unknown.
    """

    case: str
    baseline_ms: float
    incumbent_ms: float
    ratio: float
    floor_ms: float | None
    bound: str
    attained: float | None
    distance: float | None
    reference_ms: float | None
    intensity: float | None
    flops: int
    bytes: int


@dataclass(frozen=True)
class Roofline:
    """Ceilings of the device as measured when the campaign began; ``reason`` says why there are none.

    ``unit`` does the arithmetic whose rate bounds the problem: ``fp32`` or ``tensor units``.
    """

    bytes_per_s: float
    flops_per_s: float
    reason: str
    unit: str = "fp32"


@dataclass(frozen=True)
class Cases:
    """Per-case times; ``reference`` names the strong reference with its ratio where one is noted."""

    rows: tuple[CaseRow, ...]
    roofline: Roofline
    reference: str


@dataclass(frozen=True)
class LineageNode:
    """A template that led. ``parent`` is the nearest ancestor that led too; ``ratio`` the best it led with."""

    template: str
    name: str
    proposer: str
    direction: str
    parents: tuple[str, ...]
    parent: str
    seconds: float
    ratio: float
    lane: int


@dataclass(frozen=True)
class DiffLine:
    """``kind`` is ``add``, ``cut``, ``place`` or ``same``."""

    kind: str
    text: str


@dataclass(frozen=True)
class Improvement:
    """A structural jump: what was promised and what came of it. ``diff`` is against ``compared_with``."""

    jump: int
    seconds: float
    name: str
    template: str
    proposer: str
    direction: str
    rationale: str
    predicted: str
    actual: str
    compared_with: str
    diff: tuple[DiffLine, ...]
    left_out: int


@dataclass(frozen=True)
class TemplateRow:
    """A template and what became of it; ``ratio`` is its best, ``None`` when nothing of it was measured."""

    template: str
    name: str
    proposer: str
    direction: str
    predicted: str
    experiments: int
    failures: int
    ratio: float | None
    led: bool


@dataclass(frozen=True)
class Lineage:
    """Templates that led, how each came about, and all templates, best first."""

    nodes: tuple[LineageNode, ...]
    improvements: tuple[Improvement, ...]
    improvements_left_out: int
    templates: tuple[TemplateRow, ...]
    templates_left_out: int


@dataclass(frozen=True)
class Share:
    """Share of the variance of log time that tunables explain."""

    name: str
    share: float
    uncertainty: float


@dataclass(frozen=True)
class Tuning:
    """Which numbers of the winning template matter; ``reason`` says why nothing can be said."""

    template: str
    observations: int
    importance: tuple[Share, ...]
    interactions: tuple[Share, ...]
    reason: str


@dataclass(frozen=True)
class Resources:
    """What the compiler said of a leader; ``share_of_floor`` is that of its nearest case."""

    seconds: float
    name: str
    registers: int | None
    spill_bytes: int | None
    occupancy: float | None
    limiter: str
    share_of_floor: float | None


@dataclass(frozen=True)
class Profile:
    """What a profiler said of a candidate on a case, at the candidate's time."""

    seconds: float
    name: str
    case: str
    bottleneck: str
    digest: str


@dataclass(frozen=True)
class Failure:
    """A way to fail: how often, and the most frequent reasons."""

    status: str
    check: str
    count: int
    examples: tuple["Example", ...]


@dataclass(frozen=True)
class Example:
    """One reason, how often it was given, and a candidate that met it."""

    candidate: str
    name: str
    reason: str
    count: int


@dataclass(frozen=True)
class DuelRow:
    """A duel; ``ratio`` with its interval is challenger over incumbent."""

    number: int
    challenger: str
    incumbent: str
    verdict: str
    reason: str
    ratio: float | None
    low: float | None
    high: float | None
    rounds: int
    seconds: float


@dataclass(frozen=True)
class Account:
    """Seconds of one kind of work."""

    name: str
    seconds: float


@dataclass(frozen=True)
class ModelRow:
    """Requests to one model. Sums count what was recorded."""

    model: str
    requests: int
    answered: int
    failed: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    seconds: float


@dataclass(frozen=True)
class Spending:
    """Where the time, the tokens and the money went. ``device`` is exclusive device time, in order of size."""

    wall_seconds: float
    device: tuple[Account, ...]
    compile_seconds: float
    models: tuple[ModelRow, ...]


@dataclass(frozen=True)
class Fact:
    """A named value."""

    name: str
    value: str


@dataclass(frozen=True)
class Overview:
    """What a terminal shows."""

    headline: Headline
    milestones: tuple[MilestoneRow, ...]
    trajectory: Trajectory


@dataclass(frozen=True)
class Report:
    """Everything."""

    schema_version: int
    kernelwright: str
    headline: Headline
    certificate: CertificateSummary
    milestones: tuple[MilestoneRow, ...]
    board: BoardPart | None
    trajectory: Trajectory
    cases: Cases
    lineage: Lineage
    tuning: Tuning
    bottleneck: Profile | None
    resources: tuple[Resources, ...]
    profiles: tuple[Profile, ...]
    failures: tuple[Failure, ...]
    duels: tuple[DuelRow, ...]
    duels_left_out: int
    spending: Spending
    sandbox: tuple[Layer, ...]
    environment: tuple[Fact, ...]
    commands: tuple[Fact, ...]
    source: str
