"""What a model's proposals came to in a campaign: how many were usable, what structure brought and what numbers brought.

    python bench/account.py bench/campaigns_h200/softmax.db.xz [CAMPAIGN] [--vendor MS] [--replies replies.jsonl]

Structure is the best first configuration of any template; numbers are the best configuration of any template that a
model wrote; then what was put together of several. Times are medians of the search, by the campaign's objective; the
last row is the duel with the baseline at the end. A memory may be packed with xz. ``--vendor`` is a vendor library's time for the same objective in ms,
measured on the same device; ``--replies`` writes the replies for ``--model recorded:FILE``. ``--templates`` lists every
template: tries, how many passed, its best by the objective, its largest case, and whether it gives up a case for others.
"""

import json
import tempfile
from pathlib import Path

from command_line import parser_of
from kernelwright.core.outcome import Status
from kernelwright.generation.model import ModelReply
from kernelwright.generation.models.recorded import reply_line
from kernelwright.generation.reply import ReplyFault, parse_reply
from kernelwright.memory.records import CampaignRecord, Experiment, TemplateRecord
from kernelwright.memory.store import Memory
from recorded_campaigns import unpack

Row = tuple[str, float, float]


def usable(memory: Memory, campaign: str) -> dict[str, int]:
    """Requests, proposals and what became of them."""
    requests = memory.requests(campaign)
    answered = [r for r in requests if r.reply is not None and r.purpose == "structure"]
    proposed = [p for r in answered for p in parse_reply(r.reply or "")]
    by_model = {id_ for id_, t in memory.templates(campaign).items() if ":" in t.proposer}
    tried: dict[str, set[Status]] = {}
    for e in memory.experiments(campaign):
        tried.setdefault(e.template, set()).add(e.outcome.status)
    return {
        "requests answered": len(answered),
        "requests without a reply in time": sum(r.state == "failed" for r in requests),
        "repairs asked": sum(r.purpose != "structure" for r in requests),
        "proposals": len(proposed),
        "of them parsed": sum(not isinstance(p, ReplyFault) for p in proposed),
        "templates taken in": len(by_model),
        "templates measured": sum(Status.MEASURED in tried.get(id_, ()) for id_ in by_model),
    }


def best(rows: list[Experiment], ms: float) -> float:
    return min((e.cost_ms for e in rows if e.cost_ms is not None and e.eligible), default=ms)


def steps(memory: Memory, campaign: str, templates: dict[str, TemplateRecord]) -> list[Row]:
    """(what, objective's cost in ms, ratio to the baseline's), each with all that comes before it."""
    experiments = [e for e in memory.experiments(campaign) if e.cost_ms is not None]
    base = experiments[0].cost_ms or 0.0
    models = [e for e in experiments if ":" in templates[e.template].proposer]
    first: dict[str, Experiment] = {}
    for e in models:
        first.setdefault(e.template, e)
    found = [
        ("baseline", base),
        ("structure: first configurations", best(list(first.values()), base)),
        ("numbers: all configurations", best(models, base)),
        ("put together by size", best(experiments, base)),
    ]
    return [(name, ms, ms / base) for name, ms in found]


def by_template(memory: Memory, campaign: str) -> None:
    names = {id_: record.name for id_, record in memory.templates(campaign).items()}
    tries: dict[str, list[Experiment]] = {}
    for e in memory.experiments(campaign):
        tries.setdefault(names[e.template], []).append(e)
    base = next(iter(tries.values()))[0].cost_ms or 0.0
    passed = {name: [e for e in rows if e.cost_ms is not None] for name, rows in tries.items()}
    for name in sorted(passed, key=lambda n: min((e.cost_ms or 0.0 for e in passed[n]), default=1e9)):
        line = f"  {name:34} {len(passed[name])} of {len(tries[name])} passed"
        if passed[name]:
            top = min(passed[name], key=lambda e: e.cost_ms or 0.0)
            last = top.outcome.cases[-1]
            line += f"  {(top.cost_ms or 0.0) / base:.4f}x  {last.case} {last.median_ms:.4g} ms"
            line += "" if top.eligible else "  gives up a case"
        print(line)


def replies_of(memory: Memory, campaign: str, path: Path) -> None:
    answered = [r for r in memory.requests(campaign) if r.reply is not None]
    path.write_text("".join(reply_line(r.id, ModelReply(r.reply or "")) for r in answered), encoding="utf-8")
    print(f"{path}: {len(answered)} replies")


def show(memory: Memory, campaign: CampaignRecord, vendor: float | None) -> None:
    templates = memory.templates(campaign.id)
    print(f"{campaign.id}, {sum(1 for _ in memory.experiments(campaign.id))} experiments")
    for name, count in usable(memory, campaign.id).items():
        print(f"  {name:34} {count}")
    for name, ms, ratio in steps(memory, campaign.id, templates):
        print(f"  {name:34} {ms:.5g} ms  {ratio:.3f}x")
    for milestone in memory.milestones(campaign.id):
        print(f"  at {milestone.seconds:7.0f} s  {milestone.ratio:.3f}x  {milestone.strategy[:90]}")
    chain = 1.0
    for duel in memory.duels(campaign.id):
        if duel.promoted and duel.decision.ratio:
            chain *= duel.decision.ratio
            print(
                f"  promoted by a duel: {duel.decision.ratio:.4f}x of the incumbent, {chain:.4f}x of the baseline"
            )
    note = memory.notes(campaign.id).get("confirmation")
    if note is None or note == "null":
        print("  not confirmed side by side")
        return
    confirmed = json.loads(note)
    interval = f"[{confirmed['low']:.4f}, {confirmed['high']:.4f}]" if confirmed["low"] else "no interval"
    print(
        f"  confirmed {confirmed['incumbent_ms']:.5g} ms against {confirmed['baseline_ms']:.5g} ms: ", end=""
    )
    print(f"{confirmed['ratio']:.4f}x {interval} in {confirmed['rounds']} rounds")
    if vendor:
        print(f"  of the vendor's time: {confirmed['incumbent_ms'] / vendor:.3f}x")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("memory", type=Path)
    parser.add_argument("campaign", nargs="?", default="last")
    parser.add_argument("--vendor", type=float)
    parser.add_argument("--replies", type=Path)
    parser.add_argument("--templates", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        packed = options.memory.suffix == ".xz"
        path = unpack(options.memory, Path(folder)) if packed else options.memory
        with Memory.open(path, create=False, read_only=True) as memory:
            campaign = memory.campaign(options.campaign)
            show(memory, campaign, options.vendor)
            if options.templates:
                by_template(memory, campaign.id)
            if options.replies:
                replies_of(memory, campaign.id, options.replies)


if __name__ == "__main__":
    main()
