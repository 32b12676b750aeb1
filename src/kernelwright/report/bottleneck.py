"""What limits the candidate that leads, for people: the digest that the models are given."""

from math import inf

from kernelwright.memory.store import Memory
from kernelwright.profiling import make_digest, modelled, roofline
from kernelwright.report.cases import cases
from kernelwright.report.models import CaseRow, Profile
from kernelwright.report.records import Records


def bottleneck(memory: Memory, records: Records) -> Profile | None:
    """Its profile; without one what compiler, checked mode and roofline tell. ``None`` while nobody leads."""
    leader = records.incumbent
    if leader is None or not leader.outcome.cases:
        return None
    for profile in reversed(records.profiles):
        if profile.candidate == leader.candidate:
            name = records.name(leader)
            return Profile(leader.seconds, name, profile.case_id, profile.bottleneck, profile.digest)
    known = cases(memory, records)
    row = max(known.rows, key=_distance, default=None)
    digest = make_digest(
        (),
        static=leader.outcome.static,
        roofline=roofline(
            row.bytes,
            row.flops,
            bytes_per_s=known.roofline.bytes_per_s,
            operations_per_s=known.roofline.flops_per_s,
            time_ms=row.incumbent_ms,
        )
        if row
        else None,
        case=row.case if row else "",
        model=modelled(leader.outcome.findings),
        source=records.templates[leader.template].source,
    )
    return Profile(leader.seconds, records.name(leader), digest.case, digest.bottleneck, digest.text)


def _distance(row: CaseRow) -> tuple[float, float]:
    """From the floor; where no floor is known the case of most work."""
    return row.distance or -inf, row.bytes + row.flops
