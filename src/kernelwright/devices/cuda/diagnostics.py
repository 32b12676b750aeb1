"""First error of a compiler's log, as one line that a model can act on."""

import re

SOURCE_NAME = "candidate.cu"
LOG_LIMIT = 8192

_ERROR = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): (?:catastrophic |fatal )?error(?: #\S+)?: (?P<text>.*)$",
    re.MULTILINE,
)
_PTX_LINE = re.compile(r"^ptxas [^\n]*line (?P<line>\d+); error\s*: (?P<text>.*)$", re.MULTILINE)
_PTXAS = re.compile(r"^\s*ptxas (?:error|fatal)\s*: (?P<text>.*)$", re.MULTILINE)
_HOST = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
_OTHER = re.compile(r"^.*\b(?:error|fatal)\b\s*:? *(?P<text>.*)$", re.MULTILINE)
_MISSING = re.compile(
    r"""(?:could not|cannot) open source file "(?P<quoted>[^"]+)"|error: (?P<plain>\S+): No such file or directory"""
)
_HEX = re.compile(r"0x([0-9a-f]+)(?= (?:bytes|max))")


def missing_header(log: str) -> str | None:
    """Name of the header that could not be opened, if that is what went wrong."""
    match = _MISSING.search(log)
    return (match["quoted"] or match["plain"]) if match else None


def first_error(log: str) -> str:
    """``line N: message`` for the candidate's file; the place in the header or in the PTX otherwise."""
    if match := _ERROR.search(log) or _HOST.search(log):
        place = f"line {match['line']}"
        if not match["file"].endswith(SOURCE_NAME):
            place = f"{match['file'].rsplit('/', 1)[-1]} {place}"
        return f"{place}: {match['text'].strip()}"
    if match := _PTX_LINE.search(log):
        return f"generated PTX line {match['line']} (inline asm?): {match['text'].strip()}"
    if match := _PTXAS.search(log):
        return "ptxas: " + _HEX.sub(lambda m: str(int(m[1], 16)), match["text"].strip())
    if match := _OTHER.search(log):
        return match[0].strip()
    return log.strip().splitlines()[0] if log.strip() else "the compiler failed without a message"


def trim(log: str) -> str:
    """At most 8 KiB: the first error matters most, so the beginning stays and a note tells what was cut."""
    text = log.replace("\0", "").strip()
    if len(text) <= LOG_LIMIT:
        return text
    note = f"\n... {len(text)} characters in all"
    return text[: LOG_LIMIT - len(note)] + note
