"""GPUs by the names that boards give them: what is compiled for, and what a plan may know of them."""

from typing import Final

from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import UserError

_GPUS: Final = {
    "T4": ("sm_75", 40, 65536),
    "A100": ("sm_80", 108, 166912),
    "A10": ("sm_86", 72, 101376),
    "L4": ("sm_89", 58, 101376),
    "L40S": ("sm_89", 142, 101376),
    "H100": ("sm_90a", 132, 232448),
    "H200": ("sm_90a", 132, 232448),
    "B200": ("sm_100a", 148, 232448),
}
"""Architecture, multiprocessors, most shared memory of a block (NVIDIA's data sheets; CUDA C++ Programming Guide)."""


def gpu_facts(name: str) -> DeviceFacts:
    """Facts of a GPU by a board's name; what stands behind ``_``, ``x`` or ``:`` (``B200_Nebius``, ``L4x4``) is no matter.

    Only what plans may ask is exact; the export asks the device itself. Raises UserError for an unknown name.
    """
    known = sorted(_GPUS, key=len, reverse=True)
    found = next(
        (gpu for gpu in known if name == gpu or name.startswith((f"{gpu}_", f"{gpu}x", f"{gpu}:"))), None
    )
    if found is None:
        raise UserError(f"--gpu {name[:60]!r} is not known: give one of {', '.join(_GPUS)}")
    arch, sms, shared = _GPUS[found]
    return DeviceFacts(
        name=f"board:{name}",
        kind="cuda",
        model=found,
        arch=arch,
        uuid="",
        num_sms=sms,
        warp_size=32,
        max_threads_per_block=1024,
        max_shared_bytes=shared,
        l2_bytes=0,
        memory_bytes=2**34,
        registers_per_sm=65536,
        shared_bytes_per_sm=shared + 1024,
        max_threads_per_sm=2048,
        max_blocks_per_sm=32,
        toolchain="of the board",
    )
