"""The trajectory from the memory alone: everything follows, and what was changed is named."""

import asyncio
from pathlib import Path

import pytest

from kernelwright.core.errors import MemoryFileError
from kernelwright.generation.dispatch import DISPATCH
from kernelwright.memory.records import Milestone
from kernelwright.memory.store import Memory
from kernelwright.replay import Replayed, Verdict, read_subject, rederive
from kernelwright.replay.leads import Leads

from ..campaign.test_writing import STOP, proposal
from .campaigns import NAME, TIMES, Specialists, Treacherous, make_campaign, tampered


def derive(file: Path) -> Replayed:
    with Memory.open(file, read_only=True) as memory:
        return asyncio.run(rederive(read_subject(memory, NAME)))


def test_everything_follows(finished: Path) -> None:
    result = derive(finished)
    assert result.verdict is Verdict.REPRODUCED, result.why
    assert [part.name for part in result.parts] == ["memory", "trajectory", "search"]
    assert "9 experiments of 3 templates" in result.parts[1].reason
    assert result.parts[-1].reason == (
        "played from its seed on the recorded outcomes, 9 of 9 candidates asked for are recorded, and the same one leads"
    )


def test_candidates_put_together_follow_from_their_parts(tmp_path: Path) -> None:
    file = asyncio.run(
        make_campaign(
            tmp_path,
            proposal("t1", values=12) + proposal("t2", values=12),
            STOP,
            STOP,
            STOP,
            harness=Specialists(),
        )
    )
    with Memory.open(file, read_only=True) as memory:
        made = [t for t in memory.templates(NAME).values() if t.proposer == DISPATCH]
        assert len(made) == 1
    assert derive(file).verdict is Verdict.REPRODUCED, derive(file).why
    changed = f"UPDATE proposals SET parents = json_array(parents ->> 1, parents ->> 0) WHERE template = '{made[0].id}'"
    (tmp_path / "changed").mkdir()
    result = derive(tampered(file, tmp_path / "changed", changed))
    assert "does not follow: it is not its parts put together" in result.why


def test_edits_and_repairs_follow_from_their_replies(tmp_path: Path) -> None:
    edit = (
        "<proposal>\nkind: edit\nparent: {}\nname: t2\ndirection: more\nrationale: r\npredicted: p\n```\n"
        "<<<<<<< SEARCH\n{{ A[0] = 1; }}\n=======\n{{ A[0] = 1; A[1] = 2; A[2] = 3; A[3] = 4; A[4] = 7; }}\n>>>>>>> REPLACE\n```\n</proposal>\n"
    )
    first = asyncio.run(make_campaign(tmp_path / "first", proposal("t1"), STOP, STOP, STOP))
    with Memory.open(first, read_only=True) as memory:
        parent = next(t.id for t in memory.templates(NAME).values() if t.name.startswith("t1"))
    file = asyncio.run(
        make_campaign(tmp_path / "second", proposal("t1"), edit.format(parent), STOP, STOP, STOP)
    )
    with Memory.open(file, read_only=True) as memory:
        assert parent in {p for t in memory.templates(NAME).values() for p in t.parents}
    assert derive(file).verdict is Verdict.REPRODUCED, derive(file).why


def test_leaders_that_fall_at_the_end_follow_too(tmp_path: Path) -> None:
    file = asyncio.run(make_campaign(tmp_path, harness=Treacherous(TIMES)))
    with Memory.open(file, read_only=True) as memory:
        fallen = [duel for duel in memory.duels(NAME) if duel.at_fault]
        assert fallen
        assert len(memory.milestones(NAME)) > 2
    assert derive(file).verdict is Verdict.REPRODUCED, derive(file).why


