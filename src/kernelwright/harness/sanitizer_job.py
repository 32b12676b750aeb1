"""What the harness and the process that compute-sanitizer watches leave for each other, as files in its scratch."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from kernelwright.core.errors import UserError
from kernelwright.core.files import read_bytes
from kernelwright.core.launch import ResolvedPlan

JOB_FILE: Final = "job.json"
PROGRESS_FILE: Final = "progress.json"
MAX_PROGRESS_BYTES: Final = 64 << 10

Stage = Literal["none", "confined", "loaded", "performed"]


@dataclass(frozen=True)
class Look:
    """A candidate's plan on one case or trial."""

    case: str
    plan: ResolvedPlan


@dataclass(frozen=True)
class SanitizerJob:
    """One candidate's binary and where it is looked at, one after another."""

    artifact: str
    looks: tuple[Look, ...]


@dataclass(frozen=True)
class Progress:
    """How far the watched process came.

    ``confined``: behind its sandbox (without the layers ``missing``); ``loaded``: the device has the binary and the
    data, kernels come next; ``performed``: every kernel has ended. ``buffers`` are addresses by name; a buffer's name says
    of which case it is when that is not the first.
    """

    stage: Stage = "none"
    missing: tuple[str, ...] = ()
    buffers: dict[str, int] = field(default_factory=dict)
    error: str = ""


_JOB: Final = TypeAdapter(SanitizerJob)
_PROGRESS: Final = TypeAdapter(Progress)


def write_job(folder: Path, job: SanitizerJob) -> Path:
    """Leave the job for the watched process."""
    path = folder / JOB_FILE
    path.write_text(json.dumps(asdict(job)))
    return path


def read_job(folder: Path) -> SanitizerJob:
    """The job that the harness left."""
    job: SanitizerJob = _JOB.validate_json((folder / JOB_FILE).read_bytes())
    return job


def write_progress(folder: Path, progress: Progress) -> None:
    """Tell the harness how far it has come."""
    (folder / PROGRESS_FILE).write_text(json.dumps(asdict(progress)))


def read_progress(folder: Path) -> Progress:
    """What was told last; it comes from beside a candidate, so anything odd counts as nothing."""
    try:
        progress: Progress = _PROGRESS.validate_json(read_bytes(folder / PROGRESS_FILE, MAX_PROGRESS_BYTES))
    except (UserError, ValidationError):
        return Progress()
    return progress
