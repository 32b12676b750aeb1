"""Runs a compiler as a confined script: its first error is the last line printed, its exit code this process's.

``python -m kernelwright.harness.worker.run_compiler COMMAND ...``
"""

import subprocess
import sys


def main(command: list[str]) -> int:
    """The compiler's exit code."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout
        error = last = ""
        for line in process.stdout:
            last = line
            error = error or (line if "error" in line else "")
    sys.stdout.write(f"{(error or last).strip()}\n")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
