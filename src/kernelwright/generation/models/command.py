"""A model behind a command of the user's: prompt on stdin, reply on stdout."""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Final

from kernelwright.core.errors import UserError
from kernelwright.generation.model import ModelError, ModelReply, ModelRequest
from kernelwright.generation.reply import MAX_REPLY_BYTES
from kernelwright.harness.processes import start_process

_ERROR_TEXT = 300
_KEEPER: Final = Path(__file__).with_name("keeper.py")
_GRACE_S: Final = 2.0
"""What the program started may still write of the reply for so long when it has ended itself."""
_END_S: Final = 10.0
"""The keeper needs no more to end everything; it is ended then itself."""


class Command:
    """Implements :class:`~kernelwright.generation.model.Model` for any program, such as a coding agent.

    Runs as the user who starts it, with the user's environment: it is the user's own program. No shell is used.
    Nothing that it started outlives the request (:mod:`~kernelwright.generation.models.keeper`), however that ends.
    Raises UserError when the command line cannot be read.
    """

    def __init__(self, line: str, grace_s: float = _GRACE_S) -> None:
        self.name = f"command:{line}"
        self._grace_s = grace_s
        try:
            self._arguments = shlex.split(line)
        except ValueError as error:
            raise UserError(
                f"--model {self.name[:200]!r}: {str(error)[:1].lower()}{str(error)[1:]}: close every quotation and end "
                "with no backslash, as in --model 'command:my-agent --say \"two words\"'"
            ) from None
        if not self._arguments:
            raise UserError("--model command: needs a command, as in --model 'command:my-agent --quiet'")
        if shutil.which(self._arguments[0]) is None:
            raise UserError(
                f"--model command: {self._arguments[0][:200]!r} cannot be started: no such program"
            )

    async def ask(self, request: ModelRequest) -> ModelReply:
        """Run it once. Raises ModelError: cannot be started, exit code, no answer in time, too long."""
        started = time.monotonic()
        text = f"{request.instructions.rstrip()}\n\n{request.prompt.rstrip()}\n"
        try:
            process = await start_process(
                *(sys.executable, "-I", "-S", str(_KEEPER), str(os.getpid()), str(self._grace_s)),
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise ModelError(f"{self.name}: cannot be started: {error.strerror}") from None
        try:
            async with asyncio.timeout(request.timeout_s):
                out, errors = await _exchange(process, text.encode(errors="replace"))
        except TimeoutError:
            raise ModelError(f"{self.name}: no reply within {request.timeout_s:g} s") from None
        finally:
            await _end(process)
        if len(out) > MAX_REPLY_BYTES:
            raise ModelError(f"{self.name}: the reply is larger than {MAX_REPLY_BYTES >> 10} KiB")
        if process.returncode:
            said = " ".join(errors.decode(errors="replace").split())[-_ERROR_TEXT:]
            raise ModelError(f"{self.name}: exit code {process.returncode}: {said or 'nothing on stderr'}")
        return ModelReply(out.decode(errors="replace"), seconds=time.monotonic() - started)

    async def close(self) -> None:
        """Nothing is held."""


async def _exchange(process: asyncio.subprocess.Process, text: bytes) -> tuple[bytes, bytes]:
    """Give the prompt while reading: a program may answer before it has read all."""
    assert process.stdin
    assert process.stdout
    assert process.stderr

    async def give(stream: asyncio.StreamWriter) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            stream.write(text)
            await stream.drain()
        stream.close()

    _, out, errors = await asyncio.gather(
        give(process.stdin), _bounded(process.stdout, process), _bounded(process.stderr, process)
    )
    _tell(process, signal.SIGUSR1)
    await process.wait()
    return out, errors


async def _bounded(stream: asyncio.StreamReader, process: asyncio.subprocess.Process) -> bytes:
    """What a reply may have, and a little more; who writes more is ended. The rest is read and thrown away."""
    found = b""
    while piece := await stream.read(1 << 16):
        if len(found) > MAX_REPLY_BYTES:
            _tell(process, signal.SIGTERM)
        else:
            found += piece
    return found


async def _end(process: asyncio.subprocess.Process) -> None:
    """Everything ends that the program started, in whatever session: the keeper does it, and ends last."""
    assert process.stdout
    assert process.stderr
    _tell(process, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_S):  # asyncio may not tell an end while its pipes are full
            await asyncio.gather(process.wait(), _drain(process.stdout), _drain(process.stderr))
    # Ends the keeper where it is still there.
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - asyncio has no other way


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(1 << 16):
        pass


def _tell(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)
