"""The harness's own kernels (``trusted.cu``) as prepared operations."""

import hashlib
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kernelwright.core.errors import HarnessError
from kernelwright.devices.cuda.buffers import Guarded
from kernelwright.devices.cuda.driver import Driver
from kernelwright.devices.cuda.nvrtc import Nvrtc
from kernelwright.devices.cuda.operations import Operation
from kernelwright.devices.cuda.parameters import Parameters, pointer

POISON: Final = (0x7FF97FF9, 0x3DCC3DCC)
"""Words that alternate between runs: NaN in every float type, and a small finite number in every float type. A kernel
that looks at what a buffer holds meets both; an integer output that equals one by chance does not equal both. Each is
one 16-bit pattern twice."""

ROW_BYTES: Final = 48
CLEARED: Final = 4096
"""Bytes that a block of ``kw_clear`` writes, 32 a thread."""
_LOCAL_SIZES: Final = (2048, 4096, 16384, 65536)
_CALLS: Final = 1024
_SPANS: Final = 24
_THREADS: Final = 256
_READY: Final = 20_000
_WORD: Final = (1 << 64) - 1


def trusted_cubin(nvrtc: Nvrtc, arch: str, cache_dir: Path | None) -> bytes:
    """Compiled ``trusted.cu`` for an architecture, from the cache where it is there already."""
    source = Path(__file__).with_name("trusted.cu").read_text(encoding="utf-8")
    key = hashlib.sha256(f"{arch}\n{nvrtc.version}\n{source}".encode()).hexdigest()[:32]
    cached = cache_dir / f"trusted-{key}.cubin" if cache_dir else None
    if cached and cached.is_file():
        return cached.read_bytes()
    compiled = nvrtc.compile(source, "trusted.cu", [f"--gpu-architecture={arch}", "--std=c++17"])
    if compiled.cubin is None:
        raise HarnessError(f"trusted.cu does not compile for {arch}: {compiled.log[:500]}")
    if cached:
        cached.parent.mkdir(parents=True, exist_ok=True)
        fresh = cached.with_suffix(".new")
        fresh.write_bytes(compiled.cubin)
        fresh.replace(cached)
    return compiled.cubin


@dataclass(frozen=True)
class Hidden:
    """A float64 array on the device, XOR a keystream of ``key`` (16 random bytes that never lie in device memory).

    It keeps a right output from a kernel that scans memory for plausible values, or copies what lies beyond its own
    buffers. It is no cipher: a kernel that knew where the array lies, some exact values of it and the construction
    could in principle compute the key, and launch parameters of trusted kernels pass through memory of the driver.
    What candidates may do about that is bounded by the source rules and the time that such a search takes.
    """

    pointer: int
    key: bytes

    @classmethod
    def at(cls, pointer: int) -> "Hidden":
        """Under a new random key."""
        return cls(pointer, secrets.token_bytes(16))

    def show(self, index: int, raw: bytes) -> float:
        """Value of the element with these 8 bytes."""
        first, second = struct.unpack("<2Q", self.key)
        word = _mix((first + index * 0x9E3779B97F4A7C15) & _WORD) ^ second
        shown = int.from_bytes(raw, "little") ^ word
        return float(struct.unpack("<d", shown.to_bytes(8, "little"))[0])


