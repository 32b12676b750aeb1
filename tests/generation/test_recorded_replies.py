"""Replies of a language model that saw only our prompts for an H200, kept as they came: the contract in real life."""

from pathlib import Path

import pytest

from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.errors import MissingError
from kernelwright.core.launch import BuildRequest
from kernelwright.core.resolve import compiler_options, macros, resolve
from kernelwright.generation.models.recorded import read_replies
from kernelwright.generation.reply import Proposed, apply_edits, parse_reply
from kernelwright.generation.source_text import fingerprint, without_comments
from kernelwright.harness.rules.source import check_source
from kernelwright.problems.loader import load_problem
from kernelwright.problems.rules import candidate_rules
from tests.generation.notes import FACTS

ROOT = Path(__file__).parents[2]
REPLIES = ROOT / "tests" / "data" / "replies"
PROBLEMS = {
    "softmax": "softmax",
    "reduce_sum": "reduce_sum",
    "gemm": "gemm",
    "layer_norm": str(ROOT / "examples" / "layer_norm"),
}


def code(proposed: Proposed, known: dict[str, Template]) -> str:
    """A proposal's whole text; an edit's is its parent's, as prompts show it, with the blocks replaced."""
    if proposed.kind == "template":
        return proposed.code
    (parent,) = [template for id_, template in known.items() if id_.startswith(proposed.parent)]
    edited = apply_edits(without_comments(parent), proposed.edits)
    assert isinstance(edited, str), edited
    return edited


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_proposal_is_a_template_that_keeps_the_rules(name: str) -> None:
    problem = load_problem(PROBLEMS[name])
    rules = candidate_rules(problem)
    known: dict[str, Template] = {}
    for _, reply in read_replies(REPLIES / f"{name}.jsonl"):
        found = parse_reply(reply.text)
        assert len(found) == 6
        for number, proposed in enumerate(found):
            assert isinstance(proposed, Proposed), proposed
            assert proposed.direction
            assert proposed.rationale
            assert proposed.predicted
            template = parse_template(code(proposed, known), f"{name}-{number}")
            assert check_source(template.source, rules) is None
            space = template.plan.space(FACTS)
            candidate = Candidate(template, space.configuration(0))
            for case in problem.cases(slow=False):
                assert resolve(candidate, case.sizes, FACTS, problem.signature).launches
            known[template.id] = template
    assert len({fingerprint(template).digest for template in known.values()}) == 12


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_first_proposal_compiles_for_an_h200(name: str, tmp_path: Path) -> None:
    """All of them do; one a problem is enough for every day."""
    cuda = pytest.importorskip("kernelwright.devices.cuda")
    try:
        compiler = cuda.CudaCompiler("sm_90a", tmp_path)
    except MissingError as error:
        pytest.skip(str(error))
    _, reply = read_replies(REPLIES / f"{name}.jsonl")[0]
    first = parse_reply(reply.text)[0]
    assert isinstance(first, Proposed)
    template = parse_template(first.code, name)
    candidate = Candidate(template, template.plan.space(FACTS).configuration(0))
    request = BuildRequest(
        template.source, macros(candidate, FACTS), compiler_options(candidate), template.kernels, "sm_90a"
    )
    built = compiler.build(request, tmp_path)
    assert built.status is None, built.reason
