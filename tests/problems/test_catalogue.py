"""The bundled templates: their plans resolve on an H200, and they are right on the cpu device, checked."""

import random
from pathlib import Path

import pytest

from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.device import DeviceFacts
from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import Status
from kernelwright.core.resolve import compiler_options, macros, resolve
from kernelwright.devices.base import CaseRequest, RunRequest
from kernelwright.devices.cpu import CpuCompiler, CpuRunner
from kernelwright.problems.loader import Problem, bundled_names, load_problem
from kernelwright.problems.source import ProblemSource

H200 = DeviceFacts(
    name="cuda:0",
    kind="cuda",
    model="NVIDIA H200",
    arch="sm_90a",
    uuid="GPU-0",
    num_sms=132,
    warp_size=32,
    max_threads_per_block=1024,
    max_shared_bytes=227 * 1024,
    l2_bytes=60 * 2**20,
    memory_bytes=140 * 2**30,
    registers_per_sm=65536,
    shared_bytes_per_sm=228 * 1024,
    max_threads_per_sm=2048,
    max_blocks_per_sm=32,
    toolchain="",
)


def templates(problem: Problem) -> list[Template]:
    """Baseline and catalogue."""
    return [
        parse_template(problem.baseline_source, "baseline"),
        *(parse_template(t, n) for n, t in problem.catalogue()),
    ]


def candidates(template: Template, facts: DeviceFacts, count: int) -> list[Candidate]:
    """Some valid candidates, the same in every run."""
    space = template.plan.space(facts)
    chosen = random.Random(template.id).sample(range(len(space)), min(count, len(space)))
    return [Candidate(template, space.configuration(index)) for index in chosen]


ALL = [(name, template) for name in bundled_names() for template in templates(load_problem(name))]
IDS = [f"{name}-{template.name}" for name, template in ALL]


@pytest.mark.parametrize("name", bundled_names())
def test_a_problem_has_structure_to_choose_from(name: str) -> None:
    names = [template.name for template in templates(load_problem(name))]
    assert len(names) >= 4
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", bundled_names())
def test_the_largest_case_is_out_of_cache_and_all_fit_the_device(name: str) -> None:
    problem = load_problem(name)
    sizes = [sum(_bytes(b.shape) for b in problem.buffers(case)) for case in problem.cases(slow=False)]
    if name != "nbody":  # bound by arithmetic: its arrays are small at any size
        assert max(sizes) > H200.l2_bytes
    assert 3 * 3 * sum(sizes) < 20 * 2**30  # three input sets, each with float64 answers
    assert all(
        _bytes(b.shape) <= 512 * 2**20 for case in problem.cases(slow=False) for b in problem.buffers(case)
    )


def _bytes(shape: tuple[int, ...]) -> int:
    total = 4
    for extent in shape:
        total *= extent
    return total


@pytest.mark.parametrize(("name", "template"), ALL, ids=IDS)
def test_plans_resolve_for_every_case(name: str, template: Template) -> None:
    problem = load_problem(name)
    cases = [*problem.cases(slow=False), *problem.cases(slow=True)]
    for candidate in candidates(template, H200, 12):
        launched = set()
        for case in cases:
            launched |= {
                launch.kernel for launch in resolve(candidate, case.sizes, H200, problem.signature).launches
            }
        assert launched <= set(template.kernels)


@pytest.mark.parametrize(("name", "template"), ALL, ids=IDS)
def test_templates_are_right_and_free_of_races_on_the_cpu(
    name: str, template: Template, tmp_path: Path, cpu_cache: Path
) -> None:
    runner = CpuRunner(tmp_path, threads=2, cache=cpu_cache)
    problem = load_problem(name)
    (candidate,) = candidates(template, runner.facts, 1)
    built = CpuCompiler(cache=cpu_cache).build(
        BuildRequest(
            source=template.source,
            macros=macros(candidate, runner.facts),
            options=compiler_options(candidate),
            kernels=template.kernels,
            arch="",
            mode="check",
        ),
        tmp_path,
    )
    assert built.status is None, f"{candidate}: {built.reason}"
    cases = problem.cases(slow=True)[:2]  # the second is the odd one
    requests = tuple(
        CaseRequest(c.id, resolve(candidate, c.sizes, runner.facts, problem.signature)) for c in cases
    )
    source = ProblemSource(problem, seed=4, slow=True)
    result = runner.run(RunRequest(built.artifact, requests, check_only=True, timeout_s=60.0), source)
    runner.close()
    assert result.status is Status.MEASURED, f"{candidate}: {result.reason} {result.findings}"


@pytest.mark.parametrize(("name", "template"), ALL, ids=IDS)
def test_plans_resolve_for_every_trial(name: str, template: Template) -> None:
    problem = load_problem(name)
    for candidate in candidates(template, H200, 12):
        for trial in problem.every_trial(slow=False, seed=5):
            assert resolve(candidate, trial.sizes, H200, problem.signature).launches
