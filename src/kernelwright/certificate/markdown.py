"""A certificate for people."""

from collections.abc import Iterable, Sequence

from kernelwright.certificate.models import CasePart, Certificate, Ratio


def as_markdown(certificate: Certificate) -> str:
    """The whole document but the raw samples of duels, which the JSON has."""
    c = certificate
    lines = [
        f"# Certificate: {c.problem} on {c.device.model}",
        "",
        f"Candidate `{c.hashes.candidate}` ({_cell(c.subject.name)}) of campaign `{c.campaign}`.",
        "",
        f"- against the baseline `{c.baseline}`: {_ratio(c.ratio_to_baseline)}",
        f"- against the strongest reference: {_ratio(c.ratio_to_strongest) if c.ratio_to_strongest else 'not measured'}",
        f"- content SHA-256 `{c.content_sha256}` (schema {c.schema_version}, measured by kernelwright {c.kernelwright})",
        "",
        "## Checks",
        "",
        *_table(("check", "result", "evidence"), [(k.check, k.result, k.evidence) for k in c.checks]),
        "",
        "## Times",
        "",
        *_times(c),
        "",
        *_hashes(c),
        "",
        *_circumstances(c),
    ]
    return "\n".join(lines) + "\n"


def _times(c: Certificate) -> list[str]:
    base = {case.case: case for case in c.baseline_cases}
    rows = [(*_time_row(case), _milliseconds(base.get(case.case))) for case in c.cases]
    head = ("case", "median ms", "samples ms", "method", "error / tolerance", "share of floor", "baseline ms")
    return _table(head, rows)


def _time_row(case: CasePart) -> tuple[str, ...]:
    return (
        case.case,
        f"{case.median_ms:.6g}",
        " ".join(f"{sample:.6g}" for sample in case.samples_ms),
        case.method + (f", {case.discarded} discarded" if case.discarded else ""),
        "not recorded" if case.max_error is None else f"{case.max_error:.3g}",
        "unknown" if case.share_of_floor is None else f"{case.share_of_floor:.0%}",
    )


def _milliseconds(case: CasePart | None) -> str:
    return "" if case is None else f"{case.median_ms:.6g}"


def _hashes(c: Certificate) -> list[str]:
    rows = [(name, f"`{value}`" if value else "not recorded") for name, value in c.hashes]
    return ["## Hashes", "", *_table(("of", "hash"), rows)]


def _circumstances(c: Certificate) -> list[str]:
    missing = [layer.name for layer in c.sandbox if not layer.holds]
    held = [layer.name for layer in c.sandbox if layer.holds]
    promotion = c.promotion
    lines = [
        "## Circumstances",
        "",
        f"- device: {c.device.name}, {c.device.model}, {c.device.uuid}, {c.device.arch or 'no target'}",
        f"- toolchain: {c.device.toolchain}",
        f"- compiler options: {_values(c.subject.compiler_options)}; macros: {_values(c.subject.macros)}",
        f"- sandbox holds: {', '.join(held) or 'not recorded'}; without: {', '.join(missing) or 'none missing'}",
        f"- objective {c.statistics.objective}; {_counts(c)}; {c.statistics.rule}",
        f"- took the lead in: {f'duel {promotion.number}, {promotion.reason}' if promotion else 'no recorded duel'}",
        f"- seeds: {c.seeds}",
    ]
    return [*lines, *(f"- warning: {_cell(warning)}" for warning in c.warnings)]


def _counts(c: Certificate) -> str:
    s = c.statistics
    return f"{s.experiments} experiments, {s.duels} duels, {s.promotions} promotions"


def _ratio(ratio: Ratio) -> str:
    text = f"{ratio.ratio:.4f}x its time"
    if ratio.low is not None and ratio.high is not None and ratio.confidence is not None:
        text += f" ({ratio.confidence:.0%} interval {ratio.low:.4f} to {ratio.high:.4f})"
    return f"{text}; {_cell(ratio.source)}"


def _values(values: dict[str, int] | dict[str, bool | int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "none"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(_cell(text) for text in line)} |" for line in lines]


def _cell(text: str) -> str:
    """One line that ends no table cell."""
    return " ".join(text.split()).replace("|", "\\|")
