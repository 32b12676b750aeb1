"""``board``: leaderboards of one's own and of others."""

import typer

app = typer.Typer(help="Leaderboards: serve one, import its problems, export for it, see the ranks.")
