"""What travels between the machines, as bounded JSON with content hashes.

A hash finds damage, truncation and mixed-up files. It is no signature: who can write results can also hash them.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration, Value
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import UserError
from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.core.outcome import Outcome, Status
from kernelwright.core.rules import MAX_SOURCE_BYTES
from kernelwright.core.screen import Screen
from kernelwright.devices.base import DuelResult, TimingProtocol
from kernelwright.harness.protocol import ProfileResult, SanitizerResult
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.wire import Ceilings

SCHEMA: Final = "kernelwright-batch/1"
RESULT_SCHEMA: Final = "kernelwright-result/1"
MAX_BATCH_BYTES: Final = 256 << 20
MAX_LINE_BYTES: Final = 4 << 20
MAX_ITEMS: Final = 100_000
MAX_PROBLEM_FILE: Final = 4 << 20
T = TypeVar("T", bound=BaseModel)
Kind = Literal["probe", "benchmark", "duel", "library", "sanitize", "profile"]
_ANSWERS: Final = {
    "benchmark": "outcome",
    "duel": "dueled",
    "library": "dueled",
    "sanitize": "sanitized",
    "profile": "profiled",
}
"""The field of a result by the kind of its item; a probe has none."""
_LIBRARY: Final = re.compile(r"PyTorch \d[\w.+-]{0,59}\Z", re.ASCII)
_KERNEL: Final = re.compile(r"[A-Za-z_]\w{0,199}\Z", re.ASCII)
_METRIC: Final = re.compile(r"\w{1,100}(\.\w{1,100}){0,6}\Z", re.ASCII)
_LAUNCH: Final = re.compile(r"[\d(),.]{0,60}\Z", re.ASCII)


class Record(BaseModel):
    """Frozen, and nothing in it that the schema does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


def canonical(value: Any) -> bytes:
    """JSON in the one form that is hashed: sorted keys, no spaces, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="surrogatepass")


def digest_of(value: Any) -> str:
    """SHA-256 of the canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()


class Source(Record):
    """A template's name and text."""

    name: str = Field(max_length=200)
    text: str = Field(max_length=MAX_SOURCE_BYTES)


class Side(Record):
    """A candidate: a template (by its id in :attr:`Batch.sources`) with a configuration."""

    template: str = Field(max_length=40)
    configuration: dict[str, Value] = Field(max_length=200)


class ScreenRecord(Record):
    """:class:`~kernelwright.core.screen.Screen` as data."""

    objective: ObjectiveName
    incumbent_ms: dict[str, float] = Field(max_length=1000)

    @property
    def screen(self) -> Screen:
        """The screen itself."""
        return Screen(Objective(self.objective), self.incumbent_ms)


class Item(Record):
    """One request. ``turn`` counts equal requests: the second look of a duel is not the first one again."""

    kind: Kind
    sides: tuple[Side, ...] = Field(default=(), max_length=2)
    screen: ScreenRecord | None = None
    rounds: int = Field(default=0, ge=0, le=10_000)
    cases: tuple[str, ...] | None = Field(default=None, max_length=1000)
    turn: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _has_its_sides(self) -> Self:
        wanted = {"probe": 0, "duel": 2}.get(self.kind, 1)
        if len(self.sides) != wanted or (self.kind in ("duel", "library")) != bool(self.rounds):
            raise ValueError(f"a {self.kind} has {wanted} candidates, and only what runs in turn has rounds")
        if self.kind == "profile" and len(self.cases or ()) != 1:
            raise ValueError("a profile is of one case")
        return self


