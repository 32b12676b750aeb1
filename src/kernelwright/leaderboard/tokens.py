"""A user's tokens of boards: one of the environment, or those of a file, each for the server before it."""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kernelwright.core import homes
from kernelwright.core.errors import NoSuchFile, UserError
from kernelwright.core.files import read_text
from kernelwright.leaderboard.origin import Origin, origin
from kernelwright.leaderboard.private import look_at_rights

TOKEN_VARIABLE: Final = "KERNELWRIGHT_BOARD_TOKEN"  # noqa: S105 - a variable's name
TOKEN_FILE: Final = Path(".config/kernelwright/board-token")
MAX_FILE_BYTES: Final = 64 << 10
HOW_TO_GIVE_ONE: Final = (
    f"a token is needed: put it into ${TOKEN_VARIABLE}, "
    f"or a line 'http://HOST:PORT TOKEN' with the board's server into ~/{TOKEN_FILE}"
)
_TOKEN: Final = re.compile(r"[\x21-\x7e]{8,200}")


def find_token(url: str, environment: Mapping[str, str] = os.environ, home: Path | None = None) -> str | None:
    """``$KERNELWRIGHT_BOARD_TOKEN``, else the file's for the server of ``url``; ``None`` without either.

    Raises UserError; its message never holds a token.
    """
    if token := environment.get(TOKEN_VARIABLE, "").strip():
        if not _TOKEN.fullmatch(token):
            raise UserError(f"${TOKEN_VARIABLE}: is no token: 'kernelwright board token NAME' makes one")
        return token
    path = (home or homes.home()) / TOKEN_FILE
    tokens = list(_lines(path))
    if open_to_others := look_at_rights(path):
        raise UserError(open_to_others)
    return next((token for server, token in tokens if server == origin(url)), None)


def known_tokens(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> list[str]:
    """All that the user has, for whichever server; nothing of a file that cannot be read."""
    found = [environment.get(TOKEN_VARIABLE, "").strip()]
    with contextlib.suppress(UserError):
        for _, token in _lines((home or homes.home()) / TOKEN_FILE):
            found.append(token)
    return found


def _lines(path: Path) -> Iterator[tuple[Origin, str]]:
    """Servers with their tokens. A token without its server could go to any board that a command names."""
    try:
        text = read_text(path, MAX_FILE_BYTES)
    except NoSuchFile:
        return
    except UserError as error:
        raise UserError(f"{error}, with lines 'http://HOST:PORT TOKEN'") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            server, _, token = line.strip().partition(" ")
            found = origin(server)
            if found is None or not _TOKEN.fullmatch(token.strip()):
                raise UserError(f"{path}:{number}: is no line 'http://HOST:PORT TOKEN' of a board's server")
            yield found, token.strip()
