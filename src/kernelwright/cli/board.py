"""``board``: leaderboards of one's own and of others."""

import typer

from kernelwright.cli import board_remote

app = typer.Typer(help="Leaderboards: serve one, import its problems, export for it, see the ranks.")
app.command("list")(board_remote.list_boards)
app.command("show")(board_remote.show_board)
