"""What a report says of campaigns of every kind, and that nothing untrusted gets out of its place."""

import html
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelwright.certificate import certify
from kernelwright.cli.main import main
from kernelwright.memory.claims import Standing
from kernelwright.memory.records import ProfileRecord
from kernelwright.memory.store import Memory
from kernelwright.report import Records, Report, as_html, as_json, as_markdown, build_report, overview
from kernelwright.report.cases import cases
from kernelwright.report.lineage import lineage

from .campaigns import EVIL, NAME, write

Build = Callable[..., Report]
VOID = {"meta", "link", "input", "br"}


class Outline(HTMLParser):
    """Elements in order; every start has its end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def make(count: int, **options: object) -> Report:
        write(tmp_path / "memory.db", count, **options)
        with Memory.open(tmp_path / "memory.db", read_only=True) as memory:
            return build_report(memory, memory.campaign(NAME))

    return make


def test_a_whole_campaign(build: Build) -> None:
    report = build(300)
    assert report.headline.verdict.endswith("times as fast as the baseline.")
    assert report.headline.experiments == 300
    assert sum(failure.count for failure in report.failures) == 300 - report.headline.measured
    assert {failure.status for failure in report.failures} == {"compile_failed", "wrong", "crashed"}
    assert report.milestones[-1].cost_ms == min(row.cost_ms or 9 for row in report.milestones)
    assert report.milestones[0].ratio == 1
    jumps = [row.jump for row in report.milestones if row.jump]
    assert jumps == list(range(1, len(jumps) + 1))
    assert jumps
    assert [step.jump for step in report.lineage.improvements] == jumps
    assert [row.case for row in report.cases.rows] == [
        "M=128,N=128,K=128", "M=256,N=256,K=256", "M=511,N=509,K=515", "M=512,N=512,K=512",
    ]  # fmt: skip
    for row in report.cases.rows:
        assert row.floor_ms
        assert row.intensity
        assert row.distance == pytest.approx(row.incumbent_ms / row.floor_ms)
        assert row.attained == pytest.approx(row.floor_ms / row.incumbent_ms)
        assert row.bound == ("compute" if row.intensity > 5.1e13 / 4.2e12 else "memory")
    assert report.cases.roofline.unit == "fp32"
    assert "cuBLAS fp32" in report.cases.reference
    assert {share.name for share in report.tuning.importance} == {"BM", "TN", "VEC"}
    assert len(report.tuning.interactions) == 3
    assert report.profiles[0].bottleneck.startswith("memory")
    (model,) = report.spending.models
    assert (model.requests, model.input_tokens, model.cost_usd) == (3, 3600, pytest.approx(0.093))


@pytest.mark.parametrize(
    ("more", "unit", "rate"),
    [
        ({}, "fp32", 5e13),  # as older versions noted it
        ({"tensor_flops_per_s": 9e14, "on_tensor_units": False}, "fp32", 5e13),
        ({"tensor_flops_per_s": 9e14, "on_tensor_units": True}, "tensor units", 9e14),
    ],
)
def test_the_roof_is_of_the_units_that_the_problem_may_use(
    more: dict[str, Any], unit: str, rate: float
) -> None:
    note = {"bytes_per_s": 4e12, "flops_per_s": 5e13, **more}
    memory: Any = None
    records: Any = SimpleNamespace(
        note=lambda name: note if name == "ceilings" else {}, incumbent=None, baseline=None, device={}
    )
    roof = cases(memory, records).roofline
    assert (roof.unit, roof.flops_per_s, roof.reason) == (unit, rate, "")


def test_device_seconds_are_the_sums_of_what_was_recorded(build: Build) -> None:
    report = build(50)
    by_name = {account.name: account.seconds for account in report.spending.device}
    measured = report.headline.measured
    assert by_name == pytest.approx(
        {"check": 0.05 * measured, "time": 0.1 * measured, "overhead": 0.01 * measured}
    )
    assert report.spending.compile_seconds == pytest.approx(0.3 * measured + 0.2 * (50 - measured))


def test_improvements_tell_prediction_and_what_happened(build: Build) -> None:
    step = build(300).lineage.improvements[0]
    assert step.rationale.startswith("Reuse in registers")
    assert step.predicted.endswith("x")
    assert re.match(r"0\.\d+ of the baseline's time after 0\.\d+; duel \d+: ", step.actual)
    kinds = {line.kind for line in step.diff}
    assert {"add", "cut", "place"} <= kinds
    assert not any("alert" in line.text for line in step.diff)  # comments are no part of a change


def test_who_leads_without_a_won_duel_is_told_apart(tmp_path: Path) -> None:
    write(tmp_path / "memory.db", 300)
    with Memory.open(tmp_path / "memory.db", read_only=True) as memory:
        records = Records.read(memory, memory.campaign(NAME))
    without = replace(records, duels=())
    step = lineage(without, overview(without).milestones).improvements[0]
    assert "; it leads without a won duel, by the campaign's rules: found" in step.actual


def test_parents_in_the_tree_led_before(build: Build) -> None:
    nodes = build(300).lineage.nodes
    for place, node in enumerate(nodes):
        assert node.parent in {"", *(each.template for each in nodes[:place])}


@pytest.mark.parametrize(
    ("count", "options", "verdict"),
    [
        (0, {}, "Nothing has been tried yet."),
        (1, {}, "No improvement: the baseline still leads after 0 other experiments."),
        (2, {"spread": 1}, ""),
        (12, {"failing": 1.0, "state": "failed"}, "No candidate was measured: every experiment failed."),
        (30, {"state": "interrupted", "models": False}, "times as fast"),
        (30, {"state": "running"}, "times as fast"),
    ],
)
def test_every_kind_of_campaign_has_every_view(
    build: Build, count: int, options: dict[str, object], verdict: str
) -> None:
    report = build(count, **options)
    assert verdict in report.headline.verdict
    page, text = as_html(report), as_markdown(report)
    assert Outline(page).open == []
    assert report.headline.verdict.rstrip(".") in page.replace("&#39;", "'")
    assert "## How to repeat it" in text
    again = json.loads(as_json(report))
    assert again["headline"]["experiments"] == count
    states = {
        "failed": "baseline could not be measured",
        "interrupted": "resume",
        "running": "running, or was killed",
    }
    for state, words in states.items():
        assert (words in " ".join(report.headline.notes)) == (options.get("state") == state)


def test_nothing_untrusted_becomes_markup(build: Build) -> None:
    page = as_html(build(300))
    outline = Outline(page)
    tags = {tag for tag, _ in outline.tags}
    assert not tags & {"script", "img", "iframe", "object", "embed", "form", "base"}
    for tag, attributes in outline.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "src", "action", "xlink:href"):
            value = attributes.get(name) or ""
            assert value.startswith(("#", "data:,")) or not value, (tag, value)
    assert any("<script>alert(1)</script>" in text for text in outline.texts)  # it is shown, as text
    assert "\u202e" not in page
    assert "<U+202E>" in "".join(outline.texts)


def test_the_policy_lets_nothing_in(build: Build) -> None:
    outline = Outline(as_html(build(1)))
    policies = [a["content"] for tag, a in outline.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1
    for part in ("default-src 'none'", "script-src 'none'", "style-src 'unsafe-inline'", "base-uri 'none'"):
        assert part in (policies[0] or "")
    first = next(place for place, (_, a) in enumerate(outline.tags) if "http-equiv" in a)
    assert {tag for tag, _ in outline.tags[:first]} == {"html", "head", "meta"}


def test_a_phone_has_every_cell_with_its_columns_name(build: Build) -> None:
    page = as_html(build(60))
    tables = re.findall(r"<table>.*?</table>", page, re.DOTALL)
    assert len(tables) >= 6
    for table in tables:
        columns = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)
        for row in re.findall(r"<tr>(<t[dh].*?)</tr>", table.partition("<tbody>")[2], re.DOTALL):
            cells = re.findall(r"<t[dh]([^>]*)>", row)
            assert len(cells) == len(columns)
            for column, cell in zip(columns, cells, strict=True):
                assert f'data-label="{column}"' in cell or 'scope="row"' in cell


def test_headings_descend_and_tables_have_captions(build: Build) -> None:
    outline = Outline(as_html(build(300)))
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    tags = [tag for tag, _ in outline.tags]
    assert tags.count("table") == tags.count("caption")
    assert all(a.get("scope") in {"col", "row"} for tag, a in outline.tags if tag == "th")
    assert all(a.get("role") == "img" and a.get("aria-label") for tag, a in outline.tags if tag == "svg")
    ids = [a["id"] for _, a in outline.tags if "id" in a]
    assert len(ids) == len(set(ids))


def test_markdown_keeps_texts_in_their_cells(build: Build) -> None:
    text = as_markdown(build(300))
    assert "<script>alert(1)" not in re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert "](javascript" not in re.sub(r"\\\]", "", text)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    widths = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
    assert widths <= {7, 8, 9}
    assert EVIL.split()[0] not in text


def test_a_changed_certificate_is_not_believed(tmp_path: Path) -> None:
    write(tmp_path / "memory.db", 30)
    with Memory.open(tmp_path / "memory.db") as memory:
        issued = certify(memory, NAME)
        assert issued is not None
        assert build_report(memory, memory.campaign(NAME)).certificate.state == "issued"
        changed = issued.model_copy(update={"baseline": "other"})
        memory.certify(NAME, memory.certificates(NAME)[0].candidate, changed.as_json())
        found = build_report(memory, memory.campaign(NAME)).certificate
    assert (found.state, found.passed) == ("none", ())
    assert "was changed" in found.reason


def test_a_report_beside_a_writer(tmp_path: Path) -> None:
    write(tmp_path / "memory.db", 20, state="running")
    with (
        Memory.open(tmp_path / "memory.db", create=False) as writer,
        Memory.open(tmp_path / "memory.db", read_only=True) as reader,
    ):
        writer.claim(NAME)
        report = build_report(reader, reader.campaign("last"))
        writer.progress(NAME, "running", 99.0)
    assert report.headline.experiments == 20


SEEN = {
    Standing.GONE: ("interrupted", "The campaign's process is gone: 'kernelwright resume' goes on with it."),
    Standing.UNSEEN: ("unknown", "Whether the campaign still runs cannot be seen from here"),
    Standing.RUNNING: ("running", "The campaign is running: this is what is recorded so far."),
}


@pytest.mark.parametrize("standing", SEEN)
def test_what_became_of_a_campaign_is_told_as_far_as_it_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], standing: Standing
) -> None:
    state, words = SEEN[standing]
    write(tmp_path / "memory.db", 20, state="running")
    monkeypatch.setattr(Memory, "standing", lambda *_: standing)
    with Memory.open(tmp_path / "memory.db", read_only=True) as memory:
        head = build_report(memory, memory.campaign(NAME)).headline
        assert memory.campaign(NAME).state == "running"
    assert head.state == state
    assert head.notes[0].startswith(words)
    with pytest.raises(SystemExit) as ended:
        main(["show", "--json", "--dir", f"{tmp_path}"])
    assert ended.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["state"], told["headline"]["state"]) == (state, state)


def test_a_long_campaign_stays_small(build: Build) -> None:
    report = build(3000, spread=60)
    assert len(report.trajectory.marks) <= 3000
    assert len(as_html(report).encode()) < 1_000_000
    assert len(report.lineage.templates) + report.lineage.templates_left_out == 60


def with_profiles(tmp_path: Path, *digests: str, candidate: str = "") -> Report:
    """A campaign whose leader, or ``candidate``, was profiled so."""
    write(tmp_path / "memory.db", 60)
    with Memory.open(tmp_path / "memory.db", create=False) as memory:
        leader = Records.read(memory, memory.campaign(NAME)).incumbent
        assert leader is not None
        for digest in digests:
            name = digest.partition("\n")[0]
            memory.profile(
                ProfileRecord(NAME, candidate or leader.candidate, "n", 1, name, digest, "{}", "leads", 9.0)
            )
        return build_report(memory, memory.campaign(NAME))


def digest_in_html(report: Report) -> str:
    """What stands between the section's heading and its first table."""
    section = as_html(report).split('<h2 id="resources">')[1].split("</section>")[0]
    head = section.split("<table")[0]
    assert head.count('<pre class="digest">') == 1
    return html.unescape("\n".join(re.findall(r"<span>(.*?)</span>", head)))


