"""GPU MODE's board behind the dry-run gate: a file that the gate refuses never leaves this machine."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import UserError
from kernelwright.leaderboard.abi import Abi
from kernelwright.leaderboard.base import Mode, Sent
from kernelwright.leaderboard.export import write_submission
from kernelwright.leaderboard.export.gate import Answer, Gate, refused
from kernelwright.leaderboard.export.targets import gpu_facts
from kernelwright.leaderboard.export.twins import Twins, write_twins
from kernelwright.leaderboard.kernelbot.board import KernelbotBoard
from kernelwright.leaderboard.secret import Secret
from kernelwright.problems.spec import Argument

HostCheck = Callable[[Twins], tuple[Answer, str]]
"""Tells whether a board's host would run anything of a candidate."""


class Exporter:
    """Texts of candidates, looked at once. Raises UserError for a GPU that is not known."""

    def __init__(
        self,
        arguments: Sequence[Argument],
        abi: Abi,
        leaderboard: str,
        gpu: str,
        host: HostCheck | None = None,
    ) -> None:
        self._arguments = arguments
        self._abi = abi
        self._leaderboard, self._gpu = leaderboard, gpu
        self._facts = gpu_facts(gpu)
        self._host = host
        self._passed: dict[str, str] = {}

    def __call__(self, candidate: Candidate) -> str:
        """The file's text. Raises UserError where it cannot be written or the gate refuses it."""
        if candidate.id not in self._passed:
            text = write_submission(
                candidate, self._arguments, self._abi, (self._facts.arch,), self._leaderboard, self._gpu
            )
            host = partial(self._judge, candidate) if self._host else None
            if fault := refused(Gate(host=host).examine(text.encode())):
                raise UserError(f"{candidate.id}: the dry run refuses it: {fault.check}: {fault.detail}")
            self._passed[candidate.id] = text
        return self._passed[candidate.id]

    def _judge(self, candidate: Candidate, _: str) -> tuple[Answer, str]:
        assert self._host
        return self._host(write_twins(candidate, self._arguments, self._abi, self._facts))


class GatedBoard(KernelbotBoard):
    """Exports beside the event loop: the gate may start a checker of others."""

    def __init__(
        self, base_url: str, leaderboard: str, gpu: str, credential: Secret | None, exporter: Exporter
    ) -> None:
        super().__init__(base_url, leaderboard, gpu, credential, exporter)
        self._exporter = exporter

    async def submit(self, candidate: Candidate, mode: Mode, tag: str) -> Sent:
        """Send it, once. Raises UserError before anything is sent."""
        await asyncio.to_thread(self._exporter, candidate)
        return await super().submit(candidate, mode, tag)
