"""Builds a candidate into a shared object that the runner loads."""

import hashlib
import re
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from kernelwright.core.errors import HarnessError
from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import Check, KernelStatics, StaticMetrics, Status
from kernelwright.devices.base import BuildResult
from kernelwright.devices.cpu.bounded import Finished, Limits, run_bounded, was_killed
from kernelwright.devices.cpu.diagnostics import explain, trim_log
from kernelwright.devices.cpu.linkage import check_loading
from kernelwright.devices.cpu.own_names import hiding, without_poison
from kernelwright.devices.cpu.source_rules import CANDIDATE, Refusal, check_preprocessed, check_text
from kernelwright.devices.cpu.symbols import check_imports, check_object, static_shared_bytes
from kernelwright.devices.cpu.toolchain import (
    CHECK_LINK_FLAGS,
    INSTRUMENTED,
    MODE_FLAGS,
    PRELUDE,
    Toolchain,
)
from kernelwright.devices.cpu.unwatched_calls import check_calls
from kernelwright.devices.elf import (
    SHT_DYNSYM,
    STT_TLS,
    ElfFile,
    read_dynamic,
    read_dynamic_relocations,
    read_elf,
)

_CONSTANT = re.compile(r"__attribute__\(\(kw_constant\)\)([^;={\[]*)")
_KERNEL_NAME = re.compile(r"[A-Za-z_][\w:]*(?:<[\w\s,:<>+\-*/%()]*>)?\Z")
_LINK_FLAGS = (
    "-shared",
    "-nostdlib",
    "-Wl,--build-id=none,-z,now,-z,relro,-z,noexecstack,-Bsymbolic,--hash-style=gnu",
)


class _Stopped(Exception):  # noqa: N818 - carries a result, not an error
    """The build ended early with this refusal."""

    def __init__(self, refusal: Refusal, log: str = "") -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal
        self.log = log


