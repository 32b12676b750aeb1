"""Texts of others on their way to a terminal."""


def printable(text: str) -> str:
    r"""The text with its control characters, marks of direction and the like spelled out, as in ``\x1b``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """:func:`printable`, and any run of blanks and ends of lines as one blank."""
    return printable(" ".join(text.split()))
