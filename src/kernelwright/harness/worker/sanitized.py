"""The process that compute-sanitizer watches: performs one candidate's plans once, behind the sandbox.

``python -m kernelwright.harness.worker.sanitized SETUP WITHOUT``: the setup of a device worker, and the names of the
sandbox's layers to leave out, with commas. Until it is confined only the standard library and the sandbox are
loaded. It writes how far it came (:mod:`kernelwright.harness.sanitizer_job`); what the kernels computed is not
looked at here.
"""

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kernelwright.harness.sandbox import Limits, SandboxReport, lock_down
from kernelwright.harness.setup import WorkerSetup

if TYPE_CHECKING:  # nothing more is loaded before it is confined
    from concurrent.futures import Future

    from kernelwright.devices.base import Array, CaseInputs


def main(arguments: list[str]) -> int:
    """Exit code 0 when the plan was performed."""
    setup = WorkerSetup.from_json(arguments[0])
    report = lock_down(
        # compute-sanitizer is the parent, or a launcher of its own.
        parent=os.getppid(),
        writable=[Path(setup.scratch)],
        readable=[Path(path) for path in (*setup.readable, setup.artifacts, setup.cache)],
        gpu=True,
        limits=Limits(data_bytes=setup.memory_bytes),
        without=tuple(filter(None, arguments[1].split(","))),
    )
    return _perform(setup, report)


def _perform(setup: WorkerSetup, report: SandboxReport) -> int:
    from concurrent.futures import ThreadPoolExecutor

    from kernelwright.core.errors import KernelwrightError
    from kernelwright.devices.cuda.once import OnceLook, perform_once
    from kernelwright.harness.sanitizer_job import Progress, Stage, read_job, write_progress
    from kernelwright.problems.loader import load_problem
    from kernelwright.problems.source import ProblemSource

    folder, missing = Path(setup.scratch), report.missing
    write_progress(folder, Progress("confined", missing))
    held: dict[str, int] = {}

    def loaded(buffers: Mapping[str, int]) -> None:
        held.update(buffers)
        write_progress(folder, Progress("loaded", missing, held))

    try:
        job = read_job(folder)
        source = ProblemSource(load_problem(setup.problem), setup.seed, setup.slow_cases)
        with ThreadPoolExecutor(1) as pool:
            drawn = [pool.submit(source.inputs, look.case, 0) for look in job.looks]
            looks = [
                OnceLook(look.case, look.plan, source.buffers(look.case), partial(_arrays, inputs))
                for look, inputs in zip(job.looks, drawn, strict=True)
            ]
            ordinal = int(setup.device.partition(":")[2] or 0)
            error = perform_once(ordinal, Path(job.artifact).read_bytes(), looks, loaded)
    except (KernelwrightError, OSError) as failure:
        error = f"{failure}"
    stage: Stage = "performed" if not error else "loaded" if held else "confined"
    write_progress(folder, Progress(stage, missing, held, " ".join(error.split())[:2000]))
    return 1 if error else 0


def _arrays(drawn: "Future[CaseInputs]") -> "Mapping[str, Array]":
    return drawn.result().arrays


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
