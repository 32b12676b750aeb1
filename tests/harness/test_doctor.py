"""The doctor finds what is missing, and never fails itself."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelwright.core.errors import HarnessError, UserError
from kernelwright.harness import doctor
from kernelwright.harness.doctor import Finding, diagnose
from kernelwright.harness.processes import readable_folders
from kernelwright.harness.scratch import Scratch


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_a_fit_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "check_toolchain", lambda: "g++ 12")
    findings = by_name(diagnose("cpu"))
    assert findings["g++"] == Finding("g++", ok=True, detail="g++ 12", mend="")
    assert findings["working folder"].ok
    assert findings["sandbox: capabilities"].ok
    assert all(finding.ok for finding in findings.values() if finding.required)
    assert all(finding.mend for finding in findings.values() if not finding.ok)
    assert "driver" not in findings


def test_tools_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    assert by_name(diagnose("cpu"))["g++"] == Finding(
        "g++", ok=False, detail="g++ not found: apt-get install g++", mend="apt-get install g++ binutils"
    )
    cuda = by_name(diagnose("cuda:0"))
    assert not cuda["ncu"].ok
    assert not cuda["ncu"].required
    assert "CUDA toolkit" in cuda["ncu"].mend


@pytest.mark.parametrize(
    ("text", "root", "ok"),
    [("RmProfilingAdminOnly: 0\n", False, True), ("RmProfilingAdminOnly: 1\n", True, True),
     ("RmProfilingAdminOnly: 1\n", False, False), (None, True, False)],
)  # fmt: skip
def test_who_may_read_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, root: bool, ok: bool
) -> None:
    if text is not None:
        (tmp_path / "params").write_text(text)
    monkeypatch.setattr(doctor, "_COUNTERS", tmp_path / "params")
    monkeypatch.setattr("os.geteuid", lambda: 0 if root else 1000)
    finding = by_name(list(doctor._cuda("cuda:0")))["gpu counters"]
    assert finding.ok is ok
    assert not finding.required


@pytest.mark.parametrize(
    ("device", "usable", "count", "ok"),
    [
        ("cuda:0", True, 1, True),
        ("cuda:1", True, 1, False),
        ("cuda:x", True, 1, False),
        ("cuda:0", False, 0, False),
    ],
)
def test_the_driver(monkeypatch: pytest.MonkeyPatch, device: str, usable: bool, count: int, ok: bool) -> None:
    from kernelwright.devices.cuda import CudaProbe

    monkeypatch.setattr(
        doctor, "probe", lambda: CudaProbe(usable, "" if usable else "no driver", "13.0", count)
    )
    finding = doctor._driver(device)
    assert finding.ok is ok
    assert finding.required
    assert ok or finding.mend


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LEAST_FREE_BYTES", 1 << 62)
    finding = doctor._scratch_space()
    assert not finding.ok
    assert "MiB left" in finding.detail


def test_no_disk_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nonexistent/tmp"])
    findings = by_name(diagnose("cpu"))
    for name in ("scratch space", "sandbox"):
        assert not findings[name].ok
        assert findings[name].required
        assert "no folder for temporary files: /nonexistent/tmp" in findings[name].detail
    with pytest.raises(UserError, match="no folder for temporary files"):
        Scratch()


def test_a_sandbox_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(device: str) -> None:
        raise HarnessError("the probe worker does not start")

    monkeypatch.setattr(doctor, "_probe_child", fail)
    findings = by_name(diagnose("cpu"))
    assert not findings["sandbox"].ok
    assert findings["sandbox"].required


def test_a_python_that_this_user_may_not_run(
    out_of_reach: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "python"  # as a link of a virtual environment into another user's home
    monkeypatch.setattr("sys.executable", f"{closed}")
    monkeypatch.setattr(
        "os.access", lambda path, mode: path != f"{closed}"
    )  # it asks for the real user's rights
    monkeypatch.setattr(
        "os.path.realpath", lambda path, **_: f"{out_of_reach}" if path == f"{closed}" else path
    )
    findings = by_name(diagnose("cpu"))
    assert not findings["interpreter"].ok
    assert str(out_of_reach) in findings["interpreter"].detail
    assert "-m venv" in findings["interpreter"].mend
    assert not findings["sandbox"].ok
    assert readable_folders((), out_of_reach) == readable_folders(())


@pytest.mark.parametrize("slow", [True, False])
def test_an_old_nvrtc_is_told(monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    monkeypatch.setattr(
        doctor, "CudaCompiler", lambda **_: SimpleNamespace(slow=slow, toolchain="nvrtc 13.0")
    )
    finding = by_name(list(doctor._cuda("cuda:0")))["compiler"]
    assert finding.ok is not slow
    assert not finding.required
    assert ("nvcc" in finding.detail) is slow
    assert ("CUDA toolkit" in finding.mend) is slow
