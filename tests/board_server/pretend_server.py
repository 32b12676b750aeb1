"""A server in a process of its own with the fake harness: ``pretend_server.py DATA PORT SECONDS_EACH``."""

import asyncio
import sys
from pathlib import Path

from kernelwright.board_server.records import Rules
from kernelwright.board_server.running import Settings, serve
from tests.board_server.support import Benches, listing


def main() -> None:
    data, port, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    settings = Settings([listing()], ["cpu"], data, port=port, rules=Rules())
    asyncio.run(serve(settings, lambda text: print(text, flush=True), Benches(seconds).open))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main()
