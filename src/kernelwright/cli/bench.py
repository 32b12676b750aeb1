"""``bench``: measurements of kernelwright itself."""

import typer

from kernelwright.cli.bench_optimiser import optimiser

app = typer.Typer(help="Measure kernelwright itself.", no_args_is_help=True)
app.command("optimiser")(optimiser)


@app.callback()
def group() -> None:
    """Measure kernelwright itself."""
