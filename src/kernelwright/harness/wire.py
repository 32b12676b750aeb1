"""What parent and children say to each other: one JSON object a line, bounded, validated on arrival."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import HarnessError
from kernelwright.core.launch import BuildRequest
from kernelwright.devices.base import BuildResult, DuelRequest, DuelResult, RunRequest, RunResult
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.self_test import SelfTestRequest, SelfTestRow

MAX_LINE: Final = 1 << 20
"""Longest message in bytes, both ways."""

OUT_OF_MEMORY: Final = "the compiler ran out of memory: the source unrolls or instantiates too much"


@dataclass(frozen=True)
class Ceilings:
    """What the device can do at best, for the physical floor of a case; 0 is unknown.

    ``flops_per_s`` is fp32, ``tensor_flops_per_s`` float16 on tensor units. ``on_tensor_units``: the problem has
    float16 inputs and allows those units, so that theirs is the rate that bounds it.
    """

    bytes_per_s: float = 0.0
    flops_per_s: float = 0.0
    tensor_flops_per_s: float = 0.0
    on_tensor_units: bool = False

    @property
    def operations_per_s(self) -> float:
        """The rate that bounds the problem's arithmetic."""
        return self.tensor_flops_per_s if self.on_tensor_units else self.flops_per_s

    def floor_ms(self, moved_bytes: int, flops: int) -> float:
        """Shortest possible time of a case in ms: the larger of its two bounds."""
        by_memory = moved_bytes / self.bytes_per_s if self.bytes_per_s else 0.0
        by_arithmetic = flops / self.operations_per_s if self.operations_per_s else 0.0
        return 1e3 * max(by_memory, by_arithmetic)


@dataclass(frozen=True)
class Hello:
    """First message of a child: it is ready, behind these layers of the sandbox."""

    sandbox: SandboxReport = field(default_factory=SandboxReport)
    toolchain: str = ""
    facts: DeviceFacts | None = None
    ceilings: Ceilings = Ceilings()


@dataclass(frozen=True)
class Request:
    """A request: exactly one of ``build``, ``run``, ``duel`` and ``self_test``."""

    id: int
    build: BuildRequest | None = None
    run: RunRequest | None = None
    duel: DuelRequest | None = None
    self_test: SelfTestRequest | None = None


@dataclass(frozen=True)
class Reply:
    """The answer to a request. ``error`` tells of a fault of the harness; ``broken``: the child ends now."""

    id: int
    hello: Hello | None = None
    built: BuildResult | None = None
    ran: RunResult | None = None
    dueled: DuelResult | None = None
    self_tested: tuple[SelfTestRow, ...] | None = None
    error: str = ""
    user_error: bool = False
    broken: bool = False


REQUEST: Final = TypeAdapter(Request)
REPLY: Final = TypeAdapter(Reply)


def encode(message: Request | Reply) -> bytes:
    """A message as one line. Raises HarnessError when it is too long.

    Infinities stay what they are (an output may be infinitely wrong); strict JSON would lose them.
    """
    line = json.dumps(asdict(message), ensure_ascii=False).encode(errors="replace") + b"\n"
    if len(line) > MAX_LINE:
        raise HarnessError(f"a message of {len(line)} bytes is longer than {MAX_LINE}")
    return line


def decode(adapter: TypeAdapter[Any], line: bytes) -> Any:
    """A message from a line. Raises HarnessError for anything that is not one."""
    try:
        return adapter.validate_json(line)
    except ValidationError as error:
        raise HarnessError(f"a child sent no valid message: {error.errors()[0]['msg']}") from None
