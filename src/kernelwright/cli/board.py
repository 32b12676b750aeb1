"""``board``: leaderboards of one's own and of others."""

import typer

from kernelwright.cli import board_client, board_export, board_gpumode, board_import, board_serve

app = typer.Typer(help="Leaderboards: serve one, import its problems, export for it, see the ranks.")
app.command("list")(board_gpumode.list_boards)
app.command("show")(board_gpumode.show_board)
app.command("serve")(board_serve.serve)
app.command("token")(board_serve.token)
app.command("rank")(board_client.rank)
app.command("submit")(board_client.submit)
app.command("status")(board_client.status)
app.command("seed")(board_client.seed)
app.command("fetch")(board_client.fetch)
app.command("export")(board_export.export)
app.command("import")(board_import.import_board)
