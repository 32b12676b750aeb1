"""Tampering is found, with the place."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright.certificate import Certificate, certify, read_certificate, verify_certificate
from kernelwright.cli.main import main
from kernelwright.core.errors import MemoryFileError, UserError
from kernelwright.memory.store import Memory
from tests.certificate.samples import CAMPAIGN, opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a memory and the certificate of its campaign."""
    with opened(tmp_path / "memory.db") as memory:
        certificate = certify(memory, CAMPAIGN)
    assert certificate is not None
    (tmp_path / "c.json").write_text(certificate.as_json())
    return tmp_path


def compare(folder: Path, certificate: Certificate) -> list[str]:
    with Memory.open(folder / "memory.db", read_only=True) as memory:
        return [mismatch.where for mismatch in verify_certificate(certificate, memory)]


def changed(folder: Path, change: Callable[[dict[str, Any]], object], *, sealed: bool = False) -> Certificate:
    document = json.loads((folder / "c.json").read_text())
    change(document)
    certificate = Certificate.model_validate(document)
    return certificate.sealed() if sealed else certificate


def test_a_true_certificate_is_true(folder: Path) -> None:
    assert compare(folder, read_certificate(folder / "c.json")) == []


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "hashes.source": lambda d: d["hashes"].update(source="0" * 64),
    "cases[0].samples_ms[1]": lambda d: d["cases"][0]["samples_ms"].__setitem__(1, 0.5),
    "ratio_to_baseline.low": lambda d: d["ratio_to_baseline"].update(low=0.1),
    "checks[10].evidence": lambda d: d["checks"][10].update(evidence="trust me"),
    "device.model": lambda d: d["device"].update(model="a better one"),
    "warnings": lambda d: d["warnings"].clear(),
}


@pytest.mark.parametrize("where", CHANGES)
def test_a_changed_document_is_found_even_with_a_new_seal(folder: Path, where: str) -> None:
    assert compare(folder, changed(folder, CHANGES[where])) == ["content_sha256", where]
    assert compare(folder, changed(folder, CHANGES[where], sealed=True)) == [where]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"schema_version": 1,', '"schema_version": "1",'),
        ('"schema_version": 1,', '"schema_version": true,'),
        ('"schema_version": 1,', '"schema_version": 1.0,'),
        ('"discarded": 1,', '"discarded": "1",'),
    ],
)
def test_numbers_are_numbers_and_nothing_that_reads_like_one(folder: Path, old: str, new: str) -> None:
    text = (folder / "c.json").read_text()
    assert old in text
    (folder / "c.json").write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match="no certificate of schema 1"):
        read_certificate(folder / "c.json")


def test_without_a_memory_the_seal_is_what_can_be_told(folder: Path) -> None:
    assert verify_certificate(read_certificate(folder / "c.json"), None) == []
    broken = changed(folder, CHANGES["hashes.source"])
    assert [m.where for m in verify_certificate(broken, None)] == ["content_sha256"]


def test_a_changed_source_in_the_memory_is_found(folder: Path) -> None:
    certificate = read_certificate(folder / "c.json")
    with sqlite3.connect(folder / "memory.db") as db:
        db.execute("DROP TRIGGER templates_keep_update")
        db.execute("UPDATE templates SET source = source || '// better' WHERE name = 'fast'")
    db.close()
    found = compare(folder, certificate)
    assert {"hashes.source", "hashes.template", "hashes.candidate"} <= set(found)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", r"file: is no JSON \(EOF while parsing a value at line 1 column 0\)"),
        ("\x00", r"file: is no JSON \(expected value at line 1 column 1\)"),
        ("[1]", "file: must be an object, not a list"),
        ("{}", r"[a-z_]+: is missing \(and \d+ more\)"),
        ('{"schema_version": 99}', "schema_version: must be 1, not 99"),
    ],
)
def test_other_files_are_one_clear_line(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(UserError, match=f"no certificate of schema 1: {told}"):
        read_certificate(path)


def test_a_later_schema_is_refused(folder: Path) -> None:
    document = json.loads((folder / "c.json").read_text()) | {"schema_version": 2}
    (folder / "c.json").write_text(json.dumps(document))
    with pytest.raises(UserError, match="no certificate of schema 1"):
        read_certificate(folder / "c.json")


def test_another_memory_says_so(folder: Path, tmp_path: Path) -> None:
    certificate = read_certificate(folder / "c.json")
    with (
        Memory.open(tmp_path / "other.db") as other,
        pytest.raises(MemoryFileError, match="not in the memory"),
    ):
        verify_certificate(certificate, other)


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    code = ended.value.code
    assert isinstance(code, int)
    return code


def test_the_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = ("--dir", str(folder))
    assert command("certificate", "last", "--json", *at) == 0
    assert capsys.readouterr().out == (folder / "c.json").read_text()
    assert command("certificate", CAMPAIGN[:12], *at) == 0
    assert capsys.readouterr().out.startswith("# Certificate: vector_add on Pretended GPU")
    assert command("certificate", "last", "--markdown", "-o", str(folder / "c.md"), *at) == 0
    assert (folder / "c.md").read_text().startswith("# Certificate")
    assert command("certificate", "verify", str(folder / "c.json"), *at) == 0
    (folder / "c.json").write_text(changed(folder, CHANGES["device.model"]).as_json())
    capsys.readouterr()
    assert command("certificate", "verify", str(folder / "c.json"), *at) == 1
    assert "device.model: the document says 'a better one'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("verify",), "name the certificate's file"),
        (("verify", "absent.json"), "there is no such file"),
        (("last", "c.json"), "one argument too many"),
        (("last", "--json", "--markdown"), "choose one"),
        (("other",), "is not in the memory"),
        (("last", "-o", "absent/c.md"), "cannot be written"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path,
    arguments: tuple[str, ...],
    part: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    assert command("certificate", *arguments, "--dir", str(folder)) == 2
    error = capsys.readouterr().err
    assert part in error
    assert error.count("\n") == 1
