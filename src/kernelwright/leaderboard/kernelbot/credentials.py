"""The user's own credential for GPU MODE: read, sent in one header, never shown and never kept.

Registration needs a person in a browser, once; nothing here does it for them.
"""

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from kernelwright.core.errors import MissingError, NoSuchFile, UserError
from kernelwright.core.files import read_bytes
from kernelwright.core.homes import home
from kernelwright.core.toml import holds_long_integer
from kernelwright.leaderboard.base import Unauthorized
from kernelwright.leaderboard.kernelbot.address import VARIABLE as SERVER_VARIABLE
from kernelwright.leaderboard.origin import origin
from kernelwright.leaderboard.private import look_at_rights
from kernelwright.leaderboard.secret import Secret
from kernelwright.leaderboard.wire import INSTALL

VARIABLE: Final = "POPCORN_CLI_ID"
FILE: Final = ".popcorn.yaml"
MAX_FILE_BYTES: Final = 64 * 1024
HOW_TO_GET_ONE: Final = f"register once with GPU MODE's popcorn-cli (popcorn register github), which writes ~/{FILE}, or set {VARIABLE}"
_WELL_FORMED: Final = re.compile(r"[A-Za-z0-9._-]{8,200}", re.ASCII)


class NoCredential(Unauthorized, UserError):  # noqa: N818 - reads as what happened
    """There is no credential, or it cannot be read."""


def find_credential(
    server: str,
    environment: Mapping[str, str] = os.environ,
    folder: Path | None = None,
    told: Callable[[str], None] = lambda _: None,
) -> Secret | None:
    """From ``$POPCORN_CLI_ID``, else ``cli_id`` of ``~/.popcorn.yaml``; ``None`` where there is neither.

    The file's goes to the server that ``$POPCORN_API_URL`` names, and to no other that a command may name. Raises
    NoCredential for a file that is there and cannot be used, or that others can write. ``told`` hears that others can
    read it: popcorn-cli itself leaves it so. No message holds a part of the file.
    """
    if given := environment.get(VARIABLE, "").strip():
        return _secret(given)
    if origin(server) != origin(environment.get(SERVER_VARIABLE, "").strip()):
        return None
    path = (folder or home()) / FILE
    try:
        data = read_bytes(path, MAX_FILE_BYTES)
        open_to_others = look_at_rights(path)
    except NoSuchFile:
        return None
    except UserError as error:
        raise NoCredential(str(error)) from None
    found = _secret(_cli_id(path, data))
    if open_to_others:
        told(open_to_others)
    return found


def known_ids(environment: Mapping[str, str] = os.environ, folder: Path | None = None) -> list[str]:
    """All that the user has, for whichever server; nothing of a file that cannot be read."""
    found = [environment.get(VARIABLE, "").strip()]
    path = (folder or home()) / FILE
    with contextlib.suppress(UserError, MissingError):
        found.append(_cli_id(path, read_bytes(path, MAX_FILE_BYTES)))
    return found


def _secret(value: str) -> Secret:
    """Raises NoCredential for what cannot be a credential, without showing it."""
    if not _WELL_FORMED.fullmatch(value):
        raise NoCredential(f"the GPU MODE credential is malformed: {HOW_TO_GET_ONE}")
    return Secret(value)


def _cli_id(path: Path, data: bytes) -> str:
    """The parser's own message would quote the file, so it is dropped."""
    try:
        import yaml
    except ImportError:
        raise MissingError(f"{path}: reading it needs pyyaml: {INSTALL}") from None
    content: Any = None
    try:
        content = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError):
        content = None
    found = content.get("cli_id") if isinstance(content, dict) else None
    if not isinstance(found, str | int) or isinstance(found, bool) or holds_long_integer(found):
        raise NoCredential(f"{path}: holds no line such as cli_id: ...: {HOW_TO_GET_ONE}")
    return str(found).strip()
