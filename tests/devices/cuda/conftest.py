"""Shared by the cuda device's tests: what needs NVRTC is skipped with a reason where it is missing."""

from pathlib import Path

import pytest

from kernelwright.core.errors import MissingError
from kernelwright.devices.cuda.compiler import CudaCompiler


@pytest.fixture(scope="session")
def cuda_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda-cache")


@pytest.fixture(scope="session")
def compiler(cuda_cache: Path) -> CudaCompiler:
    try:
        return CudaCompiler("sm_90", cuda_cache)
    except MissingError as error:
        pytest.skip(str(error))
