"""A model behind a folder: each request is a pair of files, the reply another.

Works with a person, a batch queue, an agent without an interface, or a machine without a network::

    0001.request.md      instructions and prompt, for reading and for giving to a model as they are
    0001.request.json    the same as data, with the limits
    0001.reply.md        written by whoever answers (or 0001.reply.json: {"text": ..., "input_tokens": ...})

A reply is taken when its file exists under that name: write it under another name and rename it.
"""

import asyncio
import errno
import json
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from kernelwright.core.errors import UserError
from kernelwright.core.files import place
from kernelwright.generation.model import ModelError, ModelReply, ModelRequest, Usage
from kernelwright.generation.reply import MAX_REPLY_BYTES

POLL_S: Final = 0.25


class Mailbox:
    """Implements :class:`~kernelwright.generation.model.Model`. Raises UserError when the folder cannot be used.

    A request that was answered before (a campaign goes on after it was killed) is not written again.
    """

    def __init__(self, folder: Path, poll_s: float = POLL_S) -> None:
        self.folder = folder
        self.name = f"mailbox:{folder}"
        self._poll_s = poll_s
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            why = "it is no folder" if isinstance(error, FileExistsError) else error.strerror
            raise UserError(
                f"{folder}: cannot be used as a mailbox: {why}: name a folder that you may write to, "
                "or one that is not there yet"
            ) from None

    async def ask(self, request: ModelRequest) -> ModelReply:
        """Write the request, wait for the reply. Raises ModelError when none comes in time."""
        started = time.monotonic()
        if self._reply(request.id) is None:
            self._write(request)
        while (found := self._reply(request.id)) is None:
            if time.monotonic() - started > request.timeout_s:
                raise ModelError(f"{self.name}: no reply to {request.id} within {request.timeout_s:g} s")
            await asyncio.sleep(self._poll_s)
        text, usage = found
        return ModelReply(text, usage, time.monotonic() - started)

    async def close(self) -> None:
        """Nothing is held."""

    def _write(self, request: ModelRequest) -> None:
        data = {
            "id": request.id,
            "instructions": request.instructions,
            "prompt": request.prompt,
            "max_output_tokens": request.max_output_tokens,
            "reply": f"{request.id}.reply.md",
        }
        page = f"{request.instructions.rstrip()}\n\n{request.prompt.rstrip()}\n"
        # The page last: whoever waits for it finds the data complete.
        files = {"json": json.dumps(data, indent=1, ensure_ascii=False) + "\n", "md": page}
        try:
            for suffix, text in files.items():
                place(self.folder / f"{request.id}.request.{suffix}", text.encode(errors="replace"))
        except UserError as error:
            raise ModelError(f"{self.name}: the request cannot be written: {error}") from None

    def _reply(self, name: str) -> tuple[str, Usage] | None:
        data = self._read(f"{name}.reply.json")
        if data is not None:
            return _from_json(data, self.name)
        text = self._read(f"{name}.reply.md")
        return None if text is None else (text, Usage())

    def _read(self, name: str) -> str | None:
        path = self.folder / name
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise ModelError(
                    f"{self.name}: {name} is a link, which is not followed: give a file"
                ) from None
            raise ModelError(f"{self.name}: {name} cannot be read: {error.strerror}") from None
        try:
            with os.fdopen(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise ModelError(f"{self.name}: {name} is no ordinary file")
                return file.read(MAX_REPLY_BYTES + 1).decode(errors="replace")
        except OSError as error:
            raise ModelError(f"{self.name}: {name} cannot be read: {error.strerror}") from None


def _from_json(text: str, name: str) -> tuple[str, Usage]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{name}: the reply is not valid JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("text"), str):
        raise ModelError(f'{name}: the reply must be a JSON object with a string "text"')
    return data["text"], usage_of(data)


def usage_of(data: dict[str, Any]) -> Usage:
    """Token counts and cost where they are sensible numbers; anything else is unknown."""
    return Usage(
        input_tokens=_count(data.get("input_tokens")),
        output_tokens=_count(data.get("output_tokens")),
        cost_usd=_money(data.get("cost_usd")),
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**40 else None


def _money(value: Any) -> float | None:
    return float(value) if type(value) in {int, float} and 0 <= value < 1e6 else None
