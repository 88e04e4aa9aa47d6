"""The plan of an experiment: every motion with its purpose, in one JSON file that a recorder can run and a log can name.

Stages follow each other inside a cycle, joined smoothly; cycles repeat. The complete test of document 3 (section 2.2) is
excitation, friction plateaus and warming, 24 cycles of 5 min.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.files import to_json, write_atomic
from dynident.mechanics import Motion
from dynident.trajectory import Curve, Joined, from_spec, join, sample

Array = NDArray[np.float64]

FORMAT = "dynident-plan-1"
PURPOSES = ("training", "validation", "friction", "warming", "payload")


@dataclass(frozen=True, eq=False)
class Stage:
    """One motion of a plan.

    Parameters
    ----------
    name : str
        Name.
    purpose : {"training", "validation", "friction", "warming", "payload"}
        What the data are for.
    curve : Curve
        The motion.
    repetitions : int
        How often it is run in a row; a periodic motion is then averaged over periods.
    payload : str
        Name of the payload that must be mounted; empty for none.
    record : bool
        False for moves whose data are not needed.
    """

    name: str
    purpose: str
    curve: Curve
    repetitions: int = 1
    payload: str = ""
    record: bool = True

    def __post_init__(self) -> None:
        if self.purpose not in PURPOSES:
            raise DynidentError(f"stage '{self.name}': purpose is '{self.purpose}'; it must be one of {', '.join(PURPOSES)}")
        if self.repetitions < 1:
            raise DynidentError(f"stage '{self.name}': repetitions is {self.repetitions}; give at least 1")

    @property
    def duration(self) -> float:
        """How long it takes with its repetitions [s]."""
        return self.repetitions * self.curve.duration


@dataclass(frozen=True, eq=False)
class Plan:
    """An experiment.

    Parameters
    ----------
    robot : str
        Name of the robot.
    coordinates : tuple of str
        Names of the coordinates that the motions are of.
    stages : sequence of Stage
        What to do in a cycle, in order.
    cycles : int
        How often.
    rate : float
        Samples per second at which motions are sent and recorded [Hz].
    speed, acceleration : array_like, (n,)
        Limits of the joins between stages.
    home : array_like, (n,)
        Where the robot rests before and after each cycle.
    period : float
        Length of a cycle with its pause at the end [s]; 0 for no pause.
    notes : mapping
        Anything else: design values, conditions.
    """

    robot: str
    coordinates: tuple[str, ...]
    stages: Sequence[Stage]
    cycles: int
    rate: float
    speed: Array
    acceleration: Array
    home: Array
    period: float = 0.0
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.coordinates)
        object.__setattr__(self, "stages", tuple(self.stages))
        for label in ("speed", "acceleration", "home"):
            object.__setattr__(self, label, np.array(np.broadcast_to(np.asarray(getattr(self, label), dtype=np.float64), (n,))))
        if not self.stages:
            raise DynidentError("the plan has no stage; give at least one motion")
        if self.cycles < 1 or not (np.isfinite(self.rate) and self.rate > 0.0):
            raise DynidentError(f"cycles is {self.cycles} and rate {self.rate}; give at least one cycle and a rate above zero")
        for stage in self.stages:
            if stage.curve.dof != n:
                raise DynidentError(f"stage '{stage.name}' moves {stage.curve.dof} coordinates but the plan has {n}")
        if self.period and self.period < self.curve.duration:
            raise DynidentError(
                f"a cycle takes {self.curve.duration:.1f} s but is planned every {self.period:.1f} s; shorten a stage"
            )

    @property
    def curve(self) -> Joined:
        """One cycle: all stages with their repetitions, joined smoothly, from home to home."""
        pieces = [stage.curve for stage in self.stages for _ in range(stage.repetitions)]
        return join(pieces, self.speed, self.acceleration, self.home)

    @property
    def duration(self) -> float:
        """How long the whole experiment takes [s]."""
        return self.cycles * max(self.period, self.curve.duration)

    def schedule(self) -> list[dict[str, Any]]:
        """Return when each stage runs in a cycle.

        Returns
        -------
        list of dict
            ``name``, ``purpose``, ``repetition``, ``start``, ``end`` [s], in order; joins are left out.
        """
        whole = self.curve
        starts: dict[int, list[float]] = {id(piece): [] for piece in whole.pieces}
        for piece, begin in zip(whole.pieces, whole.starts, strict=False):
            starts[id(piece)].append(float(begin))
        out = []
        for stage in self.stages:
            for k in range(stage.repetitions):
                begin = starts[id(stage.curve)].pop(0)
                entry = {"name": stage.name, "purpose": stage.purpose, "payload": stage.payload, "repetition": k}
                out.append({**entry, "start": begin, "end": begin + stage.curve.duration})
        return out

    def motion(self) -> Motion:
        """Return one cycle at the plan's rate.

        Returns
        -------
        Motion
            Positions, velocities and accelerations.
        """
        return sample(self.curve, self.rate)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data.

        Returns
        -------
        dict
            Plain data.
        """
        stages = [
            {
                "name": s.name,
                "purpose": s.purpose,
                "repetitions": s.repetitions,
                "payload": s.payload,
                "record": s.record,
                "motion": s.curve.spec(),
            }
            for s in self.stages
        ]
        vectors = {label: getattr(self, label).tolist() for label in ("speed", "acceleration", "home")}
        head = {"format": FORMAT, "robot": self.robot, "coordinates": list(self.coordinates), "rate": self.rate}
        body = {"cycles": self.cycles, "period": self.period, **vectors, "stages": stages, "notes": dict(self.notes)}
        return {**head, **body}

    @property
    def identity(self) -> str:
        """Sixteen digits by which a log can refer to this plan."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:16]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the plan as JSON.

        Parameters
        ----------
        path : path-like
            File.

        Returns
        -------
        pathlib.Path
            The file.
        """
        return write_atomic(path, to_json({**self.to_dict(), "identity": self.identity}))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path-like
            File.

        Returns
        -------
        Plan
            The same plan.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise DynidentError(f"'{path}' is not a plan; make one with dynident excite")
            stages = [
                Stage(s["name"], s["purpose"], from_spec(s["motion"]), s["repetitions"], s["payload"], s["record"])
                for s in data["stages"]
            ]
            speed, push, home = (np.array(data[k], dtype=np.float64) for k in ("speed", "acceleration", "home"))
            names = tuple(data["coordinates"])
            rate, period, notes = float(data["rate"]), float(data["period"]), data["notes"]
            return cls(str(data["robot"]), names, stages, int(data["cycles"]), rate, speed, push, home, period, notes)
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, DynidentError):
                raise
            raise DynidentError(f"cannot read a plan from '{path}': {error}") from error
