"""The rules as sentences for a prompt: what a model is told is what the harness holds it to."""

from collections.abc import Callable, Mapping
from typing import Final

from kernelwright.core.rules import CandidateRules

_SENTENCES: Final[Mapping[str, Callable[[CandidateRules], str]]] = {
    "no_tensor_cores": lambda _: "Do not use tensor cores (wmma, mma, wgmma); the binary is checked.",
    "no_inline_ptx": lambda _: "Do not use inline PTX (asm).",
    "no_launch_bounds": lambda _: "Do not use __launch_bounds__ or __maxnreg__.",
    "no_size_branches": lambda _: (
        "Do not compare sizes with the numbers of particular cases; the kernel must be right for any size."
    ),
    "deterministic": lambda _: (
        "Equal inputs must give bitwise equal outputs: no float atomics, and no atomic_noise in the plan."
    ),
    "portable": lambda _: (
        "The file is compiled elsewhere too: conditions ask for tunables and your own macros only; what stands outside of"
        " functions is constexpr, __device__ or __constant__; use no macros of NVIDIA's headers."
    ),
    "max_registers": lambda rules: f"Use at most {rules.max_registers} registers a thread.",
    "max_source_bytes": lambda rules: f"The source has at most {rules.max_source_bytes} bytes.",
    "allowed_headers": lambda rules: f"Include no headers but {', '.join(rules.allowed_headers)}.",
    "banned_words": lambda rules: f"Do not use the words {', '.join(rules.banned_words)}.",
}
_ALWAYS: Final = (
    "Write device code only: the plan launches kernels, no <<<...>>>, no programmatic launch.",
    "Include only headers of device code by their names, never paths of files.",
    "Keep no state between runs: no writable __device__ variables.",
    "Tables belong in __constant__ memory, 64 KiB of them at most.",
)


def describe(rules: CandidateRules) -> tuple[str, ...]:
    """What always holds, then one sentence for each rule in force."""
    held = (sentence(rules) for name, sentence in _SENTENCES.items() if getattr(rules, name))
    return (*_ALWAYS, *held)
