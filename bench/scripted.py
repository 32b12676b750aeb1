"""A problem that takes microseconds and a scripted model: for ``long_campaign.py`` and ``kill_in_every_phase.py``."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_SPEC: Final = """name = "axpb"
title = "C = 2 A + B, fp32"
description = "So small that what a campaign costs by itself is nearly all that shows."
objective = "geomean"
tolerance = { rtol = 1e-5, atol = 1e-5 }
[[arguments]]
name = "A"
dtype = "float32"
shape = ["N"]
role = "in"
[[arguments]]
name = "B"
dtype = "float32"
shape = ["N"]
role = "in"
[[arguments]]
name = "C"
dtype = "float32"
shape = ["N"]
role = "out"
[inputs]
A = "normal"
B = "uniform"
[work]
bytes = "3 * 4 * N"
flops = "2 * N"
[[cases]]
sizes = { N = 96 }
[[cases]]
sizes = { N = 257 }
"""
_PLAN: Final = """/* kernelwright
[tune]
THREADS = [32, 64, 128, 256]
ITEMS = [1, 2]
[[launch]]
kernel = "axpb"
grid = ["cdiv(N, THREADS * ITEMS)"]
block = ["THREADS"]
args = ["A", "B", "C", "N"]
*/
"""
_POINTERS: Final = ("const float* A, const float* B, float* C",
                    "const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C")  # fmt: skip
_FIRST: Final = ("blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x + THREADS * blockIdx.x",
                 "THREADS * (blockIdx.x + 1) - THREADS + threadIdx.x")  # fmt: skip
_LOOPS: Final = (
    "for (int i = first; i < N; i += step) {{ {body} }}",
    "int i = first; while (i < N) {{ {body} i += step; }}",
    "int i = first; if (i < N) do {{ {body} i += step; }} while (i < N);",
    "for (int k = 0; k < ITEMS; ++k) {{ const int i = first + k * step; if (i < N) {{ {body} }} }}",
)
_LOADS: Final = (
    "C[i] = {sum};",
    "const float a = A[i]; const float b = B[i]; C[i] = {local};",
    "float result = {sum}; C[i] = result;",
    "const float* p = A + i; const float a = *p; const float b = B[i]; *(C + i) = {local};",
)
_SUMS: Final = ("2.0f * {a} + {b}", "{b} + 2.0f * {a}", "{a} + {a} + {b}", "{a} + {b} + {a}", "{b} + {a} + {a}",
                "{b} - -2.0f * {a}", "{b} - {a} * -2.0f", "({a} + {b}) - -{a}", "{b} - (-{a} - {a})",
                "4.0f * {a} + {b} - 2.0f * {a}")  # fmt: skip
_BEFORE: Final = ("", "#pragma unroll\n", "#pragma unroll 2\n")


def write_problem(folder: Path) -> Path:
    """The problem's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "problem.toml").write_text(_SPEC, encoding="utf-8")
    reference = 'def reference(xp, sizes, A, B):\n    return {"C": 2 * A + B}\n'
    (folder / "reference.py").write_text(reference, encoding="utf-8")
    simple = "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < N) C[i] = 2.0f * A[i] + B[i];"
    baseline = _PLAN.replace("ITEMS = [1, 2]\n", "").replace(" * ITEMS", "")
    kernel = _kernel(_POINTERS[0], f"    {simple}\n")
    (folder / "baseline.cu").write_text(baseline + kernel, encoding="utf-8")
    return folder


def templates(seed: int) -> list[str]:
    """Some thousand sources, all right, no two alike in structure."""
    found = []
    for pointers, first, loop, load, terms, before in itertools.product(
        _POINTERS, _FIRST, _LOOPS, _LOADS, _SUMS, _BEFORE
    ):
        if before and not loop.startswith("for"):
            continue
        body = load.format(sum=terms.format(a="A[i]", b="B[i]"), local=terms.format(a="a", b="b"))
        step = "    const int step = gridDim.x * blockDim.x;\n"
        start = f"    const int first = {first};\n"
        found.append(_PLAN + _kernel(pointers, f"{start}{step}{before}    {loop.format(body=body)}\n"))
    random.Random(seed).shuffle(found)
    return found


def _kernel(pointers: str, body: str) -> str:
    return f'extern "C" __global__ void axpb({pointers}, int N)\n{{\n{body}}}\n'


def replies(seed: int, proposals: int, broken: float) -> Iterator[str]:
    """Replies until the templates are used up. ``broken`` is the share of proposals that cannot be used as they are.

    The first proposal of a reply is always sound: it is what a repair takes.
    """
    rng, sources = random.Random(seed), iter(templates(seed))
    number = 0
    while batch := list(itertools.islice(sources, proposals)):
        parts = []
        for place, source in enumerate(batch):
            number += 1
            break_it = rng.choice(_BREAKS) if place and rng.random() < broken else _sound
            head = (
                f"kind: template\nname: t{number}\ndirection: way {number % 24}\nrationale: number {number}\n"
            )
            parts.append(f"<proposal>\n{head}predicted: 5 % less\n```cuda\n{break_it(source)}</proposal>\n")
        yield "\n".join(parts)


def _sound(source: str) -> str:
    return source + "```\n"


def _does_not_compile(source: str) -> str:
    return (
        source.replace("C[i] =", "C[i] = undeclared +").replace("*(C + i) =", "*(C + i) = undeclared +")
        + "```\n"
    )


def _wrong(source: str) -> str:
    return source.replace("B[i]", "(1.5f * B[i])") + "```\n"


def _cut_off(source: str) -> str:
    return source[: len(source) // 2]


def _bad_plan(source: str) -> str:
    return source.replace('"cdiv(N, THREADS * ITEMS)"', '"cdiv(N, THREADS * WIDTH)"') + "```\n"


_BREAKS: Final = (_does_not_compile, _wrong, _cut_off, _bad_plan)
