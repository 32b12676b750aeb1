"""A GPU, and kernels for it, of the scripts that measure what the harness itself adds."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from command_line import parser_of
from kernelwright.core.launch import BuildRequest
from kernelwright.devices.cuda import CudaCompiler
from kernelwright.devices.cuda.gpu import Gpu


@contextmanager
def gpu_of_command_line(text: str | None) -> Iterator[tuple[Gpu, Path]]:
    """The GPU that ``--device N`` names, all that the script takes, and a folder that goes with it."""
    parser = parser_of(text)
    parser.add_argument("--device", type=int, default=0)
    number = parser.parse_args().device
    with tempfile.TemporaryDirectory() as folder:
        gpu = Gpu(number, Path(folder), 0.1)
        yield gpu, Path(folder)
        gpu.close()


def cubin_of(gpu: Gpu, folder: Path, source: str, kernels: tuple[str, ...]) -> bytes:
    """The binary of kernels without tunables."""
    built = CudaCompiler(cache_dir=folder).build(
        BuildRequest(source, {}, {}, kernels, gpu.facts.arch), folder
    )
    if built.status is not None:
        raise SystemExit(f"{built.status}: {built.reason}")
    return Path(built.artifact).read_bytes()
