"""The ``cuda`` device: NVRTC compiler, checked and timed runs on an NVIDIA GPU.

The only package that imports CUDA packages, and only when they are used: importing this one costs nothing
and works without them.
"""

from typing import TYPE_CHECKING, Any

from kernelwright.devices.cuda.probe import CudaProbe, probe

if TYPE_CHECKING:
    from kernelwright.devices.cuda.compiler import CudaCompiler
    from kernelwright.devices.cuda.runner import CudaRunner

__all__ = ["CudaCompiler", "CudaProbe", "CudaRunner", "probe"]


def __getattr__(name: str) -> Any:
    if name == "CudaCompiler":
        from kernelwright.devices.cuda.compiler import CudaCompiler

        return CudaCompiler
    if name == "CudaRunner":
        from kernelwright.devices.cuda.runner import CudaRunner

        return CudaRunner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
