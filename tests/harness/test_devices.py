"""Which compiler and runner a worker uses, and what it keeps."""

import os
import time
from pathlib import Path

import pytest

from kernelwright.core.errors import HarnessError, UserError
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.worker.devices import DeviceMaker, load_maker, remove_unused
from tests.harness.fake_device import FakeMaker


def setup(device: str = "cpu", maker: str = "tests.harness.fake_device:FakeMaker") -> WorkerSetup:
    return WorkerSetup("device", device, 1, "/scratch", "/artifacts", "/cache", maker=maker)


def test_the_maker_is_the_one_that_the_setup_names() -> None:
    assert isinstance(load_maker(setup()), FakeMaker)
    assert isinstance(load_maker(WorkerSetup("device", "cpu", 1, "/s", "/a", "/c")), DeviceMaker)


@pytest.mark.parametrize("maker", ["no.such.module:Maker", "tests.harness.fake_device:Nobody"])
def test_a_maker_that_is_not_there_is_our_fault(maker: str) -> None:
    with pytest.raises(HarnessError, match="cannot be used"):
        load_maker(setup(maker=maker))


@pytest.mark.parametrize("device", ["gpu", "cuda", "cuda:x"])
def test_an_unknown_device_is_the_users(device: str) -> None:
    with pytest.raises(UserError, match="use cpu or cuda:N"):
        DeviceMaker().runner(setup(device))


def test_tools_that_nobody_uses_any_more_are_removed(tmp_path: Path) -> None:
    ages = {"old": 40, "old but used": 40, "recent": 10}
    for name, days in ages.items():
        (tmp_path / name).mkdir()
        then = time.time() - days * 86400
        os.utime(tmp_path / name, (then, then))
    remove_unused(tmp_path, [tmp_path / "old but used"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old but used", "recent"]
