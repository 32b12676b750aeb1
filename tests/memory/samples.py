"""Records for tests of the memory."""

import json
from dataclasses import asdict, replace

from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.identity import content_id
from kernelwright.core.outcome import CaseTiming, KernelStatics, Outcome, StaticMetrics, Status
from kernelwright.memory.records import CampaignRecord, Experiment, ProblemRecord, TemplateRecord

PROBLEM = ProblemRecord("p1", "gemm", '{"name": "gemm"}', "def reference(): ...", "// baseline")
TEMPLATE = TemplateRecord(
    "t1", "tile.cu", "// code", "catalogue", "tiling", "reuse in registers", "2x", ("t0",)
)
DEVICE = DeviceFacts(
    name="cuda:0", kind="cuda", model="NVIDIA H200", arch="sm_90a", uuid="GPU-1", num_sms=132, warp_size=32,
    max_threads_per_block=1024, max_shared_bytes=232448, l2_bytes=62914560, memory_bytes=150 << 30,
    registers_per_sm=65536, shared_bytes_per_sm=233472, max_threads_per_sm=2048, max_blocks_per_sm=32,
    toolchain="nvrtc 13.0",
)  # fmt: skip
STATIC = StaticMetrics(
    (KernelStatics("sgemm", registers=96, theoretical_occupancy=0.1 + 0.2),), code_bytes=4096
)


def campaign(name: str = "c1", *, started: float = 1.5, model: str = "NVIDIA H200") -> CampaignRecord:
    device = json.dumps(asdict(replace(DEVICE, model=model)))
    return CampaignRecord(name, PROBLEM.id, '{"seed": 0}', device, "seed", started)


def measured(*times: float, digest: str = "d1") -> Outcome:
    cases = tuple(
        CaseTiming(f"n={index}", (time, time * 1.1, time / 3), "events", max_error=time / 7)
        for index, time in enumerate(times or (0.1, 0.2))
    )
    return Outcome(
        Status.MEASURED, static=STATIC, cases=cases, artifact_digest=digest,
        seconds={"compile": 0.3, "time": 1 / 3}, findings=("reads of A are 2-way conflicts",),
    )  # fmt: skip


def experiment(
    number: int, outcome: Outcome | None = None, *, campaign: str = "c1", template: str = TEMPLATE.id
) -> Experiment:
    values = Configuration({"BM": number, "compiler.use_fast_math": True})
    return Experiment(
        campaign=campaign, candidate=content_id("candidate", template, str(number)), template=template,
        configuration=values, outcome=outcome or measured(), why=f"asked for {number}", seconds=number / 3,
        cost_ms=0.1, score=-0.1, eligible=True,
    )  # fmt: skip
