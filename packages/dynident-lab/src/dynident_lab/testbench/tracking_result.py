"""Result of a closed-loop proof: errors and efforts of every controller on every motion, as numbers, table and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.identify import Fit
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ALONE, CATALOGUE, IDENTIFIED = "feedback alone", "catalogue model", "identified model"
STIFFNESS = "identified, shafts known"
PLACES = ("joint", "encoder", "tool")
VISIBLE = 0.05  # share of the largest error below which encoder and joint errors agree
#: Published numbers: row label to one tuple of numbers per motion, as in [Briot2015, Table 4].
Published = Mapping[str, Sequence[Sequence[float]]]


def rms(x: Array) -> Array:
    """Return the root of the mean square of every column."""
    return np.asarray(np.sqrt(np.mean(x**2, axis=0)))


@dataclass(frozen=True, eq=False)
class TrackingTrial:
    """One controller on one motion."""

    controller: str  # Model of the controller
    motion: str  # Name of the motion
    t: Array = field(repr=False)  # Time [s]
    error: Array = field(repr=False)
    model: Array = field(repr=False)
    feedback: Array = field(repr=False)  # Share of the feedback in the effort, u^c
    saturated: float = 0.0  # Share of the time with any drive at a limit
    seen: Array | None = field(default=None, repr=False)
    tool: Array | None = field(default=None, repr=False)  # Distance of the tool from its commanded position [m]

    def errors(self, where: str = "joint") -> Array:
        """Return the errors at one place."""
        if where not in PLACES:
            raise DynidentError(f"where is {where!r}; it is one of {', '.join(PLACES)}")
        if where == "tool":
            if self.tool is None:
                raise DynidentError("the result has no tool; give the link with tool= of tracking_proof")
            return self.tool[:, None]
        return self.error if where == "joint" or self.seen is None else self.seen

    @property
    def largest(self) -> Array:
        """Largest error of every actuator, (k,) [rad, m]."""
        return np.asarray(np.max(np.abs(self.error), axis=0))

    @property
    def rms(self) -> Array:
        """RMS error of every actuator, (k,) [rad, m]."""
        return rms(self.error)

    @property
    def shares(self) -> tuple[Array, Array]:
        """RMS of the model's share and of the feedback's, each (k,), in the unit of the efforts [Kostic2002, eq. 16]."""
        return rms(self.model), rms(self.feedback)


@dataclass(frozen=True, eq=False)
class TrackingProof(Result):
    """Result of the proof of a model in closed loop."""

    robot: str  # Name of the robot
    actuators: tuple[str, ...]  # Actuators, k
    units: tuple[str, ...]  # Unit of each actuator coordinate, "rad" or "m"
    effort_unit: str  # Unit of the effort shares
    trials: tuple[TrackingTrial, ...]  # Every controller on every motion
    fit: Fit = field(repr=False)  # The identified model
    how: str = ""  # Description of the use of a model in the control law
    notes: tuple[str, ...] = ()  # Assumptions

    @property
    def controllers(self) -> tuple[str, ...]:
        """Controllers, in the order of the runs."""
        return tuple(dict.fromkeys(trial.controller for trial in self.trials))

    @property
    def motions(self) -> tuple[str, ...]:
        """Motions, in the order of the runs."""
        return tuple(dict.fromkeys(trial.motion for trial in self.trials))

    def trial(self, controller: str, motion: str) -> TrackingTrial:
        """Return one trial."""
        for trial in self.trials:
            if (trial.controller, trial.motion) == (controller, motion):
                return trial
        raise DynidentError(
            f"no trial of '{controller}' on '{motion}'; controllers are {', '.join(self.controllers)}, motions are "
            f"{', '.join(self.motions)}"
        )

    def reduction(self, controller: str = IDENTIFIED, of: str = "largest", where: str = "joint") -> Array:
        """Return the relative reduction of the errors of feedback alone by a model."""
        if of not in ("largest", "rms"):
            raise DynidentError(f"of is {of!r}; it must be 'largest' or 'rms'")
        size = _largest if of == "largest" else rms
        before = np.array([size(self.trial(ALONE, motion).errors(where)) for motion in self.motions])
        after = np.array([size(self.trial(controller, motion).errors(where)) for motion in self.motions])
        return np.asarray(1.0 - np.divide(after, before, out=np.full_like(after, np.nan), where=before > 0.0))

    @property
    def places(self) -> tuple[str, ...]:
        """Places with known, different errors: "joint"; "encoder" if drives are compliant; "tool" if there is one."""
        gives = any(t.seen is not None and np.abs(t.seen - t.error).max() > VISIBLE * t.largest.max() for t in self.trials)
        known = {"joint": True, "encoder": gives, "tool": all(trial.tool is not None for trial in self.trials)}
        return tuple(place for place in PLACES if known[place])

    def effort_ratios(self, controller: str = IDENTIFIED) -> Array:
        """Return the RMS of the model's share over that of the feedback: [Kostic2002, eq. 16]."""
        pairs = [self.trial(controller, motion).shares for motion in self.motions]
        model, feedback = (np.array(x) for x in zip(*pairs, strict=True))
        return np.asarray(np.divide(model, feedback, out=np.full_like(model, np.inf), where=feedback > 0.0))

    @property
    def effort_ratio(self) -> Array:
        """`effort_ratios` with the identified model, (motions, k)."""
        return self.effort_ratios()

    def numbers(self) -> dict[str, Any]:
        """Return the content of the table as plain values: errors, reductions [%] and efforts of all trials; no time series."""
        trials = []
        for trial in self.trials:
            model, feedback = trial.shares
            row = {"controller": trial.controller, "motion": trial.motion, "duration": float(trial.t[-1] - trial.t[0])}
            row |= {"saturated": trial.saturated, "model_effort": model.tolist(), "feedback_effort": feedback.tolist()}
            i = self.motions.index(trial.motion)
            if trial.controller != ALONE:
                row["effort_ratio"] = self.effort_ratios(trial.controller)[i].tolist()
            for place in self.places:
                prefix = "" if place == "joint" else f"{place}_"
                for of, size in (("largest", _largest), ("rms", rms)):
                    row[prefix + of] = _plain(size(trial.errors(place)), place)
                    if trial.controller != ALONE:
                        lower = 100.0 * self.reduction(trial.controller, of, place)[i]
                        row[f"reduction_{prefix}{of}"] = _plain(lower, place)
            trials.append(row)
        head = {"robot": self.robot, "how": self.how, "actuators": list(self.actuators)}
        head |= {"units": list(self.units), "effort_unit": self.effort_unit}
        identified = {"condition": self.fit.condition, "parameters": len(self.fit.values)}
        identified |= {"training_error": self.fit.training_relative}
        ratio = self.effort_ratio.tolist()
        return {**head, "identification": identified, "trials": trials, "effort_ratio": ratio, "notes": list(self.notes)}

    def table(self, published: Published | None = None, efforts: Published | None = None) -> str:
        """Return errors and efforts as text, with published numbers for comparison."""
        from dynident_lab.testbench.tracking_table import table  # noqa: PLC0415 - it needs this module

        return table(self, published, efforts)

    def conclusion(self) -> str:
        """Return the conclusion: the reduction of the error by models, at the encoders and behind compliant drives."""
        gives = "encoder" in self.places
        lines = [f"conclusion: {self._compared(IDENTIFIED, 'encoder' if gives else 'joint')}"]
        lines += [
            self._compared(name, "encoder" if gives else "joint")
            for name in self.controllers
            if name not in (ALONE, CATALOGUE, IDENTIFIED, STIFFNESS)
        ]
        if gives:
            lines.append(f"behind the compliance, {self._compared(IDENTIFIED, 'joint')}: {self._deflection()}")
            if STIFFNESS in self.controllers:
                lines.append(self._compared(STIFFNESS, "joint"))
        return "\n".join(lines)

    def _compared(self, controller: str, place: str) -> str:
        """Return the reduction of the RMS error at a place by a model, over all motions and actuators."""

        def size(name: str) -> Array:
            return np.array([rms(self.trial(name, motion).errors(place)) for motion in self.motions])

        scale = np.where(size(ALONE) > 0.0, size(ALONE), 1.0)
        alone, catalogue, own = (float(np.sqrt(np.mean((size(x) / scale) ** 2))) for x in (ALONE, CATALOGUE, controller))

        def said(before: float) -> str:
            share = 100.0 * (1.0 - own / before) if before > 0.0 else 0.0
            size = "more than 99" if share > 99.0 else f"{abs(share):.0f}"
            return f"lowers the rms tracking error by {size} %" if share >= 0.0 else f"raises it by {size} %"

        named = f"the {controller}" if controller == IDENTIFIED else f"'{controller}'"
        where = {"joint": "joints", "encoder": "encoders", "tool": "tool"}[place]
        return (
            f"at the {where} {named} {said(alone)} compared with the feedback alone; compared with the catalogue model it "
            f"{said(catalogue)}"
        )

    def _deflection(self) -> str:
        """Return the deflection of the drives with the identified model, and the remaining error at the joints."""
        trials = [self.trial(IDENTIFIED, motion) for motion in self.motions]
        given = float(np.mean([rms(t.error - t.errors("encoder")) for t in trials]))
        left = float(np.mean([t.rms for t in trials]))
        unit = f"m{self.units[0]}" if len(set(self.units)) == 1 else "milli-units"
        return (
            f"of the remaining {1e3 * left:.3g} {unit} (rms), drive compliance causes {1e3 * given:.3g}, which a rigid "
            "model cannot remove; too heavy a model hides part of it"
        )

    def summary(self) -> str:
        """Return errors and efforts as text, one line per controller and motion."""
        return self.table()

    def plot(self, motion: str | None = None) -> Figure:
        """Draw the errors of all controllers over time, one panel per actuator."""
        from dynident_lab.testbench.tracking_plots import errors_over_time  # noqa: PLC0415 - matplotlib is an extra

        return errors_over_time(self, motion or self.motions[0])

    def figures(self, published: Published | None = None) -> dict[str, Figure]:
        """Return all figures: errors over time per motion, largest errors and effort shares as bars."""
        from dynident_lab.testbench.tracking_plots import effort_bars, error_bars  # noqa: PLC0415 - matplotlib is an extra

        over_time = {f"errors_{i + 1}": self.plot(motion) for i, motion in enumerate(self.motions)}
        seen = "encoder" in self.places  # published errors are encoder errors
        bars = {"largest_errors": error_bars(self, None if seen else published)}
        if seen:
            bars["largest_errors_encoder"] = error_bars(self, published, "encoder")
        return {**over_time, **bars, "efforts": effort_bars(self)}


def _largest(x: Array) -> Array:
    return np.asarray(np.max(np.abs(x), axis=0))


def _plain(values: Array, place: str) -> Any:
    """Return a list, one number per actuator, or the only number of the tool."""
    return float(values[0]) if place == "tool" else values.tolist()
