"""The cuda device's compiler: a source with macros becomes a checked cubin with its static metrics."""

import contextlib
import fcntl
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

from kernelwright.core.errors import UserError
from kernelwright.core.homes import home
from kernelwright.core.launch import COMPILER_OPTIONS, BuildRequest
from kernelwright.core.outcome import Check, StaticMetrics, Status
from kernelwright.devices.base import BuildResult
from kernelwright.devices.cuda.cubin import CubinError, check_cubin, instruction_mix, read_cubin
from kernelwright.devices.cuda.diagnostics import SOURCE_NAME, first_error, missing_header, trim
from kernelwright.devices.cuda.headers import PRELUDE, prelude, stand_ins, standard, toolkit_include_paths
from kernelwright.devices.cuda.nvcc import Nvcc, ask_nvcc, compile_with_nvcc, find_nvcc
from kernelwright.devices.cuda.nvrtc import Compiled, Nvrtc, OptionError
from kernelwright.devices.cuda.ptxas import parse_report

SHORT_POINTERS: Final = (13, 1)
"""From this version on NVRTC addresses shared memory with 32 bits, as nvcc has long done. With 64 bits, kernels that
live in shared memory take more registers and instructions (bench/bench_compilers.py)."""
_ARCH = re.compile(r"sm_(\d{2,3})([af]?)")
_EMPTY_KERNEL = '\nextern "C" __global__ void kernelwright_empty() {}\n'


def target_arch(arch: str) -> str:
    """Compile target: from compute capability 9.0 on the architecture-specific one (``sm_90a``: wgmma, TMA)."""
    match = _ARCH.fullmatch(arch)
    if not match:
        raise UserError(f"{arch!r} is no CUDA architecture: give one such as 'sm_90a'")
    number, suffix = match.groups()
    return f"sm_{number}{suffix or ('a' if int(number) >= 90 else '')}"


