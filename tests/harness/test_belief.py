"""Which rate of arithmetic bounds a problem."""

from dataclasses import replace

import pytest

from kernelwright.harness.belief import for_problem
from kernelwright.harness.wire import Ceilings
from kernelwright.problems.loader import Problem, load_problem

KNOWN = Ceilings(4e12, 6e13, 9e14)


def problem(dtype: str, *, no_tensor_cores: bool) -> Problem:
    found = load_problem("gemm")
    arguments = tuple(
        a.model_copy(update={"dtype": dtype}) if a.is_input and a.shape else a for a in found.spec.arguments
    )
    rules = found.spec.rules.model_copy(update={"no_tensor_cores": no_tensor_cores})
    return replace(found, spec=found.spec.model_copy(update={"arguments": arguments, "rules": rules}))


@pytest.mark.parametrize(
    ("dtype", "no_tensor_cores", "rate"),
    [("float16", False, 9e14), ("float16", True, 6e13), ("float32", False, 6e13), ("float32", True, 6e13)],
)
def test_tensor_units_bound_float16_where_they_are_allowed(
    dtype: str, no_tensor_cores: bool, rate: float
) -> None:
    assert for_problem(KNOWN, problem(dtype, no_tensor_cores=no_tensor_cores)).operations_per_s == rate
