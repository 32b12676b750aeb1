"""Options that several commands share, and what they mean."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from kernelwright.core.errors import UserError
from kernelwright.core.homes import expanded


def number_between(low: float, high: float) -> Callable[[str], float]:
    """Parser of an option; ``nan`` fulfils or fails every comparison, as typer's version has it."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise typer.BadParameter(f"{str(text)[:80]!r} is no number")
        if not low <= value <= high:
            raise typer.BadParameter(f"{text} is not from {low:g} to {high:.10g}")
        return value

    return number


def given(text: str) -> str:
    """Parser of a path or a name: a shell's variable that is not set is no name of this folder, nor are blanks."""
    if not text.strip():
        raise typer.BadParameter("it is empty: name a file or a folder ('.' is this folder)")
    return text


def path(text: str | Path) -> Path:
    """Parser of every path that a command takes; defaults come as paths already."""
    return Path(given(text)) if isinstance(text, str) else text


MEMORY_FILE = "memory.db"
DETACHED = "detached"

ProblemArgument = Annotated[str, typer.Argument(help="A bundled problem's name, or the folder of your own.")]
DeviceOption = Annotated[str, typer.Option("--device", "-d", help="auto, cuda:N or cpu.")]
CampaignDeviceOption = Annotated[
    str,
    typer.Option("--device", "-d", help="auto, cuda:N, cpu, or detached:DIR for one of another machine."),
]
DirOption = Annotated[Path, typer.Option("--dir", parser=path, help="Where campaigns are kept.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout, for scripts.")]
CampaignArgument = Annotated[
    str, typer.Argument(help="Id of a campaign, an unambiguous start of it, or 'last'.")
]
SlowOption = Annotated[
    bool | None,
    typer.Option(
        "--slow-cases/--full-cases",
        help="The problem's smaller cases, or all. By default small on cpu, full on cuda and elsewhere.",
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Refuse to start where a layer of the sandbox is missing."),
]
ModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help="Who proposes structure, again and again for several: provider:name, provider:name@URL, "
        "command:LINE, mailbox:DIR, recorded:FILE or catalogue.",
    ),
]
MaxCostOption = Annotated[
    float | None,
    typer.Option("--max-cost", parser=number_between(0, 1e9), help="Most US dollars for models."),
]
MaxRequestsOption = Annotated[
    int | None, typer.Option("--max-requests", min=0, help="Most requests to models.")
]
NewTimeoutOption = Annotated[
    float | None,
    typer.Option("--model-timeout", parser=number_between(1, 86400), help="Seconds that a reply may take."),
]
ModelTimeoutOption = Annotated[
    float,
    typer.Option(
        "--model-timeout",
        parser=number_between(1, 86400),
        help="Seconds that a reply may take, at most 86400; people need more.",
    ),
]
GoalOption = Annotated[
    str | None,
    typer.Option(
        "--goal",
        help="What ends the search: rank<=15, time<=0.5ms, roofline>=95%, speedup>=3; 'problem' is the problem's own.",
    ),
]
BoardOption = Annotated[
    str | None,
    typer.Option("--board", help="A leaderboard to watch: http://HOST:PORT/PROBLEM or kernelbot:NAME@GPU."),
]
SubmitOption = Annotated[
    bool, typer.Option("--submit", help="Send verified improvements to the board; nothing is sent without.")
]
MaxSubmissionsOption = Annotated[
    int | None,
    typer.Option(
        min=1, max=10_000, help="Most ranked submissions of the whole campaign, 20 where nothing was said."
    ),
]
UncalibratedOption = Annotated[
    bool,
    typer.Option("--uncalibrated", help="Submit also where the board's times and the harness's differ."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the file where it is there already.")]
DEFAULT_DIR = Path(".kernelwright")


def pick_device(name: str) -> str:
    """``auto`` is the first CUDA device where there is a usable one, else the cpu."""
    if name == "cpu":
        return name
    if name == "cuda":
        return "cuda:0"
    if name == "auto":
        from kernelwright.devices.cuda import probe

        return "cuda:0" if probe().usable else "cpu"
    kind, _, number = name.partition(":")
    if kind == DETACHED and number:
        return (
            f"{DETACHED}:{os.path.realpath(expanded(Path(number)))}"  # links in a circle raise in resolve()
        )
    if kind != "cuda" or not number.isdecimal():
        raise UserError(f"--device {name!r} is no device: use auto, cpu or cuda:N")
    return name


def use_slow_cases(device: str, *, chosen: bool | None) -> bool:
    """Small cases are for slow devices unless the user says otherwise."""
    return device == "cpu" if chosen is None else chosen
