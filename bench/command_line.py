"""What command lines of the scripts here have in common; what opens a GPU is in ``opened.py``."""

import argparse


def parser_of(text: str | None) -> argparse.ArgumentParser:
    """A parser whose help is a script's own text, in its own lines."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
