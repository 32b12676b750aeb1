"""The certificate: what is known of a campaign's incumbent, every check with its evidence, and how to verify it.

Built from recorded facts alone: what is not in the memory is listed as not run or not recorded, never as passed.
"""

from kernelwright.certificate.build import build_certificate, certify
from kernelwright.certificate.evidence import TRIALS, trials_note
from kernelwright.certificate.markdown import as_markdown
from kernelwright.certificate.models import Certificate
from kernelwright.certificate.verify import Mismatch, read_certificate, verify_certificate

__all__ = [
    "TRIALS",
    "Certificate",
    "Mismatch",
    "as_markdown",
    "build_certificate",
    "certify",
    "read_certificate",
    "trials_note",
    "verify_certificate",
]
