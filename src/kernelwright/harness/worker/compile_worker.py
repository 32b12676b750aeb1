"""Compiles; needs no device."""

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

from kernelwright.core.errors import HarnessError
from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import BuildResult
from kernelwright.harness.rules.binary import check_binary
from kernelwright.harness.rules.source import check_source
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.scratch import disk_full
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.wire import OUT_OF_MEMORY, Hello, Reply, Request
from kernelwright.harness.worker.devices import load_maker

NEEDED_BYTES: Final = 1 << 20
"""A disk with less than that is as good as full."""


class CompileService:
    """Builds candidates in its scratch, where the parent takes the binary from: it writes nowhere else."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._work = Path(setup.scratch) / "work"
        # What an earlier worker left when it was killed.
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir()
        self._compiler, self._toolchain = load_maker(setup).compiler(setup)

    def greet(self, report: SandboxReport) -> Hello:
        """Names the toolchain."""
        return Hello(report, self._toolchain)

    def answer(self, request: Request) -> Reply:
        """Compile one candidate."""
        if request.build is None:
            raise HarnessError("a compile worker was asked to run something")
        try:
            built = self._build(request.build)
        except MemoryError:
            return Reply(
                request.id,
                built=BuildResult(
                    status=Status.COMPILE_FAILED, reason=OUT_OF_MEMORY, check=Check.COMPILE_LIMITS
                ),
            )
        return Reply(request.id, built=built)

    def _blame_the_disk(self, built: BuildResult) -> None:
        """HarnessError where not the candidate is at fault; what it says itself is no proof of that."""
        full = os.strerror(errno.ENOSPC) in built.reason and shutil.disk_usage(self._work).free < NEEDED_BYTES
        if built.status is Status.COMPILE_FAILED and full:
            raise HarnessError(f"nothing can be compiled{disk_full(self._work.parent)}")

    def _build(self, request: BuildRequest) -> BuildResult:
        """Rules on the source, the compiler, rules on the binary."""
        if broken := check_source(request.source, request.rules):
            return BuildResult(status=Status.RULE_BROKEN, reason=broken.reason, check=Check.SOURCE_RULES)
        built = self._compiler.build(request, self._work)
        if not built.artifact:
            self._blame_the_disk(built)
            return built
        if broken := check_binary(Path(built.artifact).read_bytes(), request.rules, built.static):
            Path(built.artifact).unlink()
            return replace(
                built,
                artifact="",
                digest="",
                status=Status.RULE_BROKEN,
                reason=broken.reason,
                check=Check.BINARY_RULES,
            )
        return built
