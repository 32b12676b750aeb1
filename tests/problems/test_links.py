"""Links in a problem's folder: they lead nowhere else, and what they name inside is read everywhere."""

from pathlib import Path

import pytest

from kernelwright.core.errors import ProblemError
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.processes import problem_files, readable_folders
from kernelwright.problems import loader
from kernelwright.problems.loader import load_problem
from tests.harness.support import MAKER
from tests.problems.folders import REFERENCE, write_problem

FILES = ("problem.toml", "reference.py", "baseline.cu", "library.py", "catalogue/a.cu")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "target", ["/etc/passwd", "{up}beside", "{folder}/../beside", "{folder}/.git/config"]
)
def test_what_a_link_leads_to_outside_is_not_read(name: str, target: str, tmp_path: Path) -> None:
    folder = write_problem(tmp_path / "p")
    for secret in (tmp_path / "beside", folder / ".git/config"):
        secret.parent.mkdir(exist_ok=True)
        secret.write_text("secret")
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    file.symlink_to(target.format(folder=folder, up="../" * len(Path(name).parts)))
    with pytest.raises(ProblemError) as error:
        load_problem(folder).catalogue()
    assert str(error.value) == (
        f"{file}: is behind a link out of the problem's folder, or to what is hidden in it: put a copy there"
    )


def test_a_catalogue_elsewhere_is_not_read(tmp_path: Path) -> None:
    folder = write_problem(tmp_path / "p")
    (tmp_path / "c").mkdir()
    (tmp_path / "c/a.cu").write_text("secret")
    (folder / "catalogue").symlink_to(tmp_path / "c")
    with pytest.raises(ProblemError, match=r"a\.cu: is behind a link"):
        load_problem(folder).catalogue()


def test_workers_are_not_shown_what_links_lead_to_outside(tmp_path: Path) -> None:
    folder = write_problem(tmp_path / "p")
    (folder / "data").symlink_to("/etc")
    (folder / "memory").symlink_to(".kernelwright")
    (folder / "other.py").symlink_to("reference.py")
    shown = problem_files(folder)
    assert {path.name for path in shown} == {"baseline.cu", "other.py", "problem.toml", "reference.py"}
    readable = readable_folders((), *shown)
    assert {str(folder / "other.py"), str(folder / "reference.py")} <= set(readable)
    assert "/etc" not in readable


async def test_a_link_inside_is_read_by_the_workers_too(tmp_path: Path) -> None:
    folder = write_problem(tmp_path / "p")
    (folder / "right.py").write_text(REFERENCE)
    (folder / "reference.py").unlink()
    (folder / "reference.py").symlink_to("right.py")
    (tmp_path / "link").symlink_to(folder)
    assert load_problem(tmp_path / "link").reference_source == REFERENCE
    async with LocalHarness(tmp_path / "link", "fake", maker=MAKER, scratch_root=tmp_path) as harness:
        assert harness.facts.name == "fake"


def test_what_comes_with_the_package_may_be_installed_as_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = write_problem(tmp_path / "store")
    bundled = tmp_path / "bundled"
    (bundled / "scale").mkdir(parents=True)
    for file in stored.iterdir():
        (bundled / "scale" / file.name).symlink_to(file)
    monkeypatch.setattr(loader, "_bundled_folder", lambda: bundled)
    assert load_problem("scale").reference_source == REFERENCE
