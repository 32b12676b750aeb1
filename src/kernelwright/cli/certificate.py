"""``certificate``: what is known of a campaign's incumbent, and whether a certificate is true."""

from pathlib import Path
from typing import Annotated

import typer

from kernelwright.certificate import (
    Certificate,
    as_markdown,
    build_certificate,
    read_certificate,
    verify_certificate,
)
from kernelwright.certificate.build import incumbent_of
from kernelwright.cli.options import DEFAULT_DIR, MEMORY_FILE, DirOption, ForceOption, path
from kernelwright.core.errors import UserError
from kernelwright.core.files import place, refuse_existing
from kernelwright.memory.store import Memory

VERIFY = "verify"


def certificate(
    campaign: Annotated[
        str,
        typer.Argument(
            metavar="CAMPAIGN|verify", help="Id of a campaign, a start of it, or 'last'; or 'verify'."
        ),
    ],
    file: Annotated[
        Path | None, typer.Argument(parser=path, help="With 'verify': the certificate (JSON).")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="The whole document as JSON, for scripts.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="For people (the default).")] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", parser=path, help="Write to this file; its suffix says the format."),
    ] = None,
    force: ForceOption = False,
    directory: DirOption = DEFAULT_DIR,
) -> None:
    """Print the certificate of a campaign's incumbent; `certificate verify FILE` compares one with the memory."""
    if json_ and markdown:
        raise UserError("--json and --markdown: choose one")
    if output is not None and not (json_ or markdown):
        json_ = _is_json(output)
    if campaign == VERIFY:
        if file is None:
            raise UserError("certificate verify: name the certificate's file")
        _verify(file, directory)
        return
    if file is not None:
        raise UserError(f"certificate: {file} is one argument too many (to write a file use -o {file})")
    if output is not None:
        refuse_existing(output, force=force)
    found = _of_campaign(campaign, directory)
    text = found.as_json() if json_ else as_markdown(found)
    if output is None:
        typer.echo(text, nl=False)
        return
    place(output, text.encode())
    typer.echo(f"{output}: certificate of {found.hashes.candidate}")


def _is_json(output: Path) -> bool:
    """Whether a file's ending says JSON, not Markdown. Raises UserError where it says neither."""
    if output.suffix.lower() not in {".json", ".md"}:
        raise UserError(
            f"-o {output}: its ending says no format: use .json or .md, or give --json or --markdown"
        )
    return output.suffix.lower() == ".json"


def _of_campaign(name: str, directory: Path) -> Certificate:
    with Memory.open(directory / MEMORY_FILE, read_only=True) as memory:
        record = memory.campaign(name)
        incumbent = incumbent_of(memory, record)
        if incumbent is None:
            raise UserError(f"{record.id}: nobody leads yet: there is nothing to certify")
        return build_certificate(memory, record, incumbent)


def _verify(file: Path, directory: Path) -> None:
    document = read_certificate(file)
    with Memory.open(directory / MEMORY_FILE, read_only=True) as memory:
        mismatches = verify_certificate(document, memory)
    for mismatch in mismatches:
        typer.echo(f"{mismatch}")
    if mismatches:
        typer.echo(
            f"{file}: {len(mismatches)} differences: the certificate does not say what the memory says"
        )
        raise typer.Exit(1)
    typer.echo(
        f"{file}: its hashes and numbers are those that follow from {directory / MEMORY_FILE}; whether the memory's own"
        f" history holds is judged by 'kernelwright replay {document.campaign} --mode rederive'"
    )
