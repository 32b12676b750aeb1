"""The Python file: it parses, builds what it should under a stub of torch, and hands over what the board gives."""

import ast
import re
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelwright.core.errors import UserError
from kernelwright.core.resolve import macros
from kernelwright.leaderboard.abi import Abi, Axis
from kernelwright.leaderboard.board_file import read_board_file
from kernelwright.leaderboard.export import write_submission
from kernelwright.leaderboard.export.entry import usual_abi
from kernelwright.leaderboard.export.launcher import Launcher
from kernelwright.leaderboard.export.submission import torch_arch, write_sources
from kernelwright.leaderboard.export.torch_side import torch_side
from kernelwright.problems.loader import Problem, load_problem

from .support import FACTS, candidate_of, catalogue, run_cpp, subject_of

BOARDS = Path(__file__).parents[3] / "examples" / "boards"
SCALE = """/* kernelwright
[tune]
THREADS = [128, 256]
[tune.compiler]
use_fast_math = [false, true]
maxrregcount = [0, 64]
[[launch]]
kernel = "scale"
grid = ["cdiv(N, THREADS)"]
block = ["THREADS"]
args = ["A", "B", "C", "N"]
*/
#define values(x, i) x[i]
extern "C" __global__ void scale(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < N) C[i] = values(A, i) + values(B, i);
}
"""
LATE = """/* kernelwright
[tune]
STREAMS = [2]
[let]
WIDE = "num_sms * STREAMS if max_shared_bytes > 100000 and 1 < STREAMS < 5 else 1"
HALF = "WIDE / 2"
ROUND = "ceil_pow2(HALF) + cdiv(HALF, 5) - min(HALF, 3)"
[[launch]]
kernel = "k"
grid = ["WIDE"]
block = ["HALF"]
args = ["A", "B", "C", "N"]
*/
extern "C" __global__ void k(const float* A, const float* B, float* C, int N) { C[0] = STREAMS + WIDE + ROUND; }
"""


