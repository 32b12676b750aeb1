"""Trials: what they are made of, and that every bundled template stands them."""

import re
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
from kernelwright.problems.case import Trial
from kernelwright.problems.loader import Problem, bundled_names, load_problem
from kernelwright.problems.source import ProblemSource
from kernelwright.problems.trials import MAX_ELEMENTS, elements
from tests.problems.folders import GOOD, write_problem


def templates(problem: Problem) -> list[Template]:
    texts = [("baseline", problem.baseline_source), *problem.catalogue()]
    return [parse_template(text, f"{name}.cu") for name, text in texts]


def trials_of(folder: Path, toml: str, *, slow: bool = False) -> tuple[Trial, ...]:
    return load_problem(write_problem(folder / "p", toml)).trials(slow=slow)


def with_trials(text: str) -> str:
    return GOOD.replace("work =", f"trials = {{ {text} }}\nwork =")


@pytest.mark.parametrize("name", bundled_names())
@pytest.mark.parametrize("slow", [False, True])
def test_trials_are_few_cheap_and_unmistakable(name: str, slow: bool) -> None:
    problem = load_problem(name)
    trials = problem.trials(slow=slow)
    assert 10 <= len(trials) <= 25
    ids = [trial.id for trial in trials]
    assert len(set(ids)) == len(ids)
    assert all(text.isprintable() and text.startswith(("stress ", "size ")) for text in ids)
    listed = [case.sizes for kind in (False, True) for case in problem.cases(slow=kind)]
    for trial in trials:
        if trial.check is Check.OTHER_SIZES:
            assert trial.sizes not in listed
            assert elements(problem.spec, trial.sizes) <= MAX_ELEMENTS
        else:
            assert trial.sizes in [case.sizes for case in problem.cases(slow=slow)]
    sizes = [trial.sizes for trial in trials if trial.check is Check.OTHER_SIZES]
    for size in problem.spec.size_names:  # each is 1 and odd and not a multiple of a warp somewhere
        values = {entry[size] for entry in sizes}
        assert 1 in values
        assert any(value % 2 and value > 1 and value % 32 for value in values)


def test_a_problem_that_says_nothing_demands_generality(tmp_path: Path) -> None:
    trials = trials_of(tmp_path, GOOD)
    kinds = {trial.id.split()[1] for trial in trials if trial.check is Check.STRESS_INPUTS}
    assert kinds == {
        "normal", "uniform", "large", "tiny", "negative", "ties", "one_hot", "structured", "changed",
    }  # fmt: skip
    assert {trial.sizes["N"] for trial in trials if trial.check is Check.OTHER_SIZES} >= {
        1,
        9,
        11,
        31,
        33,
        1001,
    }


def test_a_problem_may_choose(tmp_path: Path) -> None:
    names = 'distributions = ["normal", { distribution = "normal", mean = 5.0 }], other_sizes = [{ N = 77 }]'
    assert [trial.id for trial in trials_of(tmp_path, with_trials(names))] == [
        "stress normal N=100", "stress normal 2 N=100", "stress changed N=100", "stress changed N=1000", "size N=77",
    ]  # fmt: skip
    some = trials_of(tmp_path, with_trials('exclude = ["large", "tiny"], other_sizes = false'))
    assert not any(
        "large" in trial.id or "tiny" in trial.id or trial.check is Check.OTHER_SIZES for trial in some
    )
    assert load_problem(tmp_path / "p").specialised


def test_integers_and_kept_inputs_stay_in_their_family(tmp_path: Path) -> None:
    toml = with_trials('keep = ["X"]')
    source = ProblemSource(load_problem(write_problem(tmp_path / "p", toml)), seed=1, slow=False)
    labels = [t.id for t in source.problem.trials(slow=False) if t.check is Check.STRESS_INPUTS]
    assert labels[:3] == ["stress inputs 0 N=100", "stress inputs 1 N=100", "stress changed N=100"]
    positive = source.inputs(labels[1], 0).arrays["X"]  # uniform from 0 to 2, as declared
    assert positive.min() >= 0
    integers = GOOD.replace(
        '"float32", shape = ["N"], role = "in"', '"int32", shape = ["N"], role = "in"'
    ).replace(
        '["normal", { distribution = "uniform", low = 0.0, high = 2.0 }]',
        '{ distribution = "integers", low = 3, high = 7 }',
    )
    source = ProblemSource(load_problem(write_problem(tmp_path / "q", integers)), seed=1, slow=False)
    for trial in source.problem.trials(slow=False):
        values = source.inputs(trial.id, 0).arrays["X"]
        assert values.min() >= 3
        assert values.max() < 7


