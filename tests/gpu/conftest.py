"""Fixtures of the tests on a real GPU."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.devices.cuda import CudaCompiler, CudaRunner
from tests.gpu.workbench import Bench, Source


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def runner(cache: Path) -> Iterator[CudaRunner]:
    found = CudaRunner(cache_dir=cache)
    yield found
    found.close()


@pytest.fixture(scope="module")
def compiler(runner: CudaRunner, cache: Path) -> CudaCompiler:
    return CudaCompiler(runner.facts.arch, cache)


@pytest.fixture(scope="module")
def source() -> Source:
    return Source()


@pytest.fixture
def bench(compiler: CudaCompiler, runner: CudaRunner, source: Source, tmp_path: Path) -> Bench:
    return Bench(compiler, runner, source, tmp_path)
