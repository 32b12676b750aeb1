"""One value per tunable: what the optimiser produces."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

Value = int | float | bool | str


class Configuration(Mapping[str, Value]):
    """An immutable, hashable mapping from tunable to value; the order of names does not matter.

    Compiler tunables (``[tune.compiler]``) are named ``compiler.NAME``.
    """

    __slots__ = ("_items", "_key")

    def __init__(self, values: Mapping[str, Value] | None = None) -> None:
        self._items: dict[str, Value] = dict(sorted((values or {}).items()))
        self._key = json.dumps(self._items, separators=(",", ":"))

    def __getitem__(self, name: str) -> Value:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._key == other._key

    def __repr__(self) -> str:
        return f"Configuration({self})"

    def __str__(self) -> str:
        return " ".join(f"{name}={int(v) if isinstance(v, bool) else v}" for name, v in self._items.items())

    @property
    def key(self) -> str:
        """Canonical JSON: equal configurations have equal keys."""
        return self._key

    @classmethod
    def from_key(cls, key: str) -> "Configuration":
        """Inverse of :attr:`key`."""
        values: dict[str, Any] = json.loads(key)
        return cls(values)
