"""How a problem's arguments are handed over where no board has said it."""

from kernelwright.core.errors import UserError
from kernelwright.leaderboard.abi import Abi, Axis
from kernelwright.problems.loader import Problem


def usual_abi(problem: Problem) -> Abi:
    """All arrays in order as one tuple, the first output given back, sizes read off the shapes.

    Raises UserError for a size that is no axis of any array: then a ``board.toml`` has to say where it comes from.
    """
    arrays = problem.spec.arrays
    axes: dict[str, Axis] = {}
    for argument in sorted(arrays, key=lambda a: not a.is_input):
        for axis, text in enumerate(argument.shape or ()):
            axes.setdefault(text.strip(), Axis(argument.name, axis))
    sizes = {}
    for size in problem.spec.size_names:
        if size not in axes:
            raise UserError(
                f"{problem.name}: the size {size!r} is no axis of an array: say in board.toml where it comes from"
            )
        sizes[size] = axes[size]
    returns = next(a.name for a in arrays if a.is_output)
    return Abi(items=tuple(a.name for a in arrays), returns=returns, sizes=sizes)
