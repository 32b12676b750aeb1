from types import SimpleNamespace
from typing import Any

from kernelwright.devices.cuda.reference import unused_blocks, zeroing_hook
from kernelwright.devices.cuda.trusted import Hidden


def test_unused_blocks_of_torch() -> None:
    blocks = [
        {"size": 512, "state": "active_allocated"},
        {"size": 1024, "state": "inactive"},
        {"size": 256, "state": "active_pending_free"},
        {"size": 256, "state": "inactive"},
    ]
    snapshot = [{"address": 4096, "blocks": blocks}, {"address": 1 << 20, "blocks": blocks[:1]}]
    assert unused_blocks(snapshot) == [(4608, 1024), (5888, 256)]


def test_cupy_blocks_are_zeroed_in_the_stream_that_used_them() -> None:
    calls: list[tuple[Any, ...]] = []

    class MemoryHook:
        name = "MemoryHook"

    cuda = SimpleNamespace(
        MemoryHook=MemoryHook,
        get_current_stream=lambda: SimpleNamespace(ptr=77),
        runtime=SimpleNamespace(memsetAsync=lambda *arguments: calls.append(arguments)),
    )
    hook = zeroing_hook(SimpleNamespace(cuda=cuda))
    assert isinstance(hook, MemoryHook)
    assert hook.name != MemoryHook.name
    hook.free_preprocess(device_id=0, mem_size=512, mem_ptr=4096, pmem_id=1)
    assert calls == [(4096, 0, 512, 77)]


def test_every_hidden_array_has_a_key_of_its_own() -> None:
    keys = {Hidden.at(4096).key for _ in range(8)}
    assert len(keys) == 8
    raw = bytes(8)
    assert Hidden(0, bytes(16)).show(1, raw) != Hidden(0, bytes(16)).show(2, raw)
