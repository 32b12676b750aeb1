"""Is there a file? What may not be looked at (below a folder that is closed to this user) is not there.

``Path.exists``, ``is_file`` and ``is_dir`` raise PermissionError for it before Python 3.14.
"""

import os
from pathlib import Path


def is_there(path: str | Path) -> bool:
    """Whether there is something that this user reaches."""
    return os.path.exists(path)  # noqa: PTH110 - see above


def is_file(path: str | Path) -> bool:
    """Whether there is an ordinary file that this user reaches."""
    return os.path.isfile(path)  # noqa: PTH113 - see above


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder that this user reaches."""
    return os.path.isdir(path)  # noqa: PTH112 - see above


def is_link(path: str | Path) -> bool:
    """Whether there is a link that this user reaches."""
    return os.path.islink(path)  # noqa: PTH114 - see above
