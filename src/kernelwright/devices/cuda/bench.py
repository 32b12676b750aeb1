"""How candidates are checked and timed: one mechanism for single runs and for duels."""

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np

from kernelwright.core.outcome import Check, Conditions, Status
from kernelwright.devices.base import CaseRequest, CaseSource, TimingProtocol
from kernelwright.devices.cuda.casedata import CaseStore
from kernelwright.devices.cuda.driver import CudaError
from kernelwright.devices.cuda.gpu import ROWS, Gpu
from kernelwright.devices.cuda.operations import CandidateFailed, LaunchRefused, Operation
from kernelwright.devices.cuda.session import CaseSession, Checked, Entrant, Step
from kernelwright.devices.cuda.state import StateReader, slowed
from kernelwright.devices.cuda.watched import Slot

RETAKES: Final = 3
"""How often a block of timings taken on a throttled device is taken again."""
RETAKE_WAIT_S: Final = 0.1
LOOKED_AT: Final = 32 << 20
"""Bytes of all inputs of a case that are read again after each run, about as long as the L2 cache is cleared."""
LOOK_ONE_IN: Final = 8
"""Of larger ones after one run in so many."""

_TIMED_CANARY: Final = 1
"""Checked first runs use the other one: reads outside buffers give other values in timed runs."""


@dataclass(frozen=True)
class Block:
    """Samples in ms, one a step. ``discarded`` samples were taken on a throttled device and thrown away."""

    samples_ms: list[float]
    worst_error: float
    conditions: Conditions | None
    discarded: int = 0


