"""What a user asks of a campaign."""

from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from kernelwright.core.errors import UserError
from kernelwright.core.goal import Goal, parse_goal
from kernelwright.core.objective import ObjectiveName
from kernelwright.core.toml_words import in_json_words

NO_GOAL: Final = "none"
PROBLEM_GOAL: Final = "problem"
MAX_SUBMISSIONS: Final = 20


class Settings(BaseModel):
    """Kept in the memory, so that ``resume`` needs nothing but the campaign's id."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    problem: str
    device: str
    objective: ObjectiveName | None = None
    """``None``: the problem's own objective."""
    slow_cases: bool = False
    seconds: float = Field(default=120.0, gt=0, le=24 * 3600)
    evaluations: int | None = Field(default=None, ge=1)
    in_flight: int = Field(default=64, ge=1, le=4096)
    """Candidates that a detached device is given at once."""
    compile_workers: int = Field(default=4, ge=1, le=256)
    seed: int = Field(default=0, ge=0)
    use_catalogue: bool = True
    models: tuple[str, ...] = ()
    """Language models that propose structure, as after ``--model``. Keys are never part of it."""
    proposals: int = Field(default=3, ge=1, le=8)
    """Proposals that one request asks for."""
    repairs: int = Field(default=3, ge=0, le=10)
    max_cost_usd: float | None = Field(default=None, ge=0)
    max_requests: int | None = Field(default=None, ge=0)
    model_timeout_s: float = Field(default=600.0, gt=0)
    stream: bool = False
    strict: bool = False
    """Refuse to start where a layer of the sandbox is missing."""
    tuning: bool = True
    """Without it every template has only its first configuration tried: structure alone."""
    young_budget: int = Field(default=8, ge=1)
    """Configurations that a new template gets before it is judged: a good structure with bad numbers must live."""
    pause_after: int = Field(default=3, ge=1)
    """Compile failures that a direction may have; one more pauses it."""
    pause_experiments: int = Field(default=20, ge=1)
    """How many experiments a paused direction waits."""
    goal: str | None = None
    """What ends the search when it is reached: see :func:`~kernelwright.core.goal.parse_goal`; ``problem`` is its own."""
    board: str | None = None
    """A leaderboard's name, as after ``--board``. Credentials are never part of it."""
    submit: bool = False
    """Without it a board is only read."""
    max_submissions: int = Field(default=MAX_SUBMISSIONS, ge=1, le=10_000)
    """Ranked submissions of the whole campaign."""
    uncalibrated: bool = False
    """Submit also where the board's times and the harness's differ."""
    board_wait_s: float = Field(default=120.0, ge=0, le=3600)
    """How long the campaign's end waits for the board."""

    @field_validator("goal")
    @classmethod
    def _is_goal(cls, text: str | None) -> str | None:
        if text is None or text == NO_GOAL:
            return None
        if text == PROBLEM_GOAL:
            return text
        try:
            return str(parse_goal(text))
        except UserError as error:
            raise ValueError(str(error)) from None

    @property
    def aim(self) -> Goal | None:
        """The goal."""
        return None if self.goal is None else parse_goal(self.goal)


def read_settings(campaign: str, text: str) -> Settings:
    """Settings as the memory has them. Raises UserError, one line, where this version cannot read them."""
    try:
        return Settings.model_validate_json(text)
    except ValidationError as error:
        what = in_json_words(error, text, keys=None, whole="settings")
        raise UserError(
            f"{campaign}: its settings cannot be read by this version: {what}: use the version that began it"
        ) from None
