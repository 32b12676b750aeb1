"""What every language model offers, however it is reached: one text in, one text out, with what it cost."""

from dataclasses import dataclass
from typing import Protocol

from kernelwright.core.errors import KernelwrightError


class ModelError(KernelwrightError):
    """A model gave no usable reply. ``retry_after_s`` is when asking again makes sense; ``None``: nobody knows.

    ``is_over``: it has nothing left, and will not have more in this sitting.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None, is_over: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.is_over = is_over


@dataclass(frozen=True)
class Usage:
    """What a request has used; ``None`` is unknown, never 0. Cost in US dollars."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True)
class ModelRequest:
    """One request. ``instructions`` stay the same in a campaign (a provider may cache them), ``prompt`` changes.

    ``id`` is unique in the campaign and names the request's files in a mailbox.
    """

    id: str
    instructions: str
    prompt: str
    timeout_s: float = 600.0
    max_output_tokens: int = 16_000


@dataclass(frozen=True)
class ModelReply:
    """The text as the model wrote it: untrusted."""

    text: str
    usage: Usage = Usage()
    seconds: float = 0.0


class Model(Protocol):
    """A language model. Safe to ask concurrently."""

    @property
    def name(self) -> str:
        """How people named it: ``openai:gpt-x``, ``mailbox:DIR``."""
        ...

    async def ask(self, request: ModelRequest) -> ModelReply:
        """One reply. Raises ModelError: no answer in time, refused, rate limited, over."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...
