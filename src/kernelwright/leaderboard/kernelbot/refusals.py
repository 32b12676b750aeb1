"""What a status and a text of the server mean.

The server wraps its own refusals into others' statuses (a rule as 500, an unknown board as 400 around 500, a rate
limit as 400 in a running answer), so that both are looked at.
"""

import re
from typing import Final

from kernelwright.leaderboard.base import BoardError, RateLimited, Refused, Unauthorized
from kernelwright.leaderboard.kernelbot.address import WHERE
from kernelwright.leaderboard.kernelbot.credentials import HOW_TO_GET_ONE
from kernelwright.leaderboard.untrusted import line
from kernelwright.leaderboard.wire import Unavailable

_RATE: Final = re.compile(r"rate limit exceeded", re.IGNORECASE)
_RETRY: Final = re.compile(r"try again in (\d{1,7}(?:\.\d{1,6})?) ?s", re.IGNORECASE)
_WHO: Final = re.compile(
    r"missing x-[\w-]*-id|invalid or unauthorized|authentication required", re.IGNORECASE
)
_PAUSED: Final = re.compile(r"not accepting any new submissions", re.IGNORECASE)
_FINAL: Final = re.compile(r"does not exist|invalid gpu type|work on another stream", re.IGNORECASE)
_INNER: Final = re.compile(r"\b5\d\d: ")


def refusal(status: int, text: str) -> BoardError:
    """The error for an answer that is no success. ``text`` is the server's, without the credential."""
    said = line(text)
    message = f"{WHERE}: the board says: {said}" if said else f"{WHERE}: the board answers HTTP {status}"
    if status == 429 or _RATE.search(said):
        found = _RETRY.search(said)
        return RateLimited(message, float(found[1]) if found else None)
    if status == 401 or _WHO.search(said):
        return Unauthorized(f"{message} ({HOW_TO_GET_ONE})")
    if _PAUSED.search(said):
        return RateLimited(message)
    ours = 400 <= status < 500 and status not in {408, 425} and not _INNER.search(said)
    if ours or _FINAL.search(said):
        return Refused(message)
    return Unavailable(message)
