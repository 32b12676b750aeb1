from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.devices.cpu.workbench import Bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory, cpu_cache: Path) -> Iterator[Bench]:
    """Shared by all tests of the device."""
    made = Bench(tmp_path_factory.mktemp("cpu-device"), cpu_cache)
    yield made
    made.runner.close()
