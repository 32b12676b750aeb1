from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.devices.cpu import source_rules
from tests.devices.cpu.workbench import Bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory, cpu_cache: Path) -> Iterator[Bench]:
    """Shared by all tests of the device."""
    made = Bench(tmp_path_factory.mktemp("cpu-device"), cpu_cache)
    yield made
    made.runner.close()


@pytest.fixture
def any_section(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the rule of attributes could be got around: machine code in a constant has to fail behind it too."""
    monkeypatch.setattr(source_rules, "attribute_faults", lambda *_, **__: iter(()))
