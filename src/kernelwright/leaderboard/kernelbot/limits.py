"""What GPU MODE's server refuses at once, whatever the leaderboard."""

from typing import Final

MAX_BYTES: Final = 1_000_000
"""Of a submission's file."""
BANNED: Final = "stream"
"""Refused anywhere in the file, in any case."""
