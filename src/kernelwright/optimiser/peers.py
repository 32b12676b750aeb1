"""Other optimisers, through their own packages, as contestants for a replay (extra ``peers``)."""

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import MissingError, UserError
from kernelwright.core.files import temporary_folder
from kernelwright.core.outcome import Status
from kernelwright.optimiser import make_optimiser
from kernelwright.optimiser.base import Observation
from kernelwright.optimiser.replay import Contestant, Objective

KERNEL_TUNER_STRATEGY = "adaptive_tabu_greywolf"
"""Kernel Tuner's best on these spaces (docs/optimiser.md)."""
_INVALID = 1e10


def kernelwright(objective: Objective, seed: int) -> None:
    """The optimiser of this package."""
    optimiser = make_optimiser(objective.recorded.space, seed)
    while suggestions := optimiser.ask():
        configuration = suggestions[0].configuration
        time_ms = objective(configuration)
        status = Status.COMPILE_FAILED if time_ms is None else Status.MEASURED
        optimiser.tell(configuration, Observation(time_ms, status, noise=objective.spread(configuration)))


def random_search(objective: Objective, seed: int) -> None:
    """Valid configurations in random order, none twice."""
    space = objective.recorded.space
    for index in np.random.default_rng(seed).permutation(len(space)):
        objective(space.configuration(int(index)))


def optuna_tpe(objective: Objective, seed: int) -> None:
    """Optuna's TPE sampler; what is not valid is told as a pruned trial, which costs nothing."""
    optuna = _module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed % 2**31, constant_liar=False))
    space = objective.recorded.space
    while True:
        trial = study.ask()
        values = {t.name: trial.suggest_categorical(t.name, list(t.values)) for t in space.tunables}
        time_ms = objective(Configuration(values))
        if time_ms is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, float(np.log(time_ms)))


def smac(objective: Objective, seed: int) -> None:
    """SMAC3's Bayesian optimisation facade for algorithm configuration (random forest)."""
    with TemporaryDirectory(dir=temporary_folder()) as folder:
        _smac(objective, seed, Path(folder))


def _smac(objective: Objective, seed: int, folder: Path) -> None:
    package, config_space = _module("smac"), _module("ConfigSpace")
    space = objective.recorded.space
    parameters = [
        config_space.OrdinalHyperparameter(t.name, list(t.values))
        for t in space.tunables
        if len(t.values) > 1
    ]
    fixed = {t.name: t.values[0] for t in space.tunables if len(t.values) == 1}
    described = config_space.ConfigurationSpace(seed=seed % 2**31)
    described.add(parameters)
    runs = 50 * objective.budget
    scenario = package.Scenario(
        described, deterministic=True, n_trials=runs, seed=seed % 2**31, output_directory=folder
    )
    facade = package.HyperparameterOptimizationFacade(
        scenario, _never_called, overwrite=True, logging_level=False
    )
    while True:
        info = facade.ask()
        values = {name: _plain(value) for name, value in dict(info.config).items()}
        time_ms = objective(Configuration({**fixed, **values}))
        cost = float(np.log(_INVALID if time_ms is None else time_ms))
        facade.tell(info, package.runhistory.TrialValue(cost=cost))


def _never_called(config: Any, seed: int = 0) -> float:
    """SMAC checks the names of the target's arguments; evaluations go through ask and tell instead."""
    raise AssertionError(config, seed)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


class _Runner:
    """Stands in for Kernel Tuner's runners: answers from the recorded space."""

    def __init__(self, objective: Objective, names: tuple[str, ...]) -> None:
        self.objective = objective
        self.names = names
        self.asked: set[tuple[Any, ...]] = set()
        self.invalid = _module("kernel_tuner.util").RuntimeFailedConfig()

    def add_strategy_time(self, _seconds: float) -> None:
        """Times are not compared here."""

    def run(self, parameter_space: Any, tuning_options: Any) -> list[dict[str, Any] | None]:
        """One result a configuration, as the strategies expect it."""
        results: list[dict[str, Any] | None] = []
        for element in parameter_space:
            if tuning_options.budget.is_done():
                results.append(None)
                continue
            values = dict(zip(self.names, map(_plain, element), strict=True))
            time_ms = self.objective(Configuration(values))
            if tuple(element) not in self.asked:
                self.asked.add(tuple(element))
                tuning_options.budget.add_evaluations(1)
            measured = (
                {"time": time_ms}
                if time_ms is not None
                else {"time": self.invalid, "__error__": self.invalid}
            )
            results.append({**values, **measured})
        return results


def kernel_tuner(objective: Objective, seed: int) -> None:
    """Kernel Tuner's strategy :data:`KERNEL_TUNER_STRATEGY` over the same valid configurations."""
    import random

    util, interface = _module("kernel_tuner.util"), _module("kernel_tuner.interface")
    searchspace = _module("kernel_tuner.searchspace").Searchspace
    space = objective.recorded.space
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the strategies use the global generator
    names = space.names
    tune_params = {t.name: list(t.values) for t in space.tunables}
    valid = {space.configuration(i) for i in range(len(space))}

    def is_valid(values: dict[str, Any]) -> bool:  # a lambda would be rewritten from its source text
        return Configuration({name: _plain(value) for name, value in values.items()}) in valid

    described = searchspace(tune_params, is_valid, 1 << 30)
    options = interface.Options(
        objective=["time"],
        objective_higher_is_better=[False],
        strategy_options=interface.Options(max_fevals=objective.budget),
        budget=util.TuningBudget(None, objective.budget),
        tune_params=tune_params,
        restrictions=None,
        cache={},
        verbose=False,
        eps=1e-3,
    )
    interface.strategy_map[KERNEL_TUNER_STRATEGY].tune(described, _Runner(objective, names), options)


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise MissingError(f"{package} is not installed: pip install 'kernelwright[peers]'") from None


CONTESTANTS: dict[str, Contestant] = {
    "kernelwright": kernelwright,
    "random": random_search,
    "kernel_tuner": kernel_tuner,
    "optuna": optuna_tpe,
    "smac": smac,
}
_PACKAGES = {"kernel_tuner": ("kernel_tuner",), "optuna": ("optuna",), "smac": ("smac", "ConfigSpace")}


def contestant(name: str) -> Contestant:
    """By name. Raises UserError for an unknown one, MissingError where its package is not installed."""
    if name not in CONTESTANTS:
        raise UserError(
            f"unknown optimiser {name!r}: use {', '.join(n for n in CONTESTANTS if n != 'kernelwright')}"
        )
    for package in _PACKAGES.get(name, ()):
        _module(package)
    return CONTESTANTS[name]
