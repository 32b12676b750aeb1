"""What the first signal does: beside experiments it lets them end, behind the search it does not wait for trips."""

import asyncio
import os
import signal

import pytest

from kernelwright.campaign.sitting import _stopped_by_signals


async def _signalled(number: signal.Signals, *, ending: bool, patient: bool) -> bool:
    """Whether what runs under it goes on."""
    stop = asyncio.Event()
    with _stopped_by_signals(stop, patient=patient):
        if ending:
            stop.set()
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.wait(), 5)
        await asyncio.sleep(0.05)
        return stop.is_set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("ending", "patient"), [(False, False), (False, True), (True, True)])
def test_the_first_signal_lets_what_is_in_flight_end(
    number: signal.Signals, ending: bool, patient: bool
) -> None:
    assert asyncio.run(_signalled(number, ending=ending, patient=patient))


def test_behind_the_search_of_a_device_elsewhere_it_ends_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(_signalled(signal.SIGINT, ending=True, patient=False))


def test_so_does_the_signal_of_kill() -> None:
    def told(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, told)
    try:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(_signalled(signal.SIGTERM, ending=True, patient=False))
    finally:
        signal.signal(signal.SIGTERM, before)
