"""What may not be looked at is not there."""

from pathlib import Path

from kernelwright.core.looking import is_file, is_folder, is_link, is_there


def test_what_is_there(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.touch()
    link.symlink_to(file)
    seen = [
        (is_there(path), is_file(path), is_folder(path), is_link(path)) for path in (file, tmp_path, link)
    ]
    assert seen == [(True, True, False, False), (True, False, True, False), (True, True, False, True)]


def test_what_is_out_of_reach(out_of_reach: Path) -> None:
    for path in (out_of_reach, f"{out_of_reach}", "\0", "x" * 5000):
        assert not any(look(path) for look in (is_there, is_file, is_folder, is_link))
