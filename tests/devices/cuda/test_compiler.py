import hashlib
import re
from pathlib import Path

import pytest

from kernelwright.core.errors import UserError
from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import Status
from kernelwright.devices.base import BuildResult
from kernelwright.devices.cuda import compiler as module
from kernelwright.devices.cuda.compiler import CudaCompiler, target_arch
from kernelwright.devices.cuda.cubin import read_cubin
from kernelwright.devices.cuda.nvrtc import Nvrtc

PLAN = "/* kernelwright\n[[launch]]\n*/\n"
TENSOR = (
    "using namespace nvcuda::wmma; fragment<accumulator, 16, 16, 16, float> f; fill_fragment(f, 1.0f);"
    " store_matrix_sync(a, f, 16, mem_row_major);"
)
KERNEL = 'extern "C" __global__ void k(float* a, int n)'


def build(compiler: CudaCompiler, scratch: Path, source: str, **options: bool | int) -> BuildResult:
    return compiler.build(BuildRequest(source, {"BM": 4}, options, ("k",), "sm_90"), scratch)


def test_artifact_and_static_metrics(compiler: CudaCompiler, tmp_path: Path) -> None:
    body = f"{KERNEL} {{ __shared__ float s[32 * BM]; s[threadIdx.x] = n; __syncthreads(); a[0] = s[KERNELWRIGHT_CUDA]; }}"
    result = build(compiler, tmp_path, PLAN + body)
    assert result.status is None, result.reason
    artifact = Path(result.artifact)
    assert artifact.parent == tmp_path
    assert hashlib.sha256(artifact.read_bytes()).hexdigest() == result.digest
    assert read_cubin(artifact.read_bytes()).kernels == ("k",)
    assert result.static is not None
    (kernel,) = result.static.kernels
    assert (kernel.name, kernel.static_shared_bytes, kernel.spill_bytes) == ("k", 512, 0)
    assert kernel.registers is not None
    assert result.static.code_bytes == artifact.stat().st_size
    assert result.seconds > 0
    again = build(compiler, tmp_path, PLAN + body)
    assert again.digest == result.digest


def test_settings_reach_the_compiler(compiler: CudaCompiler, tmp_path: Path) -> None:
    loads = "float x[64]; for (int i = 0; i < 64; ++i) x[i] = a[i]; __syncthreads();"
    body = f"{KERNEL} {{ {loads} for (int i = 0; i < 64; ++i) a[i + threadIdx.x] = x[i] * x[63 - i]; }}"
    free = build(compiler, tmp_path, body, maxrregcount=0)
    tight = build(compiler, tmp_path, body, maxrregcount=32)
    slow = build(compiler, tmp_path, f"{KERNEL} {{ a[0] = expf(a[1]) / a[2]; }}")
    fast = build(compiler, tmp_path, f"{KERNEL} {{ a[0] = expf(a[1]) / a[2]; }}", use_fast_math=True)
    assert free.static is not None
    assert tight.static is not None
    assert (free.static.registers or 0) > 32
    assert (tight.static.registers or 99) <= 32
    assert tight.static.spill_bytes
    assert fast.digest != slow.digest
    refused = build(compiler, tmp_path, body, host_compiler=True)
    assert refused.status is Status.COMPILE_FAILED
    assert "host_compiler" in refused.reason


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (["cuda_fp16.h"], "__half h = __float2half(a[0]); a[1] = __half2float(__hadd(h, h));"),
        (["mma.h"], TENSOR),
        (["cuda_runtime.h", "stdio.h", "cmath", "cfloat", "climits", "cstdint", "cuda/std/cstdint"],
         "uint64_t big = INT_MAX; a[0] = std::sqrt(FLT_MAX) + static_cast<float>(big);"),
        (["vector", "iostream"], "a[0] = 1;"),
        (["type_traits", "limits", "cmath"],
         "static_assert(std::is_same<int, int>::value); a[0] = std::isinf(a[1]) ? std::numeric_limits<float>::max() : 1;"),
    ],
)  # fmt: skip
def test_headers(compiler: CudaCompiler, tmp_path: Path, headers: list[str], body: str) -> None:
    includes = "".join(f"#include <{name}>\n" for name in headers)
    result = build(compiler, tmp_path, f"{PLAN}{includes}{KERNEL} {{ {body} }}")
    assert result.status is None, f"{result.reason}\n{result.log}"


