"""Limits of the user's shell that are too narrow: one line that names them, and nobody else is blamed."""

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from kernelwright.core.errors import UserError
from kernelwright.harness import limits
from kernelwright.harness.child import Child
from kernelwright.harness.setup import WorkerSetup


@contextmanager
def soft_limit(kind: int, nbytes: int) -> Iterator[None]:
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


@pytest.mark.parametrize("limit", limits.TO_WORK, ids=lambda limit: limit.option)
def test_a_narrow_limit_is_named_with_its_option(limit: limits.Least) -> None:
    told = f"on {limit.what} (ulimit {limit.option}) is {limit.shown(limit.nbytes // 2)}, "
    with soft_limit(limit.kind, limit.nbytes // 2):
        assert told in limits.narrow_limit(limits.TO_WORK)
    with soft_limit(limit.kind, limit.nbytes):
        assert limits.narrow_limit(limits.TO_WORK) == ""


def test_no_child_is_started_under_a_narrow_limit(tmp_path: Path) -> None:
    setup = WorkerSetup(role="prepare", device="cpu", parent=0, scratch=str(tmp_path), artifacts="", cache="")
    with (
        soft_limit(resource.RLIMIT_FSIZE, 200 << 10),
        pytest.raises(UserError, match=r"ulimit -f\) is 0.195"),
    ):
        asyncio.run(Child(setup).start())


def test_commands_end_before_they_load_anything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """OpenBLAS, once it has too little, asks for ever and hears no signal."""
    monkeypatch.setattr("kernelwright.cli.main._commands", lambda: pytest.fail("loaded"))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300_000 << 10, resource.RLIM_INFINITY))
    with pytest.raises(SystemExit) as ended:
        main(["run", "vector_add"])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith("kernelwright: error: the limit on address space (ulimit -v) is 293 MiB")
    assert told.count("\n") == 1
