"""Is this machine fit? Faults of the environment are found here and never blamed on a candidate."""

import asyncio
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelwright.core.errors import HarnessError, KernelwrightError
from kernelwright.core.files import temporary_folder
from kernelwright.devices.cpu.toolchain import check_toolchain
from kernelwright.devices.cuda import probe
from kernelwright.devices.cuda.compiler import SHORT_POINTERS, CudaCompiler
from kernelwright.devices.cuda.nvcc import find_nvcc
from kernelwright.devices.cuda.nvrtc import INSTALL, Nvrtc
from kernelwright.harness.child import Child
from kernelwright.harness.device_lock import lock_path
from kernelwright.harness.processes import (
    OPEN_INTERPRETER,
    closed_interpreter,
    import_roots,
    readable_folders,
)
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.scratch import Scratch, shared_cache
from kernelwright.harness.setup import WorkerSetup

LEAST_FREE_BYTES: Final = 1 << 30
_COUNTERS: Final = Path("/proc/driver/nvidia/params")
_WITHOUT: Final = "it works without, with one wall less around candidates"
_MENDS: Final = {
    "bubblewrap": "apt-get install bubblewrap; in a container run it as an ordinary user where user namespaces are "
    "open (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces) "
    "or give the container CAP_SYS_ADMIN",
    "user": "run as an ordinary user, or install Python, the package and the problem where all users may read them",
    "landlock": "boot Linux 5.13 or later with landlock in its list of security modules (lsm=)",
    "signals": "boot Linux 6.12 or later, or run as root so that children become another user",
}


@dataclass(frozen=True)
class Finding:
    """One thing looked at. ``mend`` says what to do where it is not ``ok``; only ``required`` ones stop the work."""

    name: str
    ok: bool
    detail: str
    mend: str = ""
    required: bool = True


def diagnose(device: str) -> list[Finding]:
    """Look at everything that ``device`` (``cpu``, ``cuda:N``) needs. Never raises; takes about a second."""
    return asyncio.run(examine(device))


async def examine(device: str) -> list[Finding]:
    """:func:`diagnose` for callers that have a running event loop."""
    findings = [_python(), _interpreter()]
    findings += _cuda(device) if device.startswith("cuda") else [_compiler()]
    findings += [_scratch_space(), _lock_folder(), _working_folder(), _cache_folder()]
    return findings + await _sandbox(device)


def _look(name: str, step: Callable[[], str], mend: str = "", *, required: bool = True) -> Finding:
    """A finding from a step that returns details, or raises with the reason."""
    try:
        return Finding(name, ok=True, detail=step(), required=required)
    except (KernelwrightError, OSError, subprocess.SubprocessError) as error:
        return Finding(name, ok=False, detail=" ".join(str(error).split()), mend=mend, required=required)


def _python() -> Finding:
    version = platform.python_version()
    where = f"{version} on {platform.system()} {platform.machine()}"
    return Finding(
        "python", sys.platform == "linux", where, mend="use Linux: the sandbox is made of its parts"
    )


def _interpreter() -> Finding:
    """Children are started with it."""
    fault = closed_interpreter()
    return Finding("interpreter", not fault, fault or os.path.realpath(sys.executable), OPEN_INTERPRETER)


def _compiler() -> Finding:
    return _look("g++", check_toolchain, "apt-get install g++ binutils")


def _cuda(device: str) -> Iterator[Finding]:
    yield _look("nvrtc", lambda: f"version {Nvrtc().version}", INSTALL)
    yield _look(
        "compiler", _leading, f"{INSTALL} in an environment of its own, or the CUDA toolkit", required=False
    )
    yield _driver(device)
    yield _tool(
        "nvcc",
        find_nvcc(),
        "candidates go through it where NVRTC is old, submissions of boards always: install the CUDA toolkit",
    )
    yield _look("gpu counters", _counters, "as root: options nvidia NVreg_RestrictProfilingToAdminUsers=0",
                required=False)  # fmt: skip
    for name in ("ncu", "compute-sanitizer"):
        yield _tool(name, shutil.which(name), "install the CUDA toolkit and put its bin folder into PATH")


