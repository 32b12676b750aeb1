"""One child process of the harness, seen from the parent: start, ask, kill, start again."""

import asyncio
import contextlib
import errno
import os
import secrets
import signal
import socket
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kernelwright.core.errors import HarnessError, UserError, WorkerDied
from kernelwright.harness.excess import PERIOD_S, Bounds, excess
from kernelwright.harness.limits import TOO_MANY, refuse_narrow_limits
from kernelwright.harness.processes import (
    import_roots,
    kill_tree,
    refuse_closed_interpreter,
    scrubbed_environment,
    start_process,
)
from kernelwright.harness.sandbox import Layer, SandboxReport
from kernelwright.harness.sandbox.bubblewrap import INIT, NAME, Enclosed, View, confined_command, signal_of
from kernelwright.harness.scratch import disk_full
from kernelwright.harness.setup import FAULT_CODE, REFERENCE_BEGINS, REFERENCE_ENDS, WorkerSetup
from kernelwright.harness.wire import MAX_LINE, REPLY, Hello, Reply, Request, decode, encode

START_TIMEOUT_S: Final = 180.0
START_TRIES: Final = 3
_LOG_BYTES: Final = 4000
_CHUNK: Final = 1 << 16


class StepTimeout(HarnessError):  # noqa: N818 - reads as what happened
    """A child did not answer in time and was killed."""


class ChildDied(WorkerDied):
    """A child ended by a signal (``signal``, else 0) or broke the protocol; ``last`` is its log's last line.

    ``excess``: the parent ended it, since it took too much. ``in_reference``: while it computed right answers.
    """

    def __init__(
        self,
        message: str,
        signal_number: int = 0,
        last: str = "",
        *,
        excess: bool = False,
        in_reference: bool = False,
    ) -> None:
        super().__init__(message)
        self.signal = signal_number
        self.last = last
        self.excess = excess
        self.in_reference = in_reference

    @property
    def from_outside(self) -> bool:
        """Whether a person or the system ended it: no fault of a process sends these signals."""
        return self.signal in {signal.SIGKILL, signal.SIGTERM} and not self.excess


