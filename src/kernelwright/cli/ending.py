"""SIGTERM, and SIGHUP when a terminal closes, are what Ctrl-C is: what was begun is put away."""

import os
import signal
from types import FrameType
from typing import Final

ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


def end_as_interrupts_do() -> None:
    """From now on. Who ignores a signal (nohup) or handles it is left alone."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Whoever handles Ctrl-C at this moment gets it; shells let background commands ignore it."""
    if number == signal.SIGHUP:
        _leave_terminal()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.default_int_handler(number, frame)
    signal.raise_signal(signal.SIGINT)


def _leave_terminal() -> None:
    """An output on a terminal that has gone takes nothing more, and what is put away may still say something."""
    for stream in (1, 2):
        try:
            os.write(stream, b"")
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream)
            os.close(nowhere)
