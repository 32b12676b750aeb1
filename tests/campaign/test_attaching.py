"""A board is opened, asked for its rules, and these hold for candidates and prompts."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.campaign import attaching
from kernelwright.campaign.attaching import Attached, attached, objective_of, with_goal, with_rules
from kernelwright.campaign.settings import Settings
from kernelwright.campaign.sitting import _board_notes, _changed, start_campaign
from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import UserError
from kernelwright.core.objective import ObjectiveName
from kernelwright.core.outcome import Status
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import CompileResult
from kernelwright.harness.rules.source import check_source
from kernelwright.leaderboard.base import BoardError, BoardInfo, Mode, Ranking
from kernelwright.leaderboard.board_file import read_board_file
from kernelwright.leaderboard.export.gate import Answer, Finding, Gate
from kernelwright.leaderboard.export.twins import Twins
from kernelwright.leaderboard.gated import Exporter, GatedBoard
from kernelwright.leaderboard.opening import check_board, open_board
from kernelwright.leaderboard.secret import Secret
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import Problem, load_problem
from kernelwright.problems.rules import candidate_rules

from .boards import FakeBoard, died
from .fakes import FakeHarness, key
from .test_submitting import STEPS, TIMES, Heard, make, official

PROBLEM = load_problem("gemm")
SETTINGS = Settings(problem="vector_add", device="cpu", board="http://h/vector_add", submit=True)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory.db") as opened:
        yield opened


def test_the_stricter_rule_holds() -> None:
    theirs = {
        "no_inline_ptx": True, "max_registers": 64, "max_source_bytes": 4096, "banned_words": ["stream"],
        "allowed_headers": ["mma.h"],
    }  # fmt: skip
    held = with_rules(PROBLEM, theirs)
    rules = candidate_rules(held)
    assert rules.no_inline_ptx
    assert rules.no_tensor_cores is PROBLEM.spec.rules.no_tensor_cores
    assert (rules.max_registers, rules.max_source_bytes) == (64, 4096)
    assert rules.banned_words == (*PROBLEM.spec.rules.banned_words, "stream")
    assert rules.allowed_headers == ("mma.h",)
    again = candidate_rules(with_rules(held, {"max_registers": 128, "allowed_headers": ["mma.h", "x.h"]}))
    assert (again.max_registers, again.allowed_headers) == (64, ("mma.h",))
    assert with_rules(PROBLEM, {}) is PROBLEM


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"only_on_mondays": True}, "the board's rule 'only_on_mondays' cannot be held here"),
        ({"max_registers": 0}, "the board's rule 'max_registers' cannot be held"),
        ({"banned_words": ["\x1b"]}, "the board's rule 'banned_words"),
    ],
)
def test_a_rule_that_nobody_can_hold_ends_it_before_it_begins(rules: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        with_rules(PROBLEM, rules)


def test_headers_with_nothing_in_common_are_told() -> None:
    held = with_rules(PROBLEM, {"allowed_headers": ["a.h"]})
    with pytest.raises(UserError, match="nothing in common"):
        with_rules(held, {"allowed_headers": ["b.h"]})


async def test_harness_and_prompt_hold_the_boards_rules(memory: Memory) -> None:
    board = FakeBoard(official(), rules={"banned_words": ["forbidden_word"]})
    campaign = await make(memory, board)
    assert campaign.board is not None
    held = with_rules(campaign.problem, campaign.board.info.rules)
    campaign.problem = held
    campaign.__post_init__()
    assert "forbidden_word" in campaign.writing.prompts.instructions
    harness = LocalHarness(held, "cpu")
    source = STEPS[0].source + "int forbidden_word;"
    assert check_source(source, candidate_rules(harness.problem)) is not None
    assert check_source(STEPS[0].source, candidate_rules(harness.problem)) is None


async def test_a_candidate_of_before_that_breaks_a_rule_is_never_sent(memory: Memory) -> None:
    await (await make(memory, FakeBoard(official()), submit=False)).run()

    class Strict(FakeHarness):
        async def compile(self, candidate: Candidate) -> CompileResult:
            if key(candidate) == ("step4", 1):
                return CompileResult(candidate.id, status=Status.RULE_BROKEN, reason="no such word")
            return await super().compile(candidate)

    board = FakeBoard(official())
    campaign = await make(memory, board, resumed=True, harness=Strict(TIMES))
    await campaign.run()
    assert campaign.submitting is not None
    assert not await campaign.succession.clear(campaign.standing.entry(_leader(campaign.candidates)))
    assert not any(name.startswith("step4") for name, _ in board.sent)


def _leader(candidates: dict[str, Candidate]) -> str:
    return next(id_ for id_, each in candidates.items() if each.template.name == "step4")


async def test_a_board_that_does_not_answer_at_the_start_is_bad_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Down(FakeBoard):
        async def info(self) -> BoardInfo:
            raise died()

    board = Down()
    monkeypatch.setattr(attaching, "open_board", lambda *_: board)
    problem, notes = load_problem("vector_add"), Heard()
    with pytest.raises(UserError, match="--board http://h/vector_add: the connection was closed"):
        async with attached(SETTINGS, problem, told=notes.note):
            pass
    assert board.closed
    said = Attached(board, BoardInfo("n", "cpu", Ranking.MEAN, rules={"max_registers": 64}), {}).note
    async with attached(SETTINGS, problem, before=said, told=notes.note) as found:
        assert found is not None
        assert found.info.rules == {"max_registers": 64}
        assert found.info.ranking is Ranking.MEAN
        assert found.submit
    assert notes.has("its rules of before count")


async def begun(fake: FakeBoard, problem: Problem = PROBLEM, **changes: object) -> list[str]:
    """What is told when a campaign with a board begins."""
    notes = Heard()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(attaching, "open_board", lambda *_: fake)
        patched.setattr(attaching, "ANSWER_S", 0.05)
        async with attached(SETTINGS.model_copy(update=changes), problem, told=notes.note):
            pass
    return notes.notes


@pytest.mark.parametrize(
    ("name", "sizes", "what"),
    [
        (
            "softmax",
            {"M": 512, "N": 512, "K": 512},
            "it measures softmax, and the campaign's problem is gemm",
        ),
        ("gemm", {"M": 3, "N": 4, "K": 5}, "it measures gemm with M=3, N=4, K=5, and"),
        ("vector_add", {"N": 65536}, "it measures vector_add with N=65536, and"),
    ],
)
async def test_another_problem_than_the_boards_is_bad_input(
    name: str, sizes: dict[str, int], what: str
) -> None:
    ours = dict(PROBLEM.cases(slow=True)[0].sizes)
    board = FakeBoard(name=name, cases=(ours if name == "softmax" else sizes,))
    with pytest.raises(UserError, match=f"{what}.* 'kernelwright board fetch http://h/vector_add -o FOLDER'"):
        await begun(board)
    assert board.closed


async def test_the_boards_own_problem_is_none_other() -> None:
    for slow in (False, True):
        cases = tuple(dict(case.sizes) for case in PROBLEM.cases(slow=slow))
        assert await begun(FakeBoard(name="gemm", cases=cases)) == []


async def test_arguments_of_a_strangers_cases_are_compared_as_imported() -> None:
    theirs = load_problem(Path(__file__).parents[2] / "examples" / "boards" / "vectoradd")
    name = "kernelbot:vectoradd_v2@H100"
    known = read_board_file(theirs.folder).cases[0].arguments
    assert await begun(FakeBoard(cases=({**known, "seed": 5},)), theirs, board=name) == []
    with pytest.raises(
        UserError, match=r"cases have m, k, .*'kernelwright board import kernelbot:vectoradd_v2 -o"
    ):
        await begun(FakeBoard(cases=({"m": 1, "k": 2},)), theirs, board=name)
    assert await begun(FakeBoard(cases=({"m": 1, "k": 2},)), board=name) == []


async def test_who_may_not_submit_is_told_before_the_search() -> None:
    with pytest.raises(UserError, match="--submit: the board says 401"):
        await begun(FakeBoard(unknown=True))
    assert await begun(FakeBoard(unknown=True), submit=False) == []


async def test_a_board_that_never_answers_is_not_waited_for() -> None:
    class Silent(FakeBoard):
        async def authorize(self) -> None:
            await asyncio.Event().wait()

    class Mute(Silent):
        async def info(self) -> BoardInfo:
            await asyncio.Event().wait()
            raise died()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(attaching, "QUIET_S", 0.0)
        waiting, note = await begun(Silent())
    assert "has not answered yet" in waiting
    assert "does not say whether it takes submissions: no answer within 0.05 s" in note
    with pytest.raises(UserError, match=r"--board http://h/vector_add: no answer within 0\.05 s"):
        await begun(Mute())


@pytest.mark.parametrize("wanted", [{"submit": True}, {"max_submissions": 3}, {"uncalibrated": True}])
async def test_what_needs_a_board_is_refused_without_one(memory: Memory, wanted: dict[str, object]) -> None:
    await make(memory, FakeBoard(official()))
    record = memory.campaign("c1")
    later = Settings.model_validate_json(record.settings).model_copy(update={"board": None})
    record = replace(record, settings=later.model_dump_json())
    option = f"--{next(iter(wanted)).replace('_', '-')}"
    with pytest.raises(UserError, match=f"{option}: there is no leaderboard"):
        _changed(memory, record, wanted)
    assert _changed(memory, record, {**wanted, "board": "http://h/vector_add"})[1].board is not None


async def test_without_a_board_there_is_none() -> None:
    settings = SETTINGS.model_copy(update={"board": None})
    async with attached(settings, load_problem("vector_add"), told=print) as found:
        assert found is None


async def test_rules_are_not_held_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(attaching, "open_board", lambda *_: FakeBoard(rules={"max_registers": 64}))
    settings = SETTINGS.model_copy(update={"device": f"detached:{tmp_path}"})
    with pytest.raises(UserError, match="not held on another machine"):
        await start_campaign(settings, tmp_path / "dir", Heard())
    assert not (tmp_path / "dir").exists()


async def test_how_a_board_ranks_is_the_objective_unless_one_is_asked_for() -> None:
    problem = load_problem("vector_add")
    board = Attached(FakeBoard(), await FakeBoard(ranking=Ranking.GEOMEAN).info(), {})
    assert objective_of(SETTINGS, problem, board) is ObjectiveName.GEOMEAN
    assert objective_of(SETTINGS, problem, None) is problem.objective
    asked = SETTINGS.model_copy(update={"objective": ObjectiveName.LAST})
    assert objective_of(asked, problem, board) is ObjectiveName.LAST


def test_the_problems_own_goal_has_a_name() -> None:
    problem = load_problem("vector_add")
    assert with_goal(SETTINGS.model_copy(update={"goal": "problem"}), problem).goal == "roofline>=95%"
    with pytest.raises(UserError, match="--goal problem: gemm has none"):
        with_goal(SETTINGS.model_copy(update={"goal": "problem"}), PROBLEM)
    with pytest.raises(UserError, match="a rank needs a leaderboard"):
        with_goal(SETTINGS.model_copy(update={"goal": "rank<=3", "board": None}), problem)
    assert Settings(problem="p", device="cpu", goal="none").goal is None
    with pytest.raises(ValueError, match="is no goal"):
        Settings(problem="p", device="cpu", goal="fast")


@pytest.mark.parametrize(
    "name", ["gemm", "ftp://h/gemm", "http://u:secret@h/gemm", "kernelbot:x", "kernelbot:x@", "http://h/", ""]
)
def test_what_names_no_board_is_one_line_without_a_secret(name: str) -> None:
    with pytest.raises(UserError) as error:
        check_board(name)
    assert "secret" not in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_boards_are_opened_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KERNELWRIGHT_BOARD_TOKEN", "secret-token")
    problem = load_problem("vector_add")
    assert open_board("http://h:8000/vector_add", problem).url == "http://h:8000/vector_add"
    with pytest.raises(UserError, match="there is none: this problem is of no board"):
        open_board("kernelbot:vectoradd_v2@H100", problem)
    monkeypatch.setenv("POPCORN_API_URL", "http://localhost:1")
    theirs = load_problem(Path(__file__).parents[2] / "examples" / "boards" / "vectoradd")
    assert open_board("kernelbot:vectoradd_v2@H100", theirs).url == "kernelbot:vectoradd_v2@H100"
    with pytest.raises(UserError, match="is not known"):
        open_board("kernelbot:vectoradd_v2@Z9", theirs)


async def test_what_the_dry_run_refuses_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is written and looked at before a request is made; nobody listens at the address."""
    problem = load_problem(Path(__file__).parents[2] / "examples" / "boards" / "vectoradd")
    abi = read_board_file(problem.folder).abi
    assert abi is not None
    exporter = Exporter(problem.spec.arguments, abi, "vectoradd_v2", "H100")
    board = GatedBoard(
        "http://localhost:1", "vectoradd_v2", "H100", Secret("11111111-2222-3333-4444-555555555555"), exporter
    )
    good = Candidate(parse_template(problem.baseline_source, "baseline"), Configuration())
    assert "custom_kernel" in exporter(good)
    with monkeypatch.context() as patched:
        patched.setattr(Gate, "examine", lambda *_: (Finding("rules", Answer.REFUSED, "no such thing"),))
        other = Candidate(parse_template(problem.baseline_source + "// x\n", "b"), Configuration())
        with pytest.raises(UserError, match="the dry run refuses it: rules: no such thing"):
            await board.submit(other, Mode.TEST, "t")
    seen: list[Twins] = []

    def for_the_host(twins: Twins) -> tuple[Answer, str]:
        seen.append(twins)
        return Answer.REFUSED, "early would run when the file is loaded"

    watched = Exporter(problem.spec.arguments, abi, "vectoradd_v2", "H100", for_the_host)
    with pytest.raises(UserError, match="refuses it: host code: early would run when the file is loaded"):
        watched(good)
    assert "vector_add" in seen[0].whole
    assert seen[0].bare != seen[0].whole
    with pytest.raises(BoardError):
        await board.submit(good, Mode.TEST, "t")
    await board.close()


