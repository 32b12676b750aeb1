"""The resource report of ``ptxas -v``, as NVRTC and nvcc print it."""

import re
from collections.abc import Mapping

from kernelwright.core.outcome import KernelStatics

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")
_CONSTANT = re.compile(r"(\d+)(?:\+\d+)? bytes cmem\[\d+\]")


def parse_report(log: str) -> tuple[KernelStatics, ...]:
    """One record a kernel in the order of the log. What the log does not tell stays ``None``.

    ``spill_bytes`` is the larger of spill stores and loads, bytes a thread. A kernel whose ``Used`` line names
    no shared memory has none; constant bytes are unknown where no ``cmem`` is reported.
    """
    found: dict[str, dict[str, int]] = {}
    entry = properties = ""
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry = properties = match[1]
            found[entry] = {}
        elif match := _PROPERTIES.search(line):
            properties = match[1]
        elif not entry:
            continue
        elif properties == entry and (match := _STACK.search(line)):
            stack, stores, loads = (int(value) for value in match.groups())
            found[entry].update(stack_bytes=stack, spill_bytes=max(stores, loads))
        elif match := _USED.search(line):
            found[entry].update(_used(line, int(match[1])))
    return tuple(_statics(name, values) for name, values in found.items())


def _statics(name: str, values: Mapping[str, int]) -> KernelStatics:
    return KernelStatics(
        name=name,
        registers=values.get("registers"),
        spill_bytes=values.get("spill_bytes"),
        stack_bytes=values.get("stack_bytes"),
        static_shared_bytes=values.get("static_shared_bytes"),
        constant_bytes=values.get("constant_bytes"),
    )


def _used(line: str, registers: int) -> dict[str, int]:
    shared = _SHARED.search(line)
    values = {"registers": registers, "static_shared_bytes": int(shared[1]) if shared else 0}
    constants = [int(value) for value in _CONSTANT.findall(line)]
    if constants:
        values["constant_bytes"] = sum(constants)
    return values
