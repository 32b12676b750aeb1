"""Loads problem folders. Nothing of a folder is executed here: ``reference.py`` runs in the device worker."""

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from kernelwright.core.candidate import Template, parse_template
from kernelwright.core.case import Array, Buffer
from kernelwright.core.errors import NoSuchFile, PlanError, ProblemError, UserError
from kernelwright.core.files import read_text, unreadable
from kernelwright.core.homes import expanded
from kernelwright.core.identity import content_id
from kernelwright.core.objective import ObjectiveName
from kernelwright.core.resolve import Signature
from kernelwright.core.toml import TomlFault, parse_toml
from kernelwright.core.toml_words import Place, brief, first_fault, key_text, more
from kernelwright.problems.case import Case, Trial
from kernelwright.problems.check import array_shape, case_id, evaluate, faults
from kernelwright.problems.inputs import Distribution, change_a_few, draw, generator
from kernelwright.problems.large_trials import make_large_trials
from kernelwright.problems.script import REFERENCE_FAULTS, Script
from kernelwright.problems.spec import Argument, CaseSpec, ProblemSpec
from kernelwright.problems.trials import declared, make_trials, trial_faults

__all__ = ["REFERENCE_FAULTS", "Case", "Problem", "Trial", "bundled_names", "load_problem"]

LIBRARY_FILE = "library.py"
LARGE_BYTES = 4 << 20
"""From here on a thread costs less than it saves: numpy lets go of the interpreter while it draws."""
MAX_FILE_BYTES = 4 * 2**20
MAX_NAME, MAX_FILE_NAME = 4000, 255
"""Characters of a path and of its last part (Linux, PATH_MAX and NAME_MAX)."""


class SpecFault(Exception):  # noqa: N818 - as what it tells of
    """The first thing that is wrong with a specification: the keys that lead there, and what it is."""

    def __init__(self, place: Place, what: str) -> None:
        super().__init__(what)
        self.place, self.what = place, what


