"""The certificate in short, and the sandbox it was made in."""

from typing import Any

from pydantic import ValidationError

from kernelwright.certificate import Certificate, build_certificate
from kernelwright.core.errors import KernelwrightError
from kernelwright.memory.store import Memory
from kernelwright.report.models import CertificateSummary, Layer, NotRun
from kernelwright.report.records import Records


def certificate_summary(memory: Memory, records: Records) -> CertificateSummary:
    """Of the issued certificate of the incumbent, else of one computed from the memory."""
    incumbent = records.incumbent
    if incumbent is None:
        return CertificateSummary("none", "Nobody leads: there is nothing to certify.")
    for record in reversed(records.certificates):
        if record.candidate == incumbent.candidate:
            return _issued(record.document)
    try:
        computed = build_certificate(memory, records.campaign, incumbent.candidate)
    except (KernelwrightError, ValidationError, ValueError, KeyError, TypeError) as error:
        return CertificateSummary("none", f"No certificate can be made: {_line(error)}")
    return _summary(
        computed, "computed", "Not issued by the campaign; computed from the memory for this report."
    )


def _issued(document: str) -> CertificateSummary:
    try:
        certificate = Certificate.model_validate_json(document)
    except ValidationError as error:
        return CertificateSummary("none", f"The issued certificate cannot be read: {_line(error)}")
    if certificate.content_hash() != certificate.content_sha256:
        return CertificateSummary(
            "none", "The issued certificate was changed: its hash is not that of its content."
        )
    return _summary(certificate, "issued", "Issued by the campaign for the incumbent.")


def _summary(certificate: Certificate, state: str, reason: str) -> CertificateSummary:
    return CertificateSummary(
        state=state,
        reason=reason,
        passed=tuple(part.check for part in certificate.checks if part.result == "passed"),
        not_run=tuple(NotRun(p.check, p.evidence) for p in certificate.checks if p.result == "not run"),
        content_sha256=certificate.content_sha256,
        warnings=certificate.warnings,
    )


def sandbox_layers(records: Records) -> tuple[Layer, ...]:
    """Layers that were noted when the campaign began."""
    layers: list[dict[str, Any]] = records.note("sandbox").get("layers", [])
    return tuple(
        Layer(str(each.get("name", "")), bool(each.get("holds")), str(each.get("detail", "")))
        for each in layers
    )


def _line(error: Exception) -> str:
    return " ".join(f"{error}".split())[:300]
