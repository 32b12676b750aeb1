"""What a child is started with. Standard library only: it is read before the child confines itself."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

Role = Literal["prepare", "probe", "compile", "device", "reference"]
"""``prepare`` builds what is trusted and shared, then ends; ``probe`` only confines itself and says hello;
``reference`` runs a problem's reference for its self-test, without a device.
"""

FAULT_CODE: Final = 70
"""Exit code of a child that failed by a fault of ours (EX_SOFTWARE of ``sysexits.h``): no candidate is blamed."""

REFERENCE_BEGINS: Final = "reference.py begins"
REFERENCE_ENDS: Final = "reference.py ends"
"""Lines of a device worker's log, behind its ``mark``: a process that ends between them was ended by the problem."""

DEVICES: Final = "kernelwright.harness.worker.devices:DeviceMaker"


@dataclass(frozen=True)
class WorkerSetup:
    """Command line of a child. Paths are absolute.

    ``scratch`` is the child's own folder, ``artifacts`` where the parent keeps binaries for the device worker,
    ``cache`` what ``prepare`` has built: nobody else writes there. ``maker`` names the class that makes
    compiler and runner (``module:Class``). ``mark`` is before the worker's own lines in its log, where kernels can
    print too.
    """

    role: Role
    device: str
    parent: int
    scratch: str
    artifacts: str
    cache: str
    problem: str = ""
    seed: int = 0
    slow_cases: bool = False
    memory_bytes: int = 8 << 30
    disk_bytes: int = 4 << 30
    readable: tuple[str, ...] = ()
    maker: str = DEVICES
    mark: str = ""

    @property
    def uses_gpu(self) -> bool:
        """Whether the child needs NVIDIA's device files."""
        return self.role == "device" and self.device.startswith("cuda")

    @property
    def writable(self) -> tuple[Path, ...]:
        """Where the child may write."""
        return (Path(self.scratch),)

    @property
    def visible(self) -> tuple[Path, ...]:
        """What the child may read besides the system's folders."""
        return tuple(map(Path, (*self.readable, self.artifacts, self.cache)))

    def to_json(self) -> str:
        """One line for the command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "WorkerSetup":
        """Inverse of :meth:`to_json`."""
        values = json.loads(text)
        return cls(**{**values, "readable": tuple(values["readable"])})
