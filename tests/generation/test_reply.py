"""Replies of models: whatever comes is a proposal or a fault with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.generation.reply import (
    MAX_PROPOSALS,
    MAX_REPLY_BYTES,
    Edit,
    Proposed,
    ReplyFault,
    apply_edits,
    is_text,
    parse_reply,
    quoted,
)

CODE = '/* kernelwright\n[[launch]]\nkernel = "k"\n*/\nextern "C" __global__ void k() {}\n'
HEAD = "kind: template\ndirection: split k\nrationale: more blocks\npredicted: M=128 at 0.5x\n"
BOLD = (
    "**kind**: template\n**direction:** split k\n**rationale**: more blocks\n**predicted**: M=128 at 0.5x\n"
)


def one(text: str) -> Proposed:
    """The only proposal of a reply that must be good."""
    (found,) = parse_reply(text)
    assert isinstance(found, Proposed), found
    return found


def fault(text: str) -> str:
    """The reason why the only proposal of a reply is refused."""
    (found,) = parse_reply(text)
    assert isinstance(found, ReplyFault), found
    return found.reason


@pytest.mark.parametrize(
    "text",
    [
        f"<proposal>\n{HEAD}```cuda\n{CODE}```\n</proposal>",
        f"Sure! Here it is.\n\n<proposal>\n{HEAD}\n```\n{CODE}```\n</proposal>\nHope this helps.",
        f"{HEAD}```cpp\n{CODE}```",
        f"{HEAD}~~~\n{CODE}~~~\n",
        f"{HEAD}{CODE}",
        f"{BOLD}```\n{CODE}```",
        f"<proposal>\r\n{HEAD}```\n{CODE}```\r\n</proposal>".replace("\n", "\r\n"),
        f"<proposal>\n{HEAD}```\n{CODE}```\n",
    ],
    ids=["tags", "prose", "fenced", "tildes", "bare", "bold", "crlf", "tag not closed, code whole"],
)
def test_a_template_in_any_clothes(text: str) -> None:
    found = one(text)
    assert found.kind == "template"
    assert found.code == CODE
    assert found.direction == "split k"
    assert found.rationale == "more blocks"
    assert found.predicted == "M=128 at 0.5x"


def test_several_proposals_and_a_fault_between_them() -> None:
    good = f"<proposal>\n{HEAD}```\n{CODE}```\n</proposal>\n"
    first, second, third = parse_reply(good + "<proposal>\nkind: magic\n</proposal>\n" + good)
    assert isinstance(first, Proposed)
    assert isinstance(third, Proposed)
    assert isinstance(second, ReplyFault)
    assert "'magic'" in second.reason


def test_only_so_many_proposals() -> None:
    found = parse_reply(f"<proposal>\n{HEAD}```\n{CODE}```\n</proposal>\n" * (MAX_PROPOSALS + 2))
    assert len(found) == MAX_PROPOSALS + 1
    assert isinstance(found[-1], ReplyFault)


def test_an_edit() -> None:
    text = (
        "kind: edit\nparent: `abc`\ndirection: wider loads\n"
        "```\n<<<<<<< SEARCH\nint a = 1;\n=======\nint a = 2;\nint b = 3;\n>>>>>>> REPLACE\n"
        "<<<<<<< SEARCH\nx\n=======\n>>>>>>> REPLACE\n```"
    )
    found = one(text)
    assert found.parent == "abc"
    assert found.edits == (Edit("int a = 1;", "int a = 2;\nint b = 3;"), Edit("x", ""))


def test_a_tune() -> None:
    found = one("kind: tune\nparent: abc\nfocus: BM = [64, 128], compiler.maxrregcount = [0]\nrationale: r")
    assert found.focus == {"BM": (64, 128), "compiler.maxrregcount": (0,)}


def test_a_stop() -> None:
    assert one("kind: stop\nrationale: at the roofline").rationale == "at the roofline"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("I am sorry, I cannot.", "no proposal"),
        (f"{HEAD}```cuda\n{CODE}", "cut off"),
        ("<proposal>\ndirection: x", "cut off"),
        (f"{HEAD}```\nint main() {{}}\n```", "plan"),
        (HEAD, "fenced block"),
        ("kind: edit\n```\nx\n```", "parent"),
        ("kind: edit\nparent: a\n```\nx\n```", "SEARCH"),
        ("kind: tune\nparent: a\nfocus: everything", "focus"),
        ("kind: tune\nfocus: A = [1]", "parent"),
        ("x" * (MAX_REPLY_BYTES + 1), "larger"),
        (bytes(range(256)).decode(errors="replace") * 800, "no text"),
    ],
)
def test_faults_say_what_to_mend(text: str, reason: str) -> None:
    assert reason in fault(text)


def test_fields_are_one_bounded_printable_line() -> None:
    found = one(f"kind: template\nrationale: a\x1b[2J{'b' * 5000}\n```\n{CODE}```")
    assert "\x1b" not in found.rationale
    assert len(found.rationale) <= 600


@pytest.mark.parametrize("text", ["ein größerer Block", "为每个线程", "a\tb\r\nc\f"])
def test_any_language_is_text(text: str) -> None:
    assert is_text(text)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("prose " * 10_000, 2_000),
        (f"/* kernelwright\n{CODE}" + "x" * 50_000, 20_000),
        ("short \x1b[2J\u202e and\n\tclean", len("short [2J and\n\tclean")),
    ],
)
def test_what_is_quoted_of_a_reply_is_bounded_and_clean(text: str, length: int) -> None:
    found = quoted(text)
    assert len(found) == length
    assert all(c.isprintable() or c in "\n\t" for c in found)


@given(st.text(max_size=400))
def test_no_text_breaks_the_parser(text: str) -> None:
    assert parse_reply(text)
    assert parse_reply("<proposal>\n" + text)
    assert parse_reply("kind: edit\nparent: a\n" + text)


def test_edits_must_fit_exactly_once() -> None:
    assert apply_edits("a b a", (Edit("b", "c"),)) == "a c a"
    twice = apply_edits("a b a", (Edit("a", "c"),))
    assert isinstance(twice, ReplyFault)
    assert "2 times" in twice.reason
    missing = apply_edits("a", (Edit("z", ""),))
    assert isinstance(missing, ReplyFault)
    assert "does not stand" in missing.reason
    empty = apply_edits("a", (Edit("  ", "x"),))
    assert isinstance(empty, ReplyFault)
