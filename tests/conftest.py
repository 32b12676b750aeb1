"""What all tests share."""

from pathlib import Path

import pytest

from kernelwright.devices.cuda import probe


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
