"""What commands say on stderr."""

NOTE = "kernelwright: note: "


def without_notes(said: str) -> str:
    """Without what is told on the way: layers that this machine lacks, another process on the device."""
    return "".join(line for line in said.splitlines(keepends=True) if not line.startswith(NOTE))
