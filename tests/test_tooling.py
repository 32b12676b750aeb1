"""The Makefile says what the system lacks, in one line with the mend, before it changes anything."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A fresh checkout's Makefile, and a ``bin`` folder that is all there is of a system."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "bin").mkdir()
    for name in ("sh", "touch", "echo", "make", "test", "sed", "expand"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin" / name).symlink_to(found)
    return tmp_path


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *words],
        cwd=folder,
        env={**os.environ, "PATH": str(folder / "bin"), "MAKEFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def first_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0
    return done.stderr.splitlines()[0]


@pytest.mark.parametrize("target", ["run", "check", "test", "test-gpu", "fmt"])
def test_python_is_missing(folder: Path, target: str) -> None:
    message = first_line(make(folder, target))
    assert message == "Python 3.11 or newer is needed: apt-get install python3 python3-venv"


def test_python_is_too_old(folder: Path) -> None:
    program(folder / "bin" / "python3", 'case "$2" in *version_info*) exit 1;; esac')
    message = first_line(make(folder, "run"))
    assert message == "Python 3.11 or newer is needed, python3 is older: make PYTHON=python3.11 ..."


def test_python_cannot_make_environments(folder: Path) -> None:
    program(folder / "bin" / "python3", 'case "$2" in *ensurepip*) exit 1;; esac')
    message = first_line(make(folder, "run"))
    assert message == "python3 cannot make virtual environments: apt-get install python3-venv"
    assert not (folder / ".venv").exists()


def set_up(folder: Path, *, gpu: bool) -> None:
    """An environment whose programs tell what they are called with."""
    usable = "exit 0" if gpu else "exit 1"
    program(folder / ".venv/bin/python", f'case "$1" in -c) {usable};; esac; echo "python $*"')
    program(folder / ".venv/bin/pip", "exit 9")
    program(folder / ".venv/bin/kernelwright", 'echo "kernelwright $*"')


def test_without_a_gpu_a_compiler_is_needed_and_named(folder: Path) -> None:
    set_up(folder, gpu=False)
    message = first_line(make(folder, "run"))
    assert message == "the cpu device compiles kernels with g++, which is missing: apt-get install g++"


def test_run_installs_once_and_runs_with_the_budget(folder: Path) -> None:
    set_up(folder, gpu=False)
    program(folder / "bin" / "g++", "exit 0")
    first, second = make(folder, "run").stdout, make(folder, "run", "BUDGET=5").stdout
    assert "install --editable ." in first
    assert "cuda" not in first
    assert "kernelwright run gemm --device auto --seconds 120" in first.splitlines()
    assert "install" not in second
    assert "kernelwright run gemm --device auto --seconds 5" in second.splitlines()


def test_with_a_gpu_its_packages_come_too_and_no_compiler_is_needed(folder: Path) -> None:
    set_up(folder, gpu=True)
    assert "install --editable .[cuda]" in make(folder, "run").stdout
    assert (
        make(folder, "run")
        .stdout.splitlines()[0]
        .endswith("kernelwright run gemm --device auto --seconds 120")
    )


def test_the_gpu_tests_fail_where_no_gpu_can_be_used(folder: Path) -> None:
    set_up(folder, gpu=False)
    done = make(folder, "test-gpu")
    assert done.returncode != 0
    assert "pytest" not in done.stdout


def test_a_changed_pyproject_installs_again(folder: Path) -> None:
    set_up(folder, gpu=False)
    program(folder / "bin" / "g++", "exit 0")
    assert make(folder, "run").returncode == 0
    newer = (folder / ".venv/.run").stat().st_mtime + 10
    os.utime(folder / "pyproject.toml", (newer, newer))
    assert "install --editable ." in make(folder, "run").stdout


def test_help_names_the_targets(folder: Path) -> None:
    lines = make(folder).stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["help", "run", "test", "check", "test-gpu", "fmt"]