@dataclass(frozen=True)
class Bench:
    """What is shared by all candidates of one request."""

    gpu: Gpu
    store: CaseStore
    reader: StateReader
    source: CaseSource
    timing: TimingProtocol
    timeout_s: float

    def session(
        self, entrant: Entrant, case: CaseRequest, runs: int, beside: Sequence[Slot] = ()
    ) -> CaseSession:
        """A case of a candidate for so many timed runs; ``beside`` are slots of the other side of a duel."""
        sets = self.sets(case, runs)
        places = 1 if is_short(case, self.timing) else min(self.timing.places, ceil(runs / sets))
        return CaseSession(
            self.gpu, self.store, entrant, self.source, case, sets=sets, places=places, beside=beside
        )

    def check(self, entrant: Entrant, case: CaseRequest, *, passes: int = 1) -> Checked:
        """The checked first run, or a trial's ``passes`` (see :meth:`CaseSession.check`).

        A short one's trial is a graph of two plans, each on inputs of its own: what the first leaves in shared memory the
        second finds there, as among the plans that are timed.
        """
        short = passes > 1 and is_short(case, self.timing)
        with (
            CaseSession(self.gpu, self.store, entrant, self.source, case, sets=2 if short else 1) as session,
            session.graph() if short else nullcontext() as graph,
        ):
            return session.check(self.timeout_s, passes, graph)

    def in_time(self, entrant: Entrant, case: CaseRequest, first_ms: float, runs: int) -> None:
        """Refuse a candidate whose timed runs would take too long. Raises CandidateFailed."""
        if first_ms * runs > self.timeout_s * 1e3:
            reason = (
                f"case {case.case}: one run took {first_ms:.4g} ms, {runs} timed runs"
                f" would pass the limit of {self.timeout_s:g} s"
            )
            raise CandidateFailed(Status.TIMED_OUT, reason, Check.RUN_LIMITS, entrant.side)

    def sets(self, case: CaseRequest, runs: int) -> int:
        """Input sets that a case's timed runs rotate over, or plans in its graph."""
        timing = self.timing
        return timing.graph_runs if is_short(case, timing) else min(runs, max(1, timing.input_sets))

    def steps(self, session: CaseSession, runs: int, graph: Operation | None) -> list[Step]:
        """Timed runs that stand at every place of the queue's groups equally often.

        A GPU reads entries of its queue in groups of four. Where a new group begins between two launches of a
        candidate, the second starts 0.9 us later (seen on an H200; docs/trust.md). With 0, 1, 2, 3, 0, ... launches
        before, eight runs in a row stand at each place twice, however many entries a run has.

        Inputs are looked at after each run where they are small, else after runs that nobody can foresee.
        """
        steps = session.steps(runs, graph)
        one_in = 1 if session.watched.input_bytes <= LOOKED_AT else LOOK_ONE_IN
        return [
            step._replace(lead=index % self.timing.queue_group, look=not secrets.randbelow(one_in))
            for index, step in enumerate(steps)
        ]

    def take(self, steps: Sequence[Step]) -> Block:
        """Run all steps, each checked.

        A block taken on a throttled device is discarded and taken again, at most three times; then it is kept.
        """
        discarded = 0
        for attempt in range(RETAKES + 1):
            block = self._take(steps)
            if attempt == RETAKES or not slowed(block.conditions):
                break
            discarded += len(steps)
            time.sleep(RETAKE_WAIT_S * (attempt + 1))
        return Block(block.samples_ms, block.worst_error, block.conditions, discarded)

    def _take(self, steps: Sequence[Step]) -> Block:
        gpu, sessions = self.gpu, list(dict.fromkeys(step.session for step in steps))
        gpu.reset_persisting_l2()
        # After some hundred launches that were queued together (references, libraries) a GPU starts every kernel of
        # that context 0.3 us later, until another context was at work: all blocks are timed as if there were none.
        if self.timing.fresh:
            gpu.driver.give_turn()
        size = self._batch_size(steps[0], sessions)
        samples: list[float] = []
        worst = 0.0
        conditions: list[Conditions | None] = []
        opening = [op for s in sessions for op in s.watched.fill(gpu, gpu.trusted.canaries[_TIMED_CANARY])]
        deadline = time.monotonic() + self.timeout_s
        for start in range(0, len(steps), size):
            batch = _Batch(self, steps[start : start + size], sessions, last=start + size >= len(steps))
            samples += batch.run(opening, deadline, lambda: conditions.append(self.reader.read()))
            worst = max(worst, batch.judge())
            opening = []
        throttled = next((c for c in conditions if slowed(c)), conditions[-1])
        return Block(samples, worst, throttled)

    def _batch_size(self, step: Step, sessions: Sequence[CaseSession]) -> int:
        """Steps whose results there are rows for."""
        watched = sum(len(session.watched) for session in sessions)
        inputs = max(session.watched.inputs for session in sessions)
        rows = len(step.session.data.outputs) * len(step.slots) + inputs
        return max(1, (ROWS - watched) // max(rows, 1))

    def operations(self, step: Step, index: int, row: int) -> list[Operation]:
        """A step: prepare, clear the L2 cache, time, compare."""
        gpu, session = self.gpu, step.session
        outputs = len(session.data.outputs)
        operations = [gpu.trusted.nothing()] * step.lead
        operations += session.prepare(step.slots, step.poison, step.rivals)
        if self.timing.clear_l2:
            operations.append(gpu.clear_l2(index + 1))
        operations += [gpu.record(0), *step.timed, gpu.record(1)]
        for position, slot in enumerate(step.slots):
            operations += session.compare(slot, row + position * outputs)
        if step.look:
            operations += session.watched.look(gpu, row + len(step.slots) * outputs)
        return operations


class _Batch:
    """Steps whose results are looked at together. The last batch looks after guard bands and inputs too.

    Each step is put into the stream behind a gate of its own. Behind a common one the queue would be long, and the GPU
    reads a long queue with pauses: 0.5 to 1 us more between two events, by turns from one batch to the next (seen on an
    H200; docs/trust.md).
    """

    def __init__(
        self, bench: Bench, steps: Sequence[Step], sessions: Sequence[CaseSession], *, last: bool
    ) -> None:
        self.bench = bench
        self.steps = steps
        self._watchers = list(sessions) if last else []
        self._outputs = len(sessions[0].data.outputs) * len(steps[0].slots)
        self._rows_a_step = self._outputs + max(session.watched.inputs for session in sessions)
        self._compared = self._rows_a_step * len(steps)
        self._rows = self._compared + sum(len(session.watched) for session in self._watchers)

    def run(
        self, opening: Sequence[Operation], deadline: float, meanwhile: Callable[[], None]
    ) -> list[float]:
        """Times in ms, one a step; ``meanwhile`` is called once, while the GPU works."""
        gpu, driver = self.bench.gpu, self.bench.gpu.driver
        before = [*opening, gpu.zero_rows(self._rows)]
        samples, last = [], len(self.steps) - 1
        for position, step in enumerate(self.steps):
            row = position * self._rows_a_step
            after = self._closing() if position == last else []
            operations = [*before, *self.bench.operations(step, position, row), *after]
            self._run(step, operations, deadline, meanwhile if position == last // 2 else None)
            samples.append(driver.elapsed_ms(gpu.event(0), gpu.event(1)))
            before = []
        return samples

    def judge(self) -> float:
        """Judge all of it; the worst error in multiples of the tolerance."""
        found = self.bench.gpu.read_rows(self._rows)
        row = self._compared
        for session in self._watchers:
            session.judge_watched(found[row : row + len(session.watched)])
            row += len(session.watched)
        parts = np.split(found[: self._compared], len(self.steps))
        for step, rows in zip(self.steps, parts, strict=True):
            if step.look:
                inputs = step.session.watched.inputs
                step.session.judge_inputs(rows[self._outputs : self._outputs + inputs], step)
        for step, rows in zip(self.steps, parts, strict=True):
            step.session.judge(rows[: self._outputs], step)
        return max(float(rows["worst"][: self._outputs].max(initial=0.0)) for rows in parts)

    def _run(
        self,
        step: Step,
        operations: Sequence[Operation],
        deadline: float,
        meanwhile: Callable[[], None] | None,
    ) -> None:
        left = max(deadline - time.monotonic(), 0.0)
        try:
            done = self.bench.gpu.run(operations, left, gated=True, meanwhile=meanwhile)
        except LaunchRefused as error:
            raise step.session.refused(error) from None
        except CudaError as error:
            if error.sticky:
                raise step.session.crashed(error, None) from None
            raise
        if not done:
            raise step.session.overdue(self.bench.timeout_s, None)

    def _closing(self) -> list[Operation]:
        gpu, operations = self.bench.gpu, []
        row = self._compared
        for session in self._watchers:
            operations += session.watched.operations(gpu, gpu.trusted.canaries[_TIMED_CANARY], row)
            row += len(session.watched)
        return [*operations, gpu.fetch_rows(self._rows)]


def is_short(case: CaseRequest, timing: TimingProtocol) -> bool:
    """Whether a case is timed through a graph: its known physical floor is below the limit."""
    return 0 < case.floor_ms < timing.graph_below_ms and timing.graph_runs > 1
