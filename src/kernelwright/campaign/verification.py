"""What an incumbent has to stand beside its duel: compute-sanitizer, and at the end every check once more."""

import json
from time import monotonic
from typing import Any, Final

from kernelwright.campaign.scene import Scene
from kernelwright.campaign.standing import Entry
from kernelwright.certificate import TRIALS, trials_note
from kernelwright.core.outcome import KILLED, Status
from kernelwright.harness.protocol import SanitizerResult

SHARE: Final = 0.15
"""Most of the used time that sanitizing may take before the end."""
EXPECTED_S: Final = 5.0
"""What a run of the tools takes before one was seen."""
SANITIZER: Final = "sanitizer:"
FAULT: Final = "disqualified:"


class Verification:
    """Looks for faults of incumbents. The caller sees to it that the device is used one at a time."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.sanitized: dict[str, SanitizerResult] = {}
        self._spent_s = 0.0
        self._last_s = EXPECTED_S

    async def sanitize(self, *, final: bool = False) -> None:
        """Run the tools on the present incumbent, unless that was done; before the end only while time allows.

        Only the newest is looked at: one that was superseded meanwhile never gets a turn.
        """
        leader = self._scene.standing.incumbent
        if leader is None or leader.candidate in self.sanitized or leader.candidate in self._scene.protected:
            return
        if not final and self._spent_s + self._last_s > SHARE * self._scene.budget.used:
            return
        built = await self._scene.binaries.of(self._scene.candidates[leader.candidate])
        if built.compiled.status is not None:
            self._scene.listener.note(f"compute-sanitizer: {leader.candidate}: {built.compiled.reason}")
            return
        start = monotonic()
        result = await self._scene.harness.sanitize(built.candidate, built.compiled)
        # Waiting for another machine is no use of the device.
        self._last_s = monotonic() - start if self._scene.harness.exclusive else result.seconds
        self._spent_s += self._last_s
        self._take(leader.candidate, result)

    def _take(self, candidate: str, result: SanitizerResult) -> None:
        if result.status is Status.WRONG:
            self._disqualify(candidate, f"compute-sanitizer: {result.reason}")
        if result.status is Status.NOT_RUN and all(
            known.status is not Status.NOT_RUN for known in self.sanitized.values()
        ):
            self._scene.listener.note(f"compute-sanitizer was not run: {result.reason}")
        self.sanitized[candidate] = result
        value = {
            "status": result.status,
            "reason": result.reason,
            "tools": result.tools,
            "notes": result.notes,
        }
        self._scene.memory.note(
            self._scene.campaign, SANITIZER + candidate, json.dumps({**value, "seconds": result.seconds})
        )

    async def check_again(self) -> None:
        """Every check in full for the incumbent: it may have come to lead by a rule, after a brief screening only."""
        leader = self._scene.standing.incumbent
        if leader is None or leader.candidate in self._scene.protected:
            return
        await self.check(leader)

    async def check(self, entry: Entry) -> bool:
        """Whether a candidate passes every check; one that does not is disqualified."""
        built = await self._scene.binaries.of(self._scene.candidates[entry.candidate])
        if built.compiled.status is not None:
            return True  # nothing is known against it
        outcome = await self._scene.harness.benchmark(built.candidate, built.compiled)
        if outcome.status is Status.MEASURED:
            self._note_trials(entry.candidate)
            return True
        if outcome.check == KILLED:
            self._scene.listener.note(f"{entry.candidate} could not be checked in full: {outcome.reason}")
            return True
        self._disqualify(entry.candidate, f"{outcome.status} when checked in full: {outcome.reason}")
        return False

    def _note_trials(self, candidate: str) -> None:
        if self._scene.trials is not None:
            passed = trials_note((trial.id, trial.check) for trial in self._scene.trials)
            self._scene.memory.note(self._scene.campaign, TRIALS + candidate, passed)

    def _disqualify(self, candidate: str, reason: str) -> None:
        fault = json.dumps({"reason": reason, "seconds": self._scene.budget.used})
        self._scene.memory.note(self._scene.campaign, FAULT + candidate, fault)
        self._scene.standing.disqualify(candidate)
        self._scene.listener.note(f"{candidate} is disqualified: {reason}")

    def recall(self) -> list[tuple[float, str]]:
        """Faults in the memory as (seconds, candidate); what the sanitizer said is known again."""
        faults = []
        for key, value in self._scene.memory.notes(self._scene.campaign).items():
            known: dict[str, Any] = json.loads(value) if key.startswith((FAULT, SANITIZER)) else {}
            if key.startswith(FAULT):
                faults.append((float(known["seconds"]), key.removeprefix(FAULT)))
            elif key.startswith(SANITIZER):
                status = Status(known.pop("status"))
                tools, told = tuple(known.pop("tools", ())), tuple(known.pop("notes", ()))
                result = SanitizerResult(status, tools=tools, notes=told, **known)
                self.sanitized[key.removeprefix(SANITIZER)] = result
        return faults
