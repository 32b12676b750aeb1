"""Faults of a plan that show when it is used: each has the file, the line and the key."""

import pytest

from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import PlanError
from kernelwright.core.places import Places
from kernelwright.core.plan_faults import first_line, placed
from kernelwright.core.resolve import resolve
from tests.core.test_plan import FACTS, SIGNATURE, launch, source

LAUNCH = '[[launch]]\nkernel = "k"\ngrid = ["cdiv(M, 256)"]\nblock = [256]\nargs = ["A", "M"]\n'


def fault(plan: str) -> str:
    """What is wrong with a plan in ``own/mine.cu`` for M = 1000 and the first valid configuration."""
    template = parse_template(source(plan), "own/mine.cu")
    with pytest.raises(PlanError) as caught:  # noqa: PT012 - either may find it
        with placed(template):
            configuration = template.plan.space(FACTS).configuration(0)
        resolve(Candidate(template, configuration), {"M": 1000}, FACTS, SIGNATURE)
    return str(caught.value)


@pytest.mark.parametrize(
    ("plan", "begins"),
    [
        ('[let]\nM = "3"\n' + LAUNCH, "3: let.M: 'M' is a name of the problem"),
        (
            '[scratch]\nA = { dtype = "float32", shape = ["M"] }\n' + LAUNCH,
            "3: scratch.A: 'A' is a name of the problem",
        ),
        (
            '[scratch.A]\ndtype = "float32"\nshape = ["M"]\n' + LAUNCH,
            "2: scratch.A: 'A' is a name of the problem",
        ),
        (
            '[scratch]\nU = { dtype = "float32", shape = ["M", "M - 1000"] }\n' + LAUNCH,
            "3:41: scratch.U: shape 'M - 1000' is 0",
        ),
        (LAUNCH.replace('"A"', '"tmpp"'), "6:10: launch.args: k: argument unknown name 'tmpp'"),
        (
            LAUNCH + LAUNCH.replace('"M"]', '\n  "tmpp"]'),
            "12:4: launch.args: k: argument unknown name 'tmpp'",
        ),
        (LAUNCH + 'when = "Z == 1"\n', "7:9: launch.when: unknown name 'Z'"),
        (LAUNCH + LAUNCH + 'when = "M > 2 and Z == 1"\n', "12:19: launch.when: unknown name 'Z'"),
        (LAUNCH + 'when = "M < 0"\n', "7: launch.when: no launch is left"),
        (LAUNCH.replace("[256]", '["M - M"]'), "5:11: launch.block: k: block 'M - M' is 0"),
        (LAUNCH.replace("[256]", "[2048]"), "5: launch.block: k: block.x is 2048, the limit is 1024"),
        (LAUNCH + 'dynamic_shared_bytes = "M / 7"\n', "7:25: launch.dynamic_shared_bytes: "),
        (LAUNCH + "cluster = [3]\n", "7: launch.cluster: k: the grid (4, 1, 1) cannot be cut"),
        (
            '[tune]\nT = [1, 2]\nS = [1, 2]\n[constraints]\none = "T > 1"\ntwo = "T + S < 3"\n' + LAUNCH,
            "7: constraints.two: no configuration fulfils all constraints",
        ),
        (
            '[tune]\nT = [0]\n[let]\nX = "4 // T"\n' + LAUNCH,
            "5: let.X: the value 'X' holds for no combination",
        ),
    ],
)
def test_a_fault_has_its_place(plan: str, begins: str) -> None:
    assert fault(plan).startswith(f"own/mine.cu:{begins}")


def test_an_expression_without_a_key_is_looked_for_in_the_whole_plan() -> None:
    template = parse_template(source('[let]\nX = "M // 0"\n' + launch()), "mine.cu")
    with pytest.raises(PlanError, match=r"^mine\.cu:3:6: let\.X: .* in 'M // 0'$"), placed(template):
        template.plan.let[0][1].evaluate({"M": 1})


def test_a_template_without_a_file_has_no_line() -> None:
    plan = parse_template(source(LAUNCH.replace('"A"', '"Q"'))).plan
    with pytest.raises(PlanError, match=r"^made: launch\.args: "):
        resolve(Candidate(Template("made", "", plan), Configuration()), {"M": 9}, FACTS, SIGNATURE)


def test_other_faults_pass_as_they_are() -> None:
    template = parse_template(source(LAUNCH))
    with pytest.raises(PlanError, match=r"^elsewhere: odd$"), placed(template):
        raise PlanError("odd", "elsewhere")
    with pytest.raises(PlanError, match=r"^candidate\.cu: the configuration does not fit"), placed(template):
        template.plan.space(FACTS).row_of(Configuration({"X": 1}))


@pytest.mark.parametrize(
    ("key", "needle", "place"),
    [
        ("tune.A", "", (10, 0)),
        ("tune.A", "3", (11, 3)),
        ("tune.compiler.maxrregcount", "", (13, 0)),
        ("constraints.a b", "", (15, 0)),
        ("launch[0].args", "ax", (17, 11)),
        ("launch[1].args", "ax", (19, 10)),
        ("launch[1].cluster", "", (18, 0)),
        ("let.nowhere", "", (9, 0)),
    ],
)
def test_places(key: str, needle: str, place: tuple[int, int]) -> None:
    text = """[tune]
A = [1, 2,
  3]
[tune.compiler] # these two
maxrregcount = [32]
[constraints]
"a b" = "A == 1"
[[launch]]
args = ["ax"]
[[ launch ]]
args = ["ax"]"""
    text = text.replace('args = ["ax"]', 'args = [ "ax"]', 1)
    assert Places(text, 9).find(key, needle) == place


def test_the_source_begins_behind_the_plan() -> None:
    assert first_line(parse_template(source(LAUNCH))) == 8
