"""Folders of a harness: its private scratch, the binaries it keeps, and the cache that outlives it."""

import fcntl
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Final

from kernelwright.core.errors import HarnessError, UserError
from kernelwright.core.files import temporary_folder
from kernelwright.core.homes import home
from kernelwright.devices.base import BuildResult

_PREFIX: Final = "kernelwright-"
_OWNER: Final = "owner"
_SUFFIX: Final = re.compile(r"(\.[a-z0-9]{1,16}){0,2}")
MAX_ARTIFACT_BYTES: Final = 64 << 20
KEPT_ARTIFACTS: Final = 512


class Scratch:
    """A private folder for one harness, removed by :meth:`close`, or by the next harness after a kill.

    Its ``owner`` file is locked while the harness lives, so folders of the dead can be told from those of the
    living, also over process id namespaces.
    """

    def __init__(self, root: Path | None = None) -> None:
        root = root or temporary_folder()
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

    def take(self, built: BuildResult, scratch: Path) -> BuildResult:
        """Copy what a compile worker built out of its scratch; its word is checked. Raises HarnessError.

        The worker cannot change the copy, nor anybody's else: only this process writes in the folder.
        """
        source = Path(built.artifact)
        if not source.is_relative_to(scratch) or ".." in source.parts:
            raise HarnessError(f"the compile worker's binary lies outside its scratch: {source}")
        content = _read_regular(source)
        if hashlib.sha256(content).hexdigest() != built.digest:
            raise HarnessError("the compile worker gave no SHA-256 of the binary, or that of another")
        suffix = "".join(source.suffixes)
        if not _SUFFIX.fullmatch(suffix):
            raise HarnessError(f"the compile worker's binary has a strange name: {source.name[:100]!r}")
        path = self._folder / f"{built.digest[:32]}{suffix}"
        if path not in self._known:
            new = path.with_name(f".{path.name}")
            new.write_bytes(content)
            new.chmod(0o644)
            new.replace(path)
        source.unlink(missing_ok=True)
        self._known[path] = None
        self._known.move_to_end(path)
        while len(self._known) > self._kept:
            self._known.popitem(last=False)[0].unlink(missing_ok=True)
        return replace(built, artifact=str(path))

    def __contains__(self, artifact: str) -> bool:
        return Path(artifact) in self._known


def disk_full(scratch: str | Path) -> str:
    """How a message goes on when nothing more can be written to the scratch."""
    return f": the disk of {scratch} is full: free some space there, or set TMPDIR to another disk"


def _read_regular(path: Path) -> bytes:
    """Content of an ordinary file, and no more than a binary may have: not through a link, not from a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise HarnessError(f"the compile worker's binary cannot be read: {error}") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise HarnessError(f"the compile worker's binary is no ordinary file: {path}")
        content = file.read(MAX_ARTIFACT_BYTES + 1)
    if not 0 < len(content) <= MAX_ARTIFACT_BYTES:
        raise HarnessError(f"the compile worker's binary has {status.st_size} bytes")
    return content


def shared_cache(fallback: Path) -> Path:
    """Folder for what is built once a machine, writable by this user alone; ``fallback`` where there can be none."""
    if os.geteuid() == 0:
        folder = Path("/var/cache/kernelwright")  # children that dropped root cannot reach root's home
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or home() / ".cache") / "kernelwright"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        status = folder.stat()
    except OSError:
        return fallback
    private = status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return folder.resolve() if private and os.access(folder, os.W_OK) else fallback
