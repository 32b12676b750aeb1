"""What is withheld from the search for the winner, and when it counts as reached."""

from pathlib import Path

import pytest

from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import Outcome, Status
from kernelwright.memory.records import Experiment, TemplateRecord
from kernelwright.memory.store import Memory
from kernelwright.replay import Terms, Verdict, read_subject, regenerate
from kernelwright.replay.paired import Interval
from kernelwright.replay.regenerate import descendants, reached

from .campaigns import NAME, tampered


def template(name: str, *parents: str) -> TemplateRecord:
    return TemplateRecord(name, name, "", "m", "d", parents=parents)


def test_the_winner_and_all_that_was_made_of_it_is_withheld() -> None:
    some = [template("t1"), template("t2", "t1"), template("t3", "t2"), template("t4", "t1")]
    some += [template("t5", "c2", "c4"), template("t6", "c4")]
    templates = {each.id: each for each in some}
    tried = [
        Experiment("c", f"c{n}", f"t{n}", Configuration(), Outcome(Status.WRONG), "", 0.0)
        for n in range(1, 7)
    ]
    assert descendants("t2", templates, tried) == {"t2", "t3", "t5"}
    assert descendants("t1", templates, tried) == set(templates)
    assert descendants("t6", templates, tried) == {"t6"}


@pytest.mark.parametrize(
    ("interval", "verdict", "reason"),
    [
        (Interval(0.99, 0.98, 1.01), Verdict.REPRODUCED, "reached: x takes 0.9900"),
        (Interval(0.5, 0.49, 0.51), Verdict.REPRODUCED, "reached"),
        (Interval(1.1, 1.05, 1.15), Verdict.NOT_REPRODUCED, "10.0% more"),
        (Interval(1.0, 0.8, 1.25), Verdict.NOT_JUDGED, "too noisy"),
        ("the device was never undisturbed", Verdict.NOT_JUDGED, "never undisturbed"),
    ],
)
def test_reached_or_by_how_much_not(interval: Interval | str, verdict: Verdict, reason: str) -> None:
    part = reached("x", interval)
    assert part.verdict is verdict
    assert reason in part.reason


async def test_a_winner_of_the_catalogue_cannot_be_written_again_by_nobody(
    finished: Path, tmp_path: Path
) -> None:
    file = tampered(finished, tmp_path, "DELETE FROM requests")
    with Memory.open(file, read_only=True) as memory:
        result = await regenerate(read_subject(memory, NAME), Terms("cpu", slow=True))
    assert result.verdict is Verdict.NOT_JUDGED
    assert "give one that writes it again with --model" in result.why
