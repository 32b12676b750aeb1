"""``python -m kernelwright``."""

from kernelwright.cli.main import main

main()
