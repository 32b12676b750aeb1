"""A notebook as a campaign would have filled it, for tests of prompts."""

from pathlib import Path

from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.core.outcome import CaseTiming, KernelStatics, Outcome, StaticMetrics, Status
from kernelwright.generation.base import Proposal
from kernelwright.generation.notebook import Notebook
from kernelwright.generation.prompt import Ask, PromptBuilder
from kernelwright.problems.loader import Problem, load_problem

SNAPSHOTS = Path(__file__).parent / "snapshots"
FACTS = DeviceFacts(
    name="cuda:0", kind="cuda", model="NVIDIA H200", arch="sm_90a", uuid="GPU-1", num_sms=132, warp_size=32,
    max_threads_per_block=1024, max_shared_bytes=232_448, l2_bytes=60 << 20, memory_bytes=140 << 30,
    registers_per_sm=65536, shared_bytes_per_sm=233_472, max_threads_per_sm=2048, max_blocks_per_sm=32,
    toolchain="nvrtc 13.0",
)  # fmt: skip
PLAN = '/* kernelwright\n[tune]\nBLOCK = [128, 256]\n[[launch]]\nkernel = "k"\ngrid = ["R"]\nblock = ["BLOCK"]\nargs = ["X", "Y", "C"]\n*/\n'


def template(number: int) -> Template:
    """One of many small templates."""
    code = f'extern "C" __global__ void k(const float* x, float* y, int c) {{ y[0] = x[{number}] * c; }}\n'
    return parse_template(PLAN + "// secret instructions\n" + code, f"idea-{number}")


def measured(problem: Problem, factor: float, registers: int = 32) -> Outcome:
    """An outcome with ``factor`` times a made-up time by case."""
    cases = problem.cases(slow=False)
    times = tuple(CaseTiming(c.id, (factor * (i + 1) * 0.01,), "events") for i, c in enumerate(cases))
    static = StaticMetrics(
        (KernelStatics("k", registers, 0, theoretical_occupancy=min(1.0, 32 / registers)),)
    )
    return Outcome(Status.MEASURED, cases=times, static=static)


def filled(templates: int = 6, experiments: int = 24) -> tuple[Problem, PromptBuilder, Notebook, Ask]:
    """Problem, builder, notebook and what is asked after some experiments."""
    problem, objective = load_problem("softmax"), Objective(ObjectiveName.SEED)
    builder = PromptBuilder(
        problem, FACTS, objective, problem.cases(slow=False), rules=("Tensor cores may not be used.",),
        ceilings="copy 4.30 TB/s",
    )  # fmt: skip
    notebook = Notebook()
    baseline = parse_template(problem.baseline_source, "baseline")
    first = measured(problem, 4.0)
    notebook.add(Proposal(baseline, "baseline", "baseline"))
    notebook.learn(Candidate(baseline, Configuration()), first, objective.cost(first.times_ms()), 1)
    best, best_cost, best_outcome = (
        Candidate(baseline, Configuration()),
        objective.cost(first.times_ms()),
        first,
    )
    for number in range(templates):
        notebook.add(Proposal(template(number), f"direction {number % 4}", "openai:x", "why", "faster"))
    for number in range(experiments):
        candidate = Candidate(
            template(number % templates), Configuration({"BLOCK": 128 << (number // templates % 2)})
        )
        if number % 5 == 3:
            outcome = Outcome(Status.WRONG, f"case R=4096,C=128: {number} values wrong", check="values")
            notebook.learn(candidate, outcome, None, number + 2)
            continue
        outcome = measured(problem, 3.0 - number / max(experiments, 24), 32 + 16 * (number % templates % 8))
        cost = objective.cost(outcome.times_ms())
        notebook.learn(candidate, outcome, cost, number + 2)
        if cost < best_cost:
            best, best_cost, best_outcome = candidate, cost, outcome
    ask = Ask(
        wanted=3,
        baseline_ms=first.times_ms(),
        fastest=best,
        fastest_ms=best_outcome.times_ms(),
        is_incumbent=True,
        start=(best, 1.0),
        left="300 s and 10 requests left",
        floors_ms={case.id: 0.004 for case in problem.cases(slow=False)},
        findings=("BLOCK matters most: 128 is 4 % faster than 256",),
        digest="DRAM-bound: 81 % of copy bandwidth.",
        goal="the roofline",
        emphasis="Aim at the largest gain first.",
        paused=frozenset({"direction 3"}),
    )
    return problem, builder, notebook, ask
