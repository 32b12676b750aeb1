"""The half of an export that nvcc compiles, and the same with empty kernels: what a host runs must be alike in both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.plan import split_source
from kernelwright.core.plan_faults import first_line
from kernelwright.core.resolve import macros
from kernelwright.leaderboard.abi import Abi
from kernelwright.leaderboard.export.names import Subject
from kernelwright.leaderboard.export.submission import Sources, around
from kernelwright.leaderboard.export.text import device_code
from kernelwright.problems.spec import Argument


@dataclass(frozen=True)
class Twins:
    """Two texts for nvcc, and its flags."""

    whole: str
    bare: str
    flags: tuple[str, ...]


def write_twins(candidate: Candidate, arguments: Sequence[Argument], abi: Abi, facts: DeviceFacts) -> Twins:
    """As ``write_submission`` writes it for the device of ``facts``. Raises as that does."""
    template = candidate.template
    _, _, body = split_source(template.source, template.name)
    subject = Subject(candidate, body, tuple(arguments), abi)
    code = device_code(body, subject.macro_names, subject.renames, template.name, first_line(template))
    kernels = dict.fromkeys(subject.renames[launch.kernel] for launch in template.plan.launches)
    empty = "".join(f'extern "C" __global__ void {kernel}() {{}}\n' for kernel in kernels)
    whole = around(code, subject, (facts.arch,))
    bare = around(replace(code, text=empty), subject, (facts.arch,))
    values = {subject.renames[name]: value for name, value in macros(candidate, facts).items()}
    # Optimised, the launcher's functions would differ by what a compiler makes of their surroundings.
    unoptimised = [flag for flag in whole.flags if flag != "-O3"]
    flags = (f"-arch={facts.arch.replace('sm_', 'compute_')}", *unoptimised)
    return Twins(_text(whole, values), _text(bare, values), flags)


def _text(sources: Sources, values: dict[str, int]) -> str:
    late = "".join(f"#define {name} {values[name]}\n" for name, _ in sources.late_macros)
    return sources.before + late + sources.after
