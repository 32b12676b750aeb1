"""Campaigns on one device, with what they reach against the vendor library and the measured copy bandwidth.

Prints one JSON object a problem and a table at the end; everything is measured in this run, on this device.

    python bench/campaigns.py --device cuda:0 --seconds gemm=300 softmax=60 reduce_sum=60 transpose=60
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from command_line import parser_of
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import load_problem


def main() -> None:
    arguments = _arguments()
    ceilings = _ceilings(arguments.device)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.dir or Path(temporary)
        for entry in arguments.seconds:
            name, _, seconds = entry.partition("=")
            result = _campaign(name, float(seconds), arguments, folder / name)
            row = {**result, **_against(name, result, ceilings), **_rate(folder / name)}
            print(json.dumps(row), flush=True)
            rows.append(row)
    if arguments.out:
        arguments.out.write_text(json.dumps({"ceilings": ceilings, "campaigns": rows}, indent=1))
    print(json.dumps({"ceilings": ceilings}))
    for row in rows:
        print(
            f"{row['problem']:12} {row['incumbent']['time_ms']:9.4f} ms  {row['incumbent']['ratio_to_baseline']:.4f}x baseline"
            f"  {_text(row, 'to_vendor', 'x vendor')}  {_text(row, 'copy_share', ' of copy bandwidth, largest case')}"
            f"  {row['per_second']:.1f} experiments/s  {row['statuses']}"
        )


def _arguments() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", nargs="+", default=["gemm=60"], metavar="PROBLEM=SECONDS")
    parser.add_argument("--compile-workers", type=int, default=4)
    parser.add_argument("--objective")
    parser.add_argument("--out", type=Path, help="JSON of everything")
    parser.add_argument("--dir", type=Path, help="keep the campaigns' memories here")
    return parser.parse_args()


def _campaign(name: str, seconds: float, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "kernelwright", "run", name, "--device", arguments.device, "--json"]
    command += [
        "--seconds",
        str(seconds),
        "--compile-workers",
        str(arguments.compile_workers),
        "--dir",
        str(folder),
    ]
    if arguments.objective:
        command += ["--objective", arguments.objective]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _ceilings(device: str) -> dict[str, Any]:
    """Copy bandwidth and cuBLAS times of this device; nothing for the cpu."""
    if not device.startswith("cuda"):
        return {}
    script = Path(__file__).with_name("bench_cuda_ceilings.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{script.name} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    ceilings: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return ceilings


def _against(name: str, result: dict[str, Any], ceilings: dict[str, Any]) -> dict[str, Any]:
    """Mean time over cuBLAS's mean on the same cases; bandwidth of the case that moves most, over a copy's."""
    found: dict[str, Any] = {}
    cases = result["incumbent"]["cases"]
    vendor = ceilings.get("cublas_fp32", {}) if name == "gemm" else {}
    if vendor and set(cases) <= set(vendor):
        found["vendor_ms"] = {case: vendor[case]["ms"] for case in cases}
        found["to_vendor"] = sum(c["median_ms"] for c in cases.values()) / sum(found["vendor_ms"].values())
    if "copy" in ceilings:
        problem = load_problem(name)
        largest = max(problem.cases(slow=False), key=lambda case: problem.work(case)[0])
        rate = problem.work(largest)[0] / cases[largest.id]["median_ms"] * 1e3
        found["copy_share"] = rate / (1e12 * ceilings["copy"]["tb_per_s"])
    return found


def _rate(folder: Path) -> dict[str, float]:
    """Experiments a second in the second half of the search: the steady state."""
    with Memory.open(folder / "memory.db", read_only=True) as memory:
        ends = [experiment.seconds for experiment in memory.experiments(memory.campaign("last").id)]
    half = ends[len(ends) // 2 :]
    return {"per_second": (len(half) - 1) / max(half[-1] - half[0], 1e-9)}


def _text(row: dict[str, Any], key: str, unit: str) -> str:
    return f"{row[key]:.3f}{unit}" if key in row else ""


if __name__ == "__main__":
    main()
