"""What all tests share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from kernelwright.devices.cuda import probe
from kernelwright.harness.scratch import shared_cache

# An example that takes long says that the machine is busy: tests run beside each other.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the tests in its background has them ignore interrupts, and they would all they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip ``gpu`` tests where no CUDA device can be used, and say why not."""
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not on_gpu:
        return
    found = probe()
    if not found.usable:
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason=f"needs a CUDA device: {found.reason}"))


@pytest.fixture
def memory_file(tmp_path: Path) -> Path:
    """Where a test's memory goes; nothing is there yet."""
    return tmp_path / "memory.db"


@pytest.fixture(scope="session")
def cpu_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the cpu device's own tools are built once, for the commands that tests start as well."""
    return shared_cache(tmp_path_factory.mktemp("cpu-cache"))


@pytest.fixture
def out_of_reach(tmp_path: Path) -> Iterator[Path]:
    """A file in a folder that this process may not enter; as root it has another user's rights meanwhile."""
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "file").touch()
    folder.chmod(0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield folder / "file"
    if root:
        os.seteuid(0)
    folder.chmod(0o700)
