"""nvcc: makes the binaries where NVRTC is old. It takes 0.4 s for what NVRTC does in 0.02 to 0.3 s."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelwright.devices.cuda.diagnostics import SOURCE_NAME
from kernelwright.devices.cuda.nvrtc import Compiled

TIME_LIMIT_S: Final = 120.0
_ASK_LIMIT_S: Final = 20.0
_RELEASE: Final = re.compile(r"release (\d+)\.(\d+)")


@dataclass(frozen=True)
class Nvcc:
    """An installed nvcc; ``version`` as NVIDIA counts toolkits, (13, 0)."""

    path: str
    version: tuple[int, int]


def find_nvcc() -> str | None:
    """Path of nvcc: on the PATH, below CUDA_PATH or CUDA_HOME, or in the usual place."""
    folders = [
        str(Path(os.environ[key]) / "bin") for key in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(key)
    ]
    search = os.pathsep.join([os.environ.get("PATH", ""), *folders, "/usr/local/cuda/bin"])
    return shutil.which("nvcc", path=search)


def ask_nvcc(path: str | None) -> Nvcc | None:
    """The nvcc at a path with its version; ``None`` where there is none or it does not answer."""
    if path is None:
        return None
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_ASK_LIMIT_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    found = _RELEASE.search(said)
    return Nvcc(path, (int(found[1]), int(found[2]))) if found else None


def compile_with_nvcc(nvcc: str, source: str, arch: str, options: Sequence[str], scratch: Path) -> Compiled:
    """Compile to a cubin in ``scratch``; ``options`` are macros and allow-listed settings in nvcc's spelling.

    Constant expressions of the standard library count as device code, as they do where PyTorch compiles.
    """
    target = scratch / "nvcc.cubin"
    target.unlink(missing_ok=True)
    (scratch / SOURCE_NAME).write_text(source, encoding="utf-8")
    target_options = f"-gencode=arch={arch.replace('sm_', 'compute_')},code={arch}"
    command = [
        nvcc,
        "-cubin",
        target_options,
        "-std=c++17",
        "--expt-relaxed-constexpr",
        "-Xptxas",
        "-v",
        *options,
    ]
    try:
        done = subprocess.run(
            [*command, "-o", target.name, SOURCE_NAME],
            cwd=scratch,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIME_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Compiled(None, f"fatal: nvcc took longer than {TIME_LIMIT_S:.0f} s")
    log = done.stderr + done.stdout
    if done.returncode != 0 or not target.is_file():
        return Compiled(None, log)
    return Compiled(target.read_bytes(), log)
