"""The deadline lies in the board's file: no restart opens a board again whose sources were open."""

import re
import time
from pathlib import Path

import pytest

from kernelwright.board_server.records import Rules
from kernelwright.board_server.running import Settings, serve
from kernelwright.board_server.schema import STEPS
from kernelwright.board_server.store import Store
from kernelwright.core.errors import HarnessError, UserError

from .support import Benches, listing, site
from .test_server import names_in

FAR, FARTHER = 4e9, 5e9


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "board.db"


async def deadline_after(data: Path, asked: float | None) -> float | None:
    async with site(data, rules=Rules(deadline=asked)) as here:
        info = (await here.get("/api/boards/vector_add")).json()
        return info["deadline"]  # type: ignore[no-any-return]


def passed(data: Path, moment: float = 1.0) -> None:
    store = Store.open(data)
    store.keep_deadlines({"vector_add": moment})
    store.close()


async def test_a_restart_goes_on_with_the_deadline(data: Path) -> None:
    assert await deadline_after(data, None) is None
    assert await deadline_after(data, FAR) == FAR
    assert await deadline_after(data, None) == FAR
    assert await deadline_after(data, FARTHER) == FARTHER
    assert await deadline_after(data, FAR) == FAR


async def test_a_deadline_that_has_passed_stays(data: Path) -> None:
    await deadline_after(data, FAR)
    passed(data)
    with pytest.raises(UserError, match=r"that of vector_add passed at 19(69|70)-\S+, .*another --data"):
        await deadline_after(data, FAR)
    assert await deadline_after(data, None) == 1.0
    assert await deadline_after(data, 1.0) == 1.0  # the same command again
    async with site(data) as here:
        late = await here.post(here.token("anna"))
        assert late.status_code == 403
        assert "1970-01-01" in (await here.get("/vector_add")).text


async def test_a_board_does_not_begin_after_its_deadline(data: Path) -> None:
    begun: list[str] = []
    settings = Settings([listing()], ["cpu"], data, port=0, rules=Rules(deadline=time.time() - 1))
    with pytest.raises(UserError, match="has passed already: give a time to come"):
        await serve(settings, begun.append, Benches().open)
    assert begun == []
    assert names_in(data.parent) == []


async def test_a_server_that_cannot_begin_changes_no_deadline(data: Path) -> None:
    await deadline_after(data, FAR)
    refusing = Benches()
    refusing.refuse = "there is no such device"
    with pytest.raises(HarnessError, match="no such device"):
        async with site(data, rules=Rules(deadline=FARTHER), benches=refusing):
            pytest.fail("it began")
    assert await deadline_after(data, None) == FAR


@pytest.mark.parametrize(
    ("moment", "line"),
    [
        (FAR, r"vector_add: takes submissions until 2096-10-0\dT\S+, then opens their sources"),
        (1.0, r"vector_add: its deadline passed at 19(69|70)-\S+: nothing more is taken, sources are open"),
        (None, "vector_add: has no deadline: sources stay closed"),
    ],
)
async def test_the_start_says_the_deadline(data: Path, moment: float | None, line: str) -> None:
    await deadline_after(data, None)
    if moment:
        passed(data, moment)
    said: list[str] = []

    def notify(text: str) -> None:
        said.append(text)
        if not text.startswith("board: "):
            raise UserError("enough")

    with pytest.raises(UserError, match="enough"):
        await serve(Settings([listing()], ["cpu"], data, port=0), notify, Benches().open)
    assert said[0].startswith("board: http://")
    assert re.fullmatch(line, said[1])


async def test_a_file_of_before_deadlines_is_taken(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.board_server.opening.STEPS", STEPS[:1])
    Store.open(data).close()
    monkeypatch.undo()
    assert await deadline_after(data, FAR) == FAR
