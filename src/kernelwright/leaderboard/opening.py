"""Opens a board by the name that a user gives it. Credentials come from the user's own files and environment."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelwright.core.errors import UserError
from kernelwright.leaderboard.base import Board
from kernelwright.leaderboard.board_file import BOARD_FILE, read_board_file
from kernelwright.leaderboard.kernelbot.address import SCHEME, base_url, parse_name
from kernelwright.leaderboard.local import LocalBoard
from kernelwright.leaderboard.tokens import find_token
from kernelwright.problems.loader import Problem

if TYPE_CHECKING:
    from kernelwright.leaderboard.gated import HostCheck


def check_board(name: str) -> None:
    """Raises UserError for what names no board, or holds a password: a name is kept and shown."""
    if not name.startswith(SCHEME):
        LocalBoard(name)
    elif not all(parse_name(name)):
        raise UserError(f"{name[:100]!r}: use kernelbot:NAME@GPU, as in kernelbot:vectoradd_v2@H100")


def open_board(
    name: str,
    problem: Problem,
    host: "HostCheck | None" = None,
    told: Callable[[str], None] = lambda _: None,
) -> Board:
    """The board; asks it nothing yet. ``host`` looks at what is sent to boards that compile for their host.

    ``told`` hears of a credential that others can read. Raises UserError.
    """
    check_board(name)
    return (
        _kernelbot(name, problem, host, told)
        if name.startswith(SCHEME)
        else LocalBoard(name, find_token(name))
    )


def _kernelbot(name: str, problem: Problem, host: "HostCheck | None", told: Callable[[str], None]) -> Board:
    from kernelwright.leaderboard.gated import Exporter, GatedBoard
    from kernelwright.leaderboard.kernelbot.credentials import find_credential

    leaderboard, gpu = parse_name(name)
    abi = read_board_file(problem.folder).abi
    if abi is None:
        raise UserError(f"{problem.folder / BOARD_FILE}: abi: says how arguments are handed over: add it")
    exporter = Exporter(problem.spec.arguments, abi, leaderboard, gpu, host)
    server = base_url()
    return GatedBoard(server, leaderboard, gpu, find_credential(server, told=told), exporter)
