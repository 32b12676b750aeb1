"""compute-sanitizer on a real GPU: planted bugs are found by the right tool, the catalogue's kernels pass.

``python -m pytest tests/gpu/test_sanitizer.py -m gpu -q -s`` prints what each run took and which layers of the
sandbox it could not live with.
"""

import sys
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import Status
from kernelwright.devices.cuda import probe
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import SanitizerResult
from kernelwright.harness.sanitizer import TOOLS, find_sanitizer

PROBE = probe()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore"),  # array libraries warn about each other's versions
    pytest.mark.skipif(not PROBE.usable, reason=PROBE.reason),
    pytest.mark.skipif(find_sanitizer() is None, reason="compute-sanitizer is not installed"),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(600),
]

PLAN = """/* kernelwright
{scratch}[[launch]]
kernel = "vector_add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C",{argument} "N"]
*/
extern "C" __global__ void vector_add(const float* A, const float* B, float* C,{parameter} int N) {{
    int i = blockIdx.x * 256 + threadIdx.x;
    {body}
}}
"""
RIGHT = "if (i < N) C[i] = A[i] + B[i];"
BUGS = {
    # The allocation's granularity hides one element behind the end from everything but the tool.
    "reads one behind the end": ("memcheck", "Invalid __global__ read", "if (i < N) C[i] = A[i + 1] * 0 + A[i] + B[i];"),
    "writes one behind the end": ("memcheck", "Invalid __global__ write", "if (i <= N) C[i] = i < N ? A[i] + B[i] : 0;"),
    "a race in shared memory": (
        "racecheck",
        "Race reported",
        f"__shared__ float s[256]; s[threadIdx.x] = A[i % N]; {RIGHT} if (i < N) C[i] += 0 * s[255 - threadIdx.x];",
    ),
    "reads scratch that nobody wrote": (
        "initcheck",
        "Uninitialized __global__ memory read",
        "if (i < N) C[i] = A[i] + B[i] + (P[i % 256] == 12345.f ? 1 : 0);",
    ),
    "a barrier that not all reach": (
        "synccheck",
        "Barrier error",
        "if (threadIdx.x < 48) __syncthreads(); " + RIGHT,
    ),
}  # fmt: skip
PROBLEMS = ("vector_add", "reduce_sum", "softmax", "transpose", "gemm", "conv2d", "nbody")


def kernel(body: str) -> Candidate:
    used = "P[" in body
    text = PLAN.format(
        scratch='[scratch]\nP = { dtype = "float32", shape = [256] }\n' if used else "",
        argument=' "P",' if used else "",
        parameter=" float* P," if used else "",
        body=body,
    )
    return Candidate(parse_template(text, "candidate.cu"), Configuration())


def tell(name: str, result: SanitizerResult) -> None:
    sys.stdout.write(f"\n{name}: {result.status} {result.seconds:.1f} s {result.reason} {result.notes}\n")


async def sanitized(harness: LocalHarness, candidate: Candidate) -> SanitizerResult:
    compiled = await harness.compile(candidate)
    assert compiled.status is None, compiled.reason
    result = await harness.sanitize(candidate, compiled)
    tell(f"{candidate}", result)
    return result


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[LocalHarness]:
    async with LocalHarness("vector_add", "cuda:0", compile_workers=2) as started:
        yield started


async def test_a_right_kernel_passes_every_tool(harness: LocalHarness) -> None:
    result = await sanitized(harness, kernel(RIGHT))
    assert result.status is Status.MEASURED, result
    assert result.tools == TOOLS


@pytest.mark.parametrize("bug", BUGS)
async def test_a_planted_bug_is_found_by_its_tool(harness: LocalHarness, bug: str) -> None:
    tool, part, body = BUGS[bug]
    result = await sanitized(harness, kernel(body))
    assert result.status is Status.WRONG, result
    assert result.reason.startswith(f"{tool}: ")
    assert part in result.reason
    assert "kernel 'vector_add'" in result.reason


async def test_after_a_bug_the_device_works(harness: LocalHarness) -> None:
    await sanitized(harness, kernel(BUGS["writes one behind the end"][2]))
    work = kernel(RIGHT)
    outcome = await harness.benchmark(work, await harness.compile(work))
    assert outcome.status is Status.MEASURED, outcome.reason


def catalogue(harness: LocalHarness) -> Iterator[Candidate]:
    """The baseline and the first valid configuration of every template."""
    sources = {"baseline": harness.problem.baseline_source, **dict(harness.problem.catalogue())}
    for name, source in sources.items():
        template = parse_template(source, name)
        tuned = template.plan.tunables or template.plan.compiler
        space = template.plan.space(harness.facts)
        yield Candidate(template, space.configuration(0) if tuned else Configuration())


@pytest.mark.parametrize("name", PROBLEMS)
async def test_kernels_of_the_catalogue_pass(name: str) -> None:
    async with LocalHarness(name, "cuda:0", compile_workers=4) as harness:
        results = {str(c): await sanitized(harness, c) for c in catalogue(harness)}
    assert len(results) > 1
    assert {name: r for name, r in results.items() if r.status is not Status.MEASURED} == {}