def _leading() -> str:
    """What compiles candidates. Old versions of NVRTC make slower code."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-", dir=temporary_folder()) as folder:
        compiler = CudaCompiler(cache_dir=Path(folder))
        if compiler.slow:
            least = ".".join(map(str, SHORT_POINTERS))
            raise HarnessError(
                f"{compiler.toolchain} addresses shared memory with 64 bits, which costs registers and up to 4 % of a"
                f" kernel's time; NVRTC {least} or an nvcc of its major version does not"
            )
        return compiler.toolchain


def _driver(device: str) -> Finding:
    found = probe()
    number = device.partition(":")[2] or "0"
    if not found.usable:
        mend = "install NVIDIA's driver, or use --device cpu"
        return Finding("driver", ok=False, detail=found.reason, mend=mend)
    detail = f"CUDA {found.driver_version}, {found.device_count} device(s)"
    there = number.isdecimal() and int(number) < found.device_count
    return Finding("driver", there, detail, mend=f"there is no {device}: choose a smaller number")


def _tool(name: str, path: str | None, mend: str) -> Finding:
    return Finding(name, path is not None, path or "not found", mend=mend, required=False)


def _counters() -> str:
    """Who may read hardware counters (NVIDIA, "ERR_NVGPUCTRPERM")."""
    text = _COUNTERS.read_text()
    if "RmProfilingAdminOnly: 0" in text:
        return "open to all users"
    if os.geteuid() == 0:
        return "open to root"
    raise HarnessError("open to root only")


def _scratch_space() -> Finding:
    def look() -> str:
        folder = temporary_folder()
        free = shutil.disk_usage(folder).free
        if free < LEAST_FREE_BYTES:
            raise HarnessError(f"{folder} has {free >> 20} MiB left, {LEAST_FREE_BYTES >> 20} are needed")
        return f"{free >> 30} GiB free in {folder}"

    return _look("scratch space", look, "free some space, or set TMPDIR to another disk")


def _lock_folder() -> Finding:
    folder = lock_path("device").parent

    def look() -> str:
        with tempfile.TemporaryFile(dir=folder):
            return f"{folder}"

    return _look("lock folder", look, f"make {folder} writable for all users (chmod 1777)")


def _working_folder() -> Finding:
    def look() -> str:
        with tempfile.TemporaryFile(dir=Path.cwd()):
            return f"{Path.cwd()} is writable"

    return _look("working folder", look, "go to a folder where you may write: campaigns are kept there")


def _cache_folder() -> Finding:
    nowhere = Path()
    folder = shared_cache(nowhere)
    detail = f"{folder}" if folder != nowhere else "none that only this user may write"
    mend = "set XDG_CACHE_HOME to a folder of yours; without it every start builds the tools anew"
    return Finding("cache folder", folder != nowhere, detail, mend=mend, required=False)


async def _sandbox(device: str) -> list[Finding]:
    """What holds in a real child."""
    try:
        report = await _probe_child(device)
    except (KernelwrightError, OSError) as error:
        mend = "see the reason; children are started with this Python"
        return [Finding("sandbox", ok=False, detail=str(error), mend=mend)]
    return [
        Finding(
            f"sandbox: {layer.name}",
            layer.holds,
            layer.detail,
            _MENDS.get(layer.name, _WITHOUT),
            required=False,
        )
        for layer in report.layers
    ]


async def _probe_child(device: str) -> SandboxReport:
    scratch = Scratch()
    try:
        setup = WorkerSetup(
            role="probe",
            device=device,
            parent=os.getpid(),
            scratch=str(scratch.folder("probe")),
            artifacts=str(scratch.artifacts),
            cache=str(scratch.folder("cache")),
            readable=readable_folders(import_roots()),
        )
        child = Child(setup)
        try:
            return (await child.start()).sandbox
        finally:
            await child.kill()
    finally:
        scratch.close()
