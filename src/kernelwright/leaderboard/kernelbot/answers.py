"""The server's answers as it sends them. Only what is named here is read; ``secret_seed`` is not.

Numbers arrive as numbers or as texts. Scores are seconds, the values of a run's ``result`` are nanoseconds.
"""

from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from kernelwright.leaderboard.untrusted import line, read

LAST_DEADLINE: Final = 250e9
"""Unix time near the end of year 9892: no calendar goes on much longer."""

MAX_CASES: Final = 1000


def _unix(text: object) -> float:
    if not isinstance(text, str):
        raise ValueError("not a text")  # noqa: TRY004 - what pydantic understands
    moment = datetime.fromisoformat(text)
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not 0 <= seconds <= LAST_DEADLINE:
        raise ValueError("not a time of this calendar")
    return seconds


Seconds = Annotated[float, Field(gt=0, lt=1e9, allow_inf_nan=False)]
Moment = Annotated[float, BeforeValidator(_unix)]
"""Unix time of an ISO 8601 text, which is UTC where it names no zone."""
Number = Annotated[int, Field(ge=0, lt=2**63)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Scalar = bool | Annotated[int, Field(ge=-(2**63), lt=2**64)] | Finite | str | None
CaseValue = Scalar | list[Scalar] | list[list[Scalar]]
Case = dict[str, CaseValue]


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class Leaderboard(_Answer):
    """One row of ``/leaderboards``. ``task`` is the whole problem: see :meth:`read_task`."""

    name: str
    deadline: Moment | None = None
    gpu_types: tuple[str, ...] = ()
    description: str = ""
    visibility: str = "public"
    task: dict[str, JsonValue] = {}

    def read_task(self) -> "Task":
        """Raises BoardError."""
        return read(Task, self.task, f"leaderboard {line(self.name, 100)}")


class Task(_Answer):
    """What is to be solved. A task without ``ranking_by`` is an old one, ranked by its last benchmark."""

    lang: str = "py"
    tests: Annotated[tuple[Case, ...], Field(max_length=MAX_CASES)] = ()
    benchmarks: Annotated[tuple[Case, ...], Field(max_length=MAX_CASES)] = ()
    test_timeout: Seconds | None = None
    benchmark_timeout: Seconds | None = None
    ranked_timeout: Seconds | None = None
    ranking_by: Literal["last", "mean", "geom"] = "last"
    multi_gpu: bool = False


class RankRow(_Answer):
    """One row of ``/submissions/{leaderboard}/{gpu}``."""

    submission_id: Number
    rank: Annotated[int, Field(ge=1, lt=2**63)]
    submission_name: str = ""
    submission_time: Moment | None = None
    submission_score: Seconds
    user_id: str | Number
    user_name: str | None = None


class ListedRun(_Answer):
    """A verified run of a listed submission."""

    gpu_type: str = ""


class Listed(_Answer):
    """One row of ``/user/submissions``, the newest first."""

    id: Number
    leaderboard_name: str
    file_name: str
    done: bool = False
    runs: tuple[ListedRun, ...] = ()


class Run(_Answer):
    """One run of a submission. ``result`` is given only for public test and benchmark runs."""

    mode: str
    secret: bool = False
    score: Seconds | None = None
    passed: bool
    result: dict[str, JsonValue] = {}


class Job(_Answer):
    """How far the server is with a submission; a submission sent as a stream has none."""

    status: Literal["initial", "pending", "running", "succeeded", "failed", "timed_out", "hacked"] | None = (
        None
    )
    error: str | None = None


class Submission(_Answer):
    """``/user/submissions/{id}``. ``done`` is written before the job's last status."""

    id: Number
    user_id: str | Number
    file_name: str = ""
    done: bool
    runs: tuple[Run, ...] = ()
    job: Job | None = None


class _Details(_Answer):
    id: Number


class Accepted(_Answer):
    """The answer to a submission: it is queued."""

    details: _Details


class Process(_Answer):
    """What one program on the runner said. Texts are the server's data, cut by it at 16,384 characters."""

    success: bool
    passed: bool = False
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    result: dict[str, JsonValue] = {}


class _Compilation(_Answer):
    success: bool
    stdout: str = ""
    stderr: str = ""


class Stage(_Answer):
    """One stage of a streamed submission: test, benchmark, leaderboard or profile.N."""

    compilation: _Compilation | None = None
    run: Process | None = None


class Full(_Answer):
    """The whole result of one runner, as only a streamed submission gives it."""

    success: bool
    error: str = ""
    runs: dict[str, Stage] = {}


class Streamed(_Answer):
    """The last frame of a streamed submission. Of a ranked one the first result is public, the second secret."""

    results: tuple[Full, ...] = ()

    @property
    def passed(self) -> bool:
        """Every runner succeeded, and everything that it ran passed."""
        runs = [stage.run for full in self.results for stage in full.runs.values()]
        ran = all(full.success and full.runs for full in self.results)
        return bool(self.results) and ran and all(run is not None and run.passed for run in runs)
