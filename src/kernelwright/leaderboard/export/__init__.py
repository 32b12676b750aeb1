"""A candidate for a board of others: ``submission.py``, and what is looked at before it is sent."""

from kernelwright.leaderboard.export.submission import write_submission

__all__ = ["write_submission"]
