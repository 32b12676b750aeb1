"""A fault of ours in the middle of a campaign: what it was about is told, nothing is lost, ``resume`` goes on."""

import contextlib
import json
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import pytest

from kernelwright.campaign import sitting
from kernelwright.campaign.sitting import MEMORY_FILE
from kernelwright.cli.main import main
from kernelwright.core.candidate import Candidate
from kernelwright.core.outcome import Outcome
from kernelwright.core.screen import Screen
from kernelwright.devices.base import TimingProtocol
from kernelwright.harness.protocol import CompileResult
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.memory.store import Memory
from tests.campaign.fakes import FakeHarness

BEFORE = 3
"""Candidates that pass before the fault, with the baseline."""


class Harness(FakeHarness):
    """One that can be started. In ``broken``, "compile" or "benchmark", there is a fault of ours, once."""

    sandbox = SandboxReport()
    timing = TimingProtocol()
    broken = ""
    at_fault = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Nothing was started."""

    def _break(self, where: str, candidate: Candidate) -> None:
        done = self.compiled if where == "compile" else len(self.measured)
        if self.broken == where and done >= BEFORE and not self.at_fault:
            self.at_fault = f"{candidate.id} ({candidate})"
            raise ZeroDivisionError("ours")

    async def compile(self, candidate: Candidate) -> CompileResult:
        self._break("compile", candidate)
        return await super().compile(candidate)

    async def benchmark(
        self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
    ) -> Outcome:
        self._break("benchmark", candidate)
        return await super().benchmark(candidate, compiled, screen)


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Harness:
    """What ``run`` and ``resume`` get."""
    made = Harness({})

    async def tested(*_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(warnings=())

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sitting, "quick_selftest", tested)
    monkeypatch.setattr(sitting, "_harness", lambda *_: made)
    return made


def ended(*words: str) -> object:
    with pytest.raises(SystemExit) as caught:
        main([*words, "--dir", "here"])
    return caught.value.code


def recorded() -> list[str]:
    with Memory.open(Path("here") / MEMORY_FILE, create=False) as memory:
        return [each.candidate for each in memory.experiments(memory.campaign("last").id)]


@pytest.mark.parametrize("where", ["compile", "benchmark"])
def test_in_a_lane_it_names_the_experiment_and_resume_goes_on(
    where: str, harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.broken = where
    assert ended("run", "vector_add", "--device", "cpu", "--evaluations", "8", "--compile-workers", "2") == 70
    assert capsys.readouterr().err.splitlines()[-3:] == [
        "ZeroDivisionError: ours",
        f"in flight: {harness.at_fault}; what is recorded is kept: kernelwright resume goes on",
        "kernelwright: this is a fault of kernelwright, not of your input: please report it",
    ]
    kept = recorded()
    assert 1 <= len(kept) < 8
    assert kept == harness.measured[: len(kept)]

    with contextlib.closing(sqlite3.connect(Path("here") / MEMORY_FILE)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    assert ended("resume", "last", "--json") == 0
    assert json.loads(capsys.readouterr().out)["experiments"] == 8
    whole = recorded()
    assert whole[: len(kept)] == kept
    assert len(set(whole)) == len(whole) == 8
