"""g++ and what is built once for all candidates: stub headers, the precompiled device header, the runner."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kernelwright.core.errors import HarnessError, MissingError
from kernelwright.devices.elf import SHT_DYNSYM, read_elf

NATIVE = Path(__file__).resolve().parent / "native"
PRELUDE = "kernelwright_cuda.h"
BUILD_SECONDS = 120
INSTRUMENTED = "instrumented.txt"
"""Where g++ writes the functions of a checked build, as text."""

# What a candidate may include. All content comes from the precompiled header, so the files are empty.
STUB_HEADERS = (
    *("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "vector_types.h"),
    *("vector_functions.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_pipeline.h", "cuda_pipeline_primitives.h"),
    *("cooperative_groups.h", "cooperative_groups/reduce.h", "cooperative_groups/scan.h", "mma.h"),
    *(
        "math_constants.h",
        "math_functions.h",
        "device_functions.h",
        "sm_30_intrinsics.h",
        "device_atomic_functions.h",
    ),
    *(
        "cstdint",
        "stdint.h",
        "cstddef",
        "stddef.h",
        "cmath",
        "math.h",
        "cfloat",
        "float.h",
        "climits",
        "limits.h",
    ),
    *("limits", "type_traits", "utility", "cstring", "string.h", "cassert", "assert.h", "cstdio", "stdio.h"),
)

COMMON_FLAGS = (
    "-std=gnu++17",
    "-fPIC",
    "-ftls-model=initial-exec",  # the runner starts with room for it: shared memory is one add away
    "-fno-extern-tls-init",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-asynchronous-unwind-tables",
    "-fno-threadsafe-statics",
    "-fno-stack-protector",
    "-fstack-clash-protection",  # a large frame must not step over the guard page of a thread's stack
    "-fno-delete-null-pointer-checks",  # a null access is to crash, not to be optimised away
    "-U_FORTIFY_SOURCE",
    "-fvisibility=hidden",
    "-fno-ident",  # the text of #ident would go into the assembler's input as it is
    "-fno-strict-aliasing",  # kernels reinterpret memory as vectors all the time
    "-fno-math-errno",
    "-fno-trapping-math",
    "-w",
)
MODE_FLAGS = {
    "fast": ("-O3", "-march=native"),
    # Our own __tsan_* functions receive every load and store. object-size finds what lies beyond a named variable, and
    # makes every local array that is indexed one that they receive. What a call takes by value they do not (see
    # unwatched_calls.py): inlined, it is an assignment. Scalar replacement would split vector accesses, DWARF 5 misleads
    # addr2line up to 2.40.
    "check": ("-O1", "-march=native", "-gdwarf-4", "-fno-tree-sra", "-fno-omit-frame-pointer",
              "-finline-functions", "-finline-small-functions", "--param=max-inline-insns-auto=200",
              "-fsanitize=thread,object-size", "--param=tsan-instrument-func-entry-exit=0", "-DKW_CHECK"),
}  # fmt: skip
# Without it a local variable begins as what the thread before has left on the stack.
LOCALS_BEGIN_AS_POISON = "-ftrivial-auto-var-init=pattern"
POISONS_LOCALS = 12
"""The first g++ that has it."""
# Our own memcpy, which the checked mode sees, and no call of __tsan_init at load: nothing of a candidate runs then.
CHECK_LINK_FLAGS = (
    "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset",
    f"-Wl,-T,{NATIVE / 'device' / 'no_constructors.ld'}",
)
# CUDA's --use_fast_math keeps infinities and NaN meaningful, so this does too.
FAST_MATH_FLAGS = ("-ffast-math", "-fno-finite-math-only")


def check_toolchain(cxx: str = "g++") -> str:
    """Version line of the C++ compiler. Raises MissingError with the install line when there is none."""
    if shutil.which(cxx) is None:
        package = "g++" if cxx == "g++" else cxx
        raise MissingError(f"{cxx} not found: apt-get install {package}")
    done = subprocess.run([cxx, "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout.strip():
        raise MissingError(f"{cxx} does not work: {(done.stderr or 'no version').strip().splitlines()[0]}")
    for tool in ("as", "ld", "addr2line"):
        if shutil.which(tool) is None:
            raise MissingError(f"{tool} not found: apt-get install binutils")
    return done.stdout.splitlines()[0]


@dataclass(frozen=True)
class Toolchain:
    """One compiler and its cache. Several processes may share the cache: everything appears by rename."""

    cxx: str
    cache: Path

    @cached_property
    def version(self) -> str:
        """First line of ``g++ --version``."""
        return check_toolchain(self.cxx)

    @cached_property
    def _major(self) -> int:
        """Of the last whole version in the compiler's line; 0 where there is none."""
        found = re.findall(r"\b(\d+)\.\d+\.\d+\b", self.version)
        return int(found[-1]) if found else 0

    @cached_property
    def _native_digest(self) -> str:
        digest = hashlib.sha256(self.version.encode())
        digest.update(_cpu_features().encode())
        for path in sorted(NATIVE.rglob("*")):
            if path.is_file():
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()[:16]

    def flags(self, mode: str, *, fast_math: bool) -> tuple[str, ...]:
        """Compiler flags of a candidate."""
        # On aarch64 atomics would call libgcc helpers that ask the host which instructions it has.
        inline_atomics = ("-mno-outline-atomics",) if platform.machine() == "aarch64" else ()
        poison = (LOCALS_BEGIN_AS_POISON,) if mode == "check" and self._major >= POISONS_LOCALS else ()
        fast = FAST_MATH_FLAGS if fast_math else ()
        return (*COMMON_FLAGS, *inline_atomics, *MODE_FLAGS[mode], *poison, *fast)

    def prelude(self, mode: str, *, fast_math: bool) -> Path:
        """Folder with the precompiled header ``kernelwright_cuda.h.gch``, the stubs and the shared arena."""
        flags = self.flags(mode, fast_math=fast_math)
        key = hashlib.sha256("\0".join((self._native_digest, *flags)).encode()).hexdigest()[:16]
        return self._once(f"prelude-{mode}-{key}", lambda folder: self._build_prelude(folder, flags))

    def runner(self, mode: str) -> Path:
        """The runner's executable."""
        folder = self._once(f"runner-{mode}-{self._native_digest}", lambda f: self._build_runner(f, mode))
        return folder / "runner"

    def _once(self, name: str, build: Callable[[Path], None]) -> Path:
        target = self.cache / name
        if target.is_dir():
            return target
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=self.cache))
        except OSError as error:
            raise HarnessError(f"the cpu device cannot build {name} into its cache: {error}") from error
        try:
            build(made)
            made.chmod(0o755)
            made.rename(target)
        except OSError:
            if not target.is_dir():  # another process may have been first
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return target

    def _build_prelude(self, folder: Path, flags: tuple[str, ...]) -> None:
        for name in STUB_HEADERS:
            stub = folder / "include" / name
            stub.parent.mkdir(parents=True, exist_ok=True)
            stub.touch()
        # Candidates are compiled with -nostdinc; a precompiled header is valid only for equal options, so the
        # compiler's own folders are named one by one here.
        search = [part for path in self._system_includes() for part in ("-isystem", path)]
        self._native([*flags, "-nostdinc", "-nostdinc++", *search, "-x", "c++-header",
                      str(NATIVE / "device" / PRELUDE), "-o", str(folder / f"{PRELUDE}.gch")])  # fmt: skip
        self._native(
            ["-c", str(NATIVE / "device" / "dynamic_shared.s"), "-o", str(folder / "dynamic_shared.o")]
        )

    def _system_includes(self) -> list[str]:
        done = subprocess.run([self.cxx, "-xc++", "-E", "-v", os.devnull], capture_output=True, text=True,
                              check=False, env={**os.environ, "LC_ALL": "C"})  # fmt: skip
        found = re.search(
            r"#include <\.\.\.> search starts here:\n(.*?)End of search list", done.stderr, re.DOTALL
        )
        if found is None:
            raise HarnessError(f"{self.cxx} does not tell its include folders")
        return [line.strip() for line in found[1].splitlines()]

    def _build_runner(self, folder: Path, mode: str) -> None:
        sources = sorted((NATIVE / "runtime").glob("*.cpp"))
        flags = ["-std=c++17", "-O2", "-g1", "-pthread", "-rdynamic", "-fno-omit-frame-pointer"]
        if mode == "check":
            sources += sorted((NATIVE / "check").glob("*.cpp"))
            flags.append("-DKW_CHECK")
        # One translation unit: the standard headers, most of the work, are read once.
        whole = folder / "runner.cpp"
        whole.write_text("".join(f'#include "{source}"\n' for source in sources))
        libraries = ["-ldl", "-lm"]
        if self.vector_math:
            libraries = ["-Wl,--no-as-needed", "-lmvec", *libraries]
        self._native([*flags, str(whole), "-o", str(folder / "runner"), *libraries])

    @cached_property
    def vector_math(self) -> frozenset[str]:
        """Functions of glibc's libmvec, which -ffast-math calls; none where it is missing."""
        command = [self.cxx, "-print-file-name=libmvec.so.1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        library = Path(done.stdout.strip())
        if not library.is_absolute():  # the bare name comes back when it is missing
            return frozenset()
        symbols = read_elf(library, SHT_DYNSYM).symbols
        return frozenset(s.name for s in symbols if s.name.startswith("_ZGV") and not s.is_undefined)

    def _native(self, arguments: list[str]) -> None:
        done = subprocess.run([self.cxx, *arguments], capture_output=True, text=True, check=False,
                              timeout=BUILD_SECONDS)  # fmt: skip
        if done.returncode != 0:
            raise HarnessError(f"the cpu device's own sources do not compile: {done.stderr[:2000]}")


def cpu_model() -> str:
    """Name of the CPU, for people."""
    found = re.search(r"^model name\s*:\s*(.+)$", _cpuinfo(), re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _cpu_features() -> str:
    """What -march=native depends on: a cache shared by different machines must not mix them."""
    found = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", _cpuinfo(), re.MULTILINE)
    return f"{platform.machine()} {cpu_model()} {found[1] if found else ''}"


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
