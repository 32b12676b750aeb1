"""Binaries of candidates that may come to the device a second time."""

from collections import OrderedDict
from typing import Final

from kernelwright.core.candidate import Candidate
from kernelwright.harness.protocol import Built, CompileResult, Harness

KEPT: Final = 128
"""Compiles that are remembered; a harness keeps the files of many more."""


class Binaries:
    """Remembers the newest compiles; an older candidate is compiled once more."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._known: OrderedDict[str, CompileResult] = OrderedDict()

    def keep(self, candidate: Candidate, compiled: CompileResult) -> None:
        """A candidate was compiled just now."""
        if compiled.status is None:
            self._known[candidate.id] = compiled
            self._known.move_to_end(candidate.id)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)

    async def of(self, candidate: Candidate) -> Built:
        """The candidate with its binary; ``compiled.status`` says why there is none any more."""
        compiled = self._known.get(candidate.id)
        if compiled is None:
            compiled = await self._harness.compile(candidate)
            self.keep(candidate, compiled)
        return Built(candidate, compiled)
