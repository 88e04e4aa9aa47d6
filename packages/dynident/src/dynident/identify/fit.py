"""`Fit`: the identified model and its uncertainty; predictions, scores, tables and files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError, IdentificationError
from dynident.export.robot import export_robot, remark
from dynident.files import read_packed
from dynident.identify.base import BaseParameters, columns_of
from dynident.identify.figures import GOOD, POOR, Observability, Undetermined, plot_parameters, summary_of
from dynident.identify.fit_file import fit_content, stored_parts
from dynident.identify.posterior.posterior import Posterior
from dynident.identify.prediction import Prediction, predicted
from dynident.identify.regression.regression import Regression, own_rows
from dynident.identify.regression.rows import Projection, Rows
from dynident.identify.score import evaluate, score_fit
from dynident.mechanics.functions import MotionLike, as_motion
from dynident.mechanism.files import completed, write_robot
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Consistency, Parameters
from dynident.results import Result, Tabular
from dynident.signals.quality import Finding

if TYPE_CHECKING:
    from dynident.control.compiled import CompiledFunction
    from dynident.export.robot import Exported
    from dynident.friction.law import Friction
    from dynident.identify.score import Metrics, Score
    from dynident.signals.log import Log


@dataclass(frozen=True, eq=False)
class Fit(Tabular, Result):
    """The identified model and its uncertainty."""

    data: Regression  #: The regression data, with the robot as described
    posterior: Posterior  #: Estimated parameters, covariance, residuals
    notes: tuple[Finding, ...] = ()  #: Decisions and warnings, each with a code, a severity and a sentence

    @cached_property
    def model(self) -> Mechanism:
        """The identified robot, complete: loops, couplings, laws, forces."""
        return self.mechanism.with_parameters(self.standard)

    def compiled(self, name: str, frame: str | None = None) -> CompiledFunction:
        """Return a quantity of the identified robot at one sample, such as ``"feedforward"``; see `Mechanism.compiled`."""
        return self.model.compiled(name, frame)

    def altered(self, **changes: Any) -> Fit:
        """Return a copy with other fields of the posterior."""
        return replace(self, posterior=replace(self.posterior, **changes))

    def noted(self, *notes: Finding) -> Fit:
        """Return a copy with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    @property
    def values(self) -> Array:
        """Base parameters (b,)."""
        return self.posterior.values

    @property
    def covariance(self) -> Array:
        """Covariance of the base parameters (b, b)."""
        return self.posterior.covariance

    @property
    def standard(self) -> Parameters:
        """Standard parameters that give the same torques."""
        return self.posterior.standard

    @property
    def solved(self) -> NDArray[np.bool_]:
        """Mask of the base parameters that were estimated individually (b,)."""
        return self.posterior.solved

    @property
    def active(self) -> NDArray[np.bool_]:
        """Mask of the base parameters included in the fit (b,)."""
        return self.posterior.active

    @property
    def standard_std(self) -> Array | None:
        """Standard deviation of the standard parameters."""
        return self.posterior.standard_std

    @property
    def sigma(self) -> Array:
        """Residual standard deviation of each joint [N m or N]."""
        return self.posterior.sigma

    @property
    def condition(self) -> float:
        """Condition number of the scaled, weighted regression."""
        return self.posterior.condition

    @property
    def estimator(self) -> str:
        """Name and settings of the estimator."""
        return self.posterior.estimator

    @property
    def training_relative(self) -> float:
        """||e|| / ||tau|| on the training data."""
        return self.posterior.training_relative

    @property
    def free(self) -> Array | None:
        """Base parameters of unconstrained least squares."""
        return self.posterior.free

    @property
    def base(self) -> BaseParameters:
        """The robot as described and its identifiable combinations."""
        return self.data.base

    @property
    def groups(self) -> tuple[str, ...]:
        """Joints whose efforts were used."""
        return tuple(group.name for group in self.data.groups)

    @property
    def rows(self) -> int:
        """Number of equations."""
        return self.data.rows

    @property
    def sources(self) -> tuple[Mapping[str, Any], ...]:
        """Training logs: names, checksums, times, bands."""
        return self.data.sources

    @property
    def options(self) -> Mapping[str, Any]:
        """Options of `dynident.signals.prepare`."""
        return self.data.options

    @property
    def projection(self) -> Projection:
        """Projection of the equations of a robot with loops."""
        return self.data.projection

    @property
    def described(self) -> Array:
        """Base parameters of the description (b,)."""
        return self.base.described if self.posterior.before is None else self.posterior.before

    @property
    def mechanism(self) -> Mechanism:
        """The robot as described (prior parameters)."""
        return self.base.mechanism

    @property
    def friction(self) -> Mapping[str, Friction]:
        """Friction laws of the joints with their identified numbers; joints with friction terms are not among them."""
        return self.model.friction

    def exported(self) -> Fit:
        """Return the fit with beta = K phi of the standard parameters, as a written URDF predicts."""
        return self.altered(values=self.base.values(self.standard.values))

    def export(
        self, folder: str | os.PathLike[str], target: str, source: str | os.PathLike[str] | None = None, **options: Any
    ) -> Exported:
        """Write the identified robot for another program, read it back and compare torques."""
        return export_robot(self.model, folder, target, source, **{"remarks": self.provenance(), **options})

    def write_description(
        self,
        source: str | os.PathLike[str],
        path: str | os.PathLike[str],
        search: Sequence[str | os.PathLike[str]] = (),
        arguments: Mapping[str, object] | None = None,
        sidecar: str | os.PathLike[str] | None = None,
    ) -> list[Path]:
        """Write a copy of a URDF or MJCF file with the identified parameters; a sidecar holds the other numbers.

        `sidecar`, whose comments are kept, `search` and `arguments` are those of `dynident.mechanism.read_robot`. Returns the
        files.
        """
        written = write_robot(source, self.mechanism, self.standard, path, search, arguments)
        return completed(self.model, remark(written, self.provenance()), sidecar)

    @property
    def std(self) -> Array:
        """Standard deviation of each base parameter; infinite if the data do not determine it."""
        std = np.sqrt(np.clip(np.diag(self.covariance), 0.0, None))
        if self.posterior.marginal_std is not None:
            std = np.maximum(std, self.posterior.marginal_std)
        return std if self.posterior.scales else np.where(self.solved | ~self.active, std, np.inf)

    @property
    def relative_std(self) -> Array:
        """Standard deviation relative to the value."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.active, self.std / np.abs(self.values), np.nan)

    def predict(self, motion: MotionLike, temperature: Array | None = None) -> Prediction:
        """Predict the efforts of a motion, tau = W beta, with var = w cov w^T + sigma_g^2 (least squares).

        With loops the columns are the projected rows of ``fit.equations``; `actuator_torques` distributes them to motors.
        """
        motion = as_motion(motion)
        effort, std, _ = self.evaluate(motion, self.values[None], temperature)
        return Prediction(motion.t, effort[0], std)

    def evaluate(self, motion: MotionLike, betas: Array, temperature: Array | None = None) -> tuple[Array, Array, Array]:
        """Predict the efforts of a motion with several sets of base parameters at once."""
        return predicted(self, as_motion(motion), betas, temperature)

    @property
    def removals(self) -> tuple[str, ...]:
        """Base parameters that were removed as not essential, in order, with standard deviation and effect on the residuals."""
        return tuple(note.sentence for note in self.notes if note.kind == "removal")

    def undetermined(self) -> tuple[Undetermined, ...]:
        """Return the standard parameters that the data do not determine, with their described values.

        One row per parameter, unidentifiable or identifiable only in combination with others. Known coefficients of force
        elements are excluded.
        """
        known = self.mechanism.known_columns
        return tuple(
            Undetermined(name, float(self.standard.values[k]), float(self.mechanism.parameters.values[k]), unit)
            for k, (name, unit) in enumerate(zip(self.standard.names, self.standard.units, strict=True))
            if not self.shown[k] and k not in known
        )

    def provenance(self) -> tuple[str, ...]:
        """Return the provenance of the numbers, for files without uncertainties.

        One sentence about the fit, and one about the standard parameters that its data do not determine, with their
        described values.
        """
        logs = ", ".join(str(source.get("name", "")) for source in self.sources) or "data without a name"
        said = [f"identified by dynident, {self.estimator}, from {logs}"]
        rows = [f"{row.name} {row.value:.4g} (description {row.description:.4g})" for row in self.undetermined()]
        if rows:
            said.append(f"not determined by these data, taken from the description: {', '.join(rows)}")
        return tuple(said)

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Mask of the standard parameters that the data determine individually."""
        if self.posterior.determined is not None:
            return self.posterior.determined
        alone = np.zeros(len(self.standard), dtype=bool)
        single = np.count_nonzero(self.base.regrouping, axis=1) == 1
        alone[self.base.columns[single & self.solved]] = True
        return alone

    @property
    def equations(self) -> Rows:
        """The equations that were fitted: joint torques of a tree robot, projected motor torques of a robot with loops."""
        return Rows(self.mechanism, self.projection)

    def score(self, log: Log, allow_training: bool = False) -> Score:
        """Compare the model with a log it was not fitted to."""
        return score_fit(self, log, allow_training)

    def score_rows(self, Y: ArrayLike, tau: ArrayLike) -> Metrics:
        """Compare the model with custom rows, as in `Regression.from_rows`."""
        rows, effort = own_rows(Y, tau, self.base.rank)
        return evaluate(effort, rows @ self.values, self.equations.names)

    def without(self, *bodies: str) -> Fit:
        """Return the fit without separate bodies, such as a payload that was removed."""
        gone = columns_of(self.mechanism, bodies)
        lost = np.isin(self.base.columns, gone)
        values, covariance, standard = self.values.copy(), self.covariance.copy(), self.standard.values.copy()
        values[lost], covariance[lost], covariance[:, lost], standard[gone] = 0.0, 0.0, 0.0, 0.0
        free = None if self.free is None else np.where(lost, 0.0, self.free)
        return self.altered(values=values, covariance=covariance, standard=self.standard.replace(standard), free=free)

    def observability(self) -> tuple[Observability, ...]:
        """Return the accuracy of each base parameter, one row per parameter."""
        rows = []
        for i, (name, expression, unit) in enumerate(zip(self.base.names, self.base.expressions, self.base.units, strict=True)):
            relative = float(self.relative_std[i])
            if not self.active[i]:
                verdict = "dropped"
            elif not self.solved[i]:
                verdict = "not excited"
            else:
                verdict = "good" if relative <= GOOD else "poor" if relative <= POOR else "insignificant"
            rows.append(Observability(name, expression, unit, float(self.values[i]), float(self.std[i]), relative, verdict))
        return tuple(rows)

    def consistency(self) -> tuple[Consistency, ...]:
        """Return, for every body, whether its standard parameters are physically consistent."""
        return self.mechanism.check_consistency(self.standard)

    def __repr__(self) -> str:
        return (
            f"Fit(robot '{self.mechanism.name}': {self.base.rank} base parameters from {self.rows} equations, "
            f"training error {100 * self.training_relative:.2f} %; summary() has the table)"
        )

    def summary(self) -> str:
        """Return the fit as a text table: base parameters with standard deviations, and remarks."""
        return summary_of(self)

    def plot(self) -> Any:
        """Draw the base parameters with error bars."""
        return plot_parameters(self)

    def _columns(self) -> dict[str, Any]:
        """Base parameters and their described values."""
        rows = self.observability()
        return {
            "parameter": [row.name for row in rows],
            "value": [row.value for row in rows],
            "std": [row.std for row in rows],
            "relative": [row.relative for row in rows],
            "unit": [row.unit for row in rows],
            "verdict": [row.verdict for row in rows],
            "description": self.described.tolist(),
            "expression": [row.expression.split(" = ", 1)[1] for row in rows],
        }

    def _head(self) -> str:
        return self.summary().partition("\n")[0]

    def _content(self) -> dict[str, Any]:
        """Content of the file; includes the robot unless a coupling is a user function."""
        return fit_content(self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Mechanism | None = None) -> Fit:
        """Read a fit written by `save`."""
        data = read_packed(path, "a fit")
        try:
            return cls.from_dict(data, mechanism)
        except DynidentError as error:
            raise IdentificationError(f"cannot read the fit '{path}': {error}") from error

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], mechanism: Mechanism | None = None) -> Fit:
        """Return the fit of a dictionary from `to_dict`."""
        return cls(*stored_parts(data, mechanism))