class CudaCompiler:
    """NVRTC judges every source: what it takes holds no host code. Needs no GPU.

    Its binary is what runs, unless it is older than :data:`SHORT_POINTERS` and an nvcc of the same CUDA works: then that
    one's is, which is faster. ``make`` decides otherwise. ``arch`` is used where a request names none. ``cache_dir`` holds
    the headers that NVRTC brings along (26 MB, unpacked once); by default the user's cache folder, or a temporary one
    where that is not writable. Raises MissingError without NVIDIA's packages.
    """

    def __init__(
        self,
        arch: str | None = None,
        cache_dir: Path | None = None,
        make: Literal["nvrtc", "nvcc"] | None = None,
    ) -> None:
        self.arch = arch
        self.nvrtc = Nvrtc()
        self._nvcc = find_nvcc()
        self._make = make
        self._cache_dir = cache_dir
        self._header_options: tuple[str, ...] | None = None

    @property
    def toolchain(self) -> str:
        """Name and version of what makes the binaries."""
        leading = self._leading
        return f"nvcc {leading.version[0]}.{leading.version[1]}" if leading else f"nvrtc {self.nvrtc.version}"

    @property
    def slow(self) -> bool:
        """Whether what makes the binaries addresses shared memory with 64 bits (see :data:`SHORT_POINTERS`)."""
        return self._leading is None and self.nvrtc.release < SHORT_POINTERS

    def warm_up(self) -> None:
        """First compile of the process (0.3 s) and unpacking of NVIDIA's headers, ahead of the first request."""
        _ = self._leading
        options = [f"--gpu-architecture={target_arch(self.arch or 'sm_90a')}", *self._headers()]
        self.nvrtc.compile(_EMPTY_KERNEL, SOURCE_NAME, options)

    def build(self, request: BuildRequest, scratch: Path) -> BuildResult:
        """Compile, check the cubin, read the resource report; the artifact lies in ``scratch``."""
        started = time.perf_counter()
        result = self._build(request, scratch)
        return replace(result, seconds=time.perf_counter() - started)

    def _build(self, request: BuildRequest, scratch: Path) -> BuildResult:
        arch = target_arch(request.arch or self.arch or "")
        unknown = [name for name in request.options if name not in COMPILER_OPTIONS]
        if unknown:
            allowed = ", ".join(COMPILER_OPTIONS)
            reason = f"compiler setting {unknown[0]!r} is not allowed (allowed: {allowed})"
            return BuildResult(status=Status.COMPILE_FAILED, reason=reason, check=Check.PLAN)
        compiled = self._compile(request, arch, scratch)
        if compiled.cubin is None:
            return _failed(compiled.log)
        try:
            symbols = read_cubin(compiled.cubin)
        except CubinError as error:
            return _refused(str(error), compiled.log)
        if verdict := check_cubin(symbols, request.kernels):
            check = Check.BINARY_RULES if verdict[0] is Status.RULE_BROKEN else Check.PLAN
            return BuildResult(status=verdict[0], reason=verdict[1], log=trim(compiled.log), check=check)
        digest = hashlib.sha256(compiled.cubin).hexdigest()
        artifact = scratch / f"{digest[:16]}.cubin"
        artifact.write_bytes(compiled.cubin)
        mix = instruction_mix(compiled.cubin)
        kernels = tuple(replace(k, instructions=mix.get(k.name)) for k in parse_report(compiled.log))
        static = StaticMetrics(kernels=kernels, code_bytes=len(compiled.cubin))
        return BuildResult(artifact=str(artifact), digest=digest, static=static, log=trim(compiled.log))

    def _compile(self, request: BuildRequest, arch: str, scratch: Path) -> Compiled:
        before = prelude(request.source, request.macros)
        settings = ["-DKERNELWRIGHT_CUDA=1", *_settings(request.options)]
        settings += ["-lineinfo"] if request.line_info else []
        options = [f"--gpu-architecture={arch}", "--std=c++17", "--ptxas-options=-v", *self._headers()]
        options += [*settings, f"--pre-include={PRELUDE}"]
        compiled = self._with_nvrtc(request.source, options, {PRELUDE: before, **stand_ins(request.source)})
        if compiled.cubin is None or self._leading is None:
            return compiled
        (scratch / PRELUDE).write_text(before, encoding="utf-8")
        return compile_with_nvcc(
            self._leading.path, request.source, arch, [*settings, "-I.", "-include", PRELUDE], scratch
        )

    def _with_nvrtc(self, source: str, options: Sequence[str], headers: dict[str, str]) -> Compiled:
        """With ``headers`` by name; more are found as they turn out to be lacking. Where nvcc leads it only judges."""
        judge = self._leading is not None
        while True:
            compiled = self.nvrtc.compile(source, SOURCE_NAME, options, headers, judge=judge)
            lacking = missing_header(compiled.log) if compiled.cubin is None else None
            text = standard(lacking) if lacking and lacking not in headers else None
            if not lacking or text is None:
                return compiled
            headers = {**headers, lacking: text}

    @cached_property
    def _leading(self) -> Nvcc | None:
        """The nvcc whose binaries run, if one's are to: an empty kernel went through it."""
        if self._make == "nvrtc" or (self._make is None and self.nvrtc.release >= SHORT_POINTERS):
            return None
        nvcc = ask_nvcc(self._nvcc)
        if nvcc is None or nvcc.version[0] != self.nvrtc.release[0]:
            return None
        with tempfile.TemporaryDirectory(dir=self._cache_dir, prefix="nvcc-") as folder:
            arch = target_arch(self.arch or "sm_90a")
            works = compile_with_nvcc(nvcc.path, _EMPTY_KERNEL, arch, [], Path(folder)).cubin
        return nvcc if works else None

    def _headers(self) -> tuple[str, ...]:
        """Options that make NVIDIA's headers known: NVRTC's own where it brings them, else an installation's."""
        if self._header_options is None:
            option = f"--use-bundled-headers={self._header_dir()}"
            try:
                with _locked(self._header_dir()):
                    done = self.nvrtc.compile(
                        f"#include <cuda_fp16.h>{_EMPTY_KERNEL}",
                        SOURCE_NAME,
                        ["--gpu-architecture=sm_80", option],
                    )
                usable = done.cubin is not None
            except OptionError:
                usable = False
            found = (option,) if usable else tuple(f"-I{path}" for path in toolkit_include_paths())
            self._header_options = found
        return self._header_options

    def _header_dir(self) -> Path:
        if self._cache_dir is None:
            base = Path(os.environ.get("XDG_CACHE_HOME") or home() / ".cache")
            self._cache_dir = _writable(base / "kernelwright") or Path(
                tempfile.mkdtemp(prefix="kernelwright-")
            )
        return self._cache_dir / f"nvrtc-{self.nvrtc.version}-headers"


def _settings(options: Mapping[str, bool | int]) -> list[str]:
    settings = ["--use_fast_math"] if options.get("use_fast_math") else []
    registers = int(options.get("maxrregcount", 0))
    return [*settings, f"--maxrregcount={registers}"] if registers > 0 else settings


def _failed(log: str) -> BuildResult:
    header = missing_header(log)
    reason = first_error(log)
    if header:
        place = reason.split(":", 1)[0] if reason.startswith("line") else "the source"
        reason = f"{place}: header {header!r} is not available to device code: leave it out"
    return _refused(reason, log)


def _refused(reason: str, log: str) -> BuildResult:
    return BuildResult(status=Status.COMPILE_FAILED, reason=reason, log=trim(log), check=Check.COMPILER)


def _writable(folder: Path) -> Path | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Several compile workers start at once; only one may unpack."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