class Torch:
    """A stand-in for torch that keeps what load_inline was asked for and with what the module was run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, old: bool = False) -> None:
        self.built: dict[str, Any] = {}
        self.ran: tuple[Any, ...] = ()
        self.old = old
        torch, utils = types.ModuleType("torch"), types.ModuleType("torch.utils")
        extension = types.ModuleType("torch.utils.cpp_extension")
        properties = types.SimpleNamespace(multi_processor_count=132, shared_memory_per_block_optin=232448)
        torch.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
            current_device=lambda: 0, get_device_properties=lambda _: properties
        )
        extension.load_inline = self.load_inline  # type: ignore[attr-defined]
        for module in (torch, utils, extension):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "unset")

    def load_inline(self, **options: Any) -> Any:
        if self.old and "no_implicit_headers" in options:
            raise TypeError("unexpected keyword")
        self.built = options
        return types.SimpleNamespace(run=self.run)

    def run(self, *arguments: Any) -> str:
        self.ran = arguments
        return "made"

    def load(self, text: str) -> dict[str, Any]:
        namespace: dict[str, Any] = {}
        exec(compile(text, "submission.py", "exec"), namespace)
        return namespace


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    return Torch(monkeypatch)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem("vector_add")


def export(problem: Problem, source: str = SCALE, abi: Abi | None = None, **values: int) -> str:
    candidate = candidate_of(source, **values)
    return write_submission(
        candidate, problem.spec.arguments, abi or usual_abi(problem), ("sm_90a",), "add_v2", "H100"
    )


def test_every_bundled_template_is_a_python_file_without_the_word() -> None:
    for problem, _, source in catalogue():
        text = export(problem, source)
        ast.parse(text)
        assert "stream" not in text.lower()
        assert not re.search(r"//[^\n]*float4", text)
        assert text.startswith("#!POPCORN leaderboard add_v2\n#!POPCORN gpu H100\n")


def test_what_is_built(torch: Torch, problem: Problem) -> None:
    text = export(problem, **{"THREADS": 256, "compiler.use_fast_math": 1, "compiler.maxrregcount": 64})
    torch.load(text)
    import os

    assert os.environ["TORCH_CUDA_ARCH_LIST"] == "9.0a"
    assert text.index("TORCH_CUDA_ARCH_LIST") < text.index("import torch")
    built = torch.built
    assert built["functions"] == ["run"]
    assert built["no_implicit_headers"]
    assert {"--use_fast_math", "--maxrregcount=64", "-U__CUDA_NO_HALF_OPERATORS__"} <= set(
        built["extra_cuda_cflags"]
    )
    assert "#define THREADS 256\n" in built["cuda_sources"][0]
    # The launcher behind the device code has names of its own: no macro of the candidate reaches it.
    device, _, launcher = built["cuda_sources"][0].partition("#undef THREADS\n#undef values\n")
    assert "__global__" in device
    assert "kw::Values values{" in launcher
    assert f"# Kernelwright candidate {candidate_of(SCALE, **{'THREADS': 256, 'compiler.use_fast_math': 1, 'compiler.maxrregcount': 64}).id}." in text  # fmt: skip
    assert export(problem) == export(problem)
    names = {re.search(r'"name": (.*),', export(problem, THREADS=n))[1] for n in (128, 256)}  # type: ignore[index]
    assert len(names) == 2


def test_an_older_torch_is_asked_without_the_option_it_lacks(
    monkeypatch: pytest.MonkeyPatch, problem: Problem
) -> None:
    torch = Torch(monkeypatch, old=True)
    torch.load(export(problem))
    assert "no_implicit_headers" not in torch.built
    assert torch.built["functions"] == ["run"]


def test_macros_of_the_device_are_made_where_it_is(torch: Torch, problem: Problem) -> None:
    namespace = torch.load(export(problem, LATE))
    wanted = macros(candidate_of(LATE), FACTS)
    source = torch.built["cuda_sources"][0]
    found = dict(re.findall(r"#define (\w+) (-?\d+)", source))
    for name in ("WIDE", "HALF", "ROUND", "num_sms", "max_shared_bytes", "warp_size"):
        assert int(found[name]) == wanted[name], name
    assert found["STRMS"] == "2"
    assert source.index("#define ROUND") < source.index("__global__") < source.index("#undef ROUND")
    assert torch.built["name"].endswith("_132")
    assert callable(namespace["custom_kernel"])


STYLES = {
    "tuple": (Abi(("A", "B", "C"), "C", sizes={"N": Axis("A", 0)}), ("a", "b", "c"), ("a", "b", "c"), "c"),
    "passed over": (
        Abi(("A", "what", "B", "N", "C"), "C"), ("a", "?", "b", 7, "c"), ("a", "b", 7, "c"), "c",
    ),
    "allocated": (Abi(("A", "B"), "C", sizes={"N": Axis("B", 0)}), ("a", "b"), ("a", "b"), "made"),
    "dict": (
        Abi(("B", "A"), "C", "dict", {"N": Axis("A", 0)}, "solve"), {"A": "a", "B": "b"}, ("b", "a"), "made",
    ),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_what_the_board_gives_is_handed_over(torch: Torch, problem: Problem, style: str) -> None:
    abi, data, passed, returned = STYLES[style]
    namespace = torch.load(export(problem, abi=abi))
    assert namespace[abi.entry](data) == returned
    assert torch.ran == passed


def test_a_single_tensor(torch: Torch) -> None:
    problem = load_problem("reduce_sum")
    source = next(s for p, name, s in catalogue() if name == "reduce_sum/block_tree")
    abi = Abi(("X",), "out", "single", {"N": Axis("X", 0)})
    namespace = torch.load(export(problem, source, abi))
    assert namespace["custom_kernel"]("x") == "made"
    assert torch.ran == ("x",)


CALLS = """
#include <torch/extension.h>
#include <cstdio>
using at::Tensor;
static Tensor tensor(std::vector<int64_t> shape, at::ScalarType kind)
{
    Tensor made;
    made.own->shape = shape;
    made.own->kind = kind;
    return made;
}
"""


def test_the_torch_side_against_a_stub(tmp_path: Path) -> None:
    """Sizes off shapes, scratch in bytes, copies only where they are needed, the output given back."""
    source = next(s for p, name, s in catalogue() if name == "reduce_sum/two_pass_vectorised")
    candidate, problem = candidate_of(source), load_problem("reduce_sum")
    given = Abi(("X", "out"), "out", sizes={"N": Axis("X", 0)})
    texts = []
    for number, abi in enumerate([given, replace(given, items=("X",))]):
        subject = subject_of(candidate, problem, abi)
        assert f"p_partial = buffer({{4 * extents[{number}]}}, at::kByte)" in torch_side(
            subject, Launcher(subject)
        )
        extents = 1 if number == 0 else 2
        texts.append(
            f"namespace e{number} {{ {torch_side(subject, Launcher(subject)).replace('#include <torch/extension.h>', '')}"
            f"void kernelwright_extents(int64_t* e, int64_t n) {{ e[0] = {'1' if number else 'n / 10'}; "
            f"if ({extents} == 2) e[1] = n / 10; }}\n"
            "void kernelwright_launch(void* x, void* out, void* partial, int64_t n)"
            ' { std::printf("n=%lld ", (long long)n); *(float*)out = *(float*)x + 1; } }'
        )
    program = f"""{CALLS}{"".join(texts)}
