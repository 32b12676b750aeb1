"""Which server an address is of: credentials that a file holds go to one server only."""

from typing import Final
from urllib.parse import urlsplit

Origin = tuple[str, str, int]
"""Scheme, host and port."""
_PORTS: Final = {"http": 80, "https": 443}


def origin(url: str) -> Origin | None:
    """``None`` for what is no address of a server."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.scheme not in _PORTS or "@" in parts.netloc:
        return None
    return parts.scheme, host, _PORTS[parts.scheme] if port is None else port
