"""Work side by side."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def together(work: Iterable[Coroutine[Any, Any, object]]) -> None:
    """All of it, side by side.

    Whoever cancels it, or the first that fails, waits until the others have put away what they began; the first fault is
    raised as it was, not in a group.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