def test_library_constants_are_no_hidden_state(compiler: CudaCompiler, tmp_path: Path) -> None:
    start = f"{PLAN}#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
    good = build(compiler, tmp_path, f"{start}{KERNEL} {{ cg::this_grid().sync(); a[0] = n; }}")
    assert good.status is None, good.reason
    hidden = f"namespace cuda {{ namespace std {{ __device__ int counter; }} }}\n{KERNEL} {{ a[0] = ++cuda::std::counter; }}"
    caught = build(compiler, tmp_path, start + hidden)
    assert caught.status is Status.RULE_BROKEN
    assert "'cuda::std::counter'" in caught.reason


@pytest.mark.parametrize(
    ("source", "status", "part"),
    [
        (f"{PLAN}{KERNEL} {{\n  a[0] = 1;\n  a[1] = undefined_name;\n}}", Status.COMPILE_FAILED, 'line 6: identifier "undefined_name"'),
        (f"{PLAN}#include <no/such.h>\n{KERNEL} {{}}", Status.COMPILE_FAILED, "line 4: header 'no/such.h' is not available"),
        (f"#include <vector>\n{KERNEL} {{ std::vector<int> v; }}", Status.COMPILE_FAILED, 'has no member "vector"'),
        (f"#include <vector>\n__attribute__((constructor)) static void early() {{}}\n{KERNEL} {{}}",
         Status.COMPILE_FAILED, "without execution space annotations"),
        (f"__device__ int counter;\n{KERNEL} {{ a[0] = counter++; }}", Status.RULE_BROKEN, "variable 'counter' is not declared as scratch"),
        (f'{KERNEL} {{ printf("%d", n); }}', Status.RULE_BROKEN, "calls printf"),
        (f"{KERNEL} {{ a[0] = *(float*)malloc(4); }}", Status.RULE_BROKEN, "calls malloc"),
        ("__global__ void k(float* a) { a[0] = 1; }", Status.COMPILE_FAILED, 'declare it extern "C"'),
        ("", Status.COMPILE_FAILED, "kernel 'k' is not in the source; entries found: none"),
        (f"{KERNEL} {{ __shared__ float s[100000]; s[n] = 1; __syncthreads(); a[0] = s[1]; }}", Status.COMPILE_FAILED,
         "(400000 bytes, 232448 max)"),
        (f'{KERNEL} {{ asm volatile("bogus.op;"); }}', Status.COMPILE_FAILED, "generated PTX"),
    ],
)  # fmt: skip
def test_bad_sources(compiler: CudaCompiler, tmp_path: Path, source: str, status: Status, part: str) -> None:
    result = build(compiler, tmp_path, source)
    assert result.status is status
    assert part in result.reason
    assert "\n" not in result.reason
    assert not result.artifact


def test_inline_ptx_is_allowed(compiler: CudaCompiler, tmp_path: Path) -> None:
    wgmma = 'asm volatile("wgmma.fence.sync.aligned;"); asm volatile("mov.u32 %0, %%laneid;" : "=r"(n)); a[0] = n;'
    result = build(compiler, tmp_path, f"{KERNEL} {{ {wgmma} }}")
    assert result.status is None, result.reason


def test_log_is_trimmed(compiler: CudaCompiler, tmp_path: Path) -> None:
    errors = "\n".join(f"undefined_{i} x{i};" for i in range(90))
    result = build(compiler, tmp_path, errors)
    assert result.status is Status.COMPILE_FAILED
    assert len(result.log) <= 8192


