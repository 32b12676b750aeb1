"""``submission.py``: a candidate as one Python file for a board in the style of GPU MODE.

The device code is the candidate's; everything around it is generated from the plan, so that no host code of a model
ever runs. Protocol: kernelbot's ``custom_kernel(data)``, ``torch.utils.cpp_extension.load_inline`` at import.
"""

import hashlib
import json
import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import UserError
from kernelwright.core.plan import DEVICE_NAMES, split_source
from kernelwright.core.plan_faults import first_line, placed
from kernelwright.core.resolve import compiler_options
from kernelwright.leaderboard.abi import Abi
from kernelwright.leaderboard.export.launcher import Launcher
from kernelwright.leaderboard.export.names import Subject
from kernelwright.leaderboard.export.text import ARCH_MACRO, DeviceCode, device_code
from kernelwright.leaderboard.export.torch_side import passed, torch_side
from kernelwright.leaderboard.export.translate import to_python
from kernelwright.leaderboard.kernelbot.facts import BANNED
from kernelwright.problems.spec import Argument

_ARCH: Final = re.compile(r"sm_(\d+)(\d)([af]?)")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_HALF: Final = ("HALF_OPERATORS", "HALF_CONVERSIONS", "BFLOAT16_CONVERSIONS", "HALF2_OPERATORS")
_SYSTEM_HEADERS: Final = ("algorithm", "cfloat", "climits", "cmath", "cstdint", "stdexcept", "string")
_SHARED: Final = {75: 65536, 80: 166912, 86: 101376, 89: 101376, 120: 101376}
"""Most bytes of shared memory a block by compute capability, for versions of torch that do not say; else 232448."""
_FACTS: Final = {
    "num_sms": "properties.multi_processor_count",
    "max_shared_bytes": 'getattr(properties, "shared_memory_per_block_optin", {shared})',
    "warp_size": 'getattr(properties, "warp_size", 32)',
}


@dataclass(frozen=True)
class Sources:
    """The two C++ texts. ``before`` and ``after`` the macros that only the device at import can give."""

    torch_cpp: str
    before: str
    after: str
    late_macros: tuple[tuple[str, str], ...]
    flags: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of the extension: equal only for equal content, so that no build is mistaken for another."""
        parts = [self.torch_cpp, self.before, self.after, *map(repr, self.late_macros), *self.flags]
        return "kernelwright_" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def write_submission(  # noqa: PLR0917 - who, for what problem, for which board: all callers give all
    candidate: Candidate,
    problem_arguments: Sequence[Argument],
    abi: Abi,
    arches: Sequence[str],
    leaderboard: str = "",
    gpu: str = "",
) -> str:
    """The text of ``submission.py``.

    ``arches`` as in ``sm_90a``; without any, torch compiles for the device that it finds. An empty ``leaderboard``
    or ``gpu`` leaves its header line out. Raises UserError with one line, for a fault of the plan a PlanError with the
    place in the file, where the candidate cannot be exported.
    """
    _, _, body = split_source(candidate.template.source, candidate.template.name)
    subject = Subject(candidate, body, tuple(problem_arguments), abi)
    with placed(candidate.template):
        subject.check()
        sources = write_sources(subject, arches)
    text = "\n".join([*_header(subject, leaderboard, gpu), *_python(subject, sources, arches)])
    _check_banned(text, candidate)
    return text


def write_sources(subject: Subject, arches: Sequence[str]) -> Sources:
    """The C++ of an export. Raises UserError."""
    template = subject.candidate.template
    code = device_code(
        subject.body, subject.macro_names, subject.renames, template.name, first_line(template)
    )
    return around(code, subject, arches)


def around(code: DeviceCode, subject: Subject, arches: Sequence[str]) -> Sources:
    """The C++ of an export with other device code in the candidate's place."""
    launcher = Launcher(subject)
    defined, late = _macros(subject, code)
    headers = [f"<{name}>" for name in _SYSTEM_HEADERS] + ["<cuda_runtime.h>"]
    includes = dict.fromkeys([*headers, *code.headers])
    first = [f"#include {header}" for header in includes] + ["#define KERNELWRIGHT_CUDA 1"]
    if "__CUDA_ARCH__" in code.words:
        first.append(f"#define {ARCH_MACRO} {_one_arch(arches)}0")
    macros = dict.fromkeys([*(subject.renames[name] for name, _ in [*defined, *late]), *code.defined])
    rest = [code.text, *(f"#undef {name}" for name in macros)]
    rest += [_runtime(), launcher.write()]
    return Sources(
        torch_cpp=torch_side(subject, launcher),
        before="\n".join([*first, *(f"#define {subject.renames[n]} {value}" for n, value in defined), ""]),
        after="\n".join(["", *rest]),
        late_macros=tuple((subject.renames[name], text) for name, text in late),
        flags=_flags(subject.candidate),
    )


