"""A recorded problem that this version cannot read is told with its key, and with no advice that nobody can follow."""

import json

import pytest

from kernelwright.core.errors import UserError
from kernelwright.memory.problems import recorded_problem
from kernelwright.memory.records import ProblemRecord
from kernelwright.problems.loader import load_problem

SPEC = load_problem("vector_add").spec.model_dump_json()


def record(spec: str) -> ProblemRecord:
    return ProblemRecord("p", "adding", spec, "", "")


def changed(**changes: object) -> str:
    return json.dumps(json.loads(SPEC) | changes)


def test_what_this_version_wrote_is_read() -> None:
    assert recorded_problem(record(SPEC)).spec.name == "vector_add"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("{", "spec: is no JSON (EOF while parsing an object at line 1 column 1)"),
        ("[]", "spec: must be an object, not a list"),
        (changed(tolerance={"rtol": "x"}), "tolerance.rtol: must be a number, not 'x'"),
        (changed(mood="good"), "mood: is an unknown key"),
        (json.dumps({key: value for key, value in json.loads(SPEC).items() if key != "work"}), "work: is missing"),
    ],
)  # fmt: skip
def test_what_another_version_wrote_is_one_line(spec: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        recorded_problem(record(spec))
    assert str(caught.value) == (
        f"the problem adding cannot be read by this version: {told}: use the version that recorded it"
    )
