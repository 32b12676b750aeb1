"""What structure brings, what numbers bring, what both bring together: campaigns on recorded replies of a model.

    python bench/ablate_structure.py --problem examples/layer_norm --evaluations 40

* ``structure``: every proposal of the first reply, each in its first configuration only;
* ``numbers``: the first proposal alone, tuned;
* ``both``: all proposals, tuned.

Every arm starts from the naive baseline without the catalogue and may use the same number of evaluations; structure
alone ends when it has nothing more to try. One JSON line an arm: evaluations used, the incumbent's time over the
baseline's as the duel at the end saw it (and its interval), seconds.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from command_line import parser_of
from kernelwright.generation.model import ModelReply
from kernelwright.generation.models.recorded import read_replies, reply_line


def first_proposal(text: str) -> str:
    """The reply cut behind its first proposal."""
    end = text.lower().index("</proposal>") + len("</proposal>")
    return text[:end] + "\n"


def campaign(options: argparse.Namespace, replies: Path, folder: Path, *more: str) -> dict[str, object]:
    """One arm: the product's own command in a process of its own."""
    command = [
        *(sys.executable, "-m", "kernelwright", "run", options.problem, "--device", options.device),
        *("--no-catalogue", "--model", f"recorded:{replies}", "--max-requests", "1", "--seconds", "1800"),
        *("--evaluations", str(options.evaluations), "--seed", str(options.seed)),
        *("--dir", str(folder), "--json", *more),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip().splitlines()[-1])
    result = json.loads(done.stdout.splitlines()[-1])
    confirmed = result["confirmed"] or {"ratio_to_baseline": 1.0, "interval": None}
    return {
        "evaluations": result["experiments"],
        "statuses": result["statuses"],
        "ratio": round(confirmed["ratio_to_baseline"], 4),
        "interval": confirmed["interval"],
        "seconds": result["seconds"],
        "incumbent": result["incumbent"]["description"],
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--problem", default="examples/layer_norm")
    parser.add_argument("--replies", type=Path, default=Path("tests/data/replies/cpu_layer_norm.jsonl"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    text = read_replies(options.replies)[0][1].text
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        whole, one = folder / "all.jsonl", folder / "first.jsonl"
        whole.write_text(reply_line("0001", ModelReply(text)), encoding="utf-8")
        one.write_text(reply_line("0001", ModelReply(first_proposal(text))), encoding="utf-8")
        arms = {
            "structure": (whole, ("--no-tuning",)),
            "numbers": (one, ()),
            "both": (whole, ()),
        }
        for arm, (replies, more) in arms.items():
            row = campaign(options, replies, folder / arm, *more)
            print(json.dumps({"arm": arm, **row}), flush=True)


if __name__ == "__main__":
    main()