@dataclass(frozen=True)
class Problem:
    """A loaded problem folder: plain data and texts."""

    spec: ProblemSpec
    folder: Path
    reference_source: str = field(repr=False)
    baseline_source: str = field(repr=False)
    library_source: str = field(default="", repr=False)
    """What a user would call instead, in PyTorch; no part of the problem's identity: it decides nothing."""
    toml: str = field(default="", repr=False)
    """The specification as its author wrote it; empty for a problem out of a memory."""

    @property
    def name(self) -> str:
        """What people call it."""
        return self.spec.name

    @cached_property
    def id(self) -> str:
        """Content hash of the specification, the reference and the baseline."""
        return content_id("problem", self.spec.model_dump_json(), self.reference_source, self.baseline_source)

    @property
    def bundled(self) -> bool:
        """Whether it comes with the package."""
        return self.folder.parent == _bundled_folder()

    @property
    def objective(self) -> ObjectiveName:
        """The problem's default objective."""
        return self.spec.objective

    @cached_property
    def signature(self) -> Signature:
        """What a plan's ``args`` may name."""
        return Signature(
            buffers={a.name: a.dtype for a in self.spec.arrays},
            scalars={a.name: (a.dtype, a.value) for a in self.spec.arguments if a.value is not None},
        )

    def cases(self, *, slow: bool) -> tuple[Case, ...]:
        """Cases in order: the real ones, or the smaller ones for slow devices (the real ones if there are none)."""
        specs = self.spec.slow_cases if slow and self.spec.slow_cases else self.spec.cases
        return tuple(_case(spec, slow=specs is self.spec.slow_cases) for spec in specs)

    def trials(self, *, slow: bool) -> tuple[Trial, ...]:
        """What is checked beyond the cases: unlike inputs on listed sizes, and sizes off the list. Never timed."""
        return make_trials(self.spec, self.cases(slow=slow), self._every_case)

    def large_trials(self, *, slow: bool, seed: int) -> tuple[Trial, ...]:
        """Further ones for whoever is about to lead, of large sizes; ``seed`` is the campaign's."""
        known = {trial.id for trial in self.trials(slow=slow)}
        trials = make_large_trials(self.spec, self.cases(slow=slow), self._every_case, seed, slow=slow)
        return tuple(trial for trial in trials if trial.id not in known)

    def every_trial(self, *, slow: bool, seed: int) -> tuple[Trial, ...]:
        """What a check in full runs beside the cases."""
        return (*self.trials(slow=slow), *self.large_trials(slow=slow, seed=seed))

    @cached_property
    def _every_case(self) -> tuple[Case, ...]:
        return tuple(dict.fromkeys((*self.cases(slow=True), *self.cases(slow=False))))

    @property
    def specialised(self) -> bool:
        """Whether the rules allow a candidate that is right for the listed sizes only."""
        return self.spec.trials.other_sizes is False

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        """Array arguments of a case, in the order of the specification."""
        return tuple(
            Buffer(name=a.name, dtype=a.dtype, shape=array_shape(a, case.sizes), role=a.role)
            for a in self.spec.arrays
        )

    def work(self, case: Case) -> tuple[int, int]:
        """Bytes to move and floating point operations of a case, for the roofline."""
        return evaluate(self.spec.work.bytes, case.sizes), evaluate(self.spec.work.flops, case.sizes)

    def size_of(self, cases: Sequence[Case]) -> tuple[str, dict[str, int]]:
        """What tells a small case from a large one: an expression over sizes, and its value by case.

        Floating point operations where the problem has any, else bytes.
        """
        work = self.spec.work
        text = work.flops if any(evaluate(work.flops, case.sizes) for case in cases) else work.bytes
        return text, {case.id: evaluate(text, case.sizes) for case in cases}

    def make_inputs(self, case: Case, set_index: int, seed: int) -> dict[str, Array]:
        """Input set ``set_index`` of a case: equal arguments give equal arrays, any other gives unrelated ones.

        An argument with several distributions takes them in turn, one a set. Large arrays are drawn side by side.
        """
        drawn = [argument for argument in self.spec.arrays if argument.is_input]
        large = len(drawn) > 1 and self.work(case)[0] >= LARGE_BYTES

        def draw_one(argument: Argument) -> Array:
            return self._drawn(case, argument, set_index, seed)

        with ThreadPoolExecutor(len(drawn)) if large else nullcontext() as pool:
            arrays = pool.map(draw_one, drawn) if pool else map(draw_one, drawn)
            return {argument.name: array for argument, array in zip(drawn, arrays, strict=True)}

    def _drawn(self, case: Case, argument: Argument, set_index: int, seed: int) -> Array:
        shape = array_shape(argument, case.sizes)
        distribution = self.distribution(case, argument.name, set_index)
        changed_from = case.changed_from if isinstance(case, Trial) else ""
        rng = generator(seed, changed_from or case.id, set_index, argument.name)
        array = draw(distribution, rng, shape, argument.dtype)
        if changed_from and "float" in argument.dtype:
            change_a_few(array, generator(seed, case.id, set_index, argument.name))
        return array

    def distribution(self, case: Case, argument: str, set_index: int) -> Distribution:
        """What input set ``set_index`` of a case draws an argument from."""
        if isinstance(case, Trial):
            return case.distributions[argument]
        entry = declared(self.spec, argument)
        return entry[set_index % len(entry)]

    def reference(self, case: Case, inputs: Mapping[str, Any], xp: Any) -> dict[str, Any]:
        """Right outputs of a case, in float64 (integers: int64), for inputs that are arrays of ``xp``.

        ``xp`` is numpy, cupy or torch. Executes ``reference.py``: only for the device worker. Raises ProblemError
        when the reference does not give the outputs that problem.toml promises.
        """
        return self.answer(case, self.widened(inputs), xp)

    def widened(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Copies of arrays as the reference gets them: float64, integers as int64."""
        from array_api_compat import array_namespace

        if not inputs:
            return {}
        xp = array_namespace(*inputs.values())
        return {name: xp.astype(array, _wide_dtype(xp, array)) for name, array in inputs.items()}

    def answer(self, case: Case, wide: Mapping[str, Any], xp: Any) -> dict[str, Any]:
        """:meth:`reference` for inputs that are wide already; it gets these very arrays."""
        from array_api_compat import array_namespace

        xp = array_namespace(*wide.values()) if wide else xp
        scalars = {name: _rounded(dtype, value) for name, (dtype, value) in self.signature.scalars.items()}
        outputs = self._reference.call(xp, dict(case.sizes), **wide, **scalars)
        self._check_outputs(case, outputs)
        return dict(outputs)

    def library(self, case: Case, tensors: Mapping[str, Any], torch: Any) -> Callable[[], object]:
        """What a vendor library does for a case, as one call; ``tensors`` are all array arguments, outputs to be written.

        Executes ``library.py``: only for the device worker. Raises ProblemError where the problem has none.
        """
        if not self.library_source:
            raise ProblemError(f"{self.folder}: has no {LIBRARY_FILE}: no vendor library is named")
        scalars = {name: _rounded(dtype, value) for name, (dtype, value) in self.signature.scalars.items()}
        arguments = {**tensors, **scalars}
        return partial(self._library.call, torch, dict(case.sizes), **arguments)

    @cached_property
    def _library(self) -> Script:
        return Script(self.folder / LIBRARY_FILE, self.library_source, "library(torch, sizes, ...)")

    @cached_property
    def _reference(self) -> Script:
        return Script(self.folder / "reference.py", self.reference_source, "reference(xp, sizes, ...)")

    def script_faults(self) -> dict[str, str]:
        """What is plainly wrong with the problem's Python files, a line each, by name. Executes nothing."""
        named = self._library.path.exists()  # an empty file is one too
        scripts = (self._reference, *([self._library] if named else []))
        return {script.path.name: fault for script in scripts if (fault := script.fault())}

    def _check_outputs(self, case: Case, outputs: Any) -> None:
        expected = {b.name: b.shape for b in self.buffers(case) if b.role != "in"}
        path = self.folder / "reference.py"
        if not isinstance(outputs, dict) or set(outputs) != set(expected):
            got = ", ".join(map(str, outputs)) if isinstance(outputs, dict) else type(outputs).__name__
            raise ProblemError(
                f"{path}: reference must return a dict with {', '.join(expected)}, it returned {got}"
            )
        for name, shape in expected.items():
            if not hasattr(outputs[name], "shape"):
                raise ProblemError(
                    f"{path}: reference returned {name} as {type(outputs[name]).__name__}, not as an array"
                )
            if "complex" in str(outputs[name].dtype):
                raise ProblemError(f"{path}: reference returned complex numbers for {name}: give real ones")
            if tuple(outputs[name].shape) != shape:
                raise ProblemError(
                    f"{path}: reference returned {name} of shape {tuple(outputs[name].shape)}, "
                    f"problem.toml says {shape} for the case {case.id}"
                )

    def catalogue(self) -> tuple[tuple[str, str], ...]:
        """Name and text of the templates that come with the problem, in order of their names. Raises ProblemError."""
        folder = self.folder / "catalogue"
        try:
            paths = sorted(folder.iterdir()) if os.path.lexists(folder) else []
        except OSError as error:
            raise ProblemError(f"{folder}: {unreadable(error)}") from None
        wanted = [path for path in paths if path.suffix == ".cu"]
        if odd := next((path for path in wanted if not path.name.isprintable()), None):
            raise ProblemError(f"{folder}: the name {odd.name!r} holds control characters: rename the file")
        return tuple((path.stem, _read(path, self.folder)) for path in wanted)

    def templates(self) -> tuple[Template, ...]:
        """The parsed :meth:`catalogue`. Raises ProblemError with the file and the place in it."""
        folder = self.folder / "catalogue"
        return tuple(_template(folder / f"{name}.cu", text, name) for name, text in self.catalogue())

    def baseline(self) -> Template:
        """The parsed baseline, named so. Raises as :meth:`templates` does."""
        return _template(self.folder / "baseline.cu", self.baseline_source, "baseline")


def bundled_names() -> tuple[str, ...]:
    """Names of the problems that come with the package."""
    return tuple(sorted(path.parent.name for path in _bundled_folder().glob("*/problem.toml")))


def load_problem(name_or_path: str | Path) -> Problem:
    """The bundled problem of that name, or the problem in that folder.

    Raises ProblemError: one line with file, key, what is wrong and how to mend it.
    """
    folder = _find(name_or_path)
    toml = folder / "problem.toml"
    text = _read(toml, folder)
    spec = _parse(text, toml)
    return Problem(
        spec=spec,
        folder=folder,
        reference_source=_read(folder / "reference.py", folder),
        baseline_source=_read(folder / "baseline.cu", folder),
        library_source=_read(folder / LIBRARY_FILE, folder) if os.path.lexists(folder / LIBRARY_FILE) else "",
        toml=text,
    )


def _bundled_folder() -> Path:
    return Path(__file__).parent / "bundled"


def _find(name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    if not text or len(text) > MAX_NAME or max(map(len, Path(text).parts), default=0) > MAX_FILE_NAME:
        raise ProblemError("the problem's name is empty or longer than any file's: give a name or a folder")
    if isinstance(name_or_path, str) and text in bundled_names():
        return _bundled_folder() / text
    path = expanded(Path(text))
    try:
        if path.is_file() and path.name == "problem.toml":
            return path.parent
        if path.is_dir():
            return path
    except OSError as error:
        raise ProblemError(f"{path}: {unreadable(error)}") from None
    if os.sep in text or isinstance(name_or_path, Path):
        raise ProblemError(f"{path}: there is no such problem folder: give a folder with a problem.toml")
    close = difflib.get_close_matches(text, bundled_names(), n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"bundled are: {', '.join(bundled_names())}"
    raise ProblemError(f"{text!r} is neither a bundled problem nor a folder: {hint}")


def strays(path: Path, folder: Path) -> bool:
    """Whether links lead from a file of a problem's folder out of it, or to what is hidden there.

    Problems come from anybody, and what is read of them goes into prompts and reports.
    """
    place, home = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    if not place.is_relative_to(home):
        return home.parent != _bundled_folder()  # some installers make links of all files
    return any(part.startswith(".") for part in place.relative_to(home).parts)


def _read(path: Path, folder: Path) -> str:
    if strays(path, folder):
        raise ProblemError(
            f"{path}: is behind a link out of the problem's folder, or to what is hidden in it: put a copy there"
        )
    try:
        return read_text(path, MAX_FILE_BYTES)
    except NoSuchFile:
        if path.is_symlink():
            reason = f"is a link to {path.readlink()}, where nothing is: mend the link or remove it"
            raise ProblemError(f"{path}: {reason}") from None
        raise ProblemError(f"{path}: the file is missing: a problem needs it, see docs/problems.md") from None
    except UserError as error:
        raise ProblemError(str(error)) from None


def _template(path: Path, text: str, name: str) -> Template:
    try:
        return parse_template(text, name)
    except PlanError as error:
        place = "".join(f":{number}" for number in (error.line, error.column) if number)
        raise ProblemError(f"{path}{place}: {error.message}") from None


def _parse(text: str, path: Path) -> ProblemSpec:
    try:
        table = parse_toml(text)
    except TomlFault as fault:
        where = f"{path}:{fault.line}:{fault.column}" if fault.line else str(path)
        raise ProblemError(f"{where}: not valid TOML: {fault.message}") from None
    try:
        return spec_of(table)
    except SpecFault as fault:
        raise ProblemError(f"{path}: {key_text(fault.place, table) or 'file'}: {fault.what}") from None


def spec_of(table: Mapping[str, Any]) -> ProblemSpec:
    """The specification that the table of a ``problem.toml`` is. Raises SpecFault."""
    try:
        spec = ProblemSpec.model_validate(table)
    except ValidationError as error:
        raise SpecFault(*first_fault(error, table, "docs/problems.md")) from None
    found = [*faults(spec), *trial_faults(spec)]
    if found:
        place, what = found[0]
        raise SpecFault(place, f"{brief(what)}{more(len(found) - 1)}")
    return spec


def _case(spec: CaseSpec, *, slow: bool) -> Case:
    return Case(id=case_id(spec), sizes=dict(spec.sizes), slow=slow)


def _wide_dtype(xp: Any, array: Any) -> Any:
    return xp.float64 if xp.isdtype(array.dtype, "real floating") else xp.int64


def _rounded(dtype: str, value: float) -> float | int:
    """A scalar as the kernels get it: rounded to its dtype."""
    number: float | int = np.dtype(dtype).type(value).item()
    return number
