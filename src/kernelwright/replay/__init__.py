"""Replays a campaign: the winner rebuilt from the memory, regenerated without it, the trajectory derived again.

Reads the campaign's memory only; what it runs, it runs in a scratch folder.
"""

from kernelwright.replay.rebuild import local_harness, rebuild
from kernelwright.replay.rederive import rederive
from kernelwright.replay.regenerate import Terms, regenerate
from kernelwright.replay.subject import Subject, read_subject
from kernelwright.replay.verdicts import Part, Replayed, Verdict

__all__ = [
    "Part",
    "Replayed",
    "Subject",
    "Terms",
    "Verdict",
    "local_harness",
    "read_subject",
    "rebuild",
    "rederive",
    "regenerate",
]
