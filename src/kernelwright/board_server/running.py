"""A server from its settings: store, evaluators, and uvicorn around them."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import uvicorn

from kernelwright.board_server.app import make_app
from kernelwright.board_server.connections import (
    KEEP_ALIVE_S,
    Connection,
    Gate,
    Listener,
    most_connections,
)
from kernelwright.board_server.evaluator import Bench, Evaluator, OpenBench
from kernelwright.board_server.opening import only_server
from kernelwright.board_server.records import Draft, Listing, Rules
from kernelwright.board_server.service import Service
from kernelwright.board_server.store import Store
from kernelwright.board_server.text import local_time
from kernelwright.core.errors import UserError
from kernelwright.harness.device_lock import silent
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.problem_test import quick_selftest
from kernelwright.leaderboard.base import State

EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with
RESERVED: Final = frozenset({"api", "submissions"})
COMPILE_WORKERS: Final = 8


@dataclass(frozen=True)
class Settings:
    """What a server serves, where, and by which rules. ``strict``: only where the sandbox is whole."""

    listings: Sequence[Listing]
    devices: Sequence[str]
    data: Path
    host: str = "127.0.0.1"
    port: int = 8000
    rules: Rules = field(default_factory=Rules)
    strict: bool = False


async def open_local(
    listing: Listing,
    device: str,
    seed: int,
    notify: Callable[[str], None] = silent,
    *,
    strict: bool = False,
) -> Bench:
    """The harness of this machine. ``notify`` hears what it waits for."""
    harness = LocalHarness(
        listing.problem.folder,
        device,
        seed=seed,
        compile_workers=min(COMPILE_WORKERS, os.cpu_count() or 1),
        slow_cases=listing.slow_cases,
        notify=notify,
        strict=strict,
    )
    await harness.start()
    return harness


async def serve(
    settings: Settings, notify: Callable[[str], None], open_bench: OpenBench | None = None
) -> None:
    """Serve until a signal. ``notify`` hears where, once requests are taken.

    Raises UserError and HarnessError where it cannot begin.
    """
    gate = Gate(most_connections(), notify)
    with _listening(settings.host, settings.port, gate) as listener, only_server(settings.data) as keep:
        await _examine(settings, notify)
        opener = open_bench or partial(open_local, notify=notify, strict=settings.strict)
        async with running(settings, notify, opener) as (service, work):
            config = uvicorn.Config(
                make_app(service, notify),
                http=Connection,
                ws="none",
                log_level="error",  # a warning for each strange request would fill the disk
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=3,
            )
            server = _Server(config, gate)
            for task in work:
                task.add_done_callback(lambda _: setattr(server, "should_exit", True))
            keep()
            notify(f"board: {_url(listener)}")
            for line in _deadlines(service):
                notify(line)
            await server.serve(sockets=[listener])
            for task in work:
                if task.done():
                    task.result()


async def _examine(settings: Settings, notify: Callable[[str], None]) -> None:
    """As a campaign does before it begins: submitters must not pay for a problem that cannot be used.

    Raises ProblemError. What comes with the package is tested with it.
    """
    for problem, slow in ((listing.problem, listing.slow_cases) for listing in settings.listings):
        if not problem.bundled:
            tested = await quick_selftest(problem, slow=slow, strict=settings.strict)
            for warning in tested.warnings:
                notify(f"{problem.name}: the problem's self-test: {warning}")


class _Server(uvicorn.Server):
    """Ends on a signal by itself; uvicorn would raise it once more, and nothing could be put away."""

    def __init__(self, config: uvicorn.Config, gate: Gate) -> None:
        super().__init__(config)
        self._gate = gate

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        self._gate.tell()
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Until it has ended."""
        loop, caught = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
        for each in caught:
            loop.add_signal_handler(each, self.handle_exit, each, None)
        try:
            yield
        finally:
            for each in caught:
                loop.remove_signal_handler(each)


@contextlib.contextmanager
def _listening(host: str, port: int, gate: Gate) -> Iterator[Listener]:
    """Bound before anything slow begins. Raises UserError."""
    if not host.strip():
        raise UserError("--host: is empty: give this machine's address, or 0.0.0.0 for a whole network")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = Listener(socket.create_server((host, port), family=family, backlog=2048), gate)
    except OSError as error:
        raise UserError(f"--host {host} --port {port}: cannot listen there: {error.strerror}") from None
    with listener:
        yield listener


def _deadlines(service: Service) -> Iterator[str]:
    """What whoever serves a board should see, also where the file has it from an earlier start."""
    for problem in service.listings:
        if (deadline := service.store.deadline(problem)) is None:
            yield f"{problem}: has no deadline: sources stay closed"
        elif service.over(problem):
            yield f"{problem}: its deadline passed at {local_time(deadline)}: nothing more is taken, sources are open"
        else:
            yield f"{problem}: takes submissions until {local_time(deadline)}, then opens their sources"


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if host in EVERYWHERE:  # nobody else gets here by that
        host = socket.gethostname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


@contextlib.asynccontextmanager
async def running(
    settings: Settings, notify: Callable[[str], None], open_bench: OpenBench
) -> AsyncIterator[tuple[Service, list[asyncio.Task[None]]]]:
    """The service, and its evaluators at work: a task that ends is a fault.

    Raises UserError and HarnessError where a device cannot be used.
    """
    listings = {listing.problem.name: listing for listing in settings.listings}
    _check(settings, listings)
    store = Store.open(settings.data)
    work: list[asyncio.Task[None]] = []
    evaluators: dict[str, Evaluator] = {}
    try:
        for listing in settings.listings:
            store.adopt(listing)
        deadlines = {name: store.agreed_deadline(name, settings.rules.deadline) for name in listings}
        store.resume()
        for device in settings.devices:
            evaluators[device] = Evaluator(store, device, listings, open_bench, notify)
            await evaluators[device].prepare()
            for listing in settings.listings:
                _enter_library(store, listing.library(device))
        store.keep_deadlines(deadlines)
        work += [asyncio.create_task(evaluator.run()) for evaluator in evaluators.values()]
        yield Service(store, listings, evaluators, settings.rules), work
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        await asyncio.gather(*(evaluator.close() for evaluator in evaluators.values()))
        store.close()


def _enter_library(store: Store, draft: Draft | None) -> None:
    """The library waits before everybody who comes now; where it failed before it may be there today."""
    if draft is None:
        return
    known = store.by_tag(draft)
    if known is None:
        store.new_token(draft.user)
        store.add(draft)
    elif known.verdict.state is State.FAILED:
        store.again(known, counted=False)


def _check(settings: Settings, listings: dict[str, Listing]) -> None:
    if len(listings) < len(settings.listings):
        raise UserError("two problems have the same name: serve one of them")
    if reserved := RESERVED & listings.keys():
        raise UserError(f"{min(reserved)}: is the name of a page of the board: rename the problem")
    if len(set(settings.devices)) < len(settings.devices):
        raise UserError("--device: is given twice")
