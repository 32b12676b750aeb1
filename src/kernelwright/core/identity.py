"""Content hashes with versioned keys."""

import hashlib

KEY_VERSION = 1
"""Raise it when the meaning of a hashed part changes: old and new ids then never meet."""


def content_id(kind: str, *parts: str) -> str:
    """Id of ``kind``: its first letter and 16 hex digits of a SHA-256.

    Parts are length-prefixed, so that moving a boundary between two parts changes the id.
    """
    digest = hashlib.sha256()
    for part in (f"kernelwright-{kind}-{KEY_VERSION}", *parts):
        data = part.encode()
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return kind[0] + digest.hexdigest()[:16]
