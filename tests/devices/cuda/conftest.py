"""Shared by the cuda device's tests: what needs NVRTC is skipped with a reason where it is missing."""

from pathlib import Path

import pytest

from kernelwright.core.errors import MissingError
from kernelwright.devices.cuda.compiler import CudaCompiler


@pytest.fixture(scope="session")
def cuda_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda-cache")


@pytest.fixture(scope="session", params=["nvrtc", "nvcc"])
def compiler(request: pytest.FixtureRequest, cuda_cache: Path) -> CudaCompiler:
    try:
        made = CudaCompiler("sm_90", cuda_cache, make=request.param)
    except MissingError as error:
        pytest.skip(str(error))
    if not made.toolchain.startswith(request.param):
        pytest.skip(f"no {request.param} that works, of NVRTC's major version")
    return made