int main()
{{
    const Tensor x = tensor({{70}}, at::kFloat), out = tensor({{1}}, at::kFloat);
    *(float*)x.data_ptr() = 4;
    e0::run(x, out);
    std::printf("%g copies %lld\\n", *(float*)out.data_ptr(), (long long)out.own->copies);
    x.own->contiguous = false;
    out.own->shift = 4;
    e0::run(x, out);
    std::printf("%g copies %lld\\n", *(float*)out.data_ptr(), (long long)out.own->copies);
    const Tensor made = e1::run(x);
    std::printf("%g shape %lld\\n", *(float*)made.data_ptr(), (long long)made.size(0));
    for (auto* broken : {{&x.own->kind}}) *broken = at::kHalf;
    try {{ e0::run(x, out); }} catch (const std::runtime_error& e) {{ std::puts(e.what()); }}
}}"""
    assert run_cpp(program, tmp_path).splitlines() == [
        "n=70 5 copies 0",
        "n=70 5 copies 1",
        "n=70 5 shape 1",
        "X: wrong device or dtype",
    ]


BAD = {
    "input": (Abi(("A", "C"), "C", sizes={"N": Axis("A", 0)}), SCALE, "does not hand over the input 'B'"),
    "returns": (Abi(("A", "B", "C"), "A", sizes={"N": Axis("A", 0)}), SCALE, "'A', which is no output"),
    "size": (Abi(("A", "B", "C"), "C"), SCALE, "unknown name 'N'"),
    "axis": (Abi(("A", "B", "C"), "C", sizes={"N": Axis("D", 0)}), SCALE, "read off 'D'"),
    "single": (Abi(("A", "B", "C"), "C", "single", {"N": Axis("A", 0)}), SCALE, "'single' but has 3"),
    "shadow": (None, SCALE.replace("THREADS", "A"), "a name of the problem"),
    "word": (None, SCALE.replace("if (i", 'asm("// stream"); if (i'), "boards refuse the word"),
    "decimal": (None, SCALE.replace("cdiv(N, THREADS)", "cdiv(N, 2) * 0.5"), "decimal number"),
}


@pytest.mark.parametrize("fault", BAD)
def test_what_cannot_be_exported_is_one_line(problem: Problem, fault: str) -> None:
    abi, source, what = BAD[fault]
    with pytest.raises(UserError, match=what) as error:
        export(problem, source, abi)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "what"),
    [("two\nlines", "--leaderboard"), ("up stream", "--leaderboard"), ("streams", "refuse the word")],
)
def test_a_name_that_no_header_line_can_hold(problem: Problem, name: str, what: str) -> None:
    with pytest.raises(UserError, match=what):
        write_submission(candidate_of(SCALE), problem.spec.arguments, usual_abi(problem), (), name)


def test_without_an_architecture_torch_finds_the_device(torch: Torch, problem: Problem) -> None:
    text = write_submission(candidate_of(SCALE), problem.spec.arguments, usual_abi(problem), ())
    assert "ARCH_LIST" not in text
    assert "POPCORN" not in text
    torch.load(text)
    assert torch.built


def test_architectures() -> None:
    assert [torch_arch(a) for a in ("sm_75", "sm_90a", "sm_100a", "sm_120")] == [
        "7.5",
        "9.0a",
        "10.0a",
        "12.0",
    ]
    with pytest.raises(UserError, match="'gfx942'"):
        torch_arch("gfx942")
    asking = SCALE.replace("if (i < N)", "#if __CUDA_ARCH__ >= 900\n#endif\nif (i < N)")
    subject = subject_of(candidate_of(asking), load_problem("vector_add"))
    before = write_sources(subject, ("sm_90a",))
    assert "#define KERNELWRIGHT_ARCH 900\n" in before.before
    assert "__CUDA_ARCH__" not in before.after
    with pytest.raises(UserError, match="for one architecture"):
        write_sources(subject, ("sm_80", "sm_90a"))


def test_our_problems_of_boards_can_be_exported(torch: Torch) -> None:
    for name in ("vectoradd", "grayscale", "histogram", "matmul"):
        problem, board = load_problem(BOARDS / name), read_board_file(BOARDS / name)
        assert board.abi
        ours = {case.id for case in problem.cases(slow=False)}
        assert {case.case for case in board.cases} == ours
        for source in ("baseline.cu", "fast.cu"):
            text = export(problem, (BOARDS / name / source).read_text(encoding="utf-8"), board.abi)
            namespace = torch.load(text)
            data = tuple(board.abi.items)
            assert namespace["custom_kernel"](data) == board.abi.returns
            assert torch.ran == data
