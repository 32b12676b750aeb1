import random
from pathlib import Path

import pytest

from kernelwright import devices
from kernelwright.core.errors import UserError
from kernelwright.core.outcome import Status
from kernelwright.devices.cuda.compiler import CudaCompiler
from kernelwright.devices.cuda.cubin import (
    CubinSymbols,
    check_cubin,
    instruction_mix,
    read_cubin,
    readable,
    stack_bytes,
)

SOURCE = """
namespace state { __device__ int counter; }
static __device__ float table[3] = {1, 2, 3};
__constant__ float fixed[3] = {1, 2, 3};
extern "C" __global__ void first(float* a) { state::counter++; a[0] = table[1] + fixed[2] + sinf(a[1]); table[0] = 3; }
__global__ void second(float* a) { __shared__ float s[8]; s[threadIdx.x] = 1; __syncthreads(); a[1] = s[2]; }
"""


@pytest.fixture(scope="module")
def cubin(compiler: CudaCompiler) -> bytes:
    compiled = compiler.nvrtc.compile(SOURCE, "x.cu", ["--gpu-architecture=sm_80"])
    assert compiled.cubin is not None, compiled.log
    return compiled.cubin


def test_symbols(cubin: bytes) -> None:
    found = read_cubin(cubin)
    assert set(found.kernels) == {"first", "_Z6secondPf"}
    assert {readable(name) for name in found.writable} == {"state::counter", "table"}
    assert found.undefined == ()
    assert found.constants == ("fixed",)


def test_how_large_a_stack_is(compiler: CudaCompiler) -> None:
    deep = """
    __device__ __noinline__ float deep(const float* a, int n) { volatile float kept[100]; kept[n] = a[n]; return kept[n / 2]; }
    extern "C" __global__ void first(float* a, int n) { a[0] = deep(a, n); }
    """
    flat = 'extern "C" __global__ void first(float* a, int n) { a[0] = a[n]; }'
    for source, least, most in ((deep, 400, 600), (flat, 0, 0)):
        cubin = compiler.nvrtc.compile(source, "x.cu", ["--gpu-architecture=sm_90a"]).cubin
        assert cubin is not None
        assert least <= stack_bytes(cubin) <= most


def test_what_poisons_local_memory_is_not_left_out_by_the_compiler(compiler: CudaCompiler) -> None:
    """Nobody reads it again: a plain loop over a stack becomes nothing, volatile or not."""
    source = Path(devices.cuda.__file__).with_name("trusted.cu").read_text(encoding="utf-8")
    cubin = compiler.nvrtc.compile(source, "trusted.cu", ["--gpu-architecture=sm_90a", "--std=c++17"]).cubin
    assert cubin is not None
    mixes = {name: found for name, found in instruction_mix(cubin).items() if "fill_local" in name}
    assert len(mixes) == 4
    stores = ("local_store", "generic_store")
    assert all(any(kind.startswith(stores) for kind in found) for found in mixes.values()), mixes


def test_damaged_bytes_are_a_user_error(cubin: bytes) -> None:
    rng = random.Random(1)
    for size in (0, 3, 20, 63, 64, 200, len(cubin) // 2, len(cubin) - 1):
        with pytest.raises(UserError):
            read_cubin(cubin[:size])
    survived = 0
    for _ in range(300):
        damaged = bytearray(cubin)
        for _ in range(20):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            read_cubin(bytes(damaged))
            stack_bytes(bytes(damaged))
            survived += 1
        except UserError:
            pass
    assert survived < 300
    with pytest.raises(UserError, match="not for a CUDA device"):
        read_cubin(Path("/proc/self/exe").read_bytes())


def test_rules() -> None:
    good = CubinSymbols(("sgemm", "fix"), (), ())
    assert check_cubin(good, ("sgemm",)) is None
    status, reason = check_cubin(good, ("other",)) or (None, "")
    assert status is Status.COMPILE_FAILED
    assert reason == "kernel 'other' is not in the source; entries found: fix, sgemm"
    status, reason = check_cubin(CubinSymbols(("_Z5sgemmPf",), (), ()), ("sgemm",)) or (None, "")
    assert 'declare it extern "C"' in reason
    status, reason = check_cubin(CubinSymbols(("k",), ("counter",), ()), ("k",)) or (None, "")
    assert status is Status.RULE_BROKEN
    assert "writable __device__ variable 'counter' is not declared as scratch" in reason
    status, reason = check_cubin(CubinSymbols(("k",), ("$str",), ("vprintf", "malloc")), ("k",)) or (None, "")
    assert status is Status.RULE_BROKEN
    assert reason == "device code calls printf, malloc, which a candidate may not use"


def test_names() -> None:
    assert readable("counter") == "counter"
    assert readable("_ZN12_GLOBAL__N_17counterE") == "counter"
    assert readable("_ZL5table") == "table"
    assert readable("_Z") == "_Z"
