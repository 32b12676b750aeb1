"""What a plan and a prompt may know of a device."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceFacts:
    """Facts of one device. Plans see ``num_sms``, ``max_shared_bytes`` and ``warp_size``.

    ``name`` is how a user picks it (``cuda:0``, ``cpu``); ``model`` what it is (``NVIDIA H200``); ``arch``
    the compile target (``sm_90a``; empty for the cpu). ``uuid`` tells two equal devices apart.
    """

    name: str
    kind: str
    model: str
    arch: str
    uuid: str
    num_sms: int
    warp_size: int
    max_threads_per_block: int
    max_shared_bytes: int
    l2_bytes: int
    memory_bytes: int
    registers_per_sm: int
    shared_bytes_per_sm: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    toolchain: str

    def plan_values(self) -> dict[str, int]:
        """Names that every plan expression may use."""
        return {
            "num_sms": self.num_sms,
            "max_shared_bytes": self.max_shared_bytes,
            "warp_size": self.warp_size,
        }
