"""Where a replay keeps its files while it runs."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from kernelwright.harness.scratch import Scratch


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder, gone afterwards; after a kill the next harness or replay here removes it.

    Raises UserError, one line, where none can be made.
    """
    scratch = Scratch()
    try:
        folder = scratch.folder("replay")
        folder.chmod(0o700)  # the harness's children get what they need from the harness
        yield folder
    finally:
        scratch.close()
