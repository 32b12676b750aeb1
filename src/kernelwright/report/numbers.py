"""Numbers for people."""

from math import floor, log10


def plain(value: float) -> str:
    """Three digits, no exponent between a ten-thousandth and a million."""
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.2e}"
    decimals = max(0, 2 - floor(log10(abs(value))))
    written = f"{value:.{decimals}f}"
    return written.rstrip("0").rstrip(".") if "." in written else f"{float(written):.0f}"


def milliseconds(value: float | None) -> str:
    """A kernel's time with its unit."""
    if value is None:
        return "unknown"
    return f"{value:.4g} ms" if value >= 0.1 else f"{1e3 * value:.4g} µs"


def duration(seconds: float) -> str:
    """A time of the campaign in its two largest units."""
    if seconds < 1:
        return f"{1e3 * seconds:.0f} ms" if seconds else "0 s"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def percent(share: float | None) -> str:
    """A share; small ones with a decimal."""
    if share is None:
        return "unknown"
    return f"{share:.1%}" if 0 < share < 0.1 else f"{share:.0%}"


def ratio(value: float | None) -> str:
    """Time over another's."""
    return "unknown" if value is None else f"{value:.3f}"
