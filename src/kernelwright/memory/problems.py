"""Problems as the memory has them: without their folders."""

from pathlib import Path

from pydantic import ValidationError

from kernelwright.core.errors import UserError
from kernelwright.core.toml_words import in_json_words
from kernelwright.memory.records import ProblemRecord
from kernelwright.problems.loader import Problem
from kernelwright.problems.spec import ProblemSpec


def recorded_problem(record: ProblemRecord) -> Problem:
    """The problem without its folder. Raises UserError when this version cannot read it."""
    try:
        spec = ProblemSpec.model_validate_json(record.spec)
    except ValidationError as error:
        what = in_json_words(error, record.spec, keys=None, whole="spec")
        raise UserError(
            f"the problem {record.name} cannot be read by this version: {what}: use the version that recorded it"
        ) from None
    return Problem(spec, Path(record.name), record.reference, record.baseline)
