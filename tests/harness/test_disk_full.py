"""A disk without space is no fault of a candidate: the campaign ends with the place and the remedy."""

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelwright.core.errors import HarnessError
from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import BuildResult
from kernelwright.harness.worker import compile_worker
from kernelwright.harness.worker.compile_worker import CompileService

SAID = f"fatal error: candidate.ii: {os.strerror(errno.ENOSPC)}"


@pytest.mark.parametrize(("free", "at_fault"), [(8192, "disk"), (1 << 30, "candidate")])
def test_only_a_disk_that_is_full_is_at_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, at_fault: str
) -> None:
    failed = BuildResult(status=Status.COMPILE_FAILED, reason=SAID, check=Check.COMPILER)
    compiler = SimpleNamespace(build=lambda *_: failed)
    maker = SimpleNamespace(compiler=lambda _: (compiler, "g++"))
    monkeypatch.setattr(compile_worker, "load_maker", lambda _: maker)
    monkeypatch.setattr(compile_worker, "check_source", lambda *_: None)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    service = CompileService(SimpleNamespace(scratch=str(tmp_path)))  # type: ignore[arg-type]
    request: BuildRequest = SimpleNamespace(source="", rules=())  # type: ignore[assignment]
    if at_fault == "candidate":
        assert service._build(request) == failed
        return
    with pytest.raises(HarnessError, match=f"the disk of {tmp_path} is full: free some .* or set TMPDIR"):
        service._build(request)
