"""``export`` and ``import-space``: to and from the files of other tuners, and recorded spaces of one's own."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import stdev
from typing import Annotated

import typer

from kernelwright.cli.options import DEFAULT_DIR, MEMORY_FILE, CampaignArgument, DirOption, ForceOption, path
from kernelwright.core.candidate import parse_template
from kernelwright.core.errors import UserError
from kernelwright.core.files import refuse_existing
from kernelwright.core.plan_format import format_sections
from kernelwright.core.space import Tunable
from kernelwright.devices.record_space import Recording, write_recorded
from kernelwright.memory.database import damaged
from kernelwright.memory.records import CampaignRecord, Experiment, TemplateRecord
from kernelwright.memory.store import Memory
from kernelwright.optimiser.kernel_tuner_io import TuningResult, read_t1, read_t4, write_t4


def export(
    campaign: CampaignArgument,
    to: Annotated[
        Path,
        typer.Option(
            "--to", parser=path, help="FILE.json: Kernel Tuner's T4 results. FILE.npz: a recorded space."
        ),
    ],
    template: Annotated[
        str | None, typer.Option(help="Name of the template, where the campaign had several.")
    ] = None,
    force: ForceOption = False,
    directory: DirOption = DEFAULT_DIR,
) -> None:
    """Write what a campaign measured of one template, for Kernel Tuner's tools or for `bench optimiser`."""
    if to.suffix not in {".json", ".npz"}:
        raise UserError(f"--to {to}: the name must end in .json (Kernel Tuner T4) or .npz (recorded space)")
    refuse_existing(to, force=force)
    with Memory.open(directory / MEMORY_FILE, read_only=True) as memory:
        record = memory.campaign(campaign)
        chosen = _choose(memory.templates(record.id), template)
        experiments = [e for e in memory.experiments(record.id) if e.template == chosen.id]
    if to.suffix == ".json":
        write_t4([_result(e) for e in experiments], to)
    else:
        tunables = _tunables(chosen)
        for each in experiments:
            if any(each.configuration.get(t.name) not in t.values for t in tunables):
                why = f"its configuration is none of {chosen.name}"
                raise damaged(directory / MEMORY_FILE, f"experiment {each.number}", why)
        write_recorded(to, tunables, [_recording(e) for e in experiments], _about(record, chosen))
    typer.echo(f"{to}: {len(experiments)} configurations of {chosen.name}")


def import_space(
    file: Annotated[Path, typer.Argument(parser=path, help="A Kernel Tuner T1 file (search space, JSON).")],
) -> None:
    """Print a Kernel Tuner search space as the [tune] and [constraints] of a plan, to begin a template with."""
    space = read_t1(file)
    typer.echo(format_sections(space.tunables, space.constraints))


def import_results(
    file: Annotated[Path, typer.Argument(parser=path, help="A Kernel Tuner T4 file (results, JSON).")],
    to: Annotated[
        Path,
        typer.Option(
            "--to", parser=path, help="Recorded space to write (.npz), for `bench optimiser --spaces`."
        ),
    ],
    force: ForceOption = False,
) -> None:
    """Make a recorded space of Kernel Tuner's results: every configuration with its time, or how it failed."""
    refuse_existing(to, force=force)
    results = read_t4(file)
    if not results:
        raise UserError(f"{file}: holds no results")
    names = list(results[0].configuration)
    tunables = [Tunable(n, tuple(sorted({r.configuration[n] for r in results}, key=repr))) for n in names]
    recordings = [Recording(r.configuration, r.value_ms, reason=f"{r.status}") for r in results]
    write_recorded(
        to, tunables, recordings, {"name": file.stem, "kernel": file.stem, "device": "", "constants": {}}
    )
    typer.echo(f"{to}: {len(recordings)} configurations")


def _choose(templates: dict[str, TemplateRecord], name: str | None) -> TemplateRecord:
    tuned = [t for t in templates.values() if _tunables(t)]
    found = [t for t in tuned if name in {None, t.name}]
    if len(found) != 1:
        names = ", ".join(sorted(t.name for t in tuned)) or "none"
        raise UserError(f"--template: name one of the campaign's templates with tunables: {names}")
    return found[0]


def _tunables(template: TemplateRecord) -> Sequence[Tunable]:
    plan = parse_template(template.source, template.name).plan
    return (*plan.tunables, *plan.compiler)


def _about(record: CampaignRecord, template: TemplateRecord) -> dict[str, object]:
    device = json.loads(record.device)
    problem = f"{json.loads(record.settings).get('problem', record.problem_id)}"
    return {
        "name": f"{Path(problem).name}-{template.name}-{device['model'].replace(' ', '_')}",
        "kernel": template.name,
        "device": device["model"],
        "constants": {},
        "constraints": [],
        "objective": record.objective,
        "source": f"kernelwright campaign {record.id}, template {template.id}",
        "license": "Apache-2.0",
    }


def _result(e: Experiment) -> TuningResult:
    runs = zip(*(t.samples_ms for t in e.outcome.cases), strict=False)
    return TuningResult(e.configuration, e.outcome.status, tuple(sum(run) for run in runs), e.cost_ms)


def _recording(e: Experiment) -> Recording:
    seconds = e.outcome.seconds
    spread = sum(stdev(t.samples_ms) if len(t.samples_ms) > 1 else 0.0 for t in e.outcome.cases)
    return Recording(
        configuration=e.configuration,
        time_ms=e.cost_ms,
        deviation_ms=spread / max(len(e.outcome.cases), 1),
        compile_ms=1e3 * seconds.get("compile", 0.0),
        bench_ms=1e3 * (seconds.get("check", 0.0) + seconds.get("time", 0.0)),
        reason=f"{e.outcome.status}",
        static=e.outcome.static,
    )
