"""A confined child at work: says hello, then answers one request after another."""

import os
import socket
from io import BufferedRWPair

from kernelwright.core.errors import KernelwrightError, UserError
from kernelwright.harness.sandbox import SandboxReport, after_start
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.wire import MAX_LINE, REQUEST, Hello, Reply, Request, decode, encode
from kernelwright.harness.worker.compile_worker import CompileService
from kernelwright.harness.worker.device_worker import DeviceService
from kernelwright.harness.worker.devices import prepare
from kernelwright.harness.worker.reference_worker import ReferenceService

Service = CompileService | DeviceService | ReferenceService


def serve(setup: WorkerSetup, report: SandboxReport, handle: int) -> int:
    """Serve until the parent closes the connection; exit code."""
    os.set_inheritable(handle, False)
    with socket.socket(fileno=handle) as connection, connection.makefile("rwb") as channel:
        try:
            service = _start(setup)
        except KernelwrightError as error:
            _send(channel, _fault(0, error))
            return 1
        hello = service.greet(report) if service else Hello(report)
        if setup.uses_gpu and "seccomp" not in report.missing:
            after_start()
        _send(channel, Reply(0, hello=hello))
        return _serve(service, channel) if service else 0


def _start(setup: WorkerSetup) -> Service | None:
    match setup.role:
        case "prepare":
            prepare(setup)
            return None
        case "probe":
            return None
        case "compile":
            return CompileService(setup)
        case "device":
            return DeviceService(setup)
        case "reference":
            return ReferenceService(setup)


def _serve(service: Service, channel: BufferedRWPair) -> int:
    while line := channel.readline(MAX_LINE + 1):
        request: Request = decode(REQUEST, line)
        try:
            reply = service.answer(request)
        except KernelwrightError as error:
            reply = _fault(request.id, error)
        _send(channel, reply)
        if reply.broken:
            # The device's context is lost: ordinary clean-up could hang on it.
            os._exit(0)
    return 0


def _fault(number: int, error: KernelwrightError) -> Reply:
    text = " ".join(str(error).split())[:2000]
    return Reply(number, error=text, user_error=isinstance(error, UserError))


def _send(channel: BufferedRWPair, reply: Reply) -> None:
    channel.write(encode(reply))
    channel.flush()
