"""A tool of NVIDIA's that watches one candidate's process: how it is enclosed, started, and ended.

The watched process (:mod:`kernelwright.harness.worker.sanitized`) confines itself. The tool injects a library into
it and talks to it, which a full sandbox may forbid: then layers are left out in an order that each tool's module
gives, and results name what did not hold.
"""

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelwright.core.errors import UserError
from kernelwright.core.files import read_beginning
from kernelwright.harness.processes import kill_tree, start_process
from kernelwright.harness.sandbox.bubblewrap import View, confined_command
from kernelwright.harness.setup import WorkerSetup

MODULE: Final = "kernelwright.harness.worker.sanitized"
_TAIL_BYTES: Final = 4096


@dataclass(frozen=True)
class Confinement:
    """``walls``: bubblewrap around tool and process, where it is installed; ``without``: layers left out inside."""

    walls: bool = True
    without: tuple[str, ...] = ()


def watched_command(setup: WorkerSetup, confinement: Confinement) -> list[str]:
    """Command of the process that a tool shall watch."""
    return [sys.executable, "-P", "-m", MODULE, setup.to_json(), ",".join(confinement.without)]


def enclosed(command: list[str], setup: WorkerSetup, confinement: Confinement) -> tuple[Sequence[str], bool]:
    """The command with walls around it, and whether they hold."""
    if not confinement.walls:
        return command, False
    readable = (*setup.readable, setup.artifacts, setup.cache)
    view = View(writable=(Path(setup.scratch),), readable=tuple(map(Path, readable)), gpu=True)
    walled = confined_command(command, view, Path(setup.scratch))
    return walled.command, walled.layer.holds


def find_tool(name: str) -> str | None:
    """Path of a tool of the toolkit, from PATH, CUDA_HOME, CUDA_PATH or the toolkit's usual folder."""
    homes = [os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH")]
    folders = [f"{home}/bin" for home in (*homes, "/usr/local/cuda") if home]
    return shutil.which(name) or shutil.which(name, path=":".join(folders))


async def finished(
    command: Sequence[str],
    environment: dict[str, str],
    folder: Path,
    limit_s: float,
    *,
    pass_fds: Sequence[int] = (),
    started: Callable[[int], None] | None = None,
) -> tuple[int | None, str]:
    """Exit code (``None`` after the limit) and the last line printed; whatever is left of it is killed.

    ``started`` hears the process id.
    """
    process = await start_process(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
        cwd=folder,
        pass_fds=pass_fds,
    )
    if started is not None:
        started(process.pid)
    assert process.stdout is not None
    reading = asyncio.create_task(_tail(process.stdout))
    code: int | None = None
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                code = await process.wait()
    finally:
        if process.returncode is None:
            kill_tree(process.pid)
            await process.wait()
        await asyncio.wait({reading}, timeout=1.0)
        reading.cancel()
    kept = reading.result() if reading.done() and not reading.cancelled() else b""
    lines = [line.strip() for line in kept.decode(errors="replace").splitlines() if line.strip()]
    return code, (lines[-1] if lines else "")[:300]


async def _tail(stream: asyncio.StreamReader) -> bytes:
    """The end of what is printed, however much it is."""
    kept = bytearray()
    while chunk := await stream.read(1 << 16):
        kept += chunk
        del kept[:-_TAIL_BYTES]
    return bytes(kept)


def head(path: Path, most: int) -> str:
    """The beginning of a report, at most ``most`` bytes; empty when there is none."""
    try:
        return read_beginning(path, most).decode(errors="replace")
    except UserError:
        return ""
