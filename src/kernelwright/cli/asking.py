"""What commands make of a board that does not answer."""

import contextlib
from collections.abc import Iterator

from kernelwright.core.errors import UserError
from kernelwright.leaderboard.base import BoardError, RateLimited, Refused, Unauthorized


@contextlib.contextmanager
def asking() -> Iterator[None]:
    """A board that cannot be asked, or a credential that it does not take, is bad input; its no stays an answer."""
    try:
        yield
    except Unauthorized as error:
        raise UserError(str(error)) from None
    except (Refused, RateLimited):
        raise
    except BoardError as error:
        raise UserError(str(error)) from None