def digest_in_markdown(report: Report) -> str:
    section = as_markdown(report).split("## Bottleneck over time\n")[1].split("## Failures")[0]
    found = re.fullmatch(r"\nWhat limits the leader, [^\n]+:\n\n(`{3,})\n(.*?)\n\1\n\n.*", section, re.DOTALL)
    assert found, section
    return found[2]


def digest_in_json(report: Report) -> str:
    return str(json.loads(as_json(report))["bottleneck"]["digest"])


VIEWS = [digest_in_html, digest_in_markdown, digest_in_json]


@pytest.mark.parametrize("read", VIEWS)
def test_without_a_profile_of_the_leader_its_digest_is_static(
    tmp_path: Path, read: Callable[[Report], str]
) -> None:
    lines = read(with_profiles(tmp_path, "another's digest", candidate="c000000")).split("\n")
    assert lines[0].startswith("Bottleneck (static, no hardware counters, M=128,N=128,K=128): ")
    assert lines[1].startswith("Roofline: bound by compute, floor ")
    assert lines[2].startswith("k: registers ")


@pytest.mark.parametrize("read", VIEWS)
def test_the_last_profile_of_the_leader_is_its_digest(tmp_path: Path, read: Callable[[Report], str]) -> None:
    last = "Bottleneck (hardware counters, n): grid too small\nNumbers: SM % 3\nKnown move: split"
    assert read(with_profiles(tmp_path, "an older digest", last)) == last


