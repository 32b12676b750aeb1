"""Which compiler and runner belong to a device's name."""

import importlib
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from kernelwright.core.errors import HarnessError, UserError
from kernelwright.devices.base import Compiler, Runner
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.wire import Ceilings

KEPT_DAYS: Final = 30.0


class Maker(Protocol):
    """Makes what a child works with. Each raises MissingError for what has to be installed first."""

    def prepare(self, setup: WorkerSetup) -> None:
        """Build what is trusted and shared into ``setup.cache``; runs before any child, outside the sandbox."""
        ...

    def compiler(self, setup: WorkerSetup) -> tuple[Compiler, str]:
        """Compiler, warmed up, and the toolchain's name and version."""
        ...

    def runner(self, setup: WorkerSetup) -> tuple[Runner, Ceilings]:
        """Runner, and what the device can do at best."""
        ...


class DeviceMaker:
    """The devices of this project: ``cpu`` and ``cuda:N``."""

    def prepare(self, setup: WorkerSetup) -> None:
        """The cpu device's own sources take long to compile: once a machine, not once a start."""
        if setup.device == "cpu":
            from kernelwright.devices.cpu.toolchain import MODE_FLAGS, Toolchain

            toolchain = Toolchain("g++", Path(setup.cache))
            used = [toolchain.runner(mode).parent for mode in MODE_FLAGS]
            used += [toolchain.prelude(mode, fast_math=fast) for mode in MODE_FLAGS for fast in (False, True)]
            remove_unused(Path(setup.cache), used)

    def compiler(self, setup: WorkerSetup) -> tuple[Compiler, str]:
        """g++ or NVRTC."""
        if setup.device == "cpu":
            from kernelwright.devices.cpu import CpuCompiler, check_toolchain

            return CpuCompiler(cache=Path(setup.cache)), check_toolchain()
        from kernelwright.devices.cuda import CudaCompiler

        compiler = CudaCompiler(cache_dir=Path(setup.scratch))
        compiler.warm_up()
        return compiler, compiler.toolchain

    def runner(self, setup: WorkerSetup) -> tuple[Runner, Ceilings]:
        """The CPU, or a GPU with its ceilings measured."""
        if setup.device == "cpu":
            from kernelwright.devices.cpu import CpuRunner

            return CpuRunner(Path(setup.scratch), cache=Path(setup.cache)), Ceilings()
        kind, _, number = setup.device.partition(":")
        if kind != "cuda" or not number.isdecimal():
            raise UserError(f"unknown device {setup.device!r}: use cpu or cuda:N")
        from kernelwright.devices.cuda import CudaRunner
        from kernelwright.devices.cuda.ceilings import measure_ceilings

        runner = CudaRunner(int(number), cache_dir=Path(setup.scratch))
        return runner, Ceilings(*measure_ceilings(runner.gpu))


def remove_unused(cache: Path, used: Iterable[Path], days: float = KEPT_DAYS) -> None:
    """Remove what nobody has used for long (tools of older versions and compilers)."""
    for path in used:
        path.touch()
    for path in cache.iterdir():
        if path.is_dir() and path.stat().st_mtime < time.time() - days * 86400:
            shutil.rmtree(path, ignore_errors=True)


def load_maker(setup: WorkerSetup) -> Maker:
    """The class that the setup names, made."""
    module, _, name = setup.maker.partition(":")
    try:
        maker: Maker = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise HarnessError(f"{setup.maker} cannot be used: {error}") from None
    return maker


def prepare(setup: WorkerSetup) -> None:
    """Build what all children share."""
    load_maker(setup).prepare(setup)
