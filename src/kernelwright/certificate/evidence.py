"""What a campaign notes of a candidate that leads, for its certificate."""

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelwright.core.outcome import Status
from kernelwright.harness.protocol import SanitizerResult


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TrialRun(_Model):
    """A trial that was run and passed; ``check`` is the :class:`~kernelwright.core.outcome.Check` it belongs to."""

    id: str
    check: str


class SanitizerEvidence(_Model):
    """Answer of :meth:`~kernelwright.harness.protocol.Harness.sanitize`."""

    status: Status
    reason: str = ""
    tools: tuple[str, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, result: SanitizerResult) -> "SanitizerEvidence":
        """From the harness's answer."""
        return cls(
            status=result.status,
            reason=result.reason,
            tools=result.tools,
            seconds=result.seconds,
            notes=result.notes,
        )


class Evidence(_Model):
    """Kept as a note under :func:`evidence_key`. ``trials`` are those that ran; ``no_trials`` says why none did."""

    trials: tuple[TrialRun, ...] = ()
    no_trials: str = ""
    sanitizer: SanitizerEvidence | None = None


def evidence_key(candidate: str) -> str:
    """Key of the note that holds a candidate's evidence."""
    return f"evidence {candidate}"


def read_evidence(note: str | None) -> Evidence | None:
    """Evidence from a note; ``None`` where there is none that can be read."""
    try:
        return None if note is None else Evidence.model_validate_json(note)
    except ValidationError:
        return None
