"""What text that reaches the assembler can make of a candidate: no code that runs when it is loaded."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kernelwright.core.outcome import Check, Status
from kernelwright.devices.cpu import toolchain
from kernelwright.devices.cpu.linkage import check_loading, check_sections, table_bytes
from kernelwright.devices.elf import SHT_DYNSYM, read_dynamic, read_dynamic_relocations, read_elf
from tests.devices.cpu.test_good_kernels import HEAD, out, x_of
from tests.devices.cpu.workbench import Bench, Kernel

EMPTY = 'extern "C" __global__ void k(float* y) { y[0] = 1.f; }\n'


def assembled(text: str, folder: Path) -> Path:
    (folder / "a.s").write_text(text)
    subprocess.run(["g++", "-c", "a.s", "-o", "a.o"], cwd=folder, check=True)
    return folder / "a.o"


@pytest.mark.parametrize(
    "section",
    [
        '.dynamic,"aw"',
        '.dynsym,"a"',
        '.got,"aw"',
        '.plt,"ax"',
        '.gnu.lto_.opts,"e"',
        '.note.other,"a",@note',
        '.interp,"a"',
        '.textual,"ax"',
        '.text.hot,"awx"',
        '.text.cold,"aw"',
        '.data.more,"awx"',
        '.rodata.more,"aw"',
        '.rodata.more,"ax"',
        '.debug_line,"ax"',
        '.comment,"a"',
        '.data,"aw",@0x6',
    ],
)
def test_sections_that_device_code_has_no_use_for(tmp_path: Path, section: str) -> None:
    # These names need their usual flags, or are not assembled: one of the same kind does as well.
    name = section.replace(".data,", ".data.x,").replace(".comment,", ".comment.x,")
    refusal = check_sections(read_elf(assembled(f".section {name}\n.byte 0\n", tmp_path)))
    assert refusal is not None
    assert refusal.status is Status.RULE_BROKEN
    assert "which is not device code" in refusal.reason


def test_text_of_a_directive_does_not_reach_the_assembler(bench: Bench) -> None:
    source = '#ident "\\"\\n\\U0000002esection \\U0000002edynamic\\n\\U0000002equad 12\\n\\U0000002equad 8\\n\\U0000002etext\\n#"\n'
    built = bench.build(source + EMPTY)
    assert built.artifact == "" or 12 not in dict(read_dynamic(Path(built.artifact)))


def test_nor_would_it_be_linked_if_it_did(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = tuple(flag for flag in toolchain.COMMON_FLAGS if flag != "-fno-ident")
    monkeypatch.setattr(toolchain, "COMMON_FLAGS", flags)
    source = '#ident "\\"\\n\\U0000002esection \\U0000002edynamic\\n\\U0000002equad 12\\n\\U0000002equad 8\\n\\U0000002etext\\n#"\n'
    built = bench.build(source + EMPTY)
    assert (built.status, built.artifact) == (Status.RULE_BROKEN, ""), built
    assert built.check in {Check.BINARY_RULES, Check.SOURCE_RULES}


@pytest.mark.parametrize("mode", ["fast", "check"])
def test_nothing_of_a_candidate_runs_when_it_is_loaded(bench: Bench, mode: str) -> None:
    dynamic = dict(read_dynamic(Path(bench.build(EMPTY, mode=mode).artifact)))
    init, fini, init_array, fini_array, preinit_array = 12, 13, 25, 26, 32
    assert dynamic.keys().isdisjoint({init, fini, init_array, fini_array, preinit_array})


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (".globl f\nf: ret\n", ["-Wl,-init=f"]),
        (".globl f\nf: ret\n", ["-Wl,-fini=f"]),
        ('.section .init_array,"aw",@init_array\n.quad 0\n', []),
        ("f: ret\n", ["-Wl,--auxiliary=libm.so.6"]),
        ("f: ret\n", ["-Wl,--filter=libm.so.6"]),
        ("f: ret\n", ["-Wl,--audit=libm.so.6"]),
        ("f: ret\n", ["-Wl,-rpath=/tmp"]),
        ("f: ret\n", ["-Wl,-z,origin"]),
        ("f: ret\n", ["-Wl,--no-as-needed", "-lm"]),
        (".type f, @gnu_indirect_function\nf: ret\n.data\n.quad f\n", []),
    ],
)
def test_what_the_loader_is_not_to_be_asked_for(tmp_path: Path, text: str, options: list[str]) -> None:
    linked = tmp_path / "a.so"
    command = ["g++", "-shared", "-nostdlib", *options, str(assembled(text, tmp_path)), "-o", str(linked)]
    subprocess.run([*command, "-Wl,--build-id=none,--hash-style=gnu"], check=True)
    refusal = check_loading(read_dynamic(linked), read_dynamic_relocations(linked))
    assert refusal is not None
    assert "loader" in refusal.reason


def test_a_file_that_the_loader_would_not_read(tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(b"\x7fELF\x02\x01" + bytes(40))
    with pytest.raises(ValueError, match="cut is cut"):
        read_dynamic(tmp_path / "cut")


@pytest.mark.parametrize("name", ["_ZGVnone", "_ZGVdN8v_expf_", "__tsan_read3"])
def test_no_call_of_what_no_library_has(bench: Bench, name: str) -> None:
    built = bench.build(
        f'extern "C" float {name}(float);\n' + EMPTY.replace("1.f", f"{name}(y[1])"), mode="check"
    )
    assert (built.status, built.check) == (Status.RULE_BROKEN, Check.BINARY_RULES), built
    assert built.reason == f"calls host function {name!r}"


def test_a_candidate_that_cannot_be_loaded_is_at_fault_itself(bench: Bench, tmp_path: Path) -> None:
    kernel = Kernel(HEAD + "y[0] = x[0]; }", ["x", "y", 1], x_of(1), out(1), lambda a: {"y": a["x"]})
    built = bench.build(kernel.source)
    artifact = tmp_path / "a.fast.so"
    arena = read_elf(Path(built.artifact), SHT_DYNSYM)
    assert arena.symbols
    shutil.copyfile(built.artifact, artifact)
    content = artifact.read_bytes().replace(b"kw_kernels\0", b"kw_kernelz\0")
    artifact.write_bytes(content)
    result = bench.execute(str(artifact), kernel, "fast", 4, 20.0)
    assert result.status is Status.LAUNCH_FAILED, result
    assert result.reason == "case small: the candidate has no table of kernels"
    assert result.check == Check.LAUNCH_LIMITS


@pytest.mark.usefixtures("any_section")
@pytest.mark.parametrize(
    "table",
    [
        "static constexpr __device__ Table table;",
        "__constant__ Table table = {};",
        'static constexpr __attribute__((section(".text"))) Table table;',
    ],
)
def test_tables_have_the_room_that_they_have_on_a_gpu(bench: Bench, table: str) -> None:
    source = (
        "struct Table { unsigned v[SIZE]; constexpr Table() : v() { for (int i = 0; i < SIZE; ++i) v[i] = i * i; } };\n"
        f'{table}\nextern "C" __global__ void k(unsigned* y) {{ y[0] = table.v[y[1]]; }}\n'
    )
    built = bench.build(source, macros={"SIZE": 20000})
    assert (built.status, built.check) == (Status.RULE_BROKEN, Check.BINARY_RULES)
    assert "bytes of constant tables, 65536 are allowed" in built.reason
    assert bench.build(source, macros={"SIZE": 16000}).status is None


def test_tables_are_counted_wherever_they_stand(tmp_path: Path) -> None:
    text = '.section .rodata.cst4,"aM",@progbits,4\n.long 1\n.data\n.quad 1\n.section .data.rel.ro,"aw"\n.quad 2\n'
    assert table_bytes(read_elf(assembled(text, tmp_path))) == 20