CHANGES = {
    "a source": (
        "UPDATE templates SET source = source || ' ' WHERE name = 't2-0001'",
        "tampered: the template 't2-0001' is recorded as",
    ),
    "a sample": (
        "UPDATE measurements SET samples_ms = replace(samples_ms, '[', '[0.5, ') WHERE experiment = 4 AND position = 0",
        "experiment 4: cost_ms is recorded as",
    ),
    "a score": (
        "UPDATE experiments SET score = score + 1 WHERE number = 3",
        "experiment 3: score is recorded as",
    ),
    "eligibility": (
        "UPDATE experiments SET eligible = 1 - eligible WHERE number = 2",
        "experiment 2: eligible is recorded as",
    ),
    "a configuration": (
        "UPDATE experiments SET configuration = '{\"X\":9}' WHERE number = 5",
        "experiment 5 is recorded as candidate",
    ),
    "a milestone's experiment": (
        "UPDATE milestones SET experiment = 1 WHERE number = 2",
        "takes the lead, the next recorded milestone is experiment 1",
    ),
    "a milestone's ratio": (
        "UPDATE milestones SET ratio = 0.1 WHERE number = 2",
        "is recorded with ratio 0.1",
    ),
    "a milestone less": (
        "DELETE FROM milestones WHERE number = 2",
        "takes the lead, the next recorded milestone is",
    ),
    "a duel less": ("DELETE FROM duels WHERE number = 1", "due was"),
    "a duel's samples": (
        "UPDATE duels SET samples = replace(samples, '1.', '3.') WHERE number = 1",
        "duel 1: ",
    ),
    "a verdict": (
        "UPDATE duels SET verdict = replace(verdict, '\"promote\"', '\"keep\"') WHERE number = 1",
        "from its samples follows",
    ),
    "a reply": (
        "UPDATE requests SET reply = 'nothing' WHERE id = '0001'",
        "does not follow: no recorded reply of scripted:x gives it",
    ),
    "who wrote it": (
        "UPDATE proposals SET proposer = 'other:y' WHERE proposer = 'scripted:x'",
        "no recorded reply of other:y gives it",
    ),
    "a rationale": (
        "UPDATE proposals SET rationale = 'genius' WHERE proposer = 'scripted:x'",
        "its rationale or prediction is not that of its reply",
    ),
    "the problem": ("UPDATE problems SET baseline = baseline || ' '", "tampered: the problem is recorded as"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_changed_is_named_in_one_line(what: str, finished: Path, tmp_path: Path) -> None:
    statement, reason = CHANGES[what]
    result = derive(tampered(finished, tmp_path, statement))
    assert result.verdict is Verdict.NOT_REPRODUCED
    told = [f"{part}" for part in result.parts if part.verdict is Verdict.NOT_REPRODUCED]
    assert any(reason in line for line in told), told
    assert all(len(line.splitlines()) == 1 for line in told)


def test_a_record_that_cannot_be_read_is_bad_input(finished: Path, tmp_path: Path) -> None:
    for number, change in enumerate(("spent = '{'", "status = 'fine'", "configuration = ''")):
        (tmp_path / f"{number}").mkdir()
        file = tampered(finished, tmp_path / f"{number}", f"UPDATE experiments SET {change} WHERE number = 3")
        with pytest.raises(MemoryFileError, match="damaged or was tampered with"):
            derive(file)


def milestone(experiment: int, ratio: float = 1.0) -> Milestone:
    return Milestone("c", experiment, 0.0, "", ratio)


def test_a_lead_by_a_rule_that_did_not_last_needs_no_milestone() -> None:
    leads = Leads([milestone(1), milestone(3)], complete=True)
    assert leads.follow(1, 1.0, by_rule=True) == ""
    assert leads.follow(2, 1.0, by_rule=True) == ""
    assert leads.follow(3, 1.0, by_rule=False) == ""
    assert leads.rest() == ""


def test_a_lead_by_a_duel_needs_its_milestone_unless_the_campaign_was_killed() -> None:
    for complete in (True, False):
        leads = Leads([milestone(1)], complete=complete)
        assert leads.follow(1, 1.0, by_rule=True) == ""
        assert bool(leads.follow(2, 0.5, by_rule=False)) is complete


def test_milestones_beyond_what_follows_are_named() -> None:
    leads = Leads([milestone(1), milestone(7)], complete=False)
    assert leads.follow(1, 1.0, by_rule=True) == ""
    assert "experiment 7, but nothing recorded makes it lead" in leads.rest()
