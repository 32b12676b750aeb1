import ctypes.util
import subprocess
import sys

import pytest

from kernelwright.core.errors import MissingError
from kernelwright.devices.cuda import CudaProbe, probe
from kernelwright.devices.cuda.nvrtc import load


def test_no_driver_is_a_reason() -> None:
    found = probe("libnot-a-cuda-driver.so.1")
    assert found == CudaProbe(
        usable=False, reason="no NVIDIA driver: libnot-a-cuda-driver.so.1 cannot be loaded"
    )


def test_other_library_is_a_reason() -> None:
    library = ctypes.util.find_library("m")
    if library is None:
        pytest.skip("no libm here")
    found = probe(library)
    assert not found.usable
    assert "is no CUDA driver" in found.reason


def test_importing_the_device_imports_no_cuda_package() -> None:
    code = (
        "import sys, kernelwright.devices.cuda as c, kernelwright.devices.cuda.runner; c.probe();"
        "print([m for m in sys.modules if m.split('.')[0] in {'cuda', 'cupy', 'torch', 'pynvml'}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_missing_package_names_the_install_line() -> None:
    with pytest.raises(MissingError, match=r"pip install 'kernelwright\[cuda\]'"):
        load("no_such_cuda_package")


def test_unknown_attribute() -> None:
    import kernelwright.devices.cuda as device

    with pytest.raises(AttributeError, match="Nothing"):
        _ = device.Nothing
