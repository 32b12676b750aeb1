from collections.abc import Iterator

import pytest

from tests.devices.cpu.workbench import Bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Shared: the device header and the runners are built once."""
    made = Bench(tmp_path_factory.mktemp("cpu-device"))
    yield made
    made.runner.close()
