"""Campaigns for tests of reports, written into a memory without a device. Their texts are hostile."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kernelwright.core.candidate import parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import CaseTiming, KernelStatics, Outcome, StaticMetrics, Status
from kernelwright.core.statistics import Decision, Verdict
from kernelwright.devices.base import DuelCase
from kernelwright.memory.records import (
    CampaignRecord,
    Duel,
    Experiment,
    Milestone,
    ProblemRecord,
    ProfileRecord,
    RequestRecord,
    TemplateRecord,
)
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import load_problem

EVIL = (
    "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)> `| [x](javascript:alert(3)) \u202egnp"
)
DEVICE = {
    "name": "cuda:0", "kind": "cuda", "model": "NVIDIA H200", "arch": "sm_90a", "uuid": "GPU-1", "num_sms": 132,
    "warp_size": 32, "max_threads_per_block": 1024, "max_shared_bytes": 232448, "l2_bytes": 62914560,
    "memory_bytes": 150 << 30, "registers_per_sm": 65536, "shared_bytes_per_sm": 233472,
    "max_threads_per_sm": 2048, "max_blocks_per_sm": 32, "toolchain": "nvrtc 13.0",
}  # fmt: skip
PROBLEM = load_problem("gemm")
NAME = "gemm-synthetic"
FAILED = (Status.COMPILE_FAILED, Status.WRONG, Status.CRASHED)


def source(number: int) -> str:
    """A template with its own body; numbers in the plan vary too."""
    body = "\n".join(f"  acc += A[i + {number * 7 + row}] * B[i]; // {EVIL}" for row in range(6))
    return (
        "/* kernelwright\n[tune]\nBM = [16, 32, 64, 128]\nTN = [1, 2, 4, 8]\nVEC = [1, 2, 4]\n"
        '[[launch]]\nkernel = "k"\ngrid = ["cdiv(N, BM)"]\nblock = ["BM"]\n'
        'args = ["A", "B", "C", "M", "N", "K"]\n*/\n'
        'extern "C" __global__ void k(const float* A, const float* B, float* C, int M, int N, int K) {\n'
        f"  float acc = 0; int i = threadIdx.x;\n{body}\n  C[i] = acc * VEC * TN;\n}}\n"
    )


def templates(count: int) -> list[TemplateRecord]:
    """The baseline and proposals, each from the one or two before it."""
    found: list[TemplateRecord] = []
    for number in range(count):
        text = source(number)
        found.append(
            TemplateRecord(
                id=parse_template(text, f"tile{number}").id,
                name="baseline" if number == 0 else f"tile{number}",
                source=text,
                proposer="baseline" if number == 0 else f"openai:some-model{EVIL}",
                direction="baseline" if number == 0 else ("tiling", "pipelining", EVIL)[number % 3],
                rationale=f"Reuse in registers saves loads. {EVIL}",
                predicted=f"1.{number}x",
                parents=tuple(each.id for each in found[-1 - number % 2 :][:1]),
            )
        )
    return found


def configurations() -> list[Configuration]:
    return [
        Configuration({"BM": bm, "TN": tn, "VEC": vec})
        for bm in (16, 32, 64, 128)
        for tn in (1, 2, 4, 8)
        for vec in (1, 2, 4)
    ]


def outcome(cost: float | None, number: int) -> Outcome:
    if cost is None:
        status = FAILED[number % len(FAILED)]
        return Outcome(status, f"line {number % 5}: {EVIL}", seconds={"compile": 0.2}, check="compiler")
    static = StaticMetrics((KernelStatics("k", registers=64 + number % 32, theoretical_occupancy=0.5),))
    cases = tuple(
        CaseTiming(case.id, tuple(cost * weight * (1 + 0.01 * run) for run in range(8)), "events", 0.1)
        for weight, case in enumerate(PROBLEM.cases(slow=False)[:4], 1)
    )
    return Outcome(
        Status.MEASURED, static=static, cases=cases, artifact_digest=f"d{number}",
        seconds={"compile": 0.3, "check": 0.05, "time": 0.1, "overhead": 0.01},
    )  # fmt: skip


def experiments(count: int, records: list[TemplateRecord], *, failing: float) -> Iterator[Experiment]:
    """Costs fall slowly with luck; the first is the baseline, which is measured unless all fail."""
    luck = random.Random(1)
    numbers = configurations()
    each = -(-count // max(len(records), 1))
    for number in range(count):
        record = records[min(number // each, len(records) - 1)]
        values = numbers[number % len(numbers)]
        bad = luck.random() < failing and (number > 0 or failing == 1)
        speed = 1 + 3 * number / count
        cost = None if bad else (1.0 if number == 0 else luck.lognormvariate(0.3, 0.5) / speed)
        candidate = f"c{number:06d}"
        yield Experiment(
            campaign=NAME, candidate=candidate, template=record.id, configuration=values,
            outcome=outcome(cost, number), why="asked", seconds=2.0 * (number + 1), cost_ms=cost, eligible=not bad,
        )  # fmt: skip


def write(
    path: Path,
    count: int,
    *,
    spread: int = 6,
    failing: float = 0.2,
    state: str = "finished",
    models: bool = True,
) -> None:
    """A campaign of ``count`` experiments on ``spread`` templates."""
    records = templates(spread)
    record = ProblemRecord(PROBLEM.id, PROBLEM.name, PROBLEM.spec.model_dump_json(), "", "")
    settings = json.dumps({"problem": "gemm", "device": "cuda:0", "seconds": 60.0, "seed": 0})
    with Memory.open(path) as memory:
        memory.start_campaign(
            CampaignRecord(NAME, PROBLEM.id, settings, json.dumps(DEVICE), "seed", 1.7e9), record
        )
        by_id = {each.id: each for each in records}
        best, leader = float("inf"), ""
        for experiment in experiments(count, records, failing=failing):
            number = memory.record(experiment, by_id[experiment.template])
            cost = experiment.cost_ms
            if cost is not None and cost < best:
                if leader:
                    memory.duel(duel(experiment.candidate, leader, cost / best, experiment.seconds))
                best, leader = cost, experiment.candidate
                memory.milestone(
                    Milestone(NAME, number, experiment.seconds, f"found: {EVIL}", cost, rank=number % 9)
                )
        note(memory, models=models)
        memory.progress(NAME, state, 2.0 * count + 5)


def duel(challenger: str, incumbent: str, ratio: float, seconds: float) -> Duel:
    decision = Decision(
        Verdict.PROMOTE, f"faster {EVIL}", ratio, ratio * 0.98, ratio * 1.02, ratio * 1.01, 0.001, 16
    )
    return Duel(NAME, challenger, incumbent, decision, (DuelCase("n", (ratio,), (1.0,), "events"),), seconds)


def note(memory: Memory, *, models: bool) -> None:
    """What a campaign notes at its beginning, and requests to a model."""
    memory.note(NAME, "ceilings", json.dumps({"bytes_per_s": 4.2e12, "flops_per_s": 5.1e13}))
    layers = [{"name": "bubblewrap", "holds": False, "detail": EVIL}]
    memory.note(NAME, "sandbox", json.dumps({"layers": layers}))
    memory.note(NAME, "strongest", json.dumps({"name": "cuBLAS fp32", "ratio": 1.02}))
    memory.profile(ProfileRecord(NAME, "c000000", "n", 1, f"memory {EVIL}", EVIL, "{}", "leads", 3.0))
    request = RequestRecord(
        NAME, "r1", f"model {EVIL}", "propose", "answered", "", EVIL, EVIL, "", 1200, 800, 0.031, 12.0
    )
    for number in range(3 if models else 0):
        memory.request(replace(request, id=f"r{number}"))
