"""Official timing on a real GPU: an imported problem, an exported baseline, an evaluator with processes of its own."""

import asyncio
import importlib.util
from pathlib import Path

import pytest

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.devices.cuda import probe
from kernelwright.harness.official import replay
from kernelwright.leaderboard.base import Mode, State
from kernelwright.leaderboard.board_file import read_board_file
from kernelwright.leaderboard.export import write_submission
from kernelwright.leaderboard.export.targets import gpu_facts
from kernelwright.leaderboard.gpumode.files import read_task_folder
from kernelwright.leaderboard.gpumode.folder import write_problem_folder
from kernelwright.problems.loader import load_problem
from tests.gpu.workbench import tell
from tests.leaderboard.gpumode.support import repository

PROBE = probe()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not PROBE.usable, reason=PROBE.reason),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch"),
    pytest.mark.timeout(600),
]
BASELINE = """/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(size * size, 256)"]
block = [256]
args = ["A", "B", "C", "size"]
*/
#include <cuda_fp16.h>
extern "C" __global__ void add(const __half* A, const __half* B, __half* C, int size)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (long long)size * size)
        C[i] = __float2half(__half2float(A[i]) + __half2float(B[i]));
}
"""
PLAIN = "def custom_kernel(data):\n    a, b, c = data\n    c[...] = a + b\n    return c\n"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("board")
    baseline = root / "add.cu"
    baseline.write_text(BASELINE, encoding="utf-8")
    task = read_task_folder(repository(root / "rk") / "vectoradd_py")
    return write_problem_folder(task, root / "vectoradd", baseline=baseline).folder


def test_torch_itself_is_replayed(board: Path) -> None:
    for mode in Mode:
        replayed = asyncio.run(replay(board, PLAIN, mode, device="cuda:0"))
        assert replayed.result.state is State.PASSED, replayed
        tell(f"\n{mode}: {replayed.seconds:.1f} s, sandbox without {replayed.missing or 'nothing'}")
    wrong = asyncio.run(replay(board, PLAIN.replace("a + b", "a - b"), Mode.TEST, device="cuda:0"))
    assert "elements are wrong" in wrong.result.reason


def test_an_exported_baseline_is_replayed(board: Path) -> None:
    problem, kept = load_problem(board), read_board_file(board)
    template = parse_template(problem.baseline_source, "baseline.cu")
    facts = gpu_facts("H100")
    candidate = Candidate(template, template.plan.space(facts).configuration(0))
    assert kept.abi
    text = write_submission(
        candidate, problem.spec.arguments, kept.abi, (facts.arch,), kept.leaderboard, "H100"
    )
    for mode in (Mode.TEST, Mode.RANKED):
        replayed = asyncio.run(replay(board, text, mode, device="cuda:0"))
        assert replayed.result.state is State.PASSED, replayed
    tell(f"\nsize 16384: {(replayed.result.score_s or 0) * 1e3:.4f} ms in {replayed.seconds:.1f} s")