async def test_a_board_and_a_goal_that_come_later_stay(memory: Memory) -> None:
    campaign = await make(memory, FakeBoard(official()))
    record = memory.campaign("c1")
    later = Settings.model_validate_json(record.settings).model_copy(update={"board": None})
    record = replace(record, settings=later.model_dump_json())
    assert _changed(memory, record, {})[1].board is None
    wanted = {"board": "http://h/vector_add", "goal": "speedup>=3", "submit": True}
    _, settings = _changed(memory, record, wanted)
    assert (settings.board, settings.goal, settings.submit) == ("http://h/vector_add", "speedup>=3", True)
    assert campaign.board is not None
    for name, value in _board_notes(settings, campaign.board).items():
        memory.note("c1", name, value)
    _, again = _changed(memory, record, {})
    assert (again.board, again.goal, again.submit) == (campaign.board.board.url, "speedup>=3", False)
    assert _changed(memory, record, {"goal": "none"})[1].goal is None
    with pytest.raises(UserError, match="is on the board fake:board: start a new campaign"):
        _changed(memory, record, wanted)


def test_a_boards_rule_holds_where_the_problem_has_none() -> None:
    held = candidate_rules(with_rules(PROBLEM, {"portable": True, "banned_words": ["stream"]}))
    assert (held.portable, candidate_rules(PROBLEM).portable) == (True, False)