class ProblemFiles(Record):
    """A problem folder's files; ``id`` is the content id that loading them must give.

    ``library`` (library.py) is no part of that id, and travels only with what is asked about it.
    """

    id: str = Field(max_length=40)
    name: str = Field(max_length=200)
    toml: str = Field(max_length=MAX_PROBLEM_FILE)
    reference: str = Field(max_length=MAX_PROBLEM_FILE)
    baseline: str = Field(max_length=MAX_PROBLEM_FILE)
    library: str = Field(default="", max_length=MAX_PROBLEM_FILE)

    @model_serializer(mode="wrap")
    def _as_before_without_library(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Batches that need none have the content, and so the hashes, that they had before there were any."""
        values: dict[str, Any] = handler(self)
        if not self.library:
            del values["library"]
        return values


class Terms(Record):
    """On what and how everything in a batch is measured. ``cases`` are the ids in the problem's order."""

    problem: ProblemFiles
    slow_cases: bool
    seed: int = Field(ge=0)
    timing: TimingProtocol
    cases: tuple[str, ...] = Field(max_length=1000)

    @property
    def id(self) -> str:
        """Hash: items of equal terms may share a harness."""
        return digest_of(self.model_dump(mode="json"))[:32]

    def with_library(self, source: str) -> Self:
        """The same, with the problem's library.py."""
        problem = self.problem.model_copy(update={"library": source})
        return self.model_copy(update={"problem": problem})


class Batch(Record):
    """Requests about one problem, by their ids. Only valid ones exist: ids are checked against the content."""

    terms: Terms
    sources: dict[str, Source] = Field(max_length=MAX_ITEMS)
    items: dict[str, Item] = Field(max_length=MAX_ITEMS)

    @model_validator(mode="after")
    def _ids_are_hashes(self) -> Self:
        terms = self.terms.id
        if missing := {s.template for i in self.items.values() for s in i.sides} - set(self.sources):
            raise ValueError(f"the source {min(missing)} is missing")
        for id_, item in self.items.items():
            if item_id(terms, item) != id_:
                raise ValueError(f"the item {id_[:40]} does not match its content")
        for id_, source in self.sources.items():
            if source_id(source.text) != id_:
                raise ValueError(f"the source {id_[:40]} does not match its content")
        return self

    def candidate(self, side: Side) -> Candidate:
        """A side as a candidate. Raises PlanError."""
        source = self.sources[side.template]
        return Candidate(parse_template(source.text, source.name), Configuration(side.configuration))

    def only(self, ids: set[str]) -> "Batch":
        """The batch with these items alone."""
        items = {id_: item for id_, item in self.items.items() if id_ in ids}
        used = {side.template for item in items.values() for side in item.sides}
        return Batch(
            terms=self.terms, sources={k: v for k, v in self.sources.items() if k in used}, items=items
        )


def source_id(text: str) -> str:
    """Hash of a source, under which a batch keeps it."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def item_id(terms: str, item: Item) -> str:
    """Content hash of a request under its terms."""
    return digest_of([terms, item.model_dump(mode="json")])[:32]


class Bundle(Record):
    """A file of batches for one trip."""

    batches: tuple[Batch, ...] = Field(max_length=10_000)

    def to_json(self) -> bytes:
        """The file's content."""
        body = {"schema": SCHEMA, **self.model_dump(mode="json")}
        return canonical({**body, "sha256": digest_of(body)}) + b"\n"

    @property
    def hash(self) -> str:
        """What the file carries as its ``sha256``."""
        return digest_of({"schema": SCHEMA, **self.model_dump(mode="json")})


class Header(Record):
    """Begins the results of one start of the evaluating machine's harness."""

    device: DeviceFacts
    sandbox: SandboxReport
    ceilings: Ceilings
    kernelwright: str = Field(max_length=100)
    bundle: str = Field(default="", max_length=64)


class Result(Record):
    """What became of one item; ``header`` is the hash of the header that it belongs to."""

    item: str = Field(max_length=64)
    bundle: str = Field(max_length=64)
    header: str = Field(max_length=64)
    outcome: Outcome | None = None
    dueled: DuelResult | None = None
    sanitized: SanitizerResult | None = None
    profiled: ProfileResult | None = None

    def fault(self, item: Item, cases: tuple[str, ...]) -> str:
        """Why this is no answer to the item; empty when it is."""
        wanted = _ANSWERS.get(item.kind)
        given = [name for name in dict.fromkeys(_ANSWERS.values()) if getattr(self, name) is not None]
        if given != ([wanted] if wanted else []):
            return f"is no answer to a {item.kind}"
        if self.outcome is not None:
            return _timing_fault(self.outcome, cases)
        if self.dueled is not None and self.dueled.status is Status.MEASURED:
            fault = _duel_fault(self.dueled, item.cases or cases)
            return fault or (_library_fault(self.dueled, item, cases) if item.kind == "library" else "")
        return _profile_fault(self.profiled) if self.profiled is not None else ""


def _timing_fault(outcome: Outcome, cases: tuple[str, ...]) -> str:
    if outcome.cases and tuple(timing.case for timing in outcome.cases) != cases:
        return "times other cases than the problem has"
    samples = [sample for timing in outcome.cases for sample in timing.samples_ms]
    if any(not timing.samples_ms for timing in outcome.cases) or not _are_times(samples):
        return "has samples that are no times"
    return ""


def _duel_fault(dueled: DuelResult, cases: tuple[str, ...]) -> str:
    if not {case.case for case in dueled.cases} <= set(cases):
        return "times other cases than the problem has"
    samples = [s for case in dueled.cases for s in (*case.challenger_ms, *case.incumbent_ms)]
    return "" if _are_times(samples) else "has samples that are no times"


def _library_fault(dueled: DuelResult, item: Item, cases: tuple[str, ...]) -> str:
    """The name goes into prompts and certificates; what is noted of it has every case, and nothing decides again."""
    if not _LIBRARY.match(dueled.library):
        return "names no vendor library"
    if sorted(case.case for case in dueled.cases) != sorted(item.cases or cases):
        return "does not time every case once"
    if any(len(s) > item.rounds for case in dueled.cases for s in (case.challenger_ms, case.incumbent_ms)):
        return "has more rounds than were asked for"
    return ""


def _profile_fault(profiled: ProfileResult) -> str:
    """Names and numbers go into prompts: nothing else may come with them."""
    if profiled.lines or profiled.raw:
        return "has more than counters"
    for kernel in profiled.kernels:
        values = kernel.metrics.values
        if not _KERNEL.match(kernel.kernel) or not all(map(_METRIC.match, values)):
            return "has names that are none of kernels and counters"
        if not all(_LAUNCH.match(text) for text in (kernel.grid, kernel.block, kernel.device)):
            return "has launches that are none"
        if not all(map(math.isfinite, values.values())):
            return "has counters that are no numbers"
    return ""


def _are_times(samples: list[float]) -> bool:
    return all(math.isfinite(sample) and sample > 0 for sample in samples)


def line_of(record: Header | Result) -> bytes:
    """A record as a line of a results file."""
    body = {"schema": RESULT_SCHEMA, type(record).__name__.lower(): _plain(record)}
    return canonical({**body, "sha256": digest_of(body)}) + b"\n"


def hash_of(record: Header) -> str:
    """What results name their header by."""
    return digest_of(_plain(record))


def _plain(record: Header | Result) -> Any:
    """As JSON reads it back: tuples are lists, infinities stay."""
    return json.loads(json.dumps({name: _value(getattr(record, name)) for name in type(record).model_fields}))


def _value(value: Any) -> Any:
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value


def read_line(line: bytes, where: str) -> Header | Result:
    """A line of a results file. Raises UserError when it is damaged, tampered with or of another version."""
    if len(line) > MAX_LINE_BYTES:
        raise UserError(f"{where}: is longer than {MAX_LINE_BYTES >> 20} MiB, which is no result")
    body = _checked(line, RESULT_SCHEMA, where)
    kinds: Mapping[str, type[Header | Result]] = {"header": Header, "result": Result}
    if len(body) != 1 or (kind := next(iter(body))) not in kinds:
        raise UserError(f"{where}: is neither a header nor a result")
    return _validated(kinds[kind], body[kind], where)


def read_bundle(data: bytes, where: str) -> Bundle:
    """A file of :meth:`Bundle.to_json`. Raises UserError."""
    return _validated(Bundle, _checked(data, SCHEMA, where), where)


def _checked(data: bytes, schema: str, where: str) -> dict[str, Any]:
    """The body of a hashed object, without schema and hash."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise UserError(f"{where}: is no JSON: damaged or truncated, copy it again") from None
    if not isinstance(value, dict) or not isinstance(known := value.get("schema"), str):
        raise UserError(f"{where}: is nothing that kernelwright wrote: it has no schema, {schema!r} is read")
    if known != schema:
        raise UserError(
            f"{where}: has the schema {known[:60]!r}, this version of kernelwright reads {schema!r}"
        )
    signed = value.pop("sha256", None)
    if signed != digest_of(value):
        raise UserError(f"{where}: does not match its hash: it was damaged or changed, copy it again")
    del value["schema"]
    return value


def _validated(model: type[T], value: Any, where: str) -> T:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part)[:40] for part in first["loc"])
        raise UserError(f"{where}: {place or 'it'}: {first['msg'].removeprefix('Value error, ')}") from None
