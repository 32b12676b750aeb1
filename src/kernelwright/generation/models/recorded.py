"""Plays back replies that were recorded: for tests, for replays, for ablations. No model is asked."""

import json
from pathlib import Path

from kernelwright.core.errors import UserError
from kernelwright.core.files import read_text
from kernelwright.generation.model import ModelError, ModelReply, ModelRequest, Usage
from kernelwright.generation.models.mailbox import usage_of

MAX_FILE_BYTES = 64 << 20


class Recorded:
    """Implements :class:`~kernelwright.generation.model.Model` from a file with one JSON object a line.

    Each line has ``text`` and may have ``id``, ``input_tokens``, ``output_tokens``, ``cost_usd``. A request whose id
    is there gets that reply; others get the ones without a matching id in their order. Raises UserError for a file
    that cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.name = f"recorded:{path}"
        self._by_id: dict[str, ModelReply] = {}
        self._in_order: list[ModelReply] = []
        for name, reply in read_replies(path):
            if name:
                self._by_id[name] = reply
            else:
                self._in_order.append(reply)

    async def ask(self, request: ModelRequest) -> ModelReply:
        """The recorded reply. Raises ModelError when there is none left, or none for this request but for later ones."""
        if request.id in self._by_id:
            return self._by_id[request.id]
        if not self._in_order:
            is_over = not any(_place(known) > _place(request.id) for known in self._by_id)
            raise ModelError(f"{self.name}: no reply is left for {request.id}", is_over=is_over)
        return self._in_order.pop(0)

    async def close(self) -> None:
        """Nothing is held."""


def _place(name: str) -> tuple[int, str]:
    """Requests are numbered: ``9999`` comes before ``10000``."""
    return len(name), name


def read_replies(path: Path) -> list[tuple[str, ModelReply]]:
    """Ids (or nothing) and replies. Raises UserError, one line, with the line's number."""
    lines = read_text(path, MAX_FILE_BYTES).splitlines()
    return [_entry(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _entry(path: Path, number: int, line: str) -> tuple[str, ModelReply]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise UserError(f"{path}:{number}: not valid JSON: each line is one object") from None
    if not isinstance(data, dict) or not isinstance(data.get("text"), str):
        raise UserError(f'{path}:{number}: needs a string "text"')
    return str(data.get("id") or ""), ModelReply(data["text"], usage_of(data))


def reply_line(name: str, reply: ModelReply) -> str:
    """One line of such a file."""
    return json.dumps({"id": name, "text": reply.text, **_usage(reply.usage)}, ensure_ascii=False) + "\n"


def _usage(usage: Usage) -> dict[str, int | float]:
    pairs = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
    }
    return {name: value for name, value in pairs.items() if value is not None}
