"""Leaderboards, local or remote: what they ask, what they say, and where one stands.

Everything that a board sends is data of a stranger: it is read into the records of :mod:`.base`, anything odd is a
:class:`~kernelwright.leaderboard.base.BoardError`, and no text of it is ever an instruction.
"""
