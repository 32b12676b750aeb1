"""Folders of a harness: its private scratch, the binaries it keeps, and the cache that outlives it."""

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import Final

from kernelwright.core.errors import HarnessError, UserError
from kernelwright.devices.base import BuildResult

_PREFIX: Final = "kernelwright-"
_OWNER: Final = "owner"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
MAX_ARTIFACT_BYTES: Final = 64 << 20
KEPT_ARTIFACTS: Final = 512


class Scratch:
    """A private folder for one harness, removed by :meth:`close`, or by the next harness after a kill.

    Its ``owner`` file is locked while the harness lives, so folders of the dead can be told from those of the
    living, also over process id namespaces.
    """

    def __init__(self, root: Path | None = None) -> None:
        root = root or Path(tempfile.gettempdir())
        try:
            root.mkdir(parents=True, exist_ok=True)
            remove_abandoned(root)
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root)).resolve()
        except OSError as error:
            raise UserError(f"{root}: no scratch folder can be made there: {error.strerror}") from None
        # Children that dropped root own folders below; they have to be able to reach them.
        self.path.chmod(0o711)
        # Locked before it has the name that others look for.
        unnamed = self.path / f".{_OWNER}"
        self._owner = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._owner, fcntl.LOCK_EX)
        unnamed.rename(self.path / _OWNER)
        self.artifacts = self.folder("artifacts")

    def folder(self, name: str) -> Path:
        """A folder in the scratch."""
        path = self.path / name
        path.mkdir(exist_ok=True)
        return path

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._owner >= 0:
            os.close(self._owner)
            self._owner = -1


def remove_abandoned(root: Path) -> None:
    """Remove scratch folders in ``root`` whose harness was killed."""
    for owner in root.glob(f"{_PREFIX}*/{_OWNER}"):
        try:
            handle = os.open(owner, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # another user's, or gone meanwhile
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(owner.parent, ignore_errors=True)
        except BlockingIOError:
            pass  # its harness lives
        finally:
            os.close(handle)


class Artifacts:
    """Binaries that wait for the device.

    The newest :data:`KEPT_ARTIFACTS` are kept, so that a long campaign does not fill the disk; an older one has
    to be compiled again.
    """

    def __init__(self, folder: Path, kept: int = KEPT_ARTIFACTS) -> None:
        self._folder = folder
        self._kept = kept
        self._known: OrderedDict[Path, None] = OrderedDict()

    def accept(self, built: BuildResult) -> None:
        """Take in what a compile worker says it built; its word is checked. Raises HarnessError."""
        path = Path(built.artifact)
        try:
            status = path.lstat()
        except OSError as error:
            raise HarnessError(f"the compile worker's binary is not there: {error}") from None
        if path.parent != self._folder or not stat.S_ISREG(status.st_mode):
            raise HarnessError(f"the compile worker's binary lies outside the artifacts folder: {path}")
        if not 0 < status.st_size <= MAX_ARTIFACT_BYTES:
            raise HarnessError(f"the compile worker's binary has {status.st_size} bytes")
        if not _DIGEST.fullmatch(built.digest):
            raise HarnessError("the compile worker gave no SHA-256 of the binary")
        self._known[path] = None
        self._known.move_to_end(path)
        while len(self._known) > self._kept:
            self._known.popitem(last=False)[0].unlink(missing_ok=True)

    def __contains__(self, artifact: str) -> bool:
        return Path(artifact) in self._known


def shared_cache(fallback: Path) -> Path:
    """Folder for what is built once a machine, writable by this user alone; ``fallback`` where there can be none."""
    if os.geteuid() == 0:
        folder = Path("/var/cache/kernelwright")  # children that dropped root cannot reach root's home
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "kernelwright"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        status = folder.stat()
    except OSError:
        return fallback
    private = status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return folder.resolve() if private and os.access(folder, os.W_OK) else fallback