def test_half_precision_gets_magnitudes_it_can_hold(tmp_path: Path) -> None:
    toml = GOOD.replace('"float32", shape', '"float16", shape')
    source = ProblemSource(load_problem(write_problem(tmp_path / "p", toml)), seed=1, slow=False)
    for trial in source.problem.trials(slow=False):
        values = source.inputs(trial.id, 0).arrays["X"]
        assert np.isfinite(values).all()
        assert np.abs(values.astype(np.float64)).max() < 1000
        assert (values != 0).any()


def test_a_changed_trial_differs_in_a_few_elements() -> None:
    source = ProblemSource(load_problem("vector_add"), seed=3, slow=True)
    for index in (0, 1):
        first = source.inputs("stress normal N=65536", index).arrays
        other = source.inputs("stress changed N=65536", index).arrays
        for name, array in first.items():
            assert 1 <= np.count_nonzero(array != other[name]) <= 4
    assert (source.inputs("stress normal N=65536", 0).arrays["A"] != first["A"]).mean() > 0.99


def test_a_source_answers_for_trials_as_for_cases() -> None:
    problem = load_problem("gemm")
    source = ProblemSource(problem, seed=3, slow=True)
    for trial in problem.trials(slow=True):
        shapes = {buffer.name: buffer.shape for buffer in source.buffers(trial.id)}
        inputs = source.inputs(trial.id, 0).arrays
        assert {name: array.shape for name, array in inputs.items()} == {n: shapes[n] for n in ("A", "B")}
        expected = source.expected(trial.id, inputs, np)["C"]
        assert expected.shape == shapes["C"]
        assert source.tolerance(trial.id, "C", 2.0).atol == 2e-4


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('keep = ["Q"]', "trials.keep: there is no input array 'Q'"),
        ('exclude = ["lage"]', "trials.exclude: 'lage' is not among"),
        ("other_sizes = [{ M = 3 }]", "trials.other_sizes[0]: needs the sizes N"),
        ("other_size = false", "trials.other_size: is an unknown key"),
        ('exclude = ["normal", "uniform", "large", "tiny", "negative", "ties", "one_hot", "structured"]',
         "trials.exclude: leaves no distribution"),
        ("other_sizes = [{ N = 0 }]", "trials.other_sizes"),
    ],
)  # fmt: skip
def test_faults_of_the_table_are_named(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(ProblemError, match=re.escape(fault)):
        trials_of(tmp_path, with_trials(text))


@pytest.mark.parametrize("text", ["stress normal N=100", "size N=3"])
def test_a_case_may_not_look_like_a_trial(tmp_path: Path, text: str) -> None:
    with pytest.raises(ProblemError, match=r"starts as a trial's id does"):
        trials_of(tmp_path, GOOD.replace('id = "big"', f'id = "{text}"'))


def test_named_sizes_must_have_a_shape(tmp_path: Path) -> None:
    toml = with_trials("other_sizes = [{ N = 3 }]").replace(
        'shape = ["N"], role = "in"', 'shape = ["N - 5"], role = "in"'
    )
    with pytest.raises(ProblemError, match=r"trials\.other_sizes\[0\]: .*shape"):
        trials_of(tmp_path, toml)


ALL = [(name, template) for name in bundled_names() for template in templates(load_problem(name))]


@pytest.mark.parametrize(("name", "template"), ALL, ids=[f"{name}-{t.name}" for name, t in ALL])
def test_every_template_stands_every_trial(
    name: str, template: Template, tmp_path: Path, cpu_cache: Path
) -> None:
    runner = CpuRunner(tmp_path, threads=2, cache=cpu_cache)
    problem = load_problem(name)
    candidate = Candidate(template, template.plan.space(runner.facts).configuration(0))
    built = CpuCompiler(cache=cpu_cache).build(
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
        for t in problem.every_trial(slow=True, seed=4)
    )
    source = ProblemSource(problem, seed=4, slow=True)
    result = runner.run(RunRequest(built.artifact, requests, check_only=True, timeout_s=60.0), source)
    runner.close()
    assert result.status is Status.MEASURED, f"{candidate}: {result.reason} {result.findings}"
