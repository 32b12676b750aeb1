"""GPU MODE's leaderboards ("kernelbot"), as their public protocol was recorded and read in July 2026.

:mod:`.board` is the adapter; :mod:`.client` speaks HTTP; :mod:`.answers` reads what came into records.
"""
