"""Files that appear whole or not at all."""

from pathlib import Path

import pytest

from kernelwright.core.errors import UserError
from kernelwright.core.files import place, place_folder


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    for text in (b"first", b"second"):
        place(tmp_path / "a", text)
        assert (tmp_path / "a").read_bytes() == text
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("where", ["/dev/full", "."])
def test_nothing_is_placed_over_what_is_no_file(tmp_path: Path, where: str) -> None:
    with pytest.raises(UserError, match="no ordinary file"):
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
