"""Files that appear whole or not at all."""

import os
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright.core.errors import UserError
from kernelwright.core.files import (
    place,
    place_folder,
    read_beginning,
    read_bytes,
    read_text,
    temporary_folder,
)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    for text in (b"first", b"second"):
        place(tmp_path / "a", text)
        assert (tmp_path / "a").read_bytes() == text
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("where", "what"), [("/dev/full", "no ordinary file: choose"), (".", "a folder: name a file in it")]
)
def test_nothing_is_placed_over_what_is_no_file(tmp_path: Path, where: str, what: str) -> None:
    with pytest.raises(UserError, match=f"is {what}"):
        place(tmp_path / where, b"x")
    assert not list(tmp_path.iterdir())


def test_a_place_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="absent/a: cannot be written: No such file"):
        place(tmp_path / "absent" / "a", b"x")


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def refuse(partial: Path) -> None:
        assert (partial / "in" / "a").read_bytes() == b"1"
        assert partial.stat().st_mode & 0o077 == 0
        raise UserError(f"{partial}/in/a: no")

    target = tmp_path / "new" / "place"
    with pytest.raises(UserError) as refused:
        place_folder(target, {"in/a": b"1"}, refuse)
    assert str(refused.value) == f"{target}/in/a: no"
    assert list((tmp_path / "new").iterdir()) == []
    place_folder(target, {"in/a": b"1"}, lambda _: None)
    assert list((tmp_path / "new").rglob("a")) == [target / "in" / "a"]
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    for there in (target, link):
        with pytest.raises(UserError, match="is there already"):
            place_folder(there, {"b": b""}, lambda _: None)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (os.mkfifo, "is no ordinary file"),
        (os.mkdir, "is no ordinary file"),
        (lambda at: at.symlink_to("/dev/zero"), "is no ordinary file"),
        # Its size is 0 until it is read.
        (lambda at: at.symlink_to("/proc/self/maps"), "is larger than 1 KiB"),
        (lambda at: at.touch() or os.truncate(at, 1 << 40), "is larger than 1 KiB"),
        (lambda at: at.symlink_to(at), "cannot be read: Too many levels"),
        (lambda at: None, "there is no such file"),
    ],
)
def test_what_could_be_endless_is_not_read(tmp_path: Path, make: Callable[[Path], None], told: str) -> None:
    make(tmp_path / "x")
    with pytest.raises(UserError, match=f"^{tmp_path}/x: {told}"):
        read_bytes(tmp_path / "x", 1 << 10)


def test_of_what_is_longer_the_beginning_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abcdef")
    assert read_beginning(tmp_path / "x", 4) == b"abcd"
    assert read_beginning(tmp_path / "x", 9) == b"abcdef"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="no ordinary file"):
        read_beginning(tmp_path / "pipe", 4)


def test_text_may_begin_with_a_mark_and_is_utf_8(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfabc")
    assert read_text(tmp_path / "x", 6) == "abc"
    with pytest.raises(UserError, match="larger"):
        read_text(tmp_path / "x", 5)
    (tmp_path / "x").write_bytes(b"ab\xff")
    with pytest.raises(UserError, match="is not UTF-8 text at byte 2"):
        read_text(tmp_path / "x", 6)


@pytest.mark.parametrize(("bytes_each", "mend"), [(-1, "free space there or set TMPDIR"), (0, "ulimit -f")])
def test_without_a_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_each: int, mend: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [f"{tmp_path}/a", f"{tmp_path}/b"])
    monkeypatch.setattr(resource, "getrlimit", lambda _: (bytes_each, -1))
    with pytest.raises(UserError) as caught:
        temporary_folder()
    told = f"no folder for temporary files: {tmp_path}/a, {tmp_path}/b cannot be written: "
    assert str(caught.value).startswith(told)
    assert mend in str(caught.value)
