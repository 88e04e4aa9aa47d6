"""How a number of a machine depends on its gains and cycle times: one simulation, or one Bode diagram, per setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from typing import Any

from dynident.errors import DynidentError, SimulationError, require
from dynident.files import to_json
from dynident.parallel import cores
from dynident.simulate.results import COLLECTED
from dynident.simulate.robot import VirtualRobot

Measure = Callable[[VirtualRobot], float | Mapping[str, float]]
MACHINE = ("step", "ambient")


@dataclass(frozen=True)
class Sweep:
    """Numbers of a machine over settings.

    Parameters
    ----------
    settings : tuple of dict
        What was changed, one per row.
    values : tuple of dict of str to float
        What was measured; NaN where the machine could not be run.
    notes : tuple of str
        Why it could not, or what it warned of (limits that were hit, with their share of time); else empty.
    """

    settings: tuple[dict[str, Any], ...]
    values: tuple[dict[str, float], ...]
    notes: tuple[str, ...]

    def column(self, name: str = "value") -> list[float]:
        """Return one number over all settings.

        Parameters
        ----------
        name : str
            Which; ``value`` when the measure returned a single one.

        Returns
        -------
        list of float
            In the order of the settings.
        """
        if any(name not in row for row in self.values):
            raise SimulationError(f"the sweep has no number {name!r}; it has {', '.join(self.values[0])}")
        return [row[name] for row in self.values]

    def table(self) -> str:
        """Return settings and numbers as a table.

        Returns
        -------
        str
            One line per setting.
        """
        keys, names = list(self.settings[0]), list(self.values[0])
        lines = ["".join(f"{key:>20}" for key in (*keys, *names))]
        for setting, row, note in zip(self.settings, self.values, self.notes, strict=True):
            cells = [
                f"{setting[key]:>20.6g}" if isinstance(setting[key], int | float) else f"{setting[key]!s:>20}" for key in keys
            ]
            lines.append("".join(cells) + "".join(f"{row[name]:>20.6g}" for name in names) + (f"  {note}" if note else ""))
        return "\n".join(lines)

    __str__ = table

    def to_json(self) -> str:
        """Return everything as JSON.

        Returns
        -------
        str
            JSON text; numbers of machines that could not be run are null.
        """
        rows = zip(self.settings, self.values, self.notes, strict=True)
        return to_json([{"settings": _plain(s), "values": v, "note": n} for s, v, n in rows])


def _plain(setting: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v if isinstance(v, int | float | str | bool | list | tuple) or v is None else str(v) for k, v in setting.items()}


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
        Settings at a time; one per core when omitted.

    Returns
    -------
    Sweep
        One row per combination; unstable machines have NaN and the reason, those at their limits a note that says so.
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
        COLLECTED.set(said)  # every setting has its own: threads do not share it
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

    with ThreadPoolExecutor(workers or cores()) as pool:
        rows = list(pool.map(one, settings))
    names = next((tuple(values) for values, _ in rows if values), ("value",))
    full = tuple(values or dict.fromkeys(names, float("nan")) for values, _ in rows)
    return Sweep(tuple(settings), full, tuple(note for _, note in rows))
