"""The catalogue as a proposer of structure."""

import pytest

from kernelwright.core.device import DeviceFacts
from kernelwright.generation.catalogue import Catalogue, opening_comment
from kernelwright.problems.loader import bundled_names, load_problem

from ..campaign.fakes import FACTS, template

H200 = DeviceFacts(
    name="cuda:0", kind="cuda", model="H200", arch="sm_90a", uuid="u", num_sms=132, warp_size=32,
    max_threads_per_block=1024, max_shared_bytes=232448, l2_bytes=60 << 20, memory_bytes=1 << 37,
    registers_per_sm=65536, shared_bytes_per_sm=233472, max_threads_per_sm=2048, max_blocks_per_sm=32, toolchain="t",
)  # fmt: skip


@pytest.mark.parametrize("name", bundled_names())
async def test_every_template_of_a_problem_is_proposed_once_with_a_space_on_each_device(name: str) -> None:
    catalogue = Catalogue(load_problem(name))
    proposals = []
    while (proposal := await catalogue.propose()) is not None:
        proposals.append(proposal)
    assert len(proposals) >= 2
    assert len({p.template.id for p in proposals}) == len(proposals)
    for proposal in proposals:
        assert proposal.direction == proposal.template.name
        assert proposal.rationale, f"{proposal.template.name}: no opening comment"
        for facts in (FACTS, H200):
            assert len(proposal.template.plan.space(facts)) >= 1


def test_the_opening_comment_is_one_line() -> None:
    assert opening_comment(template("a name", extra=",\n// second line")) == "a name, second line"
