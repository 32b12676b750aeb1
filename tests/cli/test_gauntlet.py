"""``kernelwright gauntlet`` on the cpu device."""

import asyncio
import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelwright.cli.main import main
from kernelwright.core.errors import UserError
from kernelwright.core.outcome import KILLED, Check, Outcome, Status
from kernelwright.gauntlet import Entry, Verdict, judge, load_entries
from kernelwright.gauntlet.run import Lane, sanitized
from kernelwright.harness.protocol import SanitizerResult

CORPUS = Path(__file__).parents[1] / "gauntlet"


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["gauntlet", *arguments])
    output = capsys.readouterr()
    return int(ended.value.code or 0), output.out, output.err


def report(capsys: pytest.CaptureFixture[str], folder: Path, *more: str, code: int) -> dict[str, Any]:
    got, out, err = command(capsys, str(folder), "--device", "cpu", "--json", *more)
    assert got == code, out + err
    found: dict[str, Any] = json.loads(out)
    return found


def copy(to: Path, *names: str) -> Path:
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(CORPUS / name, to / name)
    return to


def test_the_corpus_is_large_and_says_what_it_plays() -> None:
    entries = load_entries(CORPUS)
    cheats = [entry for entry in entries if entry.kind == "cheat"]
    assert len(cheats) >= 48
    assert len(entries) - len(cheats) >= 32
    assert all(entry.row and entry.checks for entry in cheats)
    assert len({entry.text for entry in entries}) == len(entries)


