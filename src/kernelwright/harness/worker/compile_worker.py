"""Compiles; needs no device."""

from pathlib import Path

from kernelwright.core.errors import HarnessError
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.wire import Hello, Reply, Request, WorkerSetup
from kernelwright.harness.worker.devices import make_compiler


class CompileService:
    """Builds candidates into the artifacts folder."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._artifacts = Path(setup.artifacts)
        self._compiler, self._toolchain = make_compiler(setup.device, self._artifacts / "cache")

    def greet(self) -> Hello:
        """Names the toolchain."""
        return Hello(SandboxReport(), self._toolchain)

    def answer(self, request: Request) -> Reply:
        """Compile one candidate."""
        if request.build is None:
            raise HarnessError("a compile worker was asked to run something")
        return Reply(request.id, built=self._compiler.build(request.build, self._artifacts))
