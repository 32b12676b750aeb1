"""The generated launcher does what core.resolve says, for bundled templates, many configurations and all cases."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import UserError
from kernelwright.core.launch import LaunchSpec
from kernelwright.core.resolve import resolve
from kernelwright.generation.dispatch import Part, compose
from kernelwright.leaderboard.export import launcher
from kernelwright.leaderboard.export.launcher import Launcher
from kernelwright.problems.case import Case
from kernelwright.problems.loader import Problem, load_problem

from .support import FACTS, candidate_of, catalogue, run_cpp, subject_of

RUNTIME = (Path(launcher.__file__).parent / "runtime.h").read_text(encoding="utf-8")
RECORDER = """
#include <cuda_runtime.h>
#include <cstdio>
#include <cstring>
#include <map>
static std::map<const void*, std::pair<std::string, std::string>> kernels;  // address -> name, kinds of arguments
static void record(const cudaLaunchConfig_t& c, const void* kernel, void** arguments)
{
    const auto& [name, kinds] = kernels.at(kernel);
    unsigned cluster[3] = {1, 1, 1}, together = 0;
    for (unsigned i = 0; i < c.numAttrs; ++i)
        if (c.attrs[i].id == cudaLaunchAttributeClusterDimension) {
            cluster[0] = c.attrs[i].val.clusterDim.x;
            cluster[1] = c.attrs[i].val.clusterDim.y;
            cluster[2] = c.attrs[i].val.clusterDim.z;
        } else
            together = c.attrs[i].val.cooperative;
    std::printf("[\\"%s\\", [%u,%u,%u], [%u,%u,%u], %zu, [%u,%u,%u], %u, %d, [", name.c_str(), c.gridDim.x, c.gridDim.y,
                c.gridDim.z, c.blockDim.x, c.blockDim.y, c.blockDim.z, c.dynamicSmemBytes, cluster[0], cluster[1],
                cluster[2], together, c.dynamicSmemBytes == 0 || raised[0] >= (int)c.dynamicSmemBytes);
    for (size_t i = 0; i < kinds.size(); ++i) {
        long long value = 0;
        double real = 0;
        float single;
        if (kinds[i] == 'f') { std::memcpy(&single, arguments[i], 4); real = single; }
        if (kinds[i] == 'd') std::memcpy(&real, arguments[i], 8);
        if (kinds[i] == 'i') { int32_t small; std::memcpy(&small, arguments[i], 4); value = small; }
        if (kinds[i] == 'p') std::memcpy(&value, arguments[i], 8);
        if (kinds[i] == 'f' || kinds[i] == 'd') std::printf("%s%a", i ? ",\\"" : "\\"", real), std::printf("\\"");
        else std::printf("%s%lld", i ? "," : "", value);
    }
    std::printf("]],");
    raised[0] = 0;
}
"""


@dataclass(frozen=True)
class Call:
    """One call of one exported launcher, with what it has to do."""

    case: Case
    launches: tuple[LaunchSpec, ...] | None
    extents: list[int]


@dataclass(frozen=True)
class Entry:
    problem: Problem
    candidate: Candidate
    calls: list[Call]

    def text(self, number: int) -> str:
        """The launcher in a namespace of its own, and a function that makes all calls."""
        subject = subject_of(self.candidate, self.problem)
        made = Launcher(subject)
        kinds = {k.kernel: k for call in self.calls for k in call.launches or ()}
        names = dict.fromkeys(k.kernel for k in self.candidate.template.plan.launches)
        lines = [f"namespace e{number} {{ namespace kw {{ using namespace ::kw; }}"]
        lines += [f'void {subject.renames[name]}() {{ std::puts("{number}"); }}' for name in names]
        lines += [made.write(), "void test() {"]
        for name in names:
            spec = kinds.get(name)
            letters = "".join(map(_letter, spec.arguments)) if spec else ""
            lines.append(f'kernels[(const void*){subject.renames[name]}] = {{"{name}", "{letters}"}};')
        buffers = [a.name for a in subject.arrays] + [s.name for s in self.candidate.template.plan.scratch]
        for call in self.calls:
            sizes = [str(call.case.sizes[size]) for size in subject.sizes]
            pointers = [f"(void*){4096 * (n + 1)}" for n in range(len(buffers))]
            out = f"int64_t extents[{max(1, len(call.extents))}] = {{}};"
            show = "".join(
                f'std::printf("%lld,", (long long)extents[{n}]);' for n in range(len(call.extents))
            )
            lines.append(f'{{ {out} std::printf("[[");')
            lines.append(f"try {{ kernelwright_extents({', '.join(['extents', *sizes])}); {show}")
            lines.append('std::printf("null],[");')
            lines.append(f"kernelwright_launch({', '.join([*pointers, *sizes])});")
            lines.append('} catch (const std::runtime_error& e) { std::printf("\\"fault\\","); }')
            lines.append('std::puts("null]]"); }')
        return "\n".join([*lines, "} }"])

    def buffers(self) -> dict[str, int]:
        plan = self.candidate.template.plan
        names = [a.name for a in self.problem.spec.arrays] + [s.name for s in plan.scratch]
        return {name: 4096 * (n + 1) for n, name in enumerate(names)}


def _letter(argument: Any) -> str:
    return "p" if argument.is_buffer else {"float32": "f", "float64": "d"}.get(argument.dtype, "i")


def _calls(problem: Problem, candidate: Candidate) -> Iterator[Call]:
    cases = dict.fromkeys((*problem.cases(slow=True), *problem.cases(slow=False)))
    for case in cases:
        try:
            plan = resolve(candidate, case.sizes, FACTS, problem.signature)
        except UserError:
            yield Call(case, None, [])
        else:
            yield Call(case, plan.launches, [s.elements for s in plan.scratch])


def _expected(entry: Entry, launch: LaunchSpec) -> list[Any]:
    places = entry.buffers()
    values: list[Any] = []
    for argument in launch.arguments:
        if argument.value is None:
            values.append(places[argument.name])
        else:
            single = argument.dtype == "float32"
            values.append(float(np.float32(argument.value)) if single else argument.value)
    return [
        launch.kernel, list(launch.grid), list(launch.block), launch.dynamic_shared_bytes, list(launch.cluster),
        int(launch.cooperative), 1, values,
    ]  # fmt: skip


def _plain(launch: list[Any]) -> list[Any]:
    *rest, values = launch
    return [*rest, [float.fromhex(v) if isinstance(v, str) else v for v in values]]


def check(entries: list[Entry], folder: Path) -> int:
    """All calls of all entries against what they have to do; how many launches were seen."""
    texts = [entry.text(number) for number, entry in enumerate(entries)]
    calls = "".join(f"e{number}::test();\n" for number in range(len(entries)))
    program = f"{RECORDER}{RUNTIME}{''.join(texts)}\nint main() {{ on_launch = record;\n{calls}}}"
    lines = iter(run_cpp(program, folder).splitlines())
    seen = 0
    for entry in entries:
        for call in entry.calls:
            line = next(lines)
            where = (str(entry.candidate), call.case.id)
            if call.launches is None:
                assert "fault" in line, where
                continue
            extents, launches = json.loads(line)
            assert extents == [*call.extents, None], where
            assert [_plain(x) for x in launches[:-1]] == [_expected(entry, x) for x in call.launches], where
            seen += len(call.launches)
    return seen


def test_every_bundled_template_is_launched_as_resolved(tmp_path: Path) -> None:
    entries = []
    rng = random.Random(5)
    for problem, name, source in catalogue():
        template = parse_template(source, f"{name.partition('/')[2]}.cu")
        space = template.plan.space(FACTS)
        for index in {0, *(rng.randrange(len(space)) for _ in range(2))}:
            candidate = Candidate(template, space.configuration(index))
            entries.append(Entry(problem, candidate, list(_calls(problem, candidate))))
    assert check(entries, tmp_path) > 400


def test_what_a_campaign_puts_together_is_launched_as_resolved(tmp_path: Path) -> None:
    entries = []
    for name, templates in (("softmax", ("cluster_rows", "warp_row")), ("gemm", ("stream_k", "shared_tile"))):
        problem = load_problem(name)
        sources = dict(problem.catalogue())
        parts = [parse_template(sources[template], f"{template}.cu") for template in templates]
        small, large = (Candidate(part, part.plan.space(FACTS).configuration(3)) for part in parts)
        expression, work = problem.size_of(problem.cases(slow=False))
        middle = sorted(work.values())[len(work) // 2]
        whole = compose([Part(small, None, middle), Part(large, middle, None)], expression)
        assert whole
        candidate = Candidate(whole, Configuration())
        entries.append(Entry(problem, candidate, list(_calls(problem, candidate))))
    assert check(entries, tmp_path) > 20


ODD = """/* kernelwright
[tune]
T = [64]
STREAMS = [3]
[let]
parts = "cdiv(N, T * STREAMS) if N % 2 == 0 else N / T"
stream_bytes = "4 * parts if parts < 100 else 0"
[scratch]
streamed = { dtype = "float64", shape = ["parts", "STREAMS + 0"] }
[[launch]]
kernel = "stream_first"
when = "N < 5000 and num_sms > 100"
grid = ["parts", 2, "STREAMS"]
block = ["T", 2]
cluster = [1, 2]
dynamic_shared_bytes = "stream_bytes"
args = ["A", "streamed", "N - 1", "STREAMS", "warp_size"]
[[launch]]
kernel = "last"
when = "N > 200"
cooperative = true
grid = ["max_shared_bytes // 1000"]
block = ["T"]
args = ["streamed", "C", "2 ** 31 - N // 2000000000"]
*/
"""


def test_scratch_clusters_cooperation_and_faults(tmp_path: Path) -> None:
    problem = load_problem("vector_add")
    candidate = candidate_of(ODD)
    sizes = [128, 192, 576, 577, 100000, 2**31 - 1, 2**31 - 2]
    calls = []
    for n in sizes:
        case = Case(f"N={n}", {"N": n})
        try:
            plan = resolve(candidate, case.sizes, FACTS, problem.signature)
            calls.append(Call(case, plan.launches, [s.elements for s in plan.scratch]))
        except UserError:
            calls.append(Call(case, None, []))
    assert [call.launches is None for call in calls] == [False, False, True, True, True, True, False]
    check([Entry(problem, candidate, calls)], tmp_path)
