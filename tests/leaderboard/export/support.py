"""Exports of catalogue templates, and programs made of generated C++ against stubs."""

import subprocess
from pathlib import Path

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.plan import split_source
from kernelwright.leaderboard.abi import Abi
from kernelwright.leaderboard.export.entry import usual_abi
from kernelwright.leaderboard.export.names import Subject
from kernelwright.leaderboard.export.targets import gpu_facts
from kernelwright.problems.loader import Problem, bundled_names, load_problem

STUBS = Path(__file__).parent / "stubs"
FACTS = gpu_facts("H100")


def candidate_of(source: str, name: str = "candidate.cu", **values: int) -> Candidate:
    """With the first value of every tunable that is not given."""
    template = parse_template(source, name)
    tunables = (*template.plan.tunables, *template.plan.compiler)
    return Candidate(template, Configuration({t.name: values.get(t.name, t.values[0]) for t in tunables}))


def subject_of(candidate: Candidate, problem: Problem, abi: Abi | None = None) -> Subject:
    body = split_source(candidate.template.source, candidate.template.name)[2]
    return Subject(candidate, body, problem.spec.arguments, abi or usual_abi(problem))


def catalogue() -> list[tuple[Problem, str, str]]:
    """Problem, name and source of all bundled templates."""
    problems = [load_problem(name) for name in bundled_names()]
    return [(p, f"{p.name}/{name}", source) for p in problems for name, source in p.catalogue()]


def run_cpp(program: str, folder: Path) -> str:
    """Output of a program that sees the stubs of CUDA's and torch's headers."""
    source, binary = folder / "program.cpp", folder / "program"
    source.write_text(program, encoding="utf-8")
    build = ["g++", "-std=c++17", "-O0", "-w", f"-I{STUBS}", str(source), "-o", str(binary)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    ran = subprocess.run([binary], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr[:2000]
    return ran.stdout
