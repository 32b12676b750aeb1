"""Runs Python scripts of strangers: each in a process that first confines itself, seen from the parent.

Scripts answer on a pipe whose descriptor's number is in ``POPCORN_FD`` (the way of GPU MODE's evaluators); of what
they print only the last line is kept.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from kernelwright.core.looking import is_there
from kernelwright.harness.excess import PERIOD_S, Bounds, excess
from kernelwright.harness.processes import import_roots, readable_folders, scrubbed_environment
from kernelwright.harness.sandbox.bubblewrap import INIT, NAME, View, confined_command
from kernelwright.harness.scratch import Scratch
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.watched import find_tool, finished

PIPE: Final = "POPCORN_FD"
MODULE: Final = "kernelwright.harness.worker.script"
MAX_SAID: Final = 4 << 20
MEMORY_BYTES: Final = 16 << 30
DISK_BYTES: Final = 4 << 30
_TOO_MUCH: Final = f"it said more than {MAX_SAID >> 20} MiB"
_CHUNK: Final = 1 << 16
_LAST_WORDS_S: Final = 1.0


@dataclass(frozen=True)
class Ran:
    """How a script ended: exit code (``None``: ended by us), what it said on the pipe, the last line printed.

    ``missing`` are layers of the sandbox that did not hold. ``ended`` says why we ended it before its time.
    """

    code: int | None
    said: str
    printed: str
    missing: tuple[str, ...] = ()
    ended: str = ""


def told(missing: Sequence[str]) -> str:
    """What people are told of layers that did not hold; empty when all did."""
    return f"sandbox without: {', '.join(missing)} (kernelwright doctor tells why)" if missing else ""


class Enclosure:
    """A folder with files, in which scripts run one after the other. A context manager: the end removes it.

    ``device`` is ``cpu`` or ``cuda:N``; of several GPUs a script sees that one alone. Time, memory, disk and what is
    said are bounded.
    """

    def __init__(
        self, files: Mapping[str, str], *, device: str = "cpu", scratch_root: Path | None = None
    ) -> None:
        self._scratch = Scratch(scratch_root)
        self._device = device
        self._walls = True
        self.folder = self._scratch.folder("script")
        for name, text in files.items():
            self.write(name, text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._scratch.close()

    def write(self, name: str, text: str) -> None:
        """Put a file into the folder; another user than ours has to read it."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        path.write_bytes(text.encode())
        path.chmod(0o644)

    async def run(
        self, arguments: Sequence[str], limit_s: float, environment: Mapping[str, str] | None = None
    ) -> Ran:
        """``python ARGUMENTS`` in the folder, for at most ``limit_s`` seconds; without walls where they cannot be."""
        ran = await self._run(arguments, limit_s, environment or {})
        if ran is None and self._walls:
            self._walls = False
            ran = await self._run(arguments, limit_s, environment or {})
        return ran or Ran(None, "", "the sandbox could not be started")

    async def _run(
        self, arguments: Sequence[str], limit_s: float, environment: Mapping[str, str]
    ) -> Ran | None:
        """``None`` where the child did not come as far as to be confined."""
        read_end, write_end = os.pipe()
        pipe = _Pipe(read_end)
        command, walls = self._command(arguments)
        variables = {**self._environment(), **environment, PIPE: str(write_end)}
        process = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(
            finished(
                command, variables, self.folder, limit_s, pass_fds=(write_end,), started=process.set_result
            )
        )
        reading, watching = asyncio.create_task(pipe.read()), asyncio.create_task(self._watch(process))
        everybody = {running, reading, watching}
        try:
            # Our own end of the pipe is open: that nothing more is read is no end, but too much.
            await asyncio.wait(everybody, return_when=asyncio.FIRST_COMPLETED)
            ended = watching.result() if watching.done() else _TOO_MUCH if reading.done() else ""
            if ended:
                running.cancel()
            await asyncio.wait({running})
        finally:
            running.cancel()
            watching.cancel()
            os.close(write_end)
            await asyncio.wait(everybody, timeout=_LAST_WORDS_S)
            reading.cancel()
        code, printed = (None, "") if running.cancelled() else running.result()
        first, newline, said = pipe.text.partition("\n")
        if not newline and code is not None:
            return None
        missing = (*(() if walls else (NAME,)), *filter(None, first.split(",")))
        return Ran(code, said, printed, missing, ended)

    async def _watch(self, process: "asyncio.Future[int]") -> str:
        """Waits until it takes too much, and says what."""
        number = await process
        bounds = Bounds.on(self.folder, MEMORY_BYTES, DISK_BYTES)
        while True:
            if text := excess(number, self.folder, bounds):
                return text
            await asyncio.sleep(PERIOD_S)

    def _command(self, arguments: Sequence[str]) -> tuple[Sequence[str], bool]:
        scratch = str(self.folder)
        setup = WorkerSetup(
            role="device",
            device=self._device,
            parent=os.getpid(),
            scratch=scratch,
            artifacts=scratch,
            cache=scratch,
            readable=readable_folders(import_roots(), *filter(None, [_toolkit()])),
            memory_bytes=MEMORY_BYTES,
        )
        start = (sys.executable, "-P", "-m", MODULE)
        if self._walls:
            view = View(setup.writable, setup.visible, setup.uses_gpu, capabilities=True, shared_memory=True)
            inside = (*start, replace(setup, parent=INIT).to_json(), *arguments)
            enclosed = confined_command(inside, view, self.folder)
            if enclosed.layer.holds:
                return enclosed.command, True
        return (*start, setup.to_json(), *arguments), False

    def _environment(self) -> dict[str, str]:
        """Tools that lie beside the interpreter (ninja) and the CUDA toolkit are found; one GPU is seen."""
        variables = scrubbed_environment(str(self.folder), import_roots(), os.environ)
        variables |= {"USER": "nobody", "LOGNAME": "nobody"}  # else they are looked up in /etc
        path = [f"{sys.prefix}/bin", variables.get("PATH", os.defpath)]
        kind, _, number = self._device.partition(":")
        if kind == "cuda":
            seen = [part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part]
            index = int(number or 0)
            variables["CUDA_VISIBLE_DEVICES"] = seen[index] if index < len(seen) else str(index)
            if home := _toolkit():
                variables["CUDA_HOME"] = str(home)
                path.append(f"{home}/bin")
        variables["PATH"] = os.pathsep.join(path)
        return variables


def _toolkit() -> Path | None:
    """The CUDA toolkit's folder; of several beside each other the newest by name."""
    programs = [Path(found).resolve()] if (found := find_tool("nvcc")) else []
    programs += sorted(Path("/usr/local").glob("cuda-*/bin/nvcc"), reverse=True)
    homes = (program.parent.parent for program in programs)
    return next((home for home in homes if is_there(home / "include" / "cuda_runtime.h")), None)


class _Pipe:
    """What a script says, up to :data:`MAX_SAID` bytes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._kept = bytearray()

    @property
    def text(self) -> str:
        """What has come so far."""
        return self._kept.decode(errors="replace")

    async def read(self) -> None:
        """Until the end, or until it is too much."""
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._descriptor, "rb", buffering=0)
        )
        with contextlib.closing(transport):
            while len(self._kept) <= MAX_SAID and (chunk := await reader.read(_CHUNK)):
                self._kept += chunk
