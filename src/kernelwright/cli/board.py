"""``board``: leaderboards of one's own and of others."""

import typer

from kernelwright.cli import board_export, board_import, board_remote, board_serve

app = typer.Typer(help="Leaderboards: serve one, import its problems, export for it, see the ranks.")
app.command("list")(board_remote.list_boards)
app.command("show")(board_remote.show_board)
app.command("serve")(board_serve.serve)
app.command("token")(board_serve.token)
app.command("rank")(board_serve.rank)
app.command("submit")(board_serve.submit)
app.command("status")(board_serve.status)
app.command("seed")(board_serve.seed)
app.command("fetch")(board_serve.fetch)
app.command("export")(board_export.export)
app.command("import")(board_import.import_board)
