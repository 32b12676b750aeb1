"""From what a user writes after ``--model`` to a model."""

from pathlib import Path

from kernelwright.core.errors import UserError
from kernelwright.generation.model import Model
from kernelwright.generation.models.command import Command
from kernelwright.generation.models.mailbox import Mailbox
from kernelwright.generation.models.recorded import Recorded

CATALOGUE = "catalogue"
WAYS = "provider:name, provider:name@URL, command:LINE, mailbox:DIR, recorded:FILE or catalogue"


def open_model(text: str, *, stream: bool = False) -> Model:
    """A model by ``way:rest``. Raises UserError or MissingError, one line.

    ``catalogue`` is no model: the templates that come with a problem are proposed without one.
    """
    if not text.isprintable():
        raise UserError(f"--model {text!r}: holds characters that are no text: use {WAYS}")
    way, _, rest = text.partition(":")
    if not rest.strip():
        raise UserError(f"--model {text!r}: use {WAYS}")
    match way:
        case "command":
            return Command(rest)
        case "mailbox":
            return Mailbox(Path(rest))
        case "recorded":
            return Recorded(Path(rest))
    # Imports seconds of client libraries: only for who asks a provider.
    from kernelwright.generation.models.provider import Provider, Spec

    return Provider(Spec.parse(text), stream=stream)