class CpuCompiler:
    """g++ on the candidate's source. See :class:`kernelwright.devices.base.Compiler`.

    ``cache`` holds what is built once (default: a folder ``cpu-cache`` in the scratch of each build); several
    processes may share it. ``limits`` bound every run of g++. Of the compiler options ``use_fast_math`` becomes
    ``-ffast-math -fno-finite-math-only``; ``maxrregcount`` has no meaning on a CPU and is ignored.
    """

    def __init__(self, cxx: str = "g++", cache: Path | None = None, limits: Limits | None = None) -> None:
        self._cxx = cxx
        self._toolchain = Toolchain(cxx, cache) if cache else None
        self._limits = limits or Limits()

    def build(self, request: BuildRequest, scratch: Path) -> BuildResult:
        """Compile ``request`` in mode ``fast`` or ``check`` into ``scratch``.

        The artifact is named by its content; its bytes depend on source, macros, options and mode only.
        Raises MissingError without a compiler, HarnessError when our own sources fail or the mode is unknown.
        """
        begin = time.monotonic()
        if request.mode not in MODE_FLAGS:
            raise HarnessError(f"the cpu device has no mode {request.mode!r}")
        toolchain = self._toolchain or Toolchain(self._cxx, scratch / "cpu-cache")
        toolchain.version  # noqa: B018 - a missing compiler is found before the candidate is looked at
        folder = Path(tempfile.mkdtemp(prefix="build-", dir=scratch))
        try:
            result = _Build(request, toolchain, folder, self._limits).run(scratch)
        except _Stopped as stopped:
            refusal = stopped.refusal
            result = BuildResult(
                status=refusal.status, reason=refusal.reason, log=trim_log(stopped.log), check=refusal.blamed
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return replace(result, seconds=time.monotonic() - begin)


class _Build:
    def __init__(self, request: BuildRequest, toolchain: Toolchain, folder: Path, limits: Limits) -> None:
        fast_math = bool(request.options.get("use_fast_math", False))
        self._request = request
        self._toolchain = toolchain
        self._cxx = toolchain.cxx
        self._folder = folder
        self._limits = limits
        self._prelude = toolchain.prelude(request.mode, fast_math=fast_math)
        self._flags = (
            *toolchain.flags(request.mode, fast_math=fast_math),
            f"-ffile-prefix-map={folder}=.",
            f"-ffile-prefix-map={self._prelude}=prelude",
            "-frandom-seed=kernelwright",
            "-fmax-errors=20",
        )

    def run(self, scratch: Path) -> BuildResult:
        request = self._request
        for kernel in request.kernels:
            if not _KERNEL_NAME.match(kernel):
                reason = f"{kernel[:80]!r} is not the name of a kernel"
                raise _Stopped(Refusal(Status.COMPILE_FAILED, reason, Check.PLAN))
        self._stop_on(check_text(request.source))
        constants = self._preprocess()
        log = self._compile()
        elf = self._read("candidate.o")
        instrumented = self._request.mode == "check"
        self._stop_on(check_object(elf, constants, instrumented=instrumented), Check.BINARY_RULES)
        if instrumented:
            shared = {symbol.name for symbol in elf.symbols if symbol.kind == STT_TLS}
            text = (self._folder / INSTRUMENTED).read_text(errors="replace")
            self._stop_on(check_calls(text, shared))
        self._link(elf)
        imports = [s.name for s in self._read("candidate.so", SHT_DYNSYM).undefined]
        known = self._toolchain.vector_math
        self._stop_on(check_imports(imports, known, instrumented=instrumented), Check.BINARY_RULES)
        linked = self._folder / "candidate.so"
        loading = check_loading(read_dynamic(linked), read_dynamic_relocations(linked))
        self._stop_on(loading, Check.BINARY_RULES)
        return self._keep(scratch, elf, log)

    def _stop_on(self, refusal: Refusal | None, broken: Check = Check.SOURCE_RULES) -> None:
        """``broken`` are the rules that this look holds a candidate to."""
        if refusal is not None:
            check = broken if refusal.status is Status.RULE_BROKEN else refusal.check
            raise _Stopped(replace(refusal, check=check))

    def _read(self, name: str, table: int | None = None) -> ElfFile:
        path = self._folder / name
        return read_elf(path) if table is None else read_elf(path, table)

    def _preprocess(self) -> frozenset[str]:
        """Write ``candidate.ii``; names of its ``__constant__`` variables."""
        macros = "".join(f"#define {name} {value}\n" for name, value in sorted(self._request.macros.items()))
        (self._folder / CANDIDATE).write_text(self._request.source, newline="\n")
        (self._folder / "macros.h").write_text(hiding() + macros)
        stubs = str(self._prelude / "include")
        # Macros come after the precompiled header, or a tunable named T or N would change the header itself.
        done = self._run([*self._flags, "-nostdinc", "-nostdinc++", "-isystem", stubs, "-E",
                          "-fno-working-directory", "-fpch-preprocess", "-include", str(self._prelude / PRELUDE),
                          "-include", "macros.h", "-x", "c++", CANDIDATE, "-o", "candidate.ii"])  # fmt: skip
        if done.returncode != 0:
            if PRELUDE in done.output:
                raise HarnessError(f"the precompiled device header is not usable: {done.output[:500]}")
            raise _Stopped(explain(done.output, self._request.kernels), done.output)
        path = self._folder / "candidate.ii"
        text = path.read_text(errors="replace")
        self._stop_on(check_preprocessed(text, stubs))
        path.write_text(without_poison(text) + self._kernel_table(), newline="\n")
        declared = (re.findall(r"[A-Za-z_]\w*", found) for found in _CONSTANT.findall(text))
        return frozenset(names[-1] for names in declared if names)

    def _kernel_table(self) -> str:
        """What the runner finds the kernels by; entry.h has the templates."""
        rows = "".join(
            f'{{"{k}", &kw_device::Entry<&{k}>::call, kw_device::Entry<&{k}>::signature}},\n'
            for k in self._request.kernels
        )
        return (
            '\n# 1 "plan"\nextern "C" __attribute__((visibility("default"))) const KwKernel kw_kernels[] = {\n'
            f"{rows}{{nullptr, nullptr, nullptr}}}};\n"
            'extern "C" { extern thread_local char kw_dynamic_shared[]; __attribute__((visibility("default")))'
            " void* kw_arena() { return kw_dynamic_shared; } }\n"
        )

    def _compile(self) -> str:
        text = [f"-fdump-tree-tsan={INSTRUMENTED}"] if self._request.mode == "check" else []
        done = self._run([*self._flags, *text, "-c", "candidate.ii", "-o", "candidate.o"])
        if done.returncode != 0:
            raise _Stopped(explain(done.output, self._request.kernels), done.output)
        return done.output

    def _link(self, elf: ElfFile) -> None:
        """Every ``extern __shared__`` array is an undefined TLS symbol: alias them all to one arena."""
        arrays = sorted(
            {s.name for s in elf.undefined if s.kind == STT_TLS} - {"kw_thread", "kw_dynamic_shared"}
        )
        aliases = [f"-Wl,--defsym={name}=kw_dynamic_shared" for name in arrays]
        wrapped = CHECK_LINK_FLAGS if self._request.mode == "check" else ()
        done = self._run([*_LINK_FLAGS, *aliases, *wrapped, "-o", "candidate.so", "candidate.o",
                          str(self._prelude / "dynamic_shared.o"), "-lgcc"])  # fmt: skip
        if done.returncode != 0:
            raise _Stopped(explain(done.output, self._request.kernels), done.output)

    def _run(self, arguments: list[str]) -> Finished:
        done = self._run_once(arguments)
        if was_killed(done):  # by whom, nobody tells: it is not the source's fault when it is seen once
            done = self._run_once(arguments)
            if was_killed(done):
                reason = "the compiler was killed twice (out of memory, or by somebody)"
                raise _Stopped(Refusal(Status.COMPILE_FAILED, reason, Check.COMPILE_LIMITS), done.output)
        return done

    def _run_once(self, arguments: list[str]) -> Finished:
        done = run_bounded([self._cxx, *arguments], self._folder, self._limits)
        if done.timed_out:
            reason = f"compiling took longer than {self._limits.seconds:g} s"
            raise _Stopped(Refusal(Status.TIMED_OUT, reason), done.output)
        return done

    def _keep(self, scratch: Path, elf: ElfFile, log: str) -> BuildResult:
        built = self._folder / "candidate.so"
        digest = hashlib.sha256(built.read_bytes()).hexdigest()
        artifact = scratch / f"{digest[:32]}.{self._request.mode}.so"
        code_bytes = built.stat().st_size
        built.replace(artifact)
        shared = static_shared_bytes(elf)
        kernels = tuple(
            KernelStatics(name, static_shared_bytes=shared.get(name.split("<")[0], 0))
            for name in self._request.kernels
        )
        return BuildResult(
            artifact=str(artifact),
            digest=digest,
            static=StaticMetrics(kernels, code_bytes),
            log=trim_log(log),
        )
