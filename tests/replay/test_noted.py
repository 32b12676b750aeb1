"""What a certificate says that only a note tells has that note."""

from pathlib import Path

import pytest

from kernelwright.certificate import build_certificate
from kernelwright.memory.store import Memory
from kernelwright.replay.noted import missing_note
from tests.certificate.samples import CAMPAIGN, fill, leader

NOTES = {"ceilings", "kernelwright", "sandbox", "selftest", "strongest", "timing"}


@pytest.mark.parametrize("duel", [True, False])
def test_each_note_that_a_certificate_rests_on_is_missed(memory_file: Path, duel: bool) -> None:
    more = {"strongest": '{"name": "cuBLAS", "ratio": 0.5}'}
    if not duel:
        more["confirmation"] = '{"incumbent_ms": 1.0, "baseline_ms": 2.0}'
    with Memory.open(memory_file) as memory:
        fill(memory, duel=duel, notes=more)
        document = build_certificate(memory, memory.campaign(CAMPAIGN), leader().id)
        notes = set(memory.notes(CAMPAIGN))
    assert missing_note(document, notes) == ""
    missed = {key for key in notes if missing_note(document, notes - {key}) == key}
    assert missed == NOTES | {f"sanitizer:{leader().id}", f"trials:{leader().id}"} | set(more)


def test_what_was_never_noted_is_not_missed(memory_file: Path) -> None:
    with Memory.open(memory_file) as memory:
        fill(memory)
        memory._database.execute("DELETE FROM environment")
        document = build_certificate(memory, memory.campaign(CAMPAIGN), leader().id)
    assert missing_note(document, ()) == ""
