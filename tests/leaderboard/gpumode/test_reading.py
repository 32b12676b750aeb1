"""What is read off a board's Python: tolerances, inputs, outputs, and a reference of ours."""

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.core.case import Tolerance
from kernelwright.core.errors import UserError
from kernelwright.leaderboard.gpumode.described import read_described
from kernelwright.leaderboard.gpumode.inputs_read import Returned, Size, Tensor, Unknown, read_inputs
from kernelwright.leaderboard.gpumode.reference_facts import read_reference
from kernelwright.leaderboard.gpumode.translate import NotPlain, translate
from tests.leaderboard.gpumode.support import OWN

NORMAL = {"distribution": "normal"}


def returned(body: str, parameters: str = "n, m=2, seed=0") -> Returned:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    function = ast.parse(f"def generate_input({parameters}):\n{lines}").body[0]
    assert isinstance(function, ast.FunctionDef)
    return read_inputs(function)


def only(body: str) -> Any:
    found = returned(body)
    assert len(found.values) == 1
    return found.values[0]


@pytest.mark.parametrize(
    ("text", "tensor"),
    [
        ("torch.randn(n, m, dtype=torch.float16)", Tensor("float16", ("n", "m"), NORMAL)),
        ("torch.randn((n, 3)).half().cuda()", Tensor("float16", ("n", "3"), NORMAL)),
        ("torch.empty(n // 16, device='cuda')", Tensor("float32", ("n // 16",), None)),
        ("torch.zeros([n * (m + 1)], dtype=torch.int32)", Tensor("int32", ("n * (m + 1)",), None)),
        ("torch.randint(0, 256, (n,), dtype=torch.uint8)", Tensor("uint8", ("n",), {"distribution": "integers", "low": 0, "high": 256})),
        ("torch.randint(9, size=(n,))", Tensor("int64", ("n",), {"distribution": "integers", "low": 0, "high": 9})),
        ("torch.rand(n) * 4 - 1", Tensor("float32", ("n",), {"distribution": "uniform", "low": -1.0, "high": 3.0})),
        ("0.5 * torch.randn(n)", Tensor("float32", ("n",), {"distribution": "normal", "mean": 0.0, "std": 0.5})),
        ("torch.empty(n).uniform_(-2, 2)", Tensor("float32", ("n",), {"distribution": "uniform", "low": -2.0, "high": 2.0})),
        ("torch.randn(n) / math.sqrt(n) + torch.rand(1).item()", Tensor("float32", ("n",), {})),
        ("-torch.randn(n)", Tensor("float32", ("n",), {})),
        ("torch.full((n,), 3.0)", Tensor("float32", ("n",), {"distribution": "constant", "value": 3.0})),
        ("torch.randn(n).to('cuda').to(torch.float64).contiguous()", Tensor("float64", ("n",), NORMAL)),
    ],
)  # fmt: skip
def test_a_factory_of_torch(text: str, tensor: Tensor) -> None:
    assert only(f"return {text}") == tensor
    assert only(f"x = {text}\nreturn x").fill == tensor.fill


@pytest.mark.parametrize(
    "text",
    [
        "torch.randn(n).t()",  # not dense
        "torch.randn(n, m).transpose(0, 1)",
        "torch.randn(n, dtype=torch.bfloat16)",
        "torch.randn(n).to(torch.float8_e4m3fn)",
        "torch.randn(int(n / 3))",
        "torch.randn(*shape)",
        "torch.randn(n)[1:]",
        "make(n)",
        "torch.randn(n) * made(n)",  # may be wider
        "torch.randn(n) + torch.randn(m, n)",
        "2.5",
        "None",
    ],
)
def test_what_is_not_plain_is_unknown(text: str) -> None:
    assert not isinstance(only(f"return {text}"), Size | Tensor)
    assert not returned(f"return {text}").readable


def test_what_happens_to_a_name_is_followed() -> None:
    found = returned(
        "k = n // 2\n"
        "x = torch.empty(k, m)\n"
        "x.normal_(0, 2, generator=g)\n"
        "x[0] = 5\n"
        "y, z = torch.randn(n), torch.empty(n)\n"
        "if m:\n    y = other(y)\n"
        "return x, z.contiguous(), m"
    )
    assert found.names == ("x", "z", "m")
    fill = {"distribution": "normal", "mean": 0.0, "std": 2.0}
    assert found.values == (
        Tensor("float32", ("n // 2", "m"), fill, changed=True),
        Tensor("float32", ("n",), None),
        Size("m"),
    )
    assert returned("for i in range(n):\n    x = torch.randn(n)\nreturn x").values == (Unknown(3),)
    assert not returned("if n:\n    return torch.randn(n)\nreturn torch.randn(m)").readable


