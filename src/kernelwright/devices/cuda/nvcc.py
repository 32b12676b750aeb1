"""nvcc, the fallback for sources that need host headers. Slower than NVRTC by a factor of ten and more."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernelwright.devices.cuda.diagnostics import SOURCE_NAME
from kernelwright.devices.cuda.nvrtc import Compiled

TIME_LIMIT_S = 120.0


def find_nvcc() -> str | None:
    """Path of nvcc: on the PATH, below CUDA_PATH or CUDA_HOME, or in the usual place."""
    folders = [
        str(Path(os.environ[key]) / "bin") for key in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(key)
    ]
    search = os.pathsep.join([os.environ.get("PATH", ""), *folders, "/usr/local/cuda/bin"])
    return shutil.which("nvcc", path=search)


def compile_with_nvcc(nvcc: str, source: str, arch: str, options: Sequence[str], scratch: Path) -> Compiled:
    """Compile to a cubin in ``scratch``; ``options`` are macros and allow-listed settings in nvcc's spelling."""
    target = scratch / "nvcc.cubin"
    target.unlink(missing_ok=True)
    (scratch / SOURCE_NAME).write_text(source, encoding="utf-8")
    command = [nvcc, "-cubin", f"-arch={arch}", "-std=c++17", "-Xptxas", "-v", *options]
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
