"""Trials: what they are made of, and that every bundled template stands them."""

from pathlib import Path

import numpy as np
import pytest

from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.errors import ProblemError
from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import Check, Status
from kernelwright.core.resolve import compiler_options, macros, resolve
from kernelwright.devices.base import CaseRequest, RunRequest
from kernelwright.devices.cpu import CpuCompiler, CpuRunner
from kernelwright.problems.loader import Problem, bundled_names, load_problem
from kernelwright.problems.source import ProblemSource
from kernelwright.problems.trials import MAX_ELEMENTS, elements
from tests.problems.folders import GOOD, write_problem


def templates(problem: Problem) -> list[Template]:
    texts = [("baseline", problem.baseline_source), *problem.catalogue()]
    return [parse_template(text, f"{name}.cu") for name, text in texts]


ALL = [(name, template) for name in bundled_names() for template in templates(load_problem(name))]


@pytest.mark.parametrize(("name", "template"), ALL, ids=[f"{name}-{t.name}" for name, t in ALL])
def test_every_template_stands_every_trial(
    name: str, template: Template, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = tmp_path_factory.getbasetemp() / "cpu-cache"
    runner = CpuRunner(tmp_path, threads=2, cache=cache)
    problem = load_problem(name)
    candidate = Candidate(template, template.plan.space(runner.facts).configuration(0))
    built = CpuCompiler(cache=cache).build(
        BuildRequest(
            source=template.source,
            macros=macros(candidate, runner.facts),
            options=compiler_options(candidate),
            kernels=template.kernels,
            arch="",
        ),
        tmp_path,
    )
    assert built.status is None, f"{candidate}: {built.reason}"
    requests = tuple(
        CaseRequest(t.id, resolve(candidate, t.sizes, runner.facts, problem.signature), check=t.check)
        for t in problem.trials(slow=True)
    )
    source = ProblemSource(problem, seed=4, slow=True)
    result = runner.run(RunRequest(built.artifact, requests, check_only=True, timeout_s=60.0), source)
    runner.close()
    assert result.status is Status.MEASURED, f"{candidate}: {result.reason} {result.findings}"
