"""Facts of the CPU, in the terms that plans know."""

import os
from pathlib import Path

from kernelwright.core.device import DeviceFacts
from kernelwright.devices.cpu.toolchain import cpu_model

MAX_THREADS = 1024
MAX_SHARED = 227 * 1024
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
"""Limits of a compute capability 9.0 device, so that a plan means the same here as there."""


def cpu_facts(threads: int, toolchain: str) -> DeviceFacts:
    """Facts with ``threads`` OS threads as multiprocessors."""
    return DeviceFacts(
        name="cpu",
        kind="cpu",
        model=cpu_model(),
        arch="",
        uuid="cpu",
        num_sms=threads,
        warp_size=32,
        max_threads_per_block=MAX_THREADS,
        max_shared_bytes=MAX_SHARED,
        l2_bytes=_last_level_cache(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        registers_per_sm=65536,
        shared_bytes_per_sm=228 * 1024,
        max_threads_per_sm=2048,
        max_blocks_per_sm=32,
        toolchain=toolchain,
    )


def _last_level_cache() -> int:
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        scale = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
        sizes.append(int(text.rstrip("KM") or 0) * scale)
    return max(sizes, default=0)
