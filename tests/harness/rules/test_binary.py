import re
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.core.errors import MissingError
from kernelwright.core.outcome import KernelStatics, StaticMetrics
from kernelwright.core.rules import CandidateRules
from kernelwright.devices.cuda.compiler import CudaCompiler
from kernelwright.devices.cuda.cubin import CODE, instruction_mix, read_cubin, read_sections, readable
from kernelwright.devices.cuda.sass import PROGRAMMATIC, TENSOR, constant_reads, words
from kernelwright.harness.rules.binary import check_binary

FREE = CandidateRules()
ARCHS = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
__constant__ float table[64];
extern "C" __global__ void plain(float* a, float4* b, double* d, int n) {
  __shared__ float s[64]; s[threadIdx.x] = a[n] * 8.0f; __syncthreads();
  float4 v = b[n]; a[0] = s[3] + v.x + v.y + v.z + v.w + table[n]; d[0] = d[1] * d[2] + 1; }
extern "C" __global__ void tensor(unsigned* a, float* o) {
  float x = 0, y = 0, z = 0, w = 0;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
    : "+f"(x), "+f"(y), "+f"(z), "+f"(w) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
  o[0] = x + y + z + w; }
__device__ int counter;
extern "C" __global__ void counts(int* a) { a[0] = atomicAdd(&counter, 1); }
"""
ROW = re.compile(
    r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ +)?([A-Z][\w.]*)([^\n;]*);[^\n]*/\* 0x([0-9a-f]{16}) \*/"
)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> CudaCompiler:
    try:
        return CudaCompiler("sm_90", tmp_path_factory.mktemp("cache"))
    except MissingError as error:
        pytest.skip(str(error))


def cubin(compiler: CudaCompiler, source: str, arch: str = "sm_90a") -> bytes:
    done = compiler.nvrtc.compile(source, "x.cu", [f"--gpu-architecture={arch}", "--std=c++17"])
    assert done.cubin is not None, done.log
    return done.cubin


@pytest.mark.parametrize("arch", ARCHS)
def test_decoding_agrees_with_nvdisasm(compiler: CudaCompiler, tmp_path: Path, arch: str) -> None:
    nvidia = pytest.importorskip("nvidia")
    tools = [path for root in nvidia.__path__ for path in Path(root).glob("cu*/bin/nvdisasm")]
    if not tools:
        pytest.skip("nvdisasm is missing: pip install nvidia-cuda-nvdisasm")
    data = cubin(compiler, SOURCE, arch)
    path = tmp_path / "x.cubin"
    path.write_bytes(data)
    text = subprocess.run([tools[0], "-hex", "-c", path], capture_output=True, text=True, check=True).stdout
    rows = [(m[1].split(".")[0], m[2], int(m[3], 16)) for m in ROW.finditer(text)]
    code = b"".join(
        data[s.offset : s.offset + s.size] for s in read_sections(data) if s.name.startswith(CODE)
    )
    assert Counter(low for *_, low in rows) == Counter(words(code)[:, 0].tolist())
    for name, _, low in rows:
        assert (low & 0x1FF in TENSOR) == name.endswith("MMA"), name
        assert low & 0x1FF not in PROGRAMMATIC
    found = [at for _, rest, _ in rows for at in re.findall(r"c\[0x4\]\[(\w+)\]", rest)]
    named = {0 if at.endswith("RZ") else int(at, 16) // 8 * 8 for at in found}
    assert named
    assert constant_reads(code, 4) == named


def test_instruction_mix(compiler: CudaCompiler) -> None:
    mix = instruction_mix(cubin(compiler, SOURCE))
    assert mix["plain"]["global_load_128"] == 1
    assert mix["plain"]["fp64"] == 1
    assert mix["plain"]["barrier"] == 1
    assert "tensor" not in mix["plain"]
    assert mix["tensor"]["tensor"] == 1
    assert mix["counts"]["atomic"] == 1


def test_tensor_cores_and_programmatic_launch(compiler: CudaCompiler) -> None:
    data = cubin(compiler, SOURCE)
    assert check_binary(data, FREE, None) is None
    broken = check_binary(data, replace(FREE, no_tensor_cores=True), None)
    assert broken is not None
    assert "'tensor' uses tensor cores (HMMA)" in broken.reason
    trigger = 'extern "C" __global__ void k(int* a) { a[0] = 1; asm("griddepcontrol.launch_dependents;"); }'
    broken = check_binary(cubin(compiler, trigger), FREE, None)
    assert broken is not None
    assert "PREEXIT" in broken.reason


def test_launch_bounds_registers_and_tables(compiler: CudaCompiler) -> None:
    bounded = cubin(compiler, "__global__ void __launch_bounds__(64) k(int* a) { a[threadIdx.x] = 1; }")
    free = cubin(compiler, "__global__ void k(int* a) { a[threadIdx.x] = 1; }")
    rules = replace(FREE, no_launch_bounds=True, max_registers=32)
    assert check_binary(bounded, rules, None) is not None
    assert check_binary(bounded, FREE, None) is None
    assert check_binary(free, rules, StaticMetrics((KernelStatics("k", registers=32),))) is None
    broken = check_binary(free, rules, StaticMetrics((KernelStatics("k", registers=33),)))
    assert broken is not None
    assert "33 registers" in broken.reason
    table = "__device__ const int t[%d] = {1}; __global__ void k(int* a, int i) { a[0] = t[i]; }"
    assert check_binary(cubin(compiler, table % 20_000), FREE, None) is not None
    assert check_binary(cubin(compiler, table % 200), FREE, None) is None
    assert check_binary(bounded[:200], FREE, None) is not None
    assert check_binary(b"no elf", rules, None) is None


@pytest.mark.parametrize("arch", ARCHS)
def test_only_reached_variables_are_state(compiler: CudaCompiler, arch: str) -> None:
    member = "template <int N> struct C { static constexpr int K = N; static constexpr float F = 8; };\n"
    unused = (
        member
        + '__device__ int idle;\nextern "C" __global__ void k(float* a) { a[0] = C<3>::K * a[1] * 8.0f + C<3>::F; }'
    )
    assert read_cubin(cubin(compiler, unused, arch)).writable == ()
    assert {readable(name) for name in read_cubin(cubin(compiler, SOURCE, arch)).writable} == {"counter"}
    near = "__device__ int first[4]; __device__ int second;\n"
    for body in ("(first + 4)[i] += 1;", "first[i] = 1; a[0] = first[i + 1];", "*(&second - i) = 1;"):
        found = read_cubin(cubin(compiler, f"{near}__global__ void k(int* a, int i) {{ {body} }}", arch))
        assert found.writable, body
    hidden = "__device__ int state; __constant__ int* where = &state; __global__ void k() { ++*where; }"
    assert "state" in read_cubin(cubin(compiler, hidden, arch)).writable