def test_architectures() -> None:
    assert target_arch("sm_80") == "sm_80"
    assert target_arch("sm_90") == "sm_90a"
    assert target_arch("sm_120") == "sm_120a"
    assert target_arch("sm_100f") == "sm_100f"
    for wrong in ("", "compute_90", "cpu", "sm_9; rm"):
        with pytest.raises(UserError, match="no CUDA architecture"):
            target_arch(wrong)


def test_warm_up_and_toolchain(compiler: CudaCompiler) -> None:
    compiler.warm_up()
    assert re.fullmatch(r"(nvrtc|nvcc) \d+\.\d+", compiler.toolchain)


class _Nvrtc:
    """Only its version is asked for."""

    def __init__(self, release: tuple[int, int]) -> None:
        self.release = release
        self.version = f"{release[0]}.{release[1]}"


def fake_nvcc(folder: Path, version: str, compile_code: int = 0) -> str:
    """Says its version, and that it compiled."""
    script = folder / "nvcc"
    script.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "Cuda compilation tools, release {version}, V{version}.88" && exit 0\n'
        f'while [ $# -gt 0 ]; do [ "$1" = -o ] && echo cubin > "$2"; shift; done\nexit {compile_code}\n'
    )
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("nvrtc", "nvcc", "expected"),
    [
        ((13, 0), "13.0", "nvcc 13.0"),
        ((13, 0), "13.4", "nvcc 13.4"),
        ((13, 0), "13.0!", "nvrtc 13.0"),
        ((13, 0), "12.8", "nvrtc 13.0"),
        ((13, 0), "no idea", "nvrtc 13.0"),
        ((13, 0), None, "nvrtc 13.0"),
        ((13, 1), "13.0", "nvrtc 13.1"),
        ((14, 0), "14.0", "nvrtc 14.0"),
    ],
)
def test_nvcc_compiles_where_nvrtc_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nvrtc: tuple[int, int], nvcc: str | None, expected: str
) -> None:
    works = nvcc is None or not nvcc.endswith("!")
    monkeypatch.setattr(module, "Nvrtc", lambda: _Nvrtc(nvrtc))
    path = fake_nvcc(tmp_path, nvcc.rstrip("!"), 0 if works else 1) if nvcc else None
    monkeypatch.setattr(module, "find_nvcc", lambda: path)
    chosen = CudaCompiler("sm_90", tmp_path)
    assert chosen.toolchain == expected
    assert chosen.slow == (expected == "nvrtc 13.0")
    assert CudaCompiler("sm_90", tmp_path, make="nvrtc").toolchain == f"nvrtc {nvrtc[0]}.{nvrtc[1]}"
    assert not list(tmp_path.glob("nvcc-*"))


@pytest.mark.parametrize(
    "source",
    [
        "__global__ void k(float* a) { a[0] = missing; }",
        "#include <cstdlib>\n__global__ void k() {}",
        "__global__ void k() {}\nvoid f() { k<<<1, 1>>>(); }",
        '__global__ void k() {}\nint f() { return system("true"); }',
        "#include <vector>\nstd::vector<int> all(3);\n__global__ void k() {}",
        "struct S { S(); };\nS::S() {}\nS s;\n__global__ void k() {}",
    ],
)
def test_nvrtc_refuses_the_same_where_it_only_judges(source: str) -> None:
    nvrtc, options = Nvrtc(), ["--gpu-architecture=sm_90a"]
    whole, judged = (nvrtc.compile(source, "k.cu", options, judge=judge) for judge in (False, True))
    assert whole.cubin is None
    assert judged == whole


def test_a_judge_makes_no_binary() -> None:
    source = "__global__ void k(float* a) { a[0] = 1; }"
    assert Nvrtc().compile(source, "k.cu", ["--gpu-architecture=sm_90a"], judge=True).cubin == b""
