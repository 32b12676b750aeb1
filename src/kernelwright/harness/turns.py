"""Many compilers or one measurement: on the cpu device both would fight for the same cores."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Turns:
    """A lock that many may share or one may have alone. Who wants it alone goes before new sharers."""

    def __init__(self) -> None:
        self._sharing = 0
        self._wanting = 0
        self._alone = False
        self._changed = asyncio.Condition()

    @property
    def taken(self) -> bool:
        """Whether somebody holds it alone."""
        return self._alone

    @contextlib.asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Hold it together with others."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._alone and not self._wanting)
            self._sharing += 1
        try:
            yield
        finally:
            async with self._changed:
                self._sharing -= 1
                self._changed.notify_all()

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Hold it alone."""
        async with self._changed:
            self._wanting += 1
            try:
                await self._changed.wait_for(lambda: not self._alone and not self._sharing)
                self._alone = True
            finally:
                self._wanting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            async with self._changed:
                self._alone = False
                self._changed.notify_all()
