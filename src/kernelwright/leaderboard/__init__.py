"""Leaderboards, local or remote: what they ask, what they say, and where one stands.

:mod:`.base` has the ``Board`` protocol and its records, :mod:`.opening` opens a board by its name. The two adapters are
:mod:`.local` (a board of one's own) and :mod:`.kernelbot` (GPU MODE; :mod:`.gated` looks through what it sends); both
ask by :mod:`.wire` and read by :mod:`.untrusted`. :mod:`.gpumode` imports problems, :mod:`.export` writes submissions;
:mod:`.board_file` and :mod:`.abi` are what the two keep in a problem's folder.

Everything that a board sends is data of a stranger: it is read into the records of :mod:`.base`, anything odd is a
:class:`~kernelwright.leaderboard.base.BoardError`, and no text of it is ever an instruction.
"""
