"""``bench optimiser``: the optimiser against others on recorded spaces."""

import json
from pathlib import Path
from typing import Annotated

import typer

from kernelwright.cli.options import ForceOption, JsonOption, path
from kernelwright.core.errors import UserError
from kernelwright.core.files import place, refuse_existing


def optimiser(
    spaces: Annotated[
        Path | None,
        typer.Option(
            "--spaces", parser=path, help="Folder of recorded spaces (.npz); by default two that come along."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs on each space.")] = 10,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Evaluations in each run.")] = 200,
    against: Annotated[
        str,
        typer.Option(
            "--against", help="Also play: random, kernel_tuner, optuna, smac (separated by commas)."
        ),
    ] = "",
    noise: Annotated[
        bool, typer.Option("--noise", help="Times vary as they did when they were recorded.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Parallel processes; 0: one a core.")] = 0,
    plot: Annotated[
        Path | None, typer.Option("--plot", parser=path, help="Write the curves to this SVG file.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Play recorded spaces back: optimum / best after 25, 50, 100, 200 evaluations, AUC, P, ms per ask."""
    from kernelwright.devices.recorded import BUNDLED
    from kernelwright.optimiser import contest

    if plot is not None and plot.suffix.lower() != ".svg":
        raise UserError(f"--plot {plot}: the curves are an SVG file: let its name end in .svg")
    if plot is not None:
        refuse_existing(plot, force=force)
    others = [name.strip() for name in against.split(",") if name.strip()]
    setting = contest.make_setting(
        spaces or BUNDLED,
        others,
        seeds=seeds,
        budget=budget,
        noise=noise,
        processes=jobs or contest.usable_processes(),
    )
    result = contest.run_contest(setting)
    if plot is not None:
        place(plot, contest.plot(result).encode())
    typer.echo(json.dumps(result.as_json()) if as_json else contest.table(result), nl=as_json)
