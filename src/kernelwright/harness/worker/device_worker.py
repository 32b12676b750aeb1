"""Owns one device: checks and times."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kernelwright.core.errors import HarnessError
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.setup import REFERENCE_BEGINS, REFERENCE_ENDS, WorkerSetup
from kernelwright.harness.wire import Hello, Reply, Request
from kernelwright.harness.worker.devices import load_maker
from kernelwright.problems.loader import load_problem
from kernelwright.problems.source import ProblemSource


class ToldSource(ProblemSource):
    """Says in the log when a problem's own code runs, for whoever has to tell why this process ended."""

    def __init__(self, setup: WorkerSetup) -> None:
        super().__init__(load_problem(setup.problem), setup.seed, setup.slow_cases)
        self._mark = setup.mark

    def expected(self, case: str, inputs: Mapping[str, Any], xp: Any) -> Mapping[str, Any]:
        """Right outputs in float64, as arrays of ``xp``."""
        self._say(REFERENCE_BEGINS)
        try:
            return super().expected(case, inputs, xp)
        finally:
            self._say(REFERENCE_ENDS)

    def _say(self, what: str) -> None:
        os.write(2, f"\n{self._mark} {what}\n".encode())


class DeviceService:
    """Runs candidates on the cases of one problem."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._source = ToldSource(setup)
        self._runner, self._ceilings = load_maker(setup).runner(setup)

    def greet(self, report: SandboxReport) -> Hello:
        """Names the device and what it can do."""
        return Hello(report, self._runner.facts.toolchain, self._runner.facts, self._ceilings)

    def answer(self, request: Request) -> Reply:
        """Check and time one candidate, or two in turn. After a lost context this child is done."""
        if request.run is not None:
            reply = Reply(request.id, ran=self._runner.run(request.run, self._source))
        elif request.duel is not None:
            reply = Reply(request.id, dueled=self._runner.duel(request.duel, self._source))
        else:
            raise HarnessError("a device worker was asked to compile something")
        return replace(reply, broken=bool(getattr(self._runner, "broken", False)))