def torch_arch(arch: str) -> str:
    """``9.0a`` of ``sm_90a``. Raises UserError."""
    match = _ARCH.fullmatch(arch)
    if not match:
        raise UserError(f"{arch!r} is no CUDA architecture: give one such as sm_90a")
    return f"{match[1]}.{match[2]}{match[3]}"


def _one_arch(arches: Sequence[str]) -> int:
    numbers = {int("".join(_ARCH.fullmatch(arch).groups()[:2])) for arch in arches if torch_arch(arch)}  # type: ignore[union-attr]
    if len(numbers) != 1:
        raise UserError("the source asks for __CUDA_ARCH__: export it for one architecture")
    return numbers.pop()


def _runtime() -> str:
    return (Path(__file__).parent / "runtime.h").read_text(encoding="utf-8")


def _flags(candidate: Candidate) -> tuple[str, ...]:
    """What torch forbids of fp16 is allowed again, as NVRTC has it; the configuration's settings."""
    options = compiler_options(candidate)
    flags = ["-O3", *(f"-U__CUDA_NO_{name}__" for name in _HALF)]
    flags += ["--use_fast_math"] if options.get("use_fast_math") else []
    registers = int(options.get("maxrregcount", 0))
    return (*flags, *([f"--maxrregcount={registers}"] if registers else []))


