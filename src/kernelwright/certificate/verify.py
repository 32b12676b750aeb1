"""Does a certificate say what the memory says? Hashes are computed anew from the recorded texts and samples."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernelwright.certificate.build import build_certificate
from kernelwright.certificate.models import SCHEMA_VERSION, Certificate
from kernelwright.core.errors import UserError
from kernelwright.core.files import read_text
from kernelwright.core.toml_words import in_json_words
from kernelwright.memory.store import Memory

MAX_BYTES = 64 << 20
_SHOWN = 80


@dataclass(frozen=True)
class Mismatch:
    """Where the document differs: what it says, and what is right."""

    where: str
    document: str
    computed: str

    def __str__(self) -> str:
        return f"{self.where}: the document says {self.document}, computed is {self.computed}"


def read_certificate(path: Path) -> Certificate:
    """The document of a file. Raises UserError, one line, when it is none."""
    text = read_text(path, MAX_BYTES)
    try:
        return Certificate.model_validate_json(text, strict=True)
    except ValidationError as error:
        what = in_json_words(error, text, keys=None)
        raise UserError(f"{path}: no certificate of schema {SCHEMA_VERSION}: {what}") from None


def verify_certificate(certificate: Certificate, memory: Memory | None) -> list[Mismatch]:
    """What does not match, the document's own hash first; without a memory only that can be told.

    Raises UserError when the memory does not have the campaign or the candidate.
    """
    found = []
    if certificate.content_hash() != certificate.content_sha256:
        found.append(
            Mismatch("content_sha256", _short(certificate.content_sha256), _short(certificate.content_hash()))
        )
    if memory is not None:
        record = memory.campaign(certificate.campaign)
        again = build_certificate(memory, record, certificate.hashes.candidate)
        found += _differences(_content(certificate), _content(again))
    return found


def _content(certificate: Certificate) -> dict[str, Any]:
    return certificate.model_dump(mode="json", exclude={"content_sha256"})


def _differences(document: Any, computed: Any, where: str = "") -> Iterator[Mismatch]:
    """Leaves that differ, in the order of the document."""
    if isinstance(document, dict) and isinstance(computed, dict):
        for key in dict.fromkeys((*document, *computed)):
            path = f"{where}.{key}" if where else f"{key}"
            yield from _differences(document.get(key), computed.get(key), path)
    elif isinstance(document, list) and isinstance(computed, list) and len(document) == len(computed):
        for index, pair in enumerate(zip(document, computed, strict=True)):
            yield from _differences(*pair, f"{where}[{index}]")
    elif document != computed:
        yield Mismatch(where, _short(document), _short(computed))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
