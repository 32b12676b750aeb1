"""PyTorch's own kernels on the cases of problems, timed as candidates are, as JSON: milliseconds by problem and case.

L2 cleared before each run, the queue ahead of the GPU, CUDA events, 10 runs, the first 2 dropped, median; cases that
candidates run through a graph (a floor below 5 us) are timed by events here too, so that only the others compare.

    python bench/bench_torch.py --problems softmax reduce_sum examples/layer_norm
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_cuda_ceilings import TIMEOUT_S, median_ms
from command_line import parser_of
from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.operations import Operation
from kernelwright.problems.loader import Case, load_problem


def functions(torch: Any) -> dict[str, Callable[[dict[str, int]], Callable[[], object]]]:
    """For a problem's sizes, a call of the library on fresh inputs."""

    def made(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=torch.float32)

    def softmax(sizes: dict[str, int]) -> Callable[[], object]:
        x = made(sizes["R"], sizes["C"])
        return lambda: torch.softmax(x, -1)

    def reduce_sum(sizes: dict[str, int]) -> Callable[[], object]:
        x = made(sizes["N"])
        return lambda: torch.sum(x)

    def layer_norm(sizes: dict[str, int]) -> Callable[[], object]:
        x, g, b = made(sizes["R"], sizes["C"]), made(sizes["C"]), made(sizes["C"])
        return lambda: torch.nn.functional.layer_norm(x, (sizes["C"],), g, b)

    def gemm(sizes: dict[str, int]) -> Callable[[], object]:
        a, b = made(sizes["M"], sizes["K"]), made(sizes["K"], sizes["N"])
        return lambda: a @ b

    return {"softmax": softmax, "reduce_sum": reduce_sum, "layer_norm": layer_norm, "gemm": gemm}


def one_case(gpu: Gpu, torch: Any, call: Callable[[], object]) -> dict[str, float]:
    """Warmed up, so that the library's allocator asks the driver for nothing while it is timed."""

    def operation() -> tuple[int]:
        call()
        return (0,)

    for _ in range(3):
        call()
    torch.cuda.synchronize()
    gpu.settle(TIMEOUT_S)
    return median_ms(gpu, lambda: [Operation(operation, (), "torch")])


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--problems", nargs="+", default=["softmax", "reduce_sum", "gemm"])
    parser.add_argument("--cache", type=Path, default=None)
    options = parser.parse_args()
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    gpu = Gpu(options.device, options.cache, 0.4)
    report: dict[str, Any] = {"model": gpu.facts.model, "torch": torch.__version__, "problems": {}}
    with torch.cuda.stream(torch.cuda.ExternalStream(int(gpu.driver.stream))):
        for name in options.problems:
            problem = load_problem(name)
            make = functions(torch)[problem.name]
            cases: tuple[Case, ...] = problem.cases(slow=False)
            report["problems"][problem.name] = {
                case.id: one_case(gpu, torch, make(dict(case.sizes))) for case in cases
            }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
