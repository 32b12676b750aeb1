"""A leaderboard of one's own: problems, submissions that the harness measures here, ranks, and a page.

:mod:`.service` holds the board's rules, :mod:`.evaluator` measures, :mod:`.store` keeps everything in one SQLite
file, :mod:`.api` and :mod:`.pages` are the ways in. starlette and uvicorn are imported by the latter only.
"""
