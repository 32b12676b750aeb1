"""A memory with one finished campaign on the bundled vector_add, made up: a baseline, a leader, a duel of both."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernelwright.campaign.settings import Settings
from kernelwright.certificate import TRIALS, trials_note
from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.outcome import (
    CaseTiming,
    Check,
    Conditions,
    KernelStatics,
    Outcome,
    StaticMetrics,
    Status,
)
from kernelwright.core.statistics import Decision, Verdict
from kernelwright.devices.base import DuelCase, TimingProtocol
from kernelwright.memory.records import (
    CampaignRecord,
    Duel,
    Experiment,
    Milestone,
    ProblemRecord,
    TemplateRecord,
)
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import load_problem

PROBLEM = load_problem("vector_add")
CASES = tuple(case.id for case in PROBLEM.cases(slow=True))
CAMPAIGN = "vector_add-20260101-000000-abcd"
DEVICE = DeviceFacts(
    name="cuda:0", kind="cuda", model="Pretended GPU", arch="sm_90a", uuid="GPU-0", num_sms=2, warp_size=32,
    max_threads_per_block=1024, max_shared_bytes=232448, l2_bytes=1 << 20, memory_bytes=1 << 34,
    registers_per_sm=65536, shared_bytes_per_sm=233472, max_threads_per_sm=2048, max_blocks_per_sm=32,
    toolchain="nvrtc 13.0",
)  # fmt: skip
NOISY = "atomic_noise = true\n"
FAST = """/* kernelwright
{more}[tune]
T = [128, 256]
[tune.compiler]
use_fast_math = [false, true]
[[launch]]
kernel = "vector_add"
grid = ["cdiv(N, T)"]
block = ["T"]
args = ["A", "B", "C", "N"]
*/
extern "C" __global__ void vector_add(const float* A, const float* B, float* C, int N) {{
    int i = blockIdx.x * T + threadIdx.x;
    if (i < N) C[i] = A[i] + B[i];
}}
"""
TRIALS_RUN = trials_note(
    [
        ("N=1000 large", Check.STRESS_INPUTS),
        ("N=1000 tiny", Check.STRESS_INPUTS),
        ("N=65537", Check.OTHER_SIZES),
    ]
)
SANITIZER = json.dumps(
    {
        "status": "measured",
        "reason": "",
        "tools": ["memcheck", "racecheck"],
        "seconds": 3.0,
        "notes": ["sandbox without: seccomp"],
    }
)


def leader(more: str = "") -> Candidate:
    template = parse_template(FAST.format(more=more), "fast")
    return Candidate(template, Configuration({"T": 256, "compiler.use_fast_math": False}))


def baseline() -> Candidate:
    return Candidate(parse_template(PROBLEM.baseline_source, "baseline"), Configuration())


def outcome(ms: float, digest: str) -> Outcome:
    conditions = Conditions(sm_clock_mhz=1980, temperature_c=40, power_w=100.0)
    return Outcome(
        Status.MEASURED,
        static=StaticMetrics((KernelStatics("vector_add", registers=16, spill_bytes=0),)),
        cases=tuple(CaseTiming(c, (ms, ms * 1.01), "events", 0.25, conditions, 1) for c in CASES),
        artifact_digest=digest * 64,
        seconds={"compile": 0.5},
        findings=("metric line 1: many", "the GPU was throttled: sw_power_cap"),
    )


def fill(memory: Memory, *, more: str = "", notes: dict[str, str] | None = None, duel: bool = True) -> None:
    """Everything that a campaign records. ``more`` goes into the leader's plan, ``notes`` replace or add."""
    settings = Settings(problem="vector_add", device="cuda:0", slow_cases=True, seed=7)
    memory.start_campaign(
        CampaignRecord(
            CAMPAIGN, PROBLEM.id, settings.model_dump_json(), json.dumps(asdict(DEVICE)), "seed", 0.0
        ),
        ProblemRecord(
            PROBLEM.id,
            PROBLEM.name,
            PROBLEM.spec.model_dump_json(),
            PROBLEM.reference_source,
            PROBLEM.baseline_source,
        ),
    )
    first, fast = baseline(), leader(more)
    _record(memory, first, outcome(2.0, "a"), "baseline")
    number = _record(memory, fast, outcome(1.0, "b"), "test")
    memory.milestone(Milestone(CAMPAIGN, number, 2.0, "faster", 0.5))
    known = {
        "kernelwright": "0.1.0",
        "sandbox": json.dumps({"layers": [{"name": "landlock", "holds": False, "detail": "none here"}]}),
        "ceilings": json.dumps({"bytes_per_s": 4e12, "flops_per_s": 5e13}),
        "timing": json.dumps(asdict(TimingProtocol())),
        "selftest": "[]",
        TRIALS + fast.id: TRIALS_RUN,
        f"sanitizer:{fast.id}": SANITIZER,
    }
    for key, value in {**known, **(notes or {})}.items():
        if value:
            memory.note(CAMPAIGN, key, value)
    if duel:
        _duel(memory, fast.id, first.id, confirmation=False)
        _duel(memory, fast.id, first.id, confirmation=True)


def _record(memory: Memory, candidate: Candidate, result: Outcome, direction: str) -> int:
    template: Template = candidate.template
    experiment = Experiment(
        CAMPAIGN, candidate.id, template.id, candidate.configuration, result, "because", 1.0, 1.0, -1.0, True
    )
    return memory.record(
        experiment, TemplateRecord(template.id, template.name, template.source, "test", direction)
    )


def _duel(memory: Memory, challenger: str, incumbent: str, *, confirmation: bool) -> None:
    cases = tuple(DuelCase(c, (1.0, 1.1), (2.0, 2.1), "events") for c in CASES)
    decision = Decision(Verdict.PROMOTE, "surely faster", 0.5, 0.49, 0.51, 0.51, 0.001, 8)
    memory.duel(
        Duel(CAMPAIGN, challenger, incumbent, decision, cases + cases, 3.0, confirmation=confirmation)
    )


def opened(path: Path, **how: Any) -> Memory:
    """A filled memory."""
    memory = Memory.open(path)
    fill(memory, **how)
    return memory
