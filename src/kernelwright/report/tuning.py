"""Which numbers of the winning template matter: the optimiser's surrogate, fitted again to what was recorded."""

from typing import Final

from kernelwright.core.candidate import parse_template
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import KernelwrightError
from kernelwright.memory.records import Experiment
from kernelwright.optimiser import make_optimiser
from kernelwright.optimiser.base import Importance, Observation
from kernelwright.report.models import Share, Tuning
from kernelwright.report.records import Records, cost_of

MOST_OBSERVATIONS: Final = 150
"""A Gaussian process grows with the cube of these; more says little more of importance."""
MOST_SHARES: Final = 12


def tuning(records: Records) -> Tuning:
    """Importance and interactions; both empty with a reason where nothing can be said."""
    incumbent = records.incumbent
    if incumbent is None:
        return Tuning("", 0, (), (), "Nobody leads.")
    record = records.templates[incumbent.template]
    mine = [e for e in records.experiments if e.template == record.id]
    measured = [e for e in mine if cost_of(e) is not None]
    if not len(incumbent.configuration):
        return Tuning(record.name, len(measured), (), (), "The winning template has no tunables.")
    try:
        template = parse_template(record.source, record.name)
        optimiser = make_optimiser(template.plan.space(DeviceFacts(**records.device)), seed=0)
        for experiment in _spread(measured):
            optimiser.tell(experiment.configuration, _observation(experiment))
        found = optimiser.analysis()
    except (KernelwrightError, TypeError) as error:  # another version's plan or device facts
        return Tuning(
            record.name, len(measured), (), (), f"It cannot be analysed: {' '.join(f'{error}'.split())}"
        )
    reason = "" if found.importance else "Too few configurations of the winning template were measured."
    return Tuning(record.name, len(measured), _shares(found.importance), _shares(found.interactions), reason)


def _observation(experiment: Experiment) -> Observation:
    outcome = experiment.outcome
    return Observation(
        value=cost_of(experiment),
        status=outcome.status,
        noise=outcome.relative_noise(),
        cases=outcome.times_ms(),
        static=outcome.static,
    )


def _spread(measured: list[Experiment]) -> list[Experiment]:
    """At most so many, evenly over the whole search."""
    if len(measured) <= MOST_OBSERVATIONS:
        return measured
    return [measured[len(measured) * index // MOST_OBSERVATIONS] for index in range(MOST_OBSERVATIONS)]


def _shares(entries: tuple[Importance, ...]) -> tuple[Share, ...]:
    return tuple(
        Share(" with ".join(entry.tunables), entry.share, entry.uncertainty)
        for entry in entries[:MOST_SHARES]
    )
