"""One child process of the harness, seen from the parent: start, ask, kill, start again."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kernelwright.core.errors import HarnessError, MissingError, WorkerDied
from kernelwright.harness.wire import (
    MAX_LINE,
    REPLY,
    REQUEST,
    SETUP,
    Hello,
    Reply,
    Request,
    WorkerSetup,
    decode,
    encode,
)

START_TIMEOUT_S: Final = 120.0
START_TRIES: Final = 3
LOG_BYTES: Final = 2000
_KEPT: Final = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CXX",
)


class StepTimeout(HarnessError):  # noqa: N818 - reads as what happened
    """A child did not answer in time and was killed."""


class Child:
    """A persistent worker, started when first asked. Not for concurrent requests."""

    def __init__(self, setup: WorkerSetup) -> None:
        self.setup = setup
        self.hello: Hello | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._number = 0

    async def start(self) -> Hello:
        """Start unless it runs. Raises MissingError for what has to be installed, HarnessError after three tries."""
        for left in reversed(range(START_TRIES)):
            if self._process is not None and self.hello is not None:
                return self.hello
            try:
                return await self._start()
            except (WorkerDied, StepTimeout) as error:
                if not left:
                    raise HarnessError(f"the {self.setup.role} worker does not start: {error}") from None
        raise AssertionError

    async def ask(self, request: Request, timeout_s: float) -> Reply:
        """Answer to a request. Raises StepTimeout or WorkerDied; the child is then gone and starts anew next time."""
        await self.start()
        self._number += 1
        line = encode(REQUEST, Request(self._number, request.build, request.run))
        try:
            reply = await self._exchange(line, timeout_s)
        except asyncio.CancelledError:
            await self.kill()
            raise
        if reply.id != self._number:
            await self.kill()
            raise WorkerDied(f"the {self.setup.role} worker answered out of turn")
        if reply.broken:
            await self.kill()
        if reply.error:
            raise _error(reply)
        return reply

    async def _start(self) -> Hello:
        ours, theirs = socket.socketpair()
        scratch = self.setup.scratch
        os.makedirs(scratch, exist_ok=True)  # noqa: PTH103 - async code may not use Path's blocking calls
        command = [sys.executable, "-m", "kernelwright.harness.worker"]
        command += [SETUP.dump_json(self.setup).decode(), str(theirs.fileno())]
        with theirs, open(f"{scratch}/log", "wb") as log:  # noqa: ASYNC230, PTH123 - a local file, made once
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(),),
                env=self._environment(os.environ),
                cwd=scratch,
                start_new_session=True,
            )
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=MAX_LINE)
        reply = await self._exchange(b"", START_TIMEOUT_S)
        if reply.hello is None:
            await self.kill()
            raise _error(reply)
        self.hello = reply.hello
        return reply.hello

    async def _exchange(self, line: bytes, timeout_s: float) -> Reply:
        """Send a line (or nothing) and read one."""
        assert self._reader is not None
        assert self._writer is not None
        try:
            async with asyncio.timeout(timeout_s):
                if line:
                    self._writer.write(line)
                    await self._writer.drain()
                answer = await self._reader.readline()
        except TimeoutError:
            await self.kill()
            raise StepTimeout(f"no answer within {timeout_s:g} s") from None
        except (ValueError, ConnectionError) as error:
            await self.kill()
            raise WorkerDied(f"the {self.setup.role} worker broke the protocol: {error}") from None
        if not answer.endswith(b"\n"):
            raise WorkerDied(await self._obituary())
        try:
            reply: Reply = decode(REPLY, answer)
        except HarnessError as error:
            await self.kill()
            raise WorkerDied(str(error)) from None
        return reply

    async def _obituary(self) -> str:
        """How the child ended: its signal or code, and the last line of its log."""
        process = self._process
        await self.kill()
        code = process.returncode if process is not None else None
        how = f"ended with signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
        with contextlib.suppress(OSError):
            lines = (
                (Path(self.setup.scratch) / "log")
                .read_bytes()[-LOG_BYTES:]
                .decode(errors="replace")
                .split("\n")
            )
            last = next((line.strip() for line in reversed(lines) if line.strip()), "")
            return f"the {self.setup.role} worker {how}" + (f": {last}" if last else "")
        return f"the {self.setup.role} worker {how}"

    async def kill(self) -> None:
        """End the child and everything it started; it starts anew when next asked."""
        process, self._process, self.hello = self._process, None, None
        if self._writer is not None:
            self._writer.close()
            self._writer = self._reader = None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    def _environment(self, outer: Mapping[str, str]) -> dict[str, str]:
        """Nothing of the user's environment but what the toolchain needs: no keys, no home."""
        scratch = self.setup.scratch
        kept = {name: outer[name] for name in _KEPT if name in outer}
        return {
            **kept,
            "HOME": scratch,
            "TMPDIR": scratch,
            "CUPY_CACHE_DIR": f"{scratch}/cupy",
            "CUDA_CACHE_DISABLE": "1",
            "OPENBLAS_NUM_THREADS": "2",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def _error(reply: Reply) -> HarnessError | MissingError:
    return MissingError(reply.error) if reply.user_error else HarnessError(reply.error)
