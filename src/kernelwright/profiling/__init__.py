"""What limits a kernel, in a few true numbers: counters, roofline, a name for the bottleneck. Pure; starts nothing."""

from kernelwright.profiling.bottleneck import Bottleneck
from kernelwright.profiling.digest import Digest, make_digest, static_digest
from kernelwright.profiling.metrics import HotLine, KernelProfile, Metrics
from kernelwright.profiling.modelled import Modelled, modelled
from kernelwright.profiling.roofline import Roofline, roofline

__all__ = [
    "Bottleneck",
    "Digest",
    "HotLine",
    "KernelProfile",
    "Metrics",
    "Modelled",
    "Roofline",
    "make_digest",
    "modelled",
    "roofline",
    "static_digest",
]
