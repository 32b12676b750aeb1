"""Which compiler and runner belong to a device's name."""

from pathlib import Path

from kernelwright.core.errors import UserError
from kernelwright.devices.base import Compiler, Runner
from kernelwright.harness.wire import Ceilings


def make_compiler(device: str, cache: Path) -> tuple[Compiler, str]:
    """Compiler of a device, warmed up, and the toolchain's name and version. Raises MissingError."""
    if device == "cpu":
        from kernelwright.devices.cpu import CpuCompiler, check_toolchain

        return CpuCompiler(cache=cache), str(check_toolchain())
    from kernelwright.devices.cuda import CudaCompiler

    compiler = CudaCompiler(cache_dir=cache)
    compiler.warm_up()
    return compiler, compiler.toolchain


def make_runner(device: str, scratch: Path, cache: Path) -> tuple[Runner, Ceilings]:
    """Runner of a device, and what the device can do at best. Raises MissingError."""
    if device == "cpu":
        from kernelwright.devices.cpu import CpuRunner

        return CpuRunner(scratch, cache=cache), Ceilings()
    kind, _, number = device.partition(":")
    if kind != "cuda":
        raise UserError(f"unknown device {device!r}: use cpu or cuda:N")
    from kernelwright.devices.cuda import CudaRunner
    from kernelwright.devices.cuda.ceilings import measure_ceilings

    runner = CudaRunner(int(number), cache_dir=cache)
    return runner, Ceilings(*measure_ceilings(runner.gpu))
