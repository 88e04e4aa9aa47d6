"""Many runs of a machine: at all combinations of settings of its controller, or with random noise in each (`monte_carlo`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.checks import choice, whole
from dynident.errors import DynidentError, SimulationError, require
from dynident.figures import CURVES, label, one_axes
from dynident.files import jsonable
from dynident.parallel import completed, threads
from dynident.results import Result
from dynident.simulate import Run, VirtualRobot
from dynident.simulate.record import COLLECTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Measure = Callable[[VirtualRobot], float | Mapping[str, float]]
MACHINE = ("step", "ambient")


@dataclass(frozen=True)
class Sweep(Result):
    """Measured numbers of a machine over settings.

    Parameters
    ----------
    settings : tuple of dict
        Changed settings, one per row; a file holds numbers, texts and lists unchanged, other values as text.
    values : tuple of dict of str to float
        Measured numbers; NaN if the machine could not be run.
    notes : tuple of str
        Reason for the failure, or warnings (limits reached, with their share of time); otherwise empty.
    """

    settings: tuple[dict[str, int | float | Any], ...]  # numbers first: files store infinity as text
    values: tuple[dict[str, float], ...]
    notes: tuple[str, ...]

    def column(self, name: str = "value") -> list[float]:
        """Return one number over all settings."""
        if any(name not in row for row in self.values):
            raise SimulationError(f"the sweep has no number {name!r}; it has {', '.join(self.values[0])}")
        return [row[name] for row in self.values]

    def summary(self) -> str:
        """Return settings and numbers as a table, one line per setting."""
        keys, names = list(self.settings[0]), list(self.values[0])
        lines = ["".join(f"{key:>20}" for key in (*keys, *names))]
        for setting, row, note in zip(self.settings, self.values, self.notes, strict=True):
            plain = [jsonable(setting[key], str) for key in keys]
            cells = [f"{x:>20.6g}" if isinstance(x, int | float) else f"{x!s:>20}" for x in plain]
            lines.append("".join(cells) + "".join(f"{row[name]:>20.6g}" for name in names) + (f"  {note}" if note else ""))
        return "\n".join(lines)

    def plot(self, name: str = "value") -> Figure:
        """Draw one number over the first setting, one curve per combination of the others."""
        first, *others = self.settings[0]
        figure, axes = one_axes(7.2, 3.6, label(first), label(name), "")
        curves: dict[str, list[tuple[Any, float]]] = {}
        for setting, value in zip(self.settings, self.column(name), strict=True):
            text = ", ".join(
                f"{key} {setting[key]:g}" if isinstance(setting[key], float) else f"{key} {setting[key]}" for key in others
            )
            curves.setdefault(text, []).append((setting[first], value))
        for k, (text, points) in enumerate(curves.items()):
            plain = all(isinstance(x, int | float) for x, _ in points)
            x = [x if plain else str(x) for x, _ in points]
            axes.plot(x, [y for _, y in points], "o-", color=CURVES[k % len(CURVES)], markersize=4, linewidth=1.0, label=text)
        if others:
            axes.legend(frameon=False, fontsize=8)
        return figure

    __str__ = summary

    def _content(self) -> dict[str, Any]:
        settings = [{key: jsonable(x, str) for key, x in setting.items()} for setting in self.settings]
        return {**super()._content(), "settings": settings}


def sweep(robot: VirtualRobot, changes: Mapping[str, Sequence[Any]], measure: Measure, *, workers: int | None = None) -> Sweep:
    """Measure a machine at all combinations of settings of its controller.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    changes : mapping of str to sequence
        Values to try for fields of its controller, such as ``{"position_cycle": [5e-3, 20e-3]}``,
        or for the machine's ``step`` and ``ambient``.
    measure : callable
        ``measure(robot)`` returns a number, or numbers by name: ``lambda r: bandwidth(r, "z", 1e-3, f).bandwidth``, or
        ``lambda r: max(r.simulate(motion).tracking().largest)``.
    workers : int, optional
        Settings in parallel; one per core when omitted.

    Returns
    -------
    Sweep
        One row per combination; unstable machines have NaN and the reason, machines at their limits a note.
    """
    require(robot, VirtualRobot, "robot")
    if not isinstance(changes, Mapping) or not changes or not all(len(values) for values in changes.values()):
        raise SimulationError("changes are empty; give values to try, as in {'position_gain': [10.0, 20.0]}")
    if not callable(measure):
        raise SimulationError(f"measure is a {type(measure).__name__}; give a function of the machine")
    own = [field.name for field in fields(robot.controller)] if is_dataclass(robot.controller) else []
    for key in changes:
        if key not in own and key not in MACHINE:
            raise SimulationError(
                f"changes name '{key}'; the controller has {', '.join(own)}, the machine {', '.join(MACHINE)}"
            )
    settings = [dict(zip(changes, values, strict=True)) for values in product(*changes.values())]

    def one(setting: dict[str, Any]) -> tuple[dict[str, float], str]:
        said: list[str] = []
        COLLECTED.set(said)  # one list per setting: threads do not share it
        try:
            law = robot.controller
            inside = {k: v for k, v in setting.items() if k in own}
            changed: Any = replace(law, **inside) if inside and is_dataclass(law) and not isinstance(law, type) else law
            outside = {k: v for k, v in setting.items() if k not in own}
            found = measure(replace(robot, controller=changed, **outside))
        except DynidentError as error:
            return {}, str(error)
        values = {k: float(v) for k, v in found.items()} if isinstance(found, Mapping) else {"value": float(found)}
        return values, "; ".join(dict.fromkeys(said))

    with threads(workers) as pool:
        rows = list(pool.map(one, settings))
    names = next((tuple(values) for values, _ in rows if values), ("value",))
    full = tuple(values or dict.fromkeys(names, float("nan")) for values, _ in rows)
    return Sweep(tuple(settings), full, tuple(note for _, note in rows))


Vary = Callable[[np.random.Generator, VirtualRobot], VirtualRobot]
MOST = 1_000_000  # runs or workers


def monte_carlo(
    robot: VirtualRobot,
    reference: object,
    runs: int,
    *,
    seed: int = 0,
    vary: Vary | None = None,
    workers: int | None = None,
    client: Any = None,
    progress: Callable[[int, int], object] | None = None,
    failure: str = "raise",
    **options: Any,
) -> list[Run]:
    """Run a virtual robot many times with different noise, and optionally with different numbers.

    Run i has the i-th child of the seed, independent of the number of cores and of the other runs. Threads are used: the
    compiled plant releases the interpreter lock. A controller written in Python is called by one thread at a time.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    reference : Motion, trajectory, Plan or path-like
        Reference of all runs.
    runs : int
        Number of runs.
    seed : int
        Seed of all runs.
    vary : callable, optional
        ``vary(rng, robot)`` returns the machine of one run, such as one with other friction drawn from ``rng``.
    workers : int, optional
        Threads; one per core when omitted.
    client : dask.distributed.Client or concurrent.futures.Executor, optional
        Client that computes; threads of this process when omitted (see `dynident_lab.fleet.connect`).
    progress : callable, optional
        ``progress(done, runs)`` after every run, in the order of completion.
    failure : {"raise", "skip"}
        Treatment of unstable runs: raise an error that names the run, or leave it out.
    **options
        Passed to `VirtualRobot.simulate`.

    Returns
    -------
    list of Run
        In the order of their seeds.
    """
    require(robot, VirtualRobot, "robot")
    whole("runs", runs, least=1, most=MOST, kind=SimulationError)
    if workers is not None:
        whole("workers", workers, least=1, most=MOST, kind=SimulationError)
    whole("seed", seed, least=0, most=np.inf, kind=SimulationError)
    choice("failure", failure, ("raise", "skip"), SimulationError)
    for name, call in (("vary", vary), ("progress", progress)):
        if call is not None and not callable(call):
            raise SimulationError(f"{name} is a {type(call).__name__}; give a function")
    children = np.random.SeedSequence(int(seed)).spawn(int(runs))
    wanted = robot.reference(reference)  # read and checked once, not by every thread
    items = ((robot, wanted, i, child, vary, options) for i, child in enumerate(children))
    found: dict[int, Run | SimulationError] = {}
    with threads(workers) if client is None else nullcontext(client) as pool:
        for i, future in completed(pool, _one_run, items):
            result: Run | SimulationError = future.result()
            if isinstance(result, SimulationError) and failure == "raise":
                raise result
            found[i] = result
            if progress is not None:
                progress(len(found), int(runs))
    kept = [run for i in sorted(found) if isinstance(run := found[i], Run)]
    if not kept:  # a wrong setting fails in all runs: an empty list would hide it
        raise SimulationError(f"all {int(runs)} runs failed; the first: {found[0]}")
    return kept


def _one_run(
    robot: VirtualRobot,
    wanted: Any,
    i: int,
    child: np.random.SeedSequence,
    vary: Vary | None,
    options: Mapping[str, Any],
) -> Run | SimulationError:
    """Run one machine with the noise of its own seed; return the error of an unstable run."""
    choice, noise = child.spawn(2)
    try:
        machine = robot if vary is None else vary(np.random.default_rng(choice), robot)
        require(machine, VirtualRobot, "the result of vary")
        return machine.simulate(wanted, seed=noise, **options)
    except SimulationError as error:
        return SimulationError(f"run {i}: {error}")
    except DynidentError as error:
        raise type(error)(f"run {i}: {error}") from error
