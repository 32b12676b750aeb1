"""``report``: a campaign to look at, in one file."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kernelwright.cli.options import DEFAULT_DIR, MEMORY_FILE, CampaignArgument, DirOption, ForceOption, path
from kernelwright.core.errors import UserError
from kernelwright.core.files import place, refuse_existing
from kernelwright.memory.store import Memory
from kernelwright.report import Report, as_html, as_json, as_markdown, build_report


class Format(StrEnum):
    """What a report is written as."""

    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"


_SUFFIXES = {".html": Format.HTML, ".htm": Format.HTML, ".md": Format.MARKDOWN, ".json": Format.JSON}


def report(
    campaign: CampaignArgument = "last",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", parser=path, help="Write to this file; its suffix says the format."),
    ] = None,
    format_: Annotated[
        Format | None, typer.Option("--format", help="By default html, or what the file's suffix says.")
    ] = None,
    force: ForceOption = False,
    directory: DirOption = DEFAULT_DIR,
) -> None:
    """Write the report of a campaign: one self-contained HTML file, Markdown, or JSON. Also while it runs."""
    chosen = format_ or (Format.HTML if output is None else _format_of(output))
    if output is not None:
        refuse_existing(output, force=force)
    with Memory.open(directory / MEMORY_FILE, read_only=True) as memory:
        found = build_report(memory, memory.campaign(campaign))
    text = _written(found, chosen)
    if output is None:
        typer.echo(text, nl=False)
        return
    place(output, text.encode())
    typer.echo(f"{output}: report of {found.headline.campaign}: {found.headline.verdict}")


def _format_of(output: Path) -> Format:
    try:
        return _SUFFIXES[output.suffix.lower()]
    except KeyError:
        raise UserError(
            f"-o {output}: its ending says no format: use {', '.join(_SUFFIXES)}, or give --format"
        ) from None


def _written(report: Report, chosen: Format) -> str:
    if chosen is Format.JSON:
        return as_json(report)
    return as_html(report) if chosen is Format.HTML else as_markdown(report)
