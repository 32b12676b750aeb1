"""A child that confines itself and then becomes a Python script of a stranger: a board's evaluator, a reference.

``python -m kernelwright.harness.worker.script SETUP SCRIPT ...``: the first line on the descriptor ``POPCORN_FD`` is
ours, the layers that do not hold; everything behind it is the script's. Standard library only.
"""

import os
import sys

from kernelwright.harness.sandbox import Limits, lock_down
from kernelwright.harness.setup import WorkerSetup


def main(arguments: list[str]) -> None:
    """Does not return: the script's exit code is this process's."""
    setup = WorkerSetup.from_json(arguments[0])
    report = lock_down(
        parent=setup.parent,
        writable=setup.writable,
        readable=setup.visible,
        gpu=setup.uses_gpu,
        limits=Limits(data_bytes=setup.memory_bytes),
        family=True,
    )
    os.write(int(os.environ["POPCORN_FD"]), f"{','.join(report.missing)}\n".encode())
    os.execv(sys.executable, [sys.executable, *arguments[1:]])  # noqa: S606 - what this module is for


if __name__ == "__main__":
    main(sys.argv[1:])
