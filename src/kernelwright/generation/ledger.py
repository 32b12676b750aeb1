"""What a campaign may still ask of models: money and number of requests; and a record of every request."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from kernelwright.generation.model import ModelReply, ModelRequest

Purpose = Literal["structure", "repair"]
State = Literal["asked", "answered", "failed"]


@dataclass(frozen=True)
class Asked:
    """One request as it is kept. ``state`` is ``asked`` until a reply or a failure (``reason``) is known."""

    request: ModelRequest
    model: str
    purpose: Purpose
    state: State = "asked"
    reply: ModelReply | None = None
    reason: str = ""


@dataclass
class Ledger:
    """Counts requests and money. ``keep`` is called for every change of a request.

    The cap holds to the last request: one is allowed only while what is spent, what requests in flight may cost
    (as much as the dearest so far, or ``guess_usd``) and the request itself stay within ``max_cost_usd``.
    """

    keep: Callable[[Asked], None]
    max_cost_usd: float | None = None
    max_requests: int | None = None
    guess_usd: float = 0.0
    spent_usd: float = 0.0
    requests: int = 0
    _open: dict[str, Asked] = field(default_factory=dict)
    _dearest_usd: float = 0.0

    @property
    def allows(self) -> bool:
        """Whether one more request may be made."""
        if self.max_requests is not None and self.requests >= self.max_requests:
            return False
        if self.max_cost_usd is None:
            return True
        each = max(self._dearest_usd, self.guess_usd)
        return self.spent_usd + each * (len(self._open) + 1) <= self.max_cost_usd

    def recall(self, asked: Asked) -> None:
        """Take a request of an earlier sitting into account."""
        self.requests += 1
        self._count(asked.reply)

    def ask(self, request: ModelRequest, model: str, purpose: Purpose) -> Asked:
        """Note a request before it is made."""
        asked = Asked(request, model, purpose)
        self.requests += 1
        self._open[request.id] = asked
        self.keep(asked)
        return asked

    def answered(self, asked: Asked, reply: ModelReply, reason: str = "") -> Asked:
        """Note the reply; ``reason`` says why it was of no use."""
        return self._close(replace(asked, state="answered", reply=reply, reason=reason))

    def failed(self, asked: Asked, reason: str) -> Asked:
        """Note that there is no reply."""
        return self._close(replace(asked, state="failed", reason=reason))

    def kept(self, asked: Asked, reason: str) -> None:
        """Note what a reply brought about after it was read."""
        self.keep(replace(asked, reason=reason))

    def _close(self, asked: Asked) -> Asked:
        self._open.pop(asked.request.id, None)
        self._count(asked.reply)
        self.keep(asked)
        return asked

    def _count(self, reply: ModelReply | None) -> None:
        cost = (reply.usage.cost_usd or 0.0) if reply else 0.0
        self.spent_usd += cost
        self._dearest_usd = max(self._dearest_usd, cost)
