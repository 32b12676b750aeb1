"""A device whose compiler and runner attack. The request names what to do."""

import json
from pathlib import Path

import numpy as np

from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import Status
from kernelwright.devices.base import BuildResult, CaseSource, DuelRequest, DuelResult, RunRequest, RunResult
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.wire import Ceilings
from tests.harness.attacks.attempts import BOMBS, Target, attempt_all
from tests.harness.fake_device import FACTS

REFERENCE = '''"""A reference that attacks when it is loaded."""
import json
from pathlib import Path

from tests.harness.attacks.attempts import Target, attempt_all

table = attempt_all(Target.read(Path(__file__).parent / "target.json"), Path.cwd())
Path("table.json").write_text(json.dumps(table))


def reference(xp, sizes, A, B):
    return {"C": A + B}
'''


class AttackMaker:
    def prepare(self, setup: WorkerSetup) -> None:
        pass

    def compiler(self, setup: WorkerSetup) -> tuple["AttackCompiler", str]:
        return AttackCompiler(), "attack"

    def runner(self, setup: WorkerSetup) -> tuple["AttackRunner", Ceilings]:
        return AttackRunner(), Ceilings()


class AttackCompiler:
    def build(self, request: BuildRequest, scratch: Path) -> BuildResult:
        return BuildResult(status=Status.COMPILE_FAILED, reason=perform(request.source))


class AttackRunner:
    broken = False
    facts = FACTS

    def run(self, request: RunRequest, source: CaseSource) -> RunResult:
        if request.artifact == "reference":
            case = next(iter(source._cases))  # type: ignore[attr-defined]
            inputs = {name: np.ones(4, np.float32) for name in ("A", "B")}
            try:
                source.expected(case, inputs, np)
            except Exception as error:  # noqa: BLE001 - the table is written before the shapes are looked at
                return RunResult(Status.WRONG, _table(Path("table.json"), error))
            return RunResult(Status.WRONG, Path("table.json").read_text())
        return RunResult(Status.WRONG, perform(request.artifact))

    def duel(self, request: DuelRequest, source: CaseSource) -> DuelResult:
        raise NotImplementedError

    def close(self) -> None:
        pass


def _table(path: Path, error: Exception) -> str:
    return path.read_text() if path.exists() else json.dumps([["load the reference", f"failed: {error}"]])


def perform(text: str) -> str:
    """``table TARGET`` or ``bomb KIND``."""
    verb, _, words = text.partition(" ")
    if verb == "bomb":
        return BOMBS[words]()
    return json.dumps(attempt_all(Target.read(Path(words)), Path.cwd()))
