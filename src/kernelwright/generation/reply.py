"""The reply contract: what a model may answer, parsed defensively. A reply is untrusted text.

A reply holds one or more proposals, each between ``<proposal>`` and ``</proposal>``: header lines
``name: value``, then (for kinds that carry code) one fenced block. Prose around proposals is ignored; a reply
without the tags is taken as one proposal. What cannot be used is a :class:`ReplyFault` with a reason to act on.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Final, Literal

Kind = Literal["template", "edit", "tune", "stop"]

MAX_REPLY_BYTES: Final = 1 << 20
MAX_PROPOSALS: Final = 8
MAX_FIELD: Final = 600
MOST_QUOTED: Final = 20_000
MOST_PROSE: Final = 2_000
LOOKED_AT: Final = 1 << 16
MOST_ODD: Final = 0.1
FIELDS: Final = ("kind", "direction", "rationale", "predicted", "parent", "name", "focus")


@dataclass(frozen=True)
class Edit:
    """Replace ``search``, which stands exactly once in the parent, by ``replace``."""

    search: str
    replace: str


@dataclass(frozen=True)
class Proposed:
    """One proposal as the model meant it. Nothing in it decides whether a candidate passes, fails or ranks.

    ``code`` is a whole ``.cu`` file for kind ``template``; ``edits`` and ``parent`` (a template's id) belong to
    ``edit``; ``parent`` and ``focus`` (allowed values by tunable) to ``tune``.
    """

    kind: Kind
    direction: str = ""
    rationale: str = ""
    predicted: str = ""
    parent: str = ""
    name: str = ""
    code: str = ""
    edits: tuple[Edit, ...] = ()
    focus: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ReplyFault:
    """Why a proposal (or the whole reply) cannot be used, in words that help to repair it."""

    reason: str
    text: str = ""


_OPEN: Final = re.compile(r"^[ \t]*<proposal>[ \t]*$", re.MULTILINE | re.IGNORECASE)
_CLOSE: Final = re.compile(r"^[ \t]*</proposal>[ \t]*$", re.MULTILINE | re.IGNORECASE)
_FENCE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*$", re.MULTILINE)
_HEADER: Final = re.compile(rf"^[ \t>*_-]*({'|'.join(FIELDS)})[*_]*[ \t]*:[ \t*_]*(.*)$", re.IGNORECASE)
_EDIT: Final = re.compile(
    r"^<{5,9} ?SEARCH[^\n]*\n(.*?)^={5,9}[ \t]*\n(.*?)^>{5,9} ?REPLACE[^\n]*$", re.MULTILINE | re.DOTALL
)
_FOCUS: Final = re.compile(r"([A-Za-z_][\w.]*)\s*=\s*\[([-\d\s,]*)\]")
_CODE: Final = re.compile(r"```|~~~|<<<<<|/\*[ \t]*kernelwright")
_PLAN: Final = re.compile(r"/\*[ \t]*kernelwright[ \t]*\r?\n")


def parse_reply(text: str) -> list[Proposed | ReplyFault]:
    """The proposals of a reply in order, faults in their places; never empty, never raises."""
    if len(text.encode(errors="replace")) > MAX_REPLY_BYTES:
        return [ReplyFault(f"the reply is larger than {MAX_REPLY_BYTES >> 10} KiB: give the code only")]
    if not is_text(text):
        return [ReplyFault("the reply is no text: too much of it cannot be printed")]
    text = text.replace("\r\n", "\n").replace("\x00", "")
    if not text.strip():
        return [ReplyFault("the reply is empty")]
    parts = _parts(text)
    found = [_proposal(part, closed=closed) for part, closed in parts[:MAX_PROPOSALS]]
    if len(parts) > MAX_PROPOSALS:
        found.append(ReplyFault(f"the reply has {len(parts)} proposals, {MAX_PROPOSALS} are allowed"))
    return found


def is_text(text: str) -> bool:
    """Whether nearly all of it can be read: bytes that are no UTF-8 come as U+FFFD."""
    head = text[:LOOKED_AT]
    odd = sum(not (c.isprintable() or c in "\n\r\t\f") or c == "\ufffd" for c in head)
    return odd <= MOST_ODD * len(head)


def quoted(text: str) -> str:
    """What a request repeats of a reply that cannot be used: where there is no code in it, the beginning alone."""
    kept = "".join(c for c in text[:MOST_QUOTED] if c.isprintable() or c in "\n\t")
    return kept if _CODE.search(kept) else kept[:MOST_PROSE]


def _parts(text: str) -> list[tuple[str, bool]]:
    """Texts of the proposals, and whether each was closed. Code may not hold the tags on lines of their own."""
    opens = list(_OPEN.finditer(text))
    if not opens:
        return [(text, True)]
    ends = [match.start() for match in opens[1:]] + [len(text)]
    parts = []
    for match, end in zip(opens, ends, strict=True):
        close = _CLOSE.search(text, match.end(), end)
        parts.append((text[match.end() : close.start() if close else end], close is not None))
    return parts


def _proposal(part: str, *, closed: bool) -> Proposed | ReplyFault:
    head, code, whole = _split(part)
    fields = _fields(head)
    kind = fields.get("kind", "").lower().strip("`'\". ") or ("template" if code else "")
    if code is not None and not whole:
        return ReplyFault("the code block is not closed: the reply was cut off", part)
    match kind:
        case "template":
            return _template(fields, code, part)
        case "edit":
            return _edit(fields, code, part)
        case "tune":
            return _tune(fields, part)
        case "stop":
            return Proposed("stop", rationale=fields.get("rationale", ""))
    if not closed:
        return ReplyFault("the proposal is not closed by </proposal>: the reply was cut off", part)
    if not kind:
        return ReplyFault("the reply holds no proposal: neither a line 'kind: ...' nor a code block", part)
    return ReplyFault(f"kind is {kind[:40]!r}: use template, edit, tune or stop", part)


def _split(part: str) -> tuple[str, str | None, bool]:
    """Header text, contents of the code block (the largest, or a bare plan) and whether the block is whole."""
    fences = list(_FENCE.finditer(part))
    if not fences:
        plan = _PLAN.search(part)
        return (part[: plan.start()], part[plan.start() :], True) if plan else (part, None, True)
    blocks: list[tuple[int, int, bool]] = []
    at = 0
    while at < len(fences):
        mark = fences[at].group(1)
        end = next(
            (i for i in range(at + 1, len(fences)) if fences[i].group().strip() == mark[0] * len(mark)), None
        )
        stop = fences[end].start() if end is not None else len(part)
        blocks.append((fences[at].end() + 1, stop, end is not None))
        at = len(fences) if end is None else end + 1
    start, stop, whole = max(blocks, key=lambda block: block[1] - block[0])
    return part[: fences[0].start()], part[start:stop], whole


def _fields(head: str) -> dict[str, str]:
    """Header lines; a value goes on until the next header."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in head.splitlines():
        match = _HEADER.match(line)
        if match:
            current = found.setdefault(match[1].lower(), [])
            current.append(match[2])
        elif current is not None and line.strip():
            current.append(line.strip())
    return {name: _clean(" ".join(lines)) for name, lines in found.items()}


def _clean(text: str) -> str:
    """One line of printable text of bounded length."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())[:MAX_FIELD]


def _template(fields: dict[str, str], code: str | None, part: str) -> Proposed | ReplyFault:
    if not code or not code.strip():
        return ReplyFault("kind template needs the whole .cu file in one fenced block", part)
    plan = _PLAN.search(code)
    if plan is None:
        return ReplyFault("the code does not start with a plan: /* kernelwright ... */", part)
    return replace(_common("template", fields), code=code[plan.start() :].strip() + "\n")


def _edit(fields: dict[str, str], code: str | None, part: str) -> Proposed | ReplyFault:
    if not fields.get("parent"):
        return ReplyFault("kind edit needs 'parent: ID', the id of the template to change", part)
    edits = tuple(Edit(m[1].rstrip("\n"), m[2].rstrip("\n")) for m in _EDIT.finditer(code or part))
    if not edits:
        return ReplyFault("kind edit needs blocks <<<<<<< SEARCH ... ======= ... >>>>>>> REPLACE", part)
    return replace(_common("edit", fields), edits=edits)


def _tune(fields: dict[str, str], part: str) -> Proposed | ReplyFault:
    if not fields.get("parent"):
        return ReplyFault("kind tune needs 'parent: ID', the id of the template to search in", part)
    focus = {
        match[1]: tuple(int(value) for value in re.findall(r"-?\d{1,9}", match[2]))
        for match in _FOCUS.finditer(fields.get("focus", ""))
    }
    if not focus or not all(focus.values()):
        return ReplyFault("kind tune needs 'focus: NAME = [values], ...' with allowed values", part)
    return replace(_common("tune", fields), focus=focus)


def _common(kind: Kind, fields: dict[str, str]) -> Proposed:
    return Proposed(
        kind=kind,
        direction=fields.get("direction", ""),
        rationale=fields.get("rationale", ""),
        predicted=fields.get("predicted", ""),
        parent=fields.get("parent", "").strip("`"),
        name=fields.get("name", "").strip("`"),
    )


def apply_edits(source: str, edits: tuple[Edit, ...]) -> str | ReplyFault:
    """The parent's text with the edits made in order; a fault names the block that does not fit."""
    for number, edit in enumerate(edits, 1):
        if not edit.search.strip():
            return ReplyFault(f"SEARCH block {number} is empty")
        count = source.count(edit.search)
        if count != 1:
            where = "does not stand" if count == 0 else f"stands {count} times"
            first = edit.search.strip().splitlines()[0][:80]
            return ReplyFault(f"SEARCH block {number} {where} in the parent (it begins {first!r})")
        source = source.replace(edit.search, edit.replace, 1)
    return source