@dataclass
class _Running:
    """A started child: its process, the connection, and the end of what it printed."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    printed: "_Printed"
    hello: Hello = field(default_factory=Hello)
    number: int = 0
    excess: str = ""

    async def end(self) -> None:
        """Kill it and everything it started, and wait for that."""
        if self.process.returncode is None:
            kill_tree(self.process.pid)
        self.writer.close()
        await self.process.wait()
        await self.printed.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


class Child:
    """A persistent worker, started when first asked. Not for concurrent requests."""

    def __init__(
        self, setup: WorkerSetup, start_timeout_s: float = START_TIMEOUT_S, *, strict: bool = False
    ) -> None:
        self.setup = replace(
            setup, mark=secrets.token_hex(8)
        )  # what a kernel prints is nothing of the worker's
        self._strict = strict
        self._start_timeout_s = start_timeout_s
        self._without_walls = ""
        self._running: _Running | None = None
        self._ending = asyncio.Lock()

    @property
    def process_id(self) -> int | None:
        """Process id while the child runs."""
        return self._running.process.pid if self._running else None

    async def start(self) -> Hello:
        """Start unless it runs; without bubblewrap where that is what keeps it from starting.

        Raises UserError for what the user has to mend (something to install, a problem, a layer of the sandbox
        that a strict child lacks), HarnessError when the child fails or ends three times before it is ready.
        """
        if self._running is not None:
            if self._running.process.returncode is None:
                return self._running.hello
            await self.kill()  # it ended while nobody asked for anything: no candidate's fault
        refuse_narrow_limits()
        refuse_closed_interpreter()
        try:
            hello = await self._try_to_start()
        except (HarnessError, UserError) as error:
            # A driver may need what is not shown to it; bwrap's own failures name it.
            if self._without_walls or not (self.setup.uses_gpu or "bwrap: " in str(error)):
                raise
            self._without_walls = f"the {self.setup.role} worker does not start behind it: {error}"
            hello = await self._try_to_start()
        if self._strict and hello.sandbox.missing:
            await self.kill()
            missing = ", ".join(hello.sandbox.missing)
            raise UserError(
                f"--strict: the sandbox of the {self.setup.role} worker lacks {missing}: kernelwright doctor tells why"
            )
        return hello

    async def _try_to_start(self) -> Hello:
        died = ""
        for _ in range(START_TRIES):
            try:
                return await self._start()
            except StepTimeout as error:
                raise HarnessError(f"the {self.setup.role} worker does not start: {error}") from None
            except WorkerDied as error:
                died = str(error)
        raise HarnessError(f"the {self.setup.role} worker does not start: {died}")

    async def ask(self, request: Request, timeout_s: float) -> Reply:
        """Answer to a request. Raises StepTimeout or ChildDied; the child is then gone and starts anew next time.

        A fault that the child reports is raised as UserError or HarnessError.
        """
        await self.start()
        assert self._running is not None
        self._running.number += 1
        number = self._running.number
        reply = await self._exchange(encode(replace(request, id=number)), timeout_s)
        if reply.id != number:
            await self.kill()
            raise ChildDied(f"the {self.setup.role} worker answered out of turn")
        if reply.broken:
            await self.kill()
        if reply.error:
            raise _error(reply)
        return reply

    async def kill(self) -> None:
        """End the child and everything it started; it starts anew when next asked. Who asks meanwhile waits too."""
        async with self._ending:
            running, self._running = self._running, None
            if running is not None:
                await running.end()

    async def _start(self) -> Hello:
        channel, theirs = socket.socketpair()
        log, their_log = socket.socketpair()
        # Not -I, which would ignore PYTHONPATH: the environment is scrubbed, -P keeps the scratch off the path.
        python = [sys.executable, "-P", "-m", "kernelwright.harness.worker"]
        enclosed = self._enclose(python, str(theirs.fileno()))
        roots = import_roots(self.setup.maker)
        reader, writer = await asyncio.open_connection(sock=channel, limit=MAX_LINE)
        printed = _Printed(*await asyncio.open_connection(sock=log), self.setup.mark)
        try:
            with theirs, their_log:
                process = await start_process(
                    *enclosed.command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=their_log.fileno(),
                    stderr=their_log.fileno(),
                    pass_fds=(theirs.fileno(),),
                    env=scrubbed_environment(self.setup.scratch, roots, os.environ),
                    cwd=self.setup.scratch,
                )
        except BaseException as error:
            writer.close()
            await printed.close()
            if isinstance(error, OSError) and error.errno == errno.EAGAIN:
                raise UserError(f"the {self.setup.role} worker cannot be started: {TOO_MANY}") from None
            if isinstance(error, OSError) and error.errno not in {errno.EMFILE, errno.ENFILE}:
                raise HarnessError(f"the {self.setup.role} worker cannot be started: {error}") from None
            raise
        # Nothing is awaited in between: who is cancelled there would leave a child that nobody knows.
        self._running = _Running(process, reader, writer, printed)
        reply = await self._exchange(b"", self._start_timeout_s)
        if reply.hello is None:
            await self.kill()
            raise _error(reply)
        self._running.hello = _with_layer(reply.hello, enclosed.layer)
        return self._running.hello

    def _enclose(self, python: list[str], connection: str) -> Enclosed:
        """The command line, behind walls where there are any; what is trusted (``prepare``) goes without."""
        setup = self.setup
        plain = (*python, setup.to_json(), connection)
        if setup.role == "prepare" or self._without_walls:
            return Enclosed(plain, Layer(NAME, holds=False, detail=self._without_walls))
        view = View(setup.writable, setup.visible, gpu=setup.uses_gpu, capabilities=True)
        inside = (*python, replace(setup, parent=INIT).to_json(), connection)
        enclosed = confined_command(inside, view, Path(setup.scratch))
        return enclosed if enclosed.layer.holds else Enclosed(plain, enclosed.layer)

    async def _exchange(self, line: bytes, timeout_s: float) -> Reply:
        """Send a line (or nothing) and read one. Whatever goes wrong, the child is gone afterwards."""
        running = self._running
        assert running is not None
        watch = asyncio.create_task(self._watch(running))
        try:
            async with asyncio.timeout(timeout_s):
                running.writer.write(line)
                await running.writer.drain()
                answer = await running.reader.readline()
            if answer.endswith(b"\n"):
                reply: Reply = decode(REPLY, answer)
                return reply
        except TimeoutError:
            await self.kill()
            raise StepTimeout(f"no answer within {timeout_s:g} s") from None
        except ConnectionError:
            pass  # it ended before it read the request
        except (ValueError, HarnessError) as error:
            await self.kill()
            raise ChildDied(f"the {self.setup.role} worker broke the protocol: {error}") from None
        except asyncio.CancelledError:
            await self.kill()
            raise
        finally:
            watch.cancel()
        raise await self._obituary(running)

    async def _watch(self, running: _Running) -> None:
        """End a child that takes too much: the connection then says so."""
        scratch = Path(self.setup.scratch)
        bounds = Bounds.on(scratch, self.setup.memory_bytes, self.setup.disk_bytes)
        while self.setup.role != "prepare" and not running.excess:
            await asyncio.sleep(PERIOD_S)
            running.excess = excess(running.process.pid, scratch, bounds)
        if running.excess:
            kill_tree(running.process.pid)

    async def _obituary(self, running: _Running) -> HarnessError:
        """How the child ended: by a fault of ours that it logged, or by a signal."""
        if self._running is not running:
            return HarnessError(f"the {self.setup.role} worker was closed while it worked")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):  # it closed the connection: its exit code is due
                await running.process.wait()
        await self.kill()
        code, last = running.process.returncode or 0, running.printed.last_line
        inside = running.printed.in_reference
        ended_by = signal_of(code)
        tail = f": {last}" if last else ""
        if running.excess:
            return ChildDied(
                f"the {self.setup.role} worker was ended: {running.excess}",
                signal.SIGKILL,
                last,
                excess=True,
                in_reference=inside,
            )
        if code == FAULT_CODE:
            mend = disk_full(self.setup.scratch) if f"[Errno {errno.ENOSPC}]" in last else ""
            mend = f": {TOO_MANY}" if f"[Errno {errno.EAGAIN}]" in last else mend
            return HarnessError(f"the {self.setup.role} worker failed{mend or tail}")
        how = f"ended with signal {ended_by}" if ended_by else f"ended with code {code}"
        return ChildDied(f"the {self.setup.role} worker {how}{tail}", ended_by, last, in_reference=inside)


class _Printed:
    """Reads what a child prints, for ever and however much, and keeps the end of it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mark: str) -> None:
        self._reader, self._writer = reader, writer
        self._marks = (f"{mark} {REFERENCE_BEGINS}", f"{mark} {REFERENCE_ENDS}")
        self._tail = bytearray()
        self.in_reference = False
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionError):
            while chunk := await self._reader.read(_CHUNK):
                self._tail += chunk
                begins, ends = (self._tail.rfind(mark.encode()) for mark in self._marks)
                if begins != ends:  # one is there, and the later one tells
                    self.in_reference = begins > ends
                del self._tail[:-_LOG_BYTES]

    async def close(self) -> None:
        """Take what is left (the printer has ended) and close."""
        await asyncio.wait({self._task}, timeout=1.0)
        self._task.cancel()
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    @property
    def last_line(self) -> str:
        """Last line with something in it."""
        lines = self._tail.decode(errors="replace").splitlines()
        lines = [line.strip() for line in lines if line.strip() and line.strip() not in self._marks]
        return lines[-1][:500] if lines else ""


def _with_layer(hello: Hello, layer: Layer) -> Hello:
    """With the layer that the parent knows of; a child that confines nothing (``prepare``) reports none."""
    if not hello.sandbox.layers:
        return hello
    return replace(hello, sandbox=SandboxReport((layer, *hello.sandbox.layers)))


def _error(reply: Reply) -> HarnessError | UserError:
    return UserError(reply.error) if reply.user_error else HarnessError(reply.error)
