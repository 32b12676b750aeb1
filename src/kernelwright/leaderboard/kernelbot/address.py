"""Where GPU MODE's server is, and how its boards are named."""

import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from kernelwright.core.errors import UserError

VARIABLE: Final = "POPCORN_API_URL"
SCHEME: Final = "kernelbot:"
WHERE: Final = "GPU MODE"
"""How its server is called in messages."""
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_NAME: Final = re.compile(r"(?!\.+\Z)[\w.+-]{1,100}", re.ASCII)


def base_url(given: str | None = None, environment: Mapping[str, str] = os.environ) -> str:
    """The server's address without a slash at its end: what is given, else ``$POPCORN_API_URL``.

    The credential goes there, so it has to be https; only this machine itself may use http. Raises UserError.
    """
    source, text = ("--server", given) if given else (VARIABLE, environment.get(VARIABLE, "").strip())
    if not text:
        raise UserError(
            f"GPU MODE's server is not known: set {VARIABLE} as popcorn-cli's README says, or --server"
        )
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise UserError(f"{source}: is no address such as https://host") from None
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise UserError(f"{source}: holds a user or a password, which would be kept: leave it out")
    if parts.scheme not in {"http", "https"} or not host or not text.isascii() or not text.isprintable():
        raise UserError(f"{source}: is no address such as https://host")
    if parts.query or parts.fragment or " " in text:
        raise UserError(f"{source}: an address has no '?', '#' or blanks")
    if parts.scheme == "http" and host not in _LOCAL:
        raise UserError(f"{source}: use https: the credential would travel readable to {host}")
    return text.rstrip("/")


def check_name(kind: str, name: str) -> str:
    """A leaderboard's or a GPU's name, which becomes a part of a path. Raises UserError."""
    if not _NAME.fullmatch(name):
        raise UserError(f"{kind} {name[:100]!r}: use letters, digits, '.', '_', '+' and '-'")
    return name


def parse_name(url: str) -> tuple[str, str]:
    """Leaderboard and GPU of ``kernelbot:NAME@GPU``; both may be missing. Raises UserError."""
    if not url.startswith(SCHEME):
        raise UserError(f"{url[:100]!r}: use kernelbot:NAME@GPU, as in kernelbot:vectoradd_v2@H100")
    name, at, gpu = url.removeprefix(SCHEME).partition("@")
    if name or at:
        check_name("leaderboard", name)
    if at:
        check_name("GPU", gpu)
    return name, gpu
