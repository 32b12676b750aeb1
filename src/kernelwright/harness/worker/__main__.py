"""A child of the harness: confines itself first, only then imports what it needs, and serves its parent.

One of the two places where any exception is caught: it is logged and becomes the end of this process, which
the parent sees; never silence. Until the child is confined only the standard library and the sandbox are loaded.
"""

import ctypes
import sys
import traceback

from kernelwright.harness.sandbox import Limits, SandboxReport, lock_down
from kernelwright.harness.sandbox.privileges import die_with
from kernelwright.harness.setup import FAULT_CODE, WorkerSetup


def main(arguments: list[str]) -> int:
    """Serve until the parent closes the connection; exit code. Arguments: the setup, the connection's number."""
    try:
        setup = WorkerSetup.from_json(arguments[0])
        report = _confine(setup)
        from kernelwright.harness.worker.serve import serve

        return serve(setup, report, int(arguments[1]))
    except Exception:  # noqa: BLE001 - the process boundary: the last line of the log tells the parent
        traceback.print_exc()
        return FAULT_CODE


def _confine(setup: WorkerSetup) -> SandboxReport:
    if setup.role == "prepare":  # builds our own sources only, into the user's cache
        die_with(ctypes.CDLL(None, use_errno=True), setup.parent, gpu=False)
        return SandboxReport()
    return lock_down(
        parent=setup.parent,
        writable=setup.writable,
        readable=setup.visible,
        gpu=setup.uses_gpu,
        limits=Limits(data_bytes=setup.memory_bytes),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