def test_cheats_are_caught_and_the_honest_pass(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    copy(tmp_path, "cheats/comment_injection.cu", "cheats/near_write.cu", "cheats/plan_toml_bomb.cu",
         "honest/grid_stride.cu", "honest/inline_ptx_fma.cu")  # fmt: skip
    found = report(capsys, tmp_path, code=0)
    assert (found["cheats"], found["caught"], found["passed"]) == (3, 3, 0)
    assert (found["honest"], found["false_alarms"], found["not_run"]) == (2, 0, 1)
    assert {row["file"]: row["check"] for row in found["rows"]} == {
        "cheats/comment_injection.cu": "values",
        "cheats/near_write.cu": "checked mode",
        "cheats/plan_toml_bomb.cu": "plan",
        "honest/grid_stride.cu": "",
        "honest/inline_ptx_fma.cu": "",
    }
    assert command(capsys, str(tmp_path), "--device", "cpu", "--strict", "--only", "ptx")[0] == 1


def test_the_checked_mode_has_the_last_word_on_the_cpu(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As for every new incumbent: the smallest case, which is looked at before any timing, shows nothing here."""
    copy(tmp_path, "cheats/checked_mode_by_clock.cu", "cheats/checked_mode_by_sanitizer_macro.cu")
    found = report(capsys, tmp_path, code=0)
    assert (found["caught"], {row["check"] for row in found["rows"]}) == (2, {"checked mode"})
    assert all("N=100003" in row["reason"] for row in found["rows"])


@pytest.mark.parametrize(("needs", "kind"), [("cpu", "cuda"), ("cuda", "cpu")])
async def test_what_needs_another_device_is_not_run(needs: str, kind: str) -> None:
    harness: Any = SimpleNamespace(facts=SimpleNamespace(kind=kind))
    row = await Lane(harness, asyncio.Semaphore(1), lambda _: None).row(replace(entry(), needs=needs))
    assert row.verdict is Verdict.NOT_RUN
    assert needs in row.reason.lower()


def test_failures_are_told_apart(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    right = (CORPUS / "honest/grid_stride.cu").read_text()
    wrong = (CORPUS / "cheats/comment_injection.cu").read_text()
    as_cheat = '"cheat"\n// gauntlet: row = "35 skipped tail"\n// gauntlet: checks = ["values"]'
    (tmp_path / "passes.cu").write_text(right.replace('"honest"', as_cheat))
    (tmp_path / "by_accident.cu").write_text(wrong.replace('checks = ["values"]', 'checks = ["floor"]', 1).replace(
        '"floor"', '"physical floor"'))  # fmt: skip
    (tmp_path / "alarm.cu").write_text(
        "\n".join(
            line.replace('"cheat"', '"honest"')
            for line in wrong.split("\n")
            if not line.startswith(("// gauntlet: row", "// gauntlet: checks"))
        )
    )
    found = report(capsys, tmp_path, code=1)
    verdicts = {row["file"]: row["verdict"] for row in found["rows"]}
    assert verdicts == {"passes.cu": "passed", "by_accident.cu": "wrong check", "alarm.cu": "false alarm"}
    assert (found["passed"], found["wrong_check"], found["false_alarms"]) == (1, 1, 1)
    reasons = {row["file"]: row["reason"] for row in found["rows"]}
    assert reasons["by_accident.cu"].startswith("caught by values, expected physical floor")


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("", "lacks its lines"),
        ('// gauntlet: problem = "vector_add"\n', "kind"),
        ('// gauntlet: problem = "vector_add"\n// gauntlet: kind = "cheat"\n', "a cheat needs 'row'"),
        ("// gauntlet: problem = \n", "not valid TOML"),
        ('// gauntlet: problem = "no_such"\n// gauntlet: kind = "honest"\n', "no_such"),
        ('// gauntlet: problem = "softmax"\n// gauntlet: kind = "honest"\n// gauntlet: row_ = ""\n', "row_"),
        (
            '\n// gauntlet: kind = "honest"\n// gauntlet: kind = "cheat"',
            'file.cu:3: gauntlet: not valid TOML: Cannot overwrite a value: kind = "cheat"',
        ),
    ],
)
def test_a_wrong_header_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, header: str, says: str
) -> None:
    (tmp_path / "file.cu").write_text(header)
    code, out, err = command(capsys, str(tmp_path), "--device", "cpu")
    assert code == 2
    assert not out
    assert says in err
    assert f"{tmp_path}/file.cu" in err
    assert err.count("\n") == 1


def test_a_folder_without_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command(capsys, str(tmp_path))[0] == 2
    assert command(capsys, str(tmp_path / "missing"))[0] == 2


@pytest.mark.parametrize("kind", ["fifo", "folder", "dangling", "dangling folder", "circle"])
def test_what_cannot_be_read_is_not_left_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str
) -> None:
    """A cheat that nobody reads would count as none."""
    odd = copy(tmp_path, "honest/grid_stride.cu") / "odd.cu"
    if kind == "fifo":
        os.mkfifo(odd)
    elif kind == "folder":
        odd.mkdir()
    else:
        odd = tmp_path / "folder" if kind == "dangling folder" else odd
        odd.symlink_to(odd if kind == "circle" else tmp_path / "nowhere")
    code, out, err = command(capsys, str(tmp_path), "--device", "cpu")
    assert (code, out) == (2, "")
    assert err.startswith(f"kernelwright: error: {odd}: ")


def test_a_closed_folder_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = copy(tmp_path, "honest/grid_stride.cu") / "closed"
    closed.mkdir()
    scandir = os.scandir

    def refuse(path: str) -> Any:  # root may look into everything
        if path == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UserError, match=f"^{closed}: cannot be read: Permission denied: give yourself"):
        load_entries(tmp_path)


def test_folders_behind_links_are_looked_into_once_and_problems_not_at_all(tmp_path: Path) -> None:
    copy(tmp_path / "outside", "honest/grid_stride.cu")
    inside = tmp_path / "inside"
    (inside / "problem").mkdir(parents=True)
    (inside / "problem" / "problem.toml").touch()
    (inside / "problem" / "baseline.cu").touch()
    (inside / "link").symlink_to(tmp_path / "outside")
    (inside / "loop").symlink_to(inside)
    assert [entry.file for entry in load_entries(inside)] == ["link/honest/grid_stride.cu"]


def entry(kind: Any = "cheat") -> Entry:
    return Entry("a.cu", "softmax", kind, "35 tail", (Check.VALUES,) if kind == "cheat" else (), "", "")


def test_not_run_is_neither_caught_nor_passed() -> None:
    skipped = Outcome(Status.NOT_RUN, "not here")
    assert judge(entry(), skipped).verdict is Verdict.NOT_RUN
    assert judge(entry("honest"), skipped).verdict is Verdict.NOT_RUN
    assert judge(entry(), Outcome(Status.WRONG, "bad", check="")).verdict is Verdict.WRONG_CHECK


def test_a_worker_that_was_killed_is_a_failure_of_the_harness() -> None:
    killed = Outcome(Status.NOT_RUN, "ended with signal 9 once more", check=KILLED)
    assert {judge(entry(kind), killed).verdict for kind in ("cheat", "honest")} == {Verdict.ERROR}


def test_the_sanitizer_has_the_last_word() -> None:
    good = Outcome(Status.NOT_RUN, "stands for a measured one")
    caught = sanitized(good, SanitizerResult(Status.WRONG, "race"))
    assert (caught.status, caught.check, caught.reason) == (Status.WRONG, Check.SANITIZER, "race")
    kept = sanitized(good, SanitizerResult(Status.NOT_RUN, "not installed"))
    assert kept.status is good.status
    assert "not installed" in kept.reason
