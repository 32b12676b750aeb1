"""Every credential that the user has here: a board's server may know one that it was not sent this time."""

from collections.abc import Iterator
from typing import Final

from kernelwright.leaderboard.kernelbot.credentials import known_ids
from kernelwright.leaderboard.secret import Secret
from kernelwright.leaderboard.tokens import known_tokens

SHORTEST: Final = 8
"""No credential is shorter, and hiding a short word would make holes in every text."""


def known_credentials(sent: Secret | None) -> tuple[Secret, ...]:
    """To be cut out of what any server says: ``sent``, and what lies in environment and files. The longest first."""
    values = {value for value in _values(sent) if len(value) >= SHORTEST}
    return tuple(Secret(value) for value in sorted(values, key=lambda value: (-len(value), value)))


def _values(sent: Secret | None) -> Iterator[str]:
    if sent is not None:
        yield sent.reveal()
    yield from known_ids()
    yield from known_tokens()