class Trusted:
    """Builds operations on one device. ``seed`` makes canaries and fingerprints unknown to candidates.

    ``canaries`` are two keys of guard bands: what lies around a buffer differs between two checks of a candidate.
    """

    def __init__(self, driver: Driver, cubin: bytes, num_sms: int, seed: int) -> None:
        self.driver = driver
        self.num_sms = num_sms
        self.seed = struct.pack("<Q", seed)
        self.canaries = (secrets.token_bytes(16), secrets.token_bytes(16))
        self._module = driver.ok(driver.api.cuModuleLoadData(cubin), "loading trusted.cu")
        self._functions: dict[str, Any] = {}
        # Buffers come from a pool: the same launches come back for every candidate.
        self._comparisons: dict[tuple[object, ...], Operation] = {}
        self._launches: dict[tuple[object, ...], Operation] = {}

    def gate(self, flag: int, late: int, want: int, limit_s: float) -> Operation:
        """Hold the stream until the word at ``flag`` has reached ``want``, at most ``limit_s`` seconds."""
        values = [
            pointer(flag),
            pointer(late),
            struct.pack("<I", want),
            struct.pack("<Q", int(limit_s * 1e9)),
        ]
        return self._make("kw_gate", (1, 1), 1, values)

    def nothing(self) -> Operation:
        """Launch that does nothing but take a place in the queue."""
        return self._launch("kw_nothing", (1, 1), 1, [])

    def mark(self, where: int, value: int) -> Operation:
        """Write progress to host memory."""
        return self._launch("kw_mark", (1, 1), 1, [pointer(where), struct.pack("<I", value)])

    def fill(self, buffers: Sequence[Guarded], pattern: int) -> list[Operation]:
        """Poison the payloads."""
        blocks = self._blocks(max((b.nbytes // 16 for b in buffers), default=0))
        word = struct.pack("<I", pattern)
        return [self._launch("kw_fill", (blocks, n), _THREADS, [t, word]) for t, n in _tables(buffers)]

    def fill_shared(self, pattern: int, nbytes: int) -> Operation:
        """Poison the shared memory of every multiprocessor: blocks of ``nbytes``, the most that one may have."""
        values = [struct.pack("<2I", pattern, nbytes // 4)]
        grid = (2 * self.num_sms, 1)
        return self._launch("kw_fill_shared", grid, _THREADS, values, shared=nbytes)

    def fill_local(self, pattern: int, nbytes: int, threads: int) -> Operation:
        """Poison local memory of every place of a thread on the device, where a thread has ``nbytes`` at most.

        ``threads``: places of a multiprocessor. A stack may lie above what calls may need by the driver's default.
        Beyond 64 KiB a thread what lies higher is left as it is.
        """
        size = next((size for size in _LOCAL_SIZES if size >= nbytes + _CALLS), _LOCAL_SIZES[-1])
        grid = (2 * self.num_sms * max(1, threads // _THREADS), 1)
        values = [struct.pack("<I", pattern), struct.pack("<Q", 0)]
        return self._launch(f"kw_fill_local_{size}", grid, _THREADS, values)

    def clear(self, data: int, nbytes: int, value: int) -> Operation:
        """Overwrite a buffer larger than the L2 cache, whole pages of 4 KiB."""
        values = [pointer(data), struct.pack("<I", value)]
        return self._launch("kw_clear", (nbytes // CLEARED, 1), CLEARED // 32, values)

    def guard_fill(self, buffers: Sequence[Guarded], canary: bytes) -> list[Operation]:
        """Write canaries into the guard bands."""
        blocks = self._band_blocks(buffers)
        return [
            self._launch("kw_guard_fill", (blocks, n), _THREADS, [t, canary]) for t, n in _tables(buffers)
        ]

    def guard_check(self, buffers: Sequence[Guarded], canary: bytes, rows: int) -> list[Operation]:
        """Count damaged guard bytes, one row a buffer."""
        blocks = self._band_blocks(buffers)
        return [
            self._launch("kw_guard_check", (blocks, n), _THREADS, [t, canary, pointer(rows + at * ROW_BYTES)])
            for at, (t, n) in zip(range(0, len(buffers), _SPANS), _tables(buffers), strict=True)
        ]

    def hash(self, buffers: Sequence[Guarded], rows: int) -> list[Operation]:
        """Fingerprint of the payloads, one row a buffer (in ``bad``)."""
        blocks = self._blocks(max((b.nbytes // 4 for b in buffers), default=0))
        return [
            self._launch("kw_hash", (blocks, n), _THREADS, [t, self.seed, pointer(rows + at * ROW_BYTES)])
            for at, (t, n) in zip(range(0, len(buffers), _SPANS), _tables(buffers), strict=True)
        ]

    def hide(self, values: int, hidden: Hidden, count: int) -> Operation:
        """Write ``count`` float64 values under the key to where ``hidden`` lies; in place is allowed."""
        arguments = [pointer(values), pointer(hidden.pointer), struct.pack("<Q", count), hidden.key]
        return self._make("kw_hide", (self._blocks(count), 1), _THREADS, arguments)

    def squares(self, hidden: Hidden, count: int, target: int) -> Operation:
        """Sum of squares of the finite values to ``target``, their number to ``target + 8``; both zeroed before."""
        values = [pointer(hidden.pointer), struct.pack("<Q", count), hidden.key]
        values += [pointer(target), pointer(target + 8)]
        return self._make("kw_squares", (self._blocks(count), 1), _THREADS, values)

    def compare(
        self, dtype: str, out: int, expected: Hidden, *, count: int, tolerance: tuple[float, float], row: int
    ) -> Operation:
        """Compare an output with its hidden float64 reference and hash it; ``tolerance`` is (atol, rtol)."""
        key = (dtype, out, expected.key, count, tolerance, row)
        known = self._comparisons.get(key)
        if known is None:
            values = [pointer(out), pointer(expected.pointer), struct.pack("<Q", count), expected.key]
            values += [struct.pack("<d", limit) for limit in tolerance]
            values += [struct.pack("<2I", *POISON), pointer(row)]
            known = self._make(f"kw_compare_{dtype}", (self._blocks(count), 1), _THREADS, values)
            _keep(self._comparisons, key, known)
        return known

    def _band_blocks(self, buffers: Sequence[Guarded]) -> int:
        return self._blocks(max((b.total - b.nbytes) // 8 for b in buffers)) if buffers else 1

    def _blocks(self, items: int) -> int:
        return max(1, min(-(-items // _THREADS), 8 * self.num_sms))

    def _launch(
        self, name: str, grid: tuple[int, int], threads: int, values: Sequence[bytes], shared: int = 0
    ) -> Operation:
        key = (name, grid, threads, *values)
        known = self._launches.get(key)
        if known is None:
            known = self._make(name, grid, threads, values, shared)
            _keep(self._launches, key, known)
        return known

    def _make(
        self, name: str, grid: tuple[int, int], threads: int, values: Sequence[bytes], shared: int = 0
    ) -> Operation:
        api = self.driver.api
        function = self._functions.get(name)
        if function is None:
            found = api.cuModuleGetFunction(self._module, name.encode())
            function = self._functions[name] = self.driver.ok(found, f"trusted kernel {name}")
            self.driver.preload(function)
            if shared:
                most = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                self.driver.ok(api.cuFuncSetAttribute(function, most, shared), name)
        held = Parameters(values)
        arguments = (function, *grid, 1, threads, 1, 1, shared, self.driver.stream, held.address, 0)
        return Operation(api.cuLaunchKernel, arguments, name, held)


def _mix(word: int) -> int:
    """Finaliser of SplitMix64, as in ``trusted.cu``."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _WORD
    return word ^ (word >> 31)


def _keep(ready: dict[tuple[object, ...], Operation], key: tuple[object, ...], operation: Operation) -> None:
    """Remember an operation; a full table starts anew."""
    if len(ready) >= _READY:
        ready.clear()
    ready[key] = operation


def _tables(buffers: Sequence[Guarded]) -> list[tuple[bytes, int]]:
    """Buffers as ``Spans`` tables with the number used in each."""
    tables = []
    for start in range(0, len(buffers), _SPANS):
        part = buffers[start : start + _SPANS]
        rows = [struct.pack("<4Q", b.base, b.lead, b.lead + b.nbytes, b.total) for b in part]
        tables.append((b"".join(rows).ljust(_SPANS * 32, b"\0"), len(part)))
    return tables