def test_names_do_not_clash_with_sizes() -> None:
    assert returned("n = torch.randn(n)\nxp = torch.randn(m)\nreturn n, xp, m").names == (
        "item0",
        "item1",
        "m",
    )
    assert returned("return {'x': torch.randn(n), 'n': n}").style == "dict"
    assert not returned("return {'not a name': torch.randn(n)}").readable


@pytest.mark.parametrize(
    ("check", "tolerance"),
    [
        ("check_implementation = make_match_reference(ref_kernel)", Tolerance(1e-5, 1e-8)),
        ("check_implementation = make_match_reference(ref_kernel, rtol=1e-2, atol=2e-3)", Tolerance(1e-2, 2e-3)),
        ("def check_implementation(data, out):\n    return verbose_allequal(out, ref_kernel(data))", Tolerance(0, 0)),
        ("def check_implementation(data, out):\n    return verbose_allclose(out, f(data), rtol=1e-3)", Tolerance(1e-3, 1e-8)),
        ("def check_implementation(data, out):\n    return verbose_allclose(out, f(data), rtol=1e-5 * n)", None),
        ("def check_implementation(data, out):\n    return f(out)", None),
        ("", None),
    ],
)  # fmt: skip
def test_tolerances(check: str, tolerance: Tolerance | None) -> None:
    assert read_reference(check, "reference.py").tolerance == tolerance


def test_what_is_no_python_is_one_line() -> None:
    for text in ("def f(:\n", "x = '\0'", "(" * 500):
        with pytest.raises(UserError) as caught:
            read_reference(text, "reference.py")
        assert str(caught.value).startswith("reference.py")
        assert len(str(caught.value).splitlines()) == 1


def test_nothing_of_a_reference_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    text = f"open({str(mark)!r}, 'w')\n" + (OWN / "vectoradd.py").read_text(encoding="utf-8")
    facts = read_reference(text, "reference.py")
    assert facts.outputs == ("C",)
    translate(facts, "x")
    assert not mark.exists()


def ours(source: str, sizes: dict[str, int], *inputs: Any) -> Any:
    """The answer of the reference that is made of a board's."""
    facts = read_reference(source, "reference.py")
    namespace: dict[str, Any] = {}
    exec(translate(facts, "title").text, namespace)
    answer = namespace["reference"](np, sizes, *inputs)
    assert set(answer) == set(facts.outputs)
    return answer[facts.outputs[0]]


def own(name: str) -> str:
    return (OWN / f"{name}.py").read_text(encoding="utf-8")


def test_four_references_become_ours() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 5, 5))
    assert np.array_equal(ours(own("vectoradd"), {"size": 5}, a, b), a + b)
    image = rng.random((4, 4, 3))
    gray = image @ np.array([0.2989, 0.5870, 0.1140])
    assert np.allclose(ours(own("grayscale"), {"size": 4}, image), gray, rtol=1e-15)
    values = rng.integers(0, 256, 1000)
    counts = ours(own("histogram"), {"size": 1000}, values)
    assert counts.shape == (256,)
    assert np.array_equal(counts, [np.sum(values == value) for value in range(256)])
    left, right = rng.random((3, 4)), rng.random((4, 2))
    assert np.allclose(ours(own("matmul"), {"m": 3, "n": 2, "k": 4}, left, right), left @ right)
    assert translate(read_reference(own("matmul"), ""), "").product == ("a", "b")


PLAIN = """
def generate_input(n, m, seed):
    x = torch.randn(n, m)
    y = torch.empty(OUT)
    return x, y
def ref_kernel(data):
    x, y = data
    BODY
    return y
"""