def test_a_digest_is_shown_once(tmp_path: Path) -> None:
    report = with_profiles(tmp_path, "older line 1\nolder line 2", "the last")
    page, text = as_html(report), as_markdown(report)
    assert page.count(">the last</span>") == 1
    assert '<td class="wordy lines" data-label="Digest">shown above</td>' in page
    assert '<td class="wordy lines" data-label="Digest">older line 1\nolder line 2</td>' in page
    assert ": the last: shown above\n" in text
    assert ": older line 1; older line 2\n" in text


def test_without_a_leader_there_is_no_digest(build: Build) -> None:
    report = build(12, failing=1.0, state="failed")
    assert report.bottleneck is None
    assert "What limits the leader" not in as_html(report) + as_markdown(report)
    assert '<pre class="digest"' not in as_html(report)
    assert json.loads(as_json(report))["bottleneck"] is None


def test_a_hostile_digest_stays_text(tmp_path: Path) -> None:
    hostile = f"{EVIL}\n```\n# heading\n</span></pre>{EVIL}\x1b[31m"
    report = with_profiles(tmp_path, hostile)
    shown = hostile.replace("\u202e", "<U+202E>").replace("\x1b", "<U+001B>")
    assert digest_in_html(report) == digest_in_markdown(report) == shown
    outline = Outline(as_html(report))
    assert outline.open == []
    assert not {tag for tag, _ in outline.tags} & {"script", "img"}
    assert digest_in_json(report) == hostile


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({}, "The leader takes 1.020 of the time of cuBLAS."),
        (
            {"low": 1.01, "high": 1.03, "source": "16 paired rounds"},
            "The leader takes 1.020 of the time of cuBLAS, 99 % interval 1.010 to 1.030 (16 paired rounds).",
        ),
        (
            {"candidate": "c000000"},
            "The strong reference is cuBLAS; the leader was not compared with it.",
        ),
    ],
)
def test_the_strong_reference_is_a_sentence(tmp_path: Path, more: dict[str, Any], sentence: str) -> None:
    write(tmp_path / "memory.db", 60)
    with Memory.open(tmp_path / "memory.db", create=False) as memory:
        memory.note(NAME, "strongest", json.dumps({"name": "cuBLAS", "ratio": 1.02, **more}))
        report = build_report(memory, memory.campaign(NAME))
    assert report.cases.reference == sentence
    assert f"<p>{sentence}</p>" in as_html(report)
