"""The campaigns in ``campaigns_h200``: recorded on an H200, packed memories."""

import lzma
from pathlib import Path

_BENCH = Path(__file__).resolve().parent
RECORDED = {
    "softmax": "softmax",
    "reduce_sum": "reduce_sum",
    "gemm": "gemm",
    "layer_norm": str(_BENCH.parent / "examples" / "layer_norm"),
    "catalogue_softmax": "softmax",
    "catalogue_gemm": "gemm",
    "whole_softmax": "softmax",
    "whole_reduce_sum": "reduce_sum",
    "whole_gemm": "gemm",
    "whole_layer_norm": str(_BENCH.parent / "examples" / "layer_norm"),
}
"""Their problems; all but those of the catalogue were led by a language model."""


def packed(name: str) -> Path:
    return _BENCH / "campaigns_h200" / f"{name}.db.xz"


def unpack(memory: Path, folder: Path) -> Path:
    """A packed memory as a file in a folder; a newer version may have to bring it up to date."""
    plain = folder / "memory.db"
    folder.mkdir(parents=True, exist_ok=True)
    plain.write_bytes(lzma.decompress(memory.read_bytes()))
    return plain