def _macros(subject: Subject, code: DeviceCode) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Macros that the source uses: those known now, and those that the device at import decides, as Python."""
    defined = [(name, str(int(value))) for name, value in subject.known.items() if name in code.words]
    names = {name: subject.renames[name] for name in DEVICE_NAMES}
    late = []
    for name, expression in subject.of_device:
        late.append((name, to_python(expression, subject.known, names)))
        names[name] = subject.renames[name]
    if not any(name in code.words for name in [*(n for n, _ in late), *DEVICE_NAMES]):
        return defined, []
    return defined, [*((name, "") for name in sorted(DEVICE_NAMES)), *late]


# -- the Python file --------------------------------------------------------------------------------------


def _header(subject: Subject, leaderboard: str, gpu: str) -> list[str]:
    lines = []
    for key, value in (("leaderboard", leaderboard), ("gpu", gpu)):
        if value and not _NAME.fullmatch(value):
            raise UserError(f"--{key} {value[:60]!r} is no name of a board: use letters, digits, _ . -")
        lines += [f"#!POPCORN {key} {value}"] if value else []
    candidate = subject.candidate
    words = " ".join(
        f"{subject.renames[name]}={int(value)}" for name, value in candidate.configuration.items()
    )
    lines += ["", f"# Kernelwright candidate {candidate.id}.", *([f"# {words}"] if words else [])]
    lines.append("# Device code of the candidate; the launcher below it is generated from its launch plan.")
    return lines


def _python(subject: Subject, sources: Sources, arches: Sequence[str]) -> list[str]:
    archs = " ".join(torch_arch(arch) for arch in arches)
    name, cuda = json.dumps(sources.name), "CUDA"
    setting = ["import os", "", f'os.environ["TORCH_CUDA_ARCH_LIST"] = "{archs}"', ""]
    lines = ["", *(setting if archs else [])]
    lines += ["import torch", "from torch.utils.cpp_extension import load_inline", ""]
    lines += [f"CPP = {_quoted(sources.torch_cpp)}", ""]
    if sources.late_macros:
        lines += [f"BEFORE = {_quoted(sources.before)}", f"AFTER = {_quoted(sources.after)}", ""]
        lines += _late(sources, arches)
        name, cuda = f'f"{sources.name}_{{num_sms}}"', "BEFORE + MACROS + AFTER"
    else:
        lines += [f"CUDA = {_quoted(sources.before + sources.after)}", ""]
    lines += _load(name, cuda, sources.flags)
    return [*lines, "", "", *_entry(subject), ""]


def _load(name: str, cuda: str, flags: Sequence[str]) -> list[str]:
    return [
        "OPTIONS = {",
        f'    "name": {name},',
        '    "cpp_sources": [CPP],',
        f'    "cuda_sources": [{cuda}],',
        '    "functions": ["run"],',
        '    "extra_cflags": ["-O1"],',
        f'    "extra_cuda_cflags": {json.dumps(list(flags))},',
        "}",
        "try:",
        "    module = load_inline(**OPTIONS, no_implicit_headers=True)",
        "except TypeError:  # torch before that option",
        "    module = load_inline(**OPTIONS)",
    ]


def _late(sources: Sources, arches: Sequence[str]) -> list[str]:
    """Macros that depend on the device, computed where it is known."""
    shared = max((_SHARED.get(int("".join(filter(str.isdigit, arch))), 232448) for arch in arches), default=0)
    lines = ["", "def exact(a, b):", "    quotient, rest = divmod(a, b)"]
    lines += ["    assert rest == 0, (a, b)", "    return quotient", "", ""]
    lines.append("properties = torch.cuda.get_device_properties(torch.cuda.current_device())")
    for name, text in sources.late_macros:
        lines.append(f"{name} = {text or _FACTS[name].format(shared=shared)}")
    names = ", ".join(f'"{name}": {name}' for name, _ in sources.late_macros)
    lines += [f'MACROS = "".join(f"#define {{n}} {{int(v)}}\\n" for n, v in {{{names}}}.items())', ""]
    return lines


def _entry(subject: Subject) -> list[str]:
    abi = subject.abi
    used = passed(subject)
    local = {item: _local(subject.renames[item]) for item in used}
    lines = [f"def {abi.entry}(data):"]
    if abi.style == "dict":
        lines += [f"    {local[item]} = data[{json.dumps(item)}]" for item in used]
    elif abi.style == "single":
        if len(abi.items) != 1:
            raise UserError(f"the abi is 'single' but has {len(abi.items)} items: use style 'tuple'")
        lines += [f"    {local[item]} = data" for item in used]
    else:
        names = ", ".join(local.get(item, "_") for item in abi.items)
        lines.append(f"    ({names},) = data" if len(abi.items) == 1 else f"    {names} = data")
    call = f"module.run({', '.join(local[item] for item in used)})"
    if abi.returns in local:
        return [*lines, f"    {call}", f"    return {local[abi.returns]}"]
    return [*lines, f"    return {call}"]


def _local(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name in {"data", "module"} else name


def _quoted(text: str) -> str:
    """A Python literal that people can read."""
    for quotes in ("'''", '"""'):
        if quotes not in text and not text.endswith((quotes[0], "\\")) and "\r" not in text:
            return f"r{quotes}\n{text}{quotes}"
    return json.dumps(text)


def _check_banned(text: str, candidate: Candidate) -> None:
    for number, line in enumerate(text.splitlines(), start=1):
        if BANNED in line.lower():
            raise UserError(
                f"{candidate.template.name}: boards refuse the word {BANNED!r}, it is in line {number} of the export:"
                f" {' '.join(line.split())[:80]!r}"
            )
