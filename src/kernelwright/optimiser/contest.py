"""Many replays at once: spaces, contestants and seeds over parallel processes, and what came out as table and plot."""

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.devices.recorded import read_folder, read_recorded
from kernelwright.optimiser.peers import contestant
from kernelwright.optimiser.replay import CHECKPOINTS, Score, Trace, mean_score, play, score

SEEDS_A_JOB = 5
COLOURS = ("#1f6feb", "#8c959f", "#bf3989", "#9a6700", "#1a7f37")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 420, 60, 20, 20, 50
LOWEST = 0.5


@dataclass(frozen=True)
class Setting:
    """What is played: all spaces of a folder, seeds 0 to ``seeds`` - 1, ``budget`` evaluations each."""

    folder: Path
    contestants: tuple[str, ...]
    seeds: int
    budget: int
    noise: bool
    processes: int


@dataclass(frozen=True)
class _Job:
    path: Path
    contestant: str
    seeds: tuple[int, ...]
    budget: int
    noise: bool


@dataclass(frozen=True)
class Contest:
    """Scores by contestant and space."""

    scores: Mapping[str, Mapping[str, Score]]

    @cached_property
    def means(self) -> dict[str, Score]:
        """Mean over spaces by contestant."""
        return {name: mean_score(list(spaces.values())) for name, spaces in self.scores.items()}

    def as_json(self) -> dict[str, Any]:
        """``spaces`` and ``mean`` of the first contestant; the others under ``against``."""
        entries = {
            name: {
                "spaces": {space: s.as_json() for space, s in spaces.items()},
                "mean": self.means[name].as_json(),
            }
            for name, spaces in self.scores.items()
        }
        first, *others = entries
        return {**entries[first], "against": {name: entries[name] for name in others}}


def run_contest(setting: Setting) -> Contest:
    """Play everything. Raises UserError for a bad folder or contestant, MissingError for a missing package."""
    spaces = read_folder(setting.folder)
    for name in setting.contestants:
        contestant(name)
    paths = sorted(setting.folder.glob("*.npz"))
    chunks = [
        tuple(range(i, min(i + SEEDS_A_JOB, setting.seeds))) for i in range(0, setting.seeds, SEEDS_A_JOB)
    ]
    jobs = [
        _Job(path, name, chunk, setting.budget, setting.noise)
        for name in setting.contestants
        for path in paths
        for chunk in chunks
    ]
    parallel = setting.processes > 1
    results = _in_parallel(jobs, setting.processes) if parallel else [_play(job) for job in jobs]
    traces: dict[tuple[str, Path], list[Trace]] = {}
    for job, result in zip(jobs, results, strict=True):
        traces.setdefault((job.contestant, job.path), []).extend(result)
    scores = {
        name: {
            space.name: score(space, traces[name, path], setting.budget)
            for space, path in zip(spaces, paths, strict=True)
        }
        for name in setting.contestants
    }
    return Contest(scores)


def _in_parallel(jobs: Sequence[_Job], processes: int) -> list[list[Trace]]:
    """Play in processes of their own, which end at once when this one is interrupted."""
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_one_thread)
    with pool, _ended_with_this():
        with _interrupts_held_back():
            # Not map: it cancels what waits, which a pool whose processes were killed does not expect.
            playing = [pool.submit(_play, job) for job in jobs]
        return [each.result() for each in playing]


@contextlib.contextmanager
def _ended_with_this() -> Iterator[None]:
    """Nobody waits for the rest of a game that nobody will read."""
    try:
        yield
    except BaseException:
        for process in active_children():
            process.kill()
        raise


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """What is started here never gets Ctrl-C, which a terminal sends to all: its traceback would be shown too."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _one_thread() -> None:
    """Processes are the parallelism: libraries that read this on first use stay on one core each."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def _play(job: _Job) -> list[Trace]:
    recorded = read_recorded(job.path)
    return [
        play(recorded, contestant(job.contestant), seed, job.budget, noise=job.noise) for seed in job.seeds
    ]


def table(contest: Contest) -> str:
    """Scores as text: one block a contestant, the mean last."""
    lines = []
    for name, spaces in contest.scores.items():
        head = "".join(f"{c:>8}" for c in CHECKPOINTS)
        lines.append(f"{name:34}{head}{'AUC':>8}{'P':>8}{'ms/ask':>8}")
        lines += [_line(space, entry) for space, entry in sorted(spaces.items())]
        lines += [_line(f"mean of {len(spaces)} spaces", contest.means[name]), ""]
    return "\n".join(lines)


def _line(name: str, entry: Score) -> str:
    at = "".join(f"{entry.at[c]:8.3f}" if c in entry.at else f"{'':8}" for c in CHECKPOINTS)
    return f"{name:34}{at}{entry.auc:8.3f}{entry.p:8.3f}{entry.ms_per_ask:8.1f}"


def plot(contest: Contest) -> str:
    """SVG: mean over spaces of the median optimum / best after each evaluation, one line a contestant."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    budget = len(next(iter(contest.means.values())).curve)
    for level in np.linspace(LOWEST, 1.0, 6):
        y = _y(float(level))
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{level:.1f}</text>')
    for evaluations in [c for c in (1, *CHECKPOINTS) if c <= budget]:
        x = _x(evaluations, budget)
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{evaluations}</text>'
        )
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">evaluations</text>')
    parts.append(
        f'<text x="16" y="{HEIGHT / 2}" transform="rotate(-90 16 {HEIGHT / 2})" text-anchor="middle">optimum / best</text>'
    )
    for number, (name, entry) in enumerate(contest.means.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{_x(i + 1, budget):.1f},{_y(v):.1f}" for i, v in enumerate(entry.curve))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = HEIGHT - BOTTOM - 14 - 18 * (len(contest.means) - 1 - number)
        parts.append(f'<text x="{WIDTH - RIGHT - 8}" y="{y}" text-anchor="end" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(evaluations: int, budget: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * evaluations / budget


def _y(ratio: float) -> float:
    share = (max(ratio, LOWEST) - LOWEST) / (1 - LOWEST)
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def usable_processes() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_setting(folder: Path, against: Sequence[str], **numbers: Any) -> Setting:
    """Our optimiser first, then the others, each once."""
    return Setting(folder, tuple(dict.fromkeys(("kernelwright", *against))), **numbers)
