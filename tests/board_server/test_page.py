"""The pages in a real browser, on a desk and on a phone: table, chart, form, error states."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.board_server.records import Verdict
from kernelwright.board_server.store import Store
from kernelwright.leaderboard.base import State

from .chromium import EXECUTABLE, Page, chromium
from .support import draft, listing, source
from .test_server import server

pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="needs Chromium: apt-get install chromium")
CROWD = 57
VIEWS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
OVERLAPS = """(() => { const hits = [];
  for (const chart of document.querySelectorAll("svg")) {
    const frame = chart.getBoundingClientRect();
    const texts = [...chart.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()]).filter(([, b]) => b.width);
    for (const [t, b] of texts) if (b.right > frame.right + 2 || b.left < frame.left - 2) hits.push(t + " leaves the chart");
    texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
      const w = Math.min(p.right, q.right) - Math.max(p.left, q.left), h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (w > 2 && h > 4) hits.push(a + " / " + b);
    }));
  } return hits; })()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """URL of a server whose board has a crowd, a token, and a folder."""
    folder = tmp_path_factory.mktemp("board")
    ticks = iter(range(10**6))
    store = Store.open(folder / "board.db", clock=lambda: 1.8e9 + 60 * next(ticks))
    store.adopt(listing())
    store.new_token("crowd", seeder=True)
    for number in range(CROWD):
        kept = store.add(draft("crowd", tag=f"t{number}", entry=f"a longer name {number}"))
        score = 1e-3 * (1 + (number * 31 % CROWD))
        store.end(kept, Verdict(State.PASSED, "", score))
    token = store.new_token("anna")
    store.close()
    with server(folder / "board.db") as (url, _):
        yield url, token, folder


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(tab: Page) -> Page:
    tab.browser.events.clear()
    return tab


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_the_board_on_every_screen(page: Page, site: tuple[str, str, Path], width: int, scheme: str) -> None:
    url, _, _ = site
    page.show(width, scheme)
    for path in ("/", "/vector_add"):
        page.open(url + path)
        assert (
            page.eval("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        ), path
    assert page.eval("document.querySelectorAll('#table tbody tr').length") >= CROWD
    assert page.eval("document.querySelector('#table tbody tr').innerText").split("\t")[:3] == [
        "1", "crowd/a longer name 0", "1 ms",
    ]  # fmt: skip
    shown = "[...document.querySelectorAll('svg')].filter((s) => s.getBoundingClientRect().width)"
    assert page.eval(f"{shown}.length") == 1
    assert page.eval(f"{shown}[0].querySelectorAll('polyline').length") == 8
    assert page.eval(OVERLAPS) == []
    paper = page.eval("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(17, 22, 27)")
    assert page.said() == []
    assert all(request.startswith((url, "data:")) for request in page.requests())
    assert page.eval("document.scripts.length") == 0


def test_the_form_submits_and_the_page_follows(page: Page, site: tuple[str, str, Path]) -> None:
    url, token, folder = site
    (folder / "mine.cu").write_text(source("ms: 0.5"), encoding="utf-8")
    page.show(390, "light")
    fill(page, f"{url}/vector_add", token, folder / "mine.cu")
    page.until(lambda: "/submissions/" in (page.eval("location.pathname") or ""))
    page.until(lambda: page.eval("document.querySelector('.state').innerText") == "passed")
    assert "Score 0.5 ms, rank 1." in page.eval("document.body.innerText")
    view = page.eval("location.href")
    # The same file again leads to the same submission.
    fill(page, f"{url}/vector_add", token, folder / "mine.cu")
    page.until(lambda: page.eval("location.href") == view)
    page.open(f"{url}/vector_add")
    assert page.eval("document.querySelector('#table tbody th').innerText") == "anna"
    assert page.said() == []


@pytest.mark.parametrize("fault", ["a token of this board is needed", "the file must start with a plan"])
def test_the_form_says_what_is_wrong(page: Page, site: tuple[str, str, Path], fault: str) -> None:
    url, token, folder = site
    token_is_wrong = "token" in fault
    (folder / "bad.cu").write_text(source() if token_is_wrong else "no plan", encoding="utf-8")
    page.show(1280, "light")
    fill(page, f"{url}/vector_add", "kwb_wrong" if token_is_wrong else token, folder / "bad.cu", "X=2")
    assert fault in page.until(lambda: page.eval("document.querySelector('.error')?.innerText"))
    assert page.eval("document.querySelector('input[name=configuration]').value") == "X=2"
    assert page.eval("document.querySelector('input[name=mode]:checked').value") == "ranked"
    assert page.eval("document.querySelector('input[name=token]').value") == ""
    (said,) = page.said()
    assert f"responded with a status of {401 if token_is_wrong else 422}" in said


@pytest.mark.parametrize("path", ["/nothing", "/submissions/s0", "/vector_add?device=tpu"])
def test_an_address_that_is_none(page: Page, site: tuple[str, str, Path], path: str) -> None:
    page.show(390, "dark")
    page.open(site[0] + path)
    assert page.eval("document.querySelector('h1').innerText") == "404"
    assert page.eval("document.querySelector('[role=alert]').innerText").startswith("there is no")
    assert page.eval("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


def fill(page: Page, url: str, token: str, file: Path, configuration: str = "") -> None:
    page.open(url)
    page.eval(f"document.querySelector('input[name=token]').value = {token!r}")
    page.eval(f"document.querySelector('input[name=configuration]').value = {configuration!r}")
    page.eval("document.querySelector('input[value=ranked]').click()")
    page.choose("input[type=file]", file)
    page.eval("document.querySelector('button').click()")
