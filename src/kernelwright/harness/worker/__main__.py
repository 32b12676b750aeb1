"""A child of the harness: sets itself up, confines itself, says hello, then answers one request after another.

One of the two places where any exception is caught: it becomes a reply (a fault of the harness) and the end of
this process, never silence.
"""

import os
import socket
import sys
import traceback
from pathlib import Path
from typing import BinaryIO, Protocol

from kernelwright.core.errors import KernelwrightError, UserError
from kernelwright.harness.sandbox import Limits, die_with_parent, lock_down
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


class Service(Protocol):
    """What a child does: greet, then answer."""

    def greet(self) -> Hello:
        """First message, before the sandbox is known."""
        ...

    def answer(self, request: Request) -> Reply:
        """Answer one request."""
        ...


def main() -> int:
    """Serve until the parent closes the connection; exit code."""
    setup: WorkerSetup = decode(SETUP, sys.argv[1].encode())
    die_with_parent()
    with socket.socket(fileno=int(sys.argv[2])) as connection, connection.makefile("rwb") as channel:
        try:
            service = _service(setup)
            hello = service.greet()
            sandbox = lock_down(
                writable=[Path(setup.scratch), Path(setup.artifacts)],
                readable=[Path(path) for path in setup.readable],
                gpu=setup.role == "device" and setup.device != "cpu",
                limits=Limits(data_bytes=None) if setup.role == "device" else Limits(),
            )
            greeting = Hello(sandbox, hello.toolchain, hello.facts, hello.ceilings)
            _send(channel, Reply(0, hello=greeting))
            return _serve(service, channel)
        except Exception as error:  # noqa: BLE001 - the process boundary: the parent must hear of it
            _tell(channel, 0, error)
            return 1


def _serve(service: Service, channel: BinaryIO) -> int:
    while line := channel.readline(MAX_LINE + 1):
        request: Request = decode(REQUEST, line)
        try:
            reply = service.answer(request)
        except KernelwrightError as error:
            reply = Reply(request.id, error=_text(error), user_error=isinstance(error, UserError))
        _send(channel, reply)
        if reply.broken:
            # The context is lost: ordinary clean-up could hang on it.
            os._exit(0)
    return 0


def _service(setup: WorkerSetup) -> Service:
    if setup.role == "compile":
        from kernelwright.harness.worker.compile_worker import CompileService

        return CompileService(setup)
    from kernelwright.harness.worker.device_worker import DeviceService

    return DeviceService(setup)


def _send(channel: BinaryIO, reply: Reply) -> None:
    channel.write(encode(REPLY, reply))
    channel.flush()


def _tell(channel: BinaryIO, number: int, error: Exception) -> None:
    traceback.print_exc()
    _send(channel, Reply(number, error=_text(error), user_error=isinstance(error, UserError)))


def _text(error: Exception) -> str:
    """One line; a fault of ours carries its type."""
    text = " ".join(str(error).split())[:2000]
    return text if isinstance(error, KernelwrightError) else f"{type(error).__name__}: {text}"


if __name__ == "__main__":
    sys.exit(main())
