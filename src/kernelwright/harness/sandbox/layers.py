"""What holds of a sandbox."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """One layer of the sandbox: whether it holds, and what it does or why it could not be had."""

    name: str
    holds: bool
    detail: str = ""


@dataclass(frozen=True)
class SandboxReport:
    """What holds in a child."""

    layers: tuple[Layer, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the layers that do not hold."""
        return tuple(layer.name for layer in self.layers if not layer.holds)
