"""A report of a campaign on a board: places, submissions, the chart, and nothing untrusted out of its place."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from markupsafe import Markup

from kernelwright.cli.plain import PlainConsole
from kernelwright.cli.run import print_result
from kernelwright.memory.records import PlaceRecord
from kernelwright.memory.store import Memory
from kernelwright.report import Report, as_html, as_json, as_markdown, build_report
from kernelwright.report.board import PlaceRow
from kernelwright.report.charts import rank_chart

from ..campaign.boards import FakeBoard
from ..campaign.fakes import FakeHarness
from ..campaign.test_submitting import TIMES, Leaving, make, official
from .campaigns import EVIL
from .test_report import Outline


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory.db") as opened:
        yield opened


async def climbed(memory: Memory) -> Report:
    campaign = await make(memory, FakeBoard(official()), harness=FakeHarness(TIMES, device_seconds=0.03))
    await campaign.run()
    return build_report(memory, memory.campaign("c1"))


async def test_milestones_have_their_ranks_and_the_board_its_part(memory: Memory) -> None:
    report = await climbed(memory)
    assert report.milestones[0].rank == 4
    assert report.milestones[-1].rank == 2
    assert report.board is not None
    assert report.board.summary == "Rank 2 of 4, up from 4. The next place takes 20 % less time."
    assert report.board.places[0].rank is None
    assert report.board.places[-1].gap == pytest.approx(0.2)
    assert {row.state for row in report.board.submissions} == {"passed"}
    assert "agree" in report.board.calibration


async def test_a_board_that_was_gone_at_the_end_is_told_by_all_views(
    memory: Memory, capsys: pytest.CaptureFixture[str]
) -> None:
    result = await (await make(memory, Leaving(official()))).run()
    assert result.board is not None
    told = result.board["unreached"].removeprefix("the board could")
    report = build_report(memory, memory.campaign("c1"))
    assert report.board is not None
    assert f"The board could{told}." in report.board.summary
    assert "The board could not be reached since " in as_markdown(report)
    assert "The board could not be reached since " in as_html(report)
    print_result(PlainConsole(), result)
    assert result.board["unreached"] in " ".join(capsys.readouterr().out.split())


async def test_all_views_show_it(memory: Memory) -> None:
    report = await climbed(memory)
    page = as_html(report)
    outline = Outline(page)
    assert not outline.open
    assert "Rank over time: from 4 to 2 of 4" in page
    assert page.count('class="chart ranks"') == 2
    assert "| 2 | 4 | " in as_markdown(report)
    assert json.loads(as_json(report))["board"]["places"][-1]["rank"] == 2


async def test_words_of_a_board_stay_words(memory: Memory) -> None:
    await climbed(memory)
    record = memory.submissions("c1")[-1]
    memory.submission(replace(record, tag="t", state="failed", reason=EVIL))
    memory.note("c1", "calibration", json.dumps({"text": EVIL}))
    page = as_html(build_report(memory, memory.campaign("c1")))
    assert "<script" not in page.lower()
    assert not Outline(page).open


async def test_a_campaign_without_a_board_has_no_part_of_it(memory: Memory) -> None:
    report = replace(await climbed(memory), board=None)
    assert 'id="board"' not in as_html(report)
    assert "## Board" not in as_markdown(report)
    assert memory.places("c1")


def test_the_chart_has_the_first_place_on_top() -> None:
    rows = (
        PlaceRow(1.0, 57, 57, 2.0, 0.1),
        PlaceRow(5.0, None, 57, None, None),
        PlaceRow(9.0, 1, 58, 1.0, None),
    )
    picture = rank_chart(rows, 10.0, 900)
    assert isinstance(picture, Markup)
    heights = [float(part.split('"')[0]) for part in picture.split(' cy="')[1:]]
    assert heights[1] < heights[0]
    assert "rank 1 of 58 with 1" in picture
    assert rank_chart((), 1.0, 900) is None
    assert rank_chart((PlaceRow(1.0, 1, 1, 1.0, None),), 0.0, 350) is not None


def test_a_place_is_kept_as_it_was_read(memory: Memory) -> None:
    from ..campaign.test_outbox import scene_of

    scene_of(memory)
    place = PlaceRecord("c1", 1.5, 3, 57, 0.001, 0.0009)
    memory.place(place)
    memory.place(replace(place, rank=None, score_s=None, ahead_s=None))
    assert memory.places("c1")[0] == place
    assert memory.places("c1")[1].rank is None
