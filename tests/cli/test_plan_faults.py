"""``check`` on a plan that cannot be launched: bad input with file, line and key; on one that is wrong: the answer."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from kernelwright.problems.loader import load_problem
from tests.cli.said import without_notes

Ends = Callable[..., str]
BODY = """
extern "C" __global__ void k(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) C[i] = A[i] + B[i];
}
"""
LAUNCH = '[[launch]]\nkernel = "k"\ngrid = ["cdiv(N, 256)"]\nblock = [256]\nargs = ["A", "B", "C", "N"]\n'


@pytest.fixture
def ends(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ends:
    """``check`` on a plan in ``own/mine.cu``: what it printed, one line where it was refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()

    def run(plan: str, code: int, body: str = BODY) -> str:
        Path("own/mine.cu").write_text(f"/* kernelwright\n{plan}*/\n{body}")
        with pytest.raises(SystemExit) as ended:
            main(["check", "own/mine.cu", "-p", "vector_add", "-d", "cpu"])
        output = capsys.readouterr()
        assert ended.value.code == code, output
        if code != 2:
            return " ".join(output.out.split())
        assert output.out == ""
        said = without_notes(output.err)
        assert said.count("\n") == 1
        return said.removeprefix("kernelwright: error: ").rstrip()

    return run


def test_a_space_that_is_too_large_names_its_widest_tunable(ends: Ends) -> None:
    narrow = "".join(f"T{n} = {list(range(90))}\n" for n in range(5))
    plan = f"[tune]\n{narrow}WIDE = {list(range(91))}\n"
    launch = '[[launch]]\nkernel = "add"\ngrid = [1]\nblock = [1]\nargs = ["A", "B", "C", "N"]\n'
    said = ends(plan + launch, 2)
    assert f"{90**5 * 91} without constraints; most values: WIDE" in said


def test_a_name_is_one_line_whatever_is_in_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    baseline = load_problem("vector_add").folder / "baseline.cu"
    Path("a\nb.cu").write_bytes(baseline.read_bytes())
    with pytest.raises(SystemExit):
        main(["check", "a\nb.cu", "-p", "vector_add", "-d", "cpu"])
    assert capsys.readouterr().out.startswith("a b.cu on cpu ")


@pytest.mark.parametrize(
    ("plan", "begins"),
    [
        ("[tune]\nN = [1, 2]\n" + LAUNCH, "3: tune.N: 'N' is a name of the problem"),
        (
            "[tune]\nT = [1, 2]\n[constraints]\nthreads = 'T > 5'\n" + LAUNCH,
            "5: constraints.threads: the constraint 'threads' (T > 5) holds for no combination of T",
        ),
        (LAUNCH.replace('"k"', '"nope"'), "3:11: launch.kernel: the plan launches 'nope', which the source"),
        (LAUNCH.replace(', "N"', ""), "6: launch.args: kernel k takes 4 arguments, the plan passes 3"),
        (LAUNCH.replace('"C"', "4"), "6: launch.args: kernel k: parameter 3 is a pointer, the plan passes"),
    ],
)
def test_a_plan_that_no_case_can_be_run_by_is_bad_input(ends: Ends, plan: str, begins: str) -> None:
    assert ends(plan, 2).startswith(f"own/mine.cu:{begins}")


def test_a_plan_that_lacks_a_launch_for_one_case_only_is_the_candidates_fault(ends: Ends) -> None:
    told = ends(LAUNCH + 'when = "N > 65536"\n', 1)
    assert (
        "launch_failed own/mine.cu:7: launch.when: no launch is left: every 'when' is false (case N=" in told
    )


def test_a_compilers_error_names_the_file_as_the_user_wrote_it(ends: Ends) -> None:
    told = ends(LAUNCH, 1, BODY.replace("A[i]", "Q[i]"))
    assert "compile_failed own/mine.cu:12: " in told
    assert "candidate.cu" not in told


def test_a_fault_of_the_toml_names_the_file_as_the_user_wrote_it(ends: Ends) -> None:
    assert ends(LAUNCH + "args = [\n", 2).startswith("own/mine.cu:")
