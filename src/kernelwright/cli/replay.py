"""``replay``: whether a campaign's win can be repeated."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import Annotated, Any

import typer

from kernelwright.campaign.events import Listener, Progress
from kernelwright.cli.options import (
    DEFAULT_DIR,
    DETACHED,
    MEMORY_FILE,
    CampaignArgument,
    DirOption,
    JsonOption,
    StrictOption,
    number_between,
    pick_device,
    use_slow_cases,
)
from kernelwright.cli.telling import Noting
from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import UserError
from kernelwright.memory.store import Memory
from kernelwright.replay import (
    Replayed,
    Subject,
    Terms,
    Verdict,
    local_harness,
    read_subject,
    rebuild,
    rederive,
    regenerate,
)
from kernelwright.replay.subject import device_values


class Mode(StrEnum):
    """The ways to replay."""

    REBUILD = "rebuild"
    REGENERATE = "regenerate"
    REDERIVE = "rederive"
    ALL = "all"


ModeOption = Annotated[
    Mode,
    typer.Option(
        help="rebuild: the incumbent from the memory, checked and timed. regenerate: found again without its source. "
        "rederive: every decision from what is recorded, without a device."
    ),
]
RecordedDeviceOption = Annotated[
    str, typer.Option("--device", "-d", help="auto (the recorded kind where it is here), cuda:N or cpu.")
]
FolderOption = Annotated[
    str | None,
    typer.Option("--problem", "-p", help="Its folder here, where the campaign's is not; to compare with."),
]
AgainModelsOption = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="For regenerate: as in run; by default the recorded replies."),
]
AgainEvaluationsOption = Annotated[
    int | None,
    typer.Option(min=1, help="For regenerate: most experiments; by default what the original took."),
]
AgainSecondsOption = Annotated[
    float | None,
    typer.Option(
        "--seconds", "-t", parser=number_between(1, 86400), help="For regenerate: by default as the original."
    ),
]


def replay(
    campaign: CampaignArgument = "last",
    mode: ModeOption = Mode.REBUILD,
    device: RecordedDeviceOption = "auto",
    problem: FolderOption = None,
    model: AgainModelsOption = None,
    evaluations: AgainEvaluationsOption = None,
    seconds: AgainSecondsOption = None,
    strict: StrictOption = False,
    directory: DirOption = DEFAULT_DIR,
    as_json: JsonOption = False,
) -> int:
    """Repeat a campaign's win: reproduced or not, by how much, and why. Exit code 1 unless reproduced."""
    if mode not in {Mode.REGENERATE, Mode.ALL} and (model or evaluations or seconds):
        raise UserError("--model, --evaluations and --seconds are for --mode regenerate (or all)")
    ways = [each for each in (Mode.REDERIVE, Mode.REBUILD, Mode.REGENERATE) if mode in {each, Mode.ALL}]
    results = []
    listener: Listener = Noting() if as_json else _Leaders()
    with Memory.open(directory / MEMORY_FILE, read_only=True) as memory:
        subject = read_subject(memory, campaign, problem)

        def terms() -> Terms:
            name = _device(subject, device)
            return Terms(name, _slow(subject, name), tuple(model or ()), evaluations, seconds, strict)

        for way in ways:
            work = _begin(way, subject, terms, listener)
            results.append(asyncio.run(work))
            if not as_json:
                _print(results[-1])
    if as_json:
        typer.echo(json.dumps({"replays": [result.as_json() for result in results]}))
    return 0 if all(result.verdict is Verdict.REPRODUCED for result in results) else 1


def _begin(
    way: Mode, subject: Subject, terms: Callable[[], Terms], listener: Listener
) -> Coroutine[Any, Any, Replayed]:
    """``terms`` are asked for only where a device is: rederiving needs none."""
    if way is Mode.REDERIVE:
        return rederive(subject)
    given = terms()
    if way is Mode.REBUILD:
        harness = local_harness(
            subject, given.device, slow=given.slow, strict=given.strict, notify=listener.note
        )
        return rebuild(subject, harness)
    return regenerate(subject, given, listener)


class _Leaders(Noting):
    """Shows also on stderr how a search goes."""

    def leads(self, candidate: Candidate, progress: Progress) -> None:
        """A new incumbent."""
        ratio = "unknown" if progress.ratio is None else f"{progress.ratio:.3f}"
        told = f"{candidate} leads at {ratio} of the baseline's time"
        typer.echo(f"  after {progress.experiments} experiments {told}", err=True)


def _device(subject: Subject, device: str) -> str:
    """``auto`` is a device of the recorded kind, where this machine has one."""
    if device == "auto" and device_values(subject.campaign)["kind"] == "cpu":
        return "cpu"
    name = pick_device(device)
    if name.startswith(DETACHED):
        raise UserError("--device detached: a replay needs its device here: give auto, cpu or cuda:N")
    return name


def _slow(subject: Subject, device: str) -> bool:
    """The recorded cases on a device of the recorded kind, else what suits the device."""
    recorded = str(device_values(subject.campaign)["kind"])
    if device.partition(":")[0] == recorded:
        return subject.settings.slow_cases
    return use_slow_cases(device, chosen=None)


def _print(result: Replayed) -> None:
    for part in result.parts:
        typer.echo(f"  {part}")
    why = "" if result.verdict is Verdict.REPRODUCED else f" ({result.why})"
    typer.echo(f"{result.mode} of {result.campaign}: {result.verdict}{why}")