@pytest.mark.parametrize(
    ("body", "out", "expected"),
    [
        ("y[...] = torch.exp(x) / (1 + x.abs())", "n, m", lambda x: np.exp(x) / (1 + np.abs(x))),
        ("y[:] = torch.cumsum(x, dim=1)", "n, m", lambda x: np.cumsum(x, 1)),
        ("y.copy_(x.sum(-1))", "n", lambda x: x.sum(-1)),
        ("y = torch.sum(x.float())", "1", lambda x: x.sum(keepdims=True).reshape(1)),
        ("with torch.no_grad():\n        z = x.to(torch.float32) * 2\n        y[...] = torch.relu(z - 1)", "n, m", lambda x: np.maximum(2 * x - 1, 0)),
        ("y[...] = torch.sort(x)[0]", "n, m", np.sort),
        ("y[...] = x.mul(m) + n", "n, m", lambda x: x * x.shape[1] + x.shape[0]),
        ("sizes = -x ** 2\n    y[...] = torch.sigmoid(sizes)", "n, m", lambda x: 1 / (1 + np.exp(x**2))),
        ("return x * 2", "n, m", lambda x: 2 * x),
        ("z = x + 1\n    return z", "n, m", lambda x: x + 1),
        ("y[...] = torch.mean(x, dim=0)", "m", lambda x: x.mean(0)),
    ],
)  # fmt: skip
def test_plain_formulas_are_translated(body: str, out: str, expected: Any) -> None:
    source = PLAIN.replace("BODY", body).replace("OUT", out)
    if "x.mul(m)" in body:  # sizes have to be handed over to be read
        source = source.replace("return x, y\ndef", "return x, y, n, m\ndef").replace(
            "x, y = data", "x, y, n, m = data"
        )
    x = np.random.default_rng(0).standard_normal((3, 4))
    assert np.allclose(ours(source, {"n": 3, "m": 4}, x), expected(x), rtol=1e-12)


@pytest.mark.parametrize(
    "body",
    [
        "y[0] = x[0]",
        "y[...] = other(x)",
        "y[...] = torch.softmax(x, dim=1)",
        "y[...] = x.to(torch.int32)",
        "for i in range(3):\n        y[...] = x",
        "y[...] = torch.sum(x, dim=1, keepdim=True)",
        "y[...] = torch.cumsum(x, dim=axis)",
        "import os\n    y[...] = x",
        "pass",
    ],
)
def test_what_is_not_recognised_is_said(body: str) -> None:
    facts = read_reference(PLAIN.replace("BODY", body).replace("OUT", "n, m"), "reference.py")
    with pytest.raises(NotPlain, match=r"line \d+: "):
        translate(facts, "x")


CASES = ({"m": 8, "n": 32, "seed": 1}, {"m": 16, "n": 48, "seed": 2}, {"m": 24, "n": 16, "seed": 3})


def shown(*items: Any) -> str:
    """What a run says: an item is a function of a case."""
    return json.dumps([{"style": "tuple", "items": [item(case) for item in items]} for case in CASES])


def tensor(*extents: Any, **more: Any) -> Any:
    return lambda case: {"dtype": "torch.float16", "shape": [e(**case) for e in extents], **more}


def test_shapes_that_a_run_showed_become_expressions() -> None:
    text = shown(
        tensor(lambda m, **_: m, lambda n, **_: n),
        tensor(lambda m, n, **_: m * n, lambda **_: 3),
        tensor(lambda n, **_: n // 16, lambda m, **_: m + 1),
        lambda case: {"number": case["n"]},
    )
    values = read_described(text, CASES).values
    assert [v.shape for v in values[:3] if isinstance(v, Tensor)] == [
        ("m", "n"),
        ("m * n", "3"),
        ("n // 16", "m + 1"),
    ]
    assert values[3] == Size("n")


def test_what_a_run_showed_may_be_unusable() -> None:
    odd = shown(
        tensor(lambda m, n, **_: m * m + n),
        tensor(lambda m, **_: m, dense=False),
        lambda case: {"other": "Foo"},
    )
    assert not any(isinstance(value, Tensor) for value in read_described(odd, CASES).values)
    one = json.loads(shown(tensor(lambda m, **_: m)))
    for text in (
        json.dumps([{**case, "style": "dict", "names": ["def"]} for case in one]),
        json.dumps([{**case, "style": "dict", "names": ["x", "y"]} for case in one]),
        "",
        "[]",
        "{}",
        "[[[",
        "[1, 2, 3]",
        shown(tensor(lambda m, **_: -m)),
        '[{"style": "tuple", "items": []}]',
    ):
        with pytest.raises(UserError, match="generate_input"):
            read_described(text, CASES)
