"""`Fit`: what was learnt, with its uncertainty; it predicts, scores, explains itself and can be stored."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError, IdentificationError, require
from dynident.files import read_json
from dynident.identify.base import BaseParameters
from dynident.identify.rows import Projection, Rows, check_projection
from dynident.identify.stored import loads_of, stored_base, stored_numbers, stored_options, stored_source
from dynident.mechanics import Motion, closure_starts
from dynident.mechanism import Consistency, Mechanism, Parameters
from dynident.results import Result, array_of

if TYPE_CHECKING:
    from dynident.identify.score import Score
    from dynident.signals import Log

Array = NDArray[np.float64]

ROWS = 1024
GOOD, POOR = 0.10, 0.50  # relative standard deviation up to which a parameter is well, or at least roughly, known


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted efforts with their uncertainty.

    Parameters
    ----------
    t : ndarray, (N,)
        Time [s].
    effort : ndarray, (N, n)
        Predicted joint torques and forces [N m, N].
    std : ndarray, (N, n)
        Standard deviation of a new measurement about it: parameter uncertainty and measurement noise together;
        NaN for a joint whose efforts were not used in the fit.
    """

    t: Array
    effort: Array
    std: Array


@dataclass(frozen=True)
class Observability:
    """How well one base parameter is known.

    Parameters
    ----------
    name, expression, unit : str
        The base parameter.
    value, std, relative : float
        Estimate, its standard deviation, and their ratio (infinite when it is not visible in the data).
    verdict : str
        "good" (standard deviation up to 10 % of the value), "poor" (up to 50 %), "insignificant" (not clearly different
        from zero), "not excited" (the data do not show it, or only its sum with others) or "dropped" (not essential).
    """

    name: str
    expression: str
    unit: str
    value: float
    std: float
    relative: float
    verdict: str


@dataclass(frozen=True, eq=False)
class Fit(Result):
    """An identified model.

    Parameters
    ----------
    base : BaseParameters
        The robot and its identifiable combinations.
    values, covariance : ndarray, (b,), (b, b)
        Base parameters and their covariance.
    solved, active : ndarray of bool, (b,)
        Which were estimated each by itself, and which were asked for (others were dropped as not essential).
    combinations : ndarray, (k, b)
        E: the data determine E beta, no more. Rows of the unit matrix for `solved` parameters; other rows are sums of
        parameters that these data cannot tell apart, of which `values` holds the sum in one and zero in the others.
    groups : tuple of str
        Joints whose efforts were used.
    sigma : ndarray, (groups,)
        Residual standard deviation of each of them [N m or N].
    rows : int
        Number of equations.
    condition : float
        Condition number of the scaled, weighted regression.
    standard : Parameters
        Standard parameters that give the same torques.
    estimator : str
        How it was estimated.
    sources, options, notes : see `Regression`
        Provenance.
    training_relative : float
        ||e|| / ||tau|| on the data it was fitted to; not a validation.
    projection : str or tuple of str
        How the equations of a robot with loops were projected.
    """

    base: BaseParameters
    values: Array
    covariance: Array
    solved: NDArray[np.bool_]
    active: NDArray[np.bool_]
    combinations: Array
    groups: tuple[str, ...]
    sigma: Array
    rows: int
    condition: float
    standard: Parameters
    estimator: str
    sources: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    training_relative: float = float("nan")
    projection: Projection = "gls"

    @property
    def mechanism(self) -> Mechanism:
        """The robot as described (prior parameters)."""
        return self.base.mechanism

    @property
    def identified(self) -> Mechanism:
        """The robot with the identified standard parameters."""
        return self.mechanism.with_parameters(self.standard)

    def exported(self) -> Fit:
        """Return the fit that the standard parameters alone stand for, beta = K phi: what a written URDF predicts.

        Returns
        -------
        Fit
            Same fit with the base parameters of `standard`; it differs when physical consistency moved them.
        """
        return replace(self, values=self.base.values(self.standard.values))

    @property
    def std(self) -> Array:
        """Standard deviation of each base parameter; infinite where the data do not show it."""
        std = np.sqrt(np.clip(np.diag(self.covariance), 0.0, None))
        return np.where(self.solved | ~self.active, std, np.inf)

    @property
    def relative_std(self) -> Array:
        """Standard deviation relative to the value."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.active, self.std / np.abs(self.values), np.nan)

    def predict(self, motion: Motion) -> Prediction:
        """Predict the efforts of a motion, tau = W beta, with var = sigma_g^2 + w cov w^T.

        With loops the columns are the projected rows of ``fit.equations``; `actuator_torques` distributes them to motors.

        Parameters
        ----------
        motion : Motion
            N samples of the robot's coordinates.

        Returns
        -------
        Prediction
            Efforts and their standard deviations, memory proportional to N n only.
        """
        require(motion, Motion, "motion")
        n = self.mechanism.dof
        effort, std = np.empty((len(motion), n)), np.empty((len(motion), n))
        noise = self._noise()
        L = _root(self.covariance)
        firsts = range(0, len(motion), ROWS)
        starts = closure_starts(self.mechanism, motion.q, firsts) if self.mechanism.loops else [None] * len(firsts)
        for first, start in zip(firsts, starts, strict=True):
            piece = slice(first, first + ROWS)
            W, _ = self.equations.equations(motion[piece], None, self.base.columns, start, first)
            effort[piece] = np.einsum("nbt,b->tn", W, self.values)
            spread = np.einsum("kb,nbt->nkt", L, W, optimize=True)
            std[piece] = np.sqrt(np.einsum("nkt,nkt->tn", spread, spread) + noise**2)
        return Prediction(motion.t, effort, std)

    def _noise(self) -> Array:
        known = dict(zip(self.groups, self.sigma, strict=True))
        return np.array([known.get(name, np.nan) for name in self.equations.names])

    @property
    def equations(self) -> Rows:
        """The equations that were fitted: joint torques of a tree robot, projected motor torques of a robot with loops."""
        return Rows(self.mechanism, self.projection)

    def score(self, log: Log, allow_training: bool = False) -> Score:
        """Compare the model with a log it was not fitted to.

        Parameters
        ----------
        log : Log
            Held-out log; it is prepared like the training logs.
        allow_training : bool
            True to score on the training data all the same; refused otherwise, since it proves nothing.

        Returns
        -------
        Score
            Metrics, measured and predicted efforts.
        """
        from dynident.identify.score import score_fit  # noqa: PLC0415 - score needs Fit

        return score_fit(self, log, allow_training)

    def without(self, *bodies: str) -> Fit:
        """Return the fit without bodies that it knows apart from the others, such as a payload that was taken off.

        Parameters
        ----------
        *bodies : str
            Names of the bodies.

        Returns
        -------
        Fit
            Same fit; these bodies weigh nothing and add no uncertainty.
        """
        from dynident.identify.payload import without_body  # noqa: PLC0415 - payload needs Fit

        return without_body(self, bodies)

    def observability(self) -> tuple[Observability, ...]:
        """Return how well each base parameter is known.

        Returns
        -------
        tuple of Observability
            One row per base parameter.
        """
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
        """Return, for every body, whether its recovered standard parameters are physically possible.

        Returns
        -------
        tuple of Consistency
            One verdict per body.
        """
        return self.mechanism.check_consistency(self.standard)

    def __repr__(self) -> str:
        return (
            f"Fit(robot '{self.mechanism.name}': {self.base.rank} base parameters from {self.rows} equations, "
            f"training error {100 * self.training_relative:.2f} %; summary() has the table)"
        )

    def summary(self) -> str:
        """Return the fit as a text table.

        Returns
        -------
        str
            Base parameters with standard deviations, and what to know about them.
        """
        table = self.observability()
        width = max(len(row.name) for row in table)
        verdicts = [row.verdict for row in table]
        lines = [
            f"{self.mechanism.name}: {self.base.rank} base parameters from {self.rows} equations, "
            f"condition {self.condition:.3g}, training error {100 * self.training_relative:.2f} %",
            f"{'base parameter':<{width}}  {'value':>12}  {'std':>10}  {'rel.':>8}  verdict",
        ]
        for row in table:
            percent = f"{100 * row.relative:.2f}%" if np.isfinite(row.relative) else "-"
            lines.append(f"{row.name:<{width}}  {row.value:>12.5g}  {row.std:>10.3g}  {percent:>8}  {row.verdict}")
        counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        impossible = [c.name for c in self.consistency() if not c.ok]
        lines.append(f"verdicts: {counts}")
        if impossible:
            lines.append(
                f"standard parameters of {', '.join(impossible)} are physically impossible: torques alone do not fix them; "
                "their base parameters and predictions hold"
            )
        return "\n".join(lines)

    def plot(self) -> Any:
        """Draw the base parameters with error bars.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from dynident.identify.plots import plot_parameters  # noqa: PLC0415 - matplotlib is an extra

        return plot_parameters(self)

    def _content(self) -> dict[str, Any]:
        """Everything, and the robot itself unless one of its couplings is a function of the user's."""
        opaque = any(coupling.function is not None for coupling in self.mechanism.couplings)
        return {
            "robot": self.mechanism.name,
            "mechanism": None if opaque else self.mechanism,
            "joints": list(self.mechanism.joint_names),
            "terms": list(self.mechanism.terms),
            "leaders": list(self.base.leaders),
            "loads": loads_of(self.mechanism),
            "fingerprint": self.base.fingerprint().tolist(),
            "estimator": self.estimator,
            "rows": self.rows,
            "condition": self.condition,
            "training_relative": self.training_relative,
            "base_parameters": [asdict(row) for row in self.observability()],
            "covariance": self.covariance,
            "combinations": self.combinations,
            "sigma": dict(zip(self.groups, self.sigma.tolist(), strict=True)),
            "standard_parameters": self.standard.to_dict(),
            "standard_provenance": self.standard.provenance,
            "consistency": [asdict(c) for c in self.consistency()],
            "sources": [dict(s) for s in self.sources],
            "options": dict(self.options),
            "notes": list(self.notes),
            "projection": self.projection if isinstance(self.projection, str) else list(self.projection),
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Mechanism | None = None) -> Fit:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path-like
            File.
        mechanism : Mechanism, optional
            The robot it belongs to, as described now; the one in the file when omitted.

        Returns
        -------
        Fit
            The same fit.
        """
        data = read_json(path, "a fit")
        try:
            return cls.from_dict(data, mechanism)
        except DynidentError as error:
            raise IdentificationError(f"cannot read the fit '{path}': {error}") from error

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], mechanism: Mechanism | None = None) -> Fit:
        """Return the fit that `to_dict` described.

        Parameters
        ----------
        data : mapping
            What `to_dict` returned.
        mechanism : Mechanism, optional
            The robot it belongs to, as described now; the one in the data when omitted. Joints that were held still are
            held again.

        Returns
        -------
        Fit
            The same fit.
        """
        try:
            if not isinstance(data, Mapping) or data.get("kind", "identify.Fit") != "identify.Fit":
                raise IdentificationError("this is not a fit written by dynident ('kind' is not identify.Fit)")
            if mechanism is None:
                if data["mechanism"] is None:
                    raise IdentificationError(f"robot '{data['robot']}' has functions that no file holds; give the mechanism")
                mechanism = Mechanism.from_dict(data["mechanism"])
            rows, terms = data["base_parameters"], tuple(data["terms"])
            moving = mechanism if mechanism.terms == terms else mechanism.with_terms(terms)
            moving = moving if moving.loops else moving.keep(data["joints"])
            moving, base = stored_base(moving, data["leaders"], data.get("loads", {}))
            if list(base.leaders) != data["leaders"] or not base.fits(data["fingerprint"]):
                raise IdentificationError(
                    f"the fit of robot '{data['robot']}' does not belong to robot '{mechanism.name}': "
                    "geometry, gravity or terms differ"
                )
            verdicts, b = [row["verdict"] for row in rows], base.rank
            E = array_of(data["combinations"], "combinations")
            return cls(
                base=base,
                values=stored_numbers([row["value"] for row in rows], (b,), "base_parameters"),
                covariance=stored_numbers(data["covariance"], (b, b), "covariance"),
                solved=np.array([v not in ("dropped", "not excited") for v in verdicts]),
                active=np.array([v != "dropped" for v in verdicts]),
                combinations=stored_numbers(E, (len(E), b), "combinations"),
                groups=tuple(data["sigma"]),
                sigma=stored_numbers(list(data["sigma"].values()), (len(data["sigma"]),), "sigma"),
                rows=int(data["rows"]),
                condition=float("inf") if data["condition"] is None else float(data["condition"]),
                standard=moving.parameters.replace(
                    stored_numbers(
                        [data["standard_parameters"][name] for name in moving.parameters.names],
                        (len(moving.parameters),),
                        "standard_parameters",
                    ),
                    str(data["standard_provenance"]),
                ),
                estimator=str(data["estimator"]),
                sources=tuple(stored_source(source) for source in data["sources"]),
                options=stored_options(data["options"]),
                notes=tuple(str(note) for note in data["notes"]),
                training_relative=float("nan") if data["training_relative"] is None else float(data["training_relative"]),
                projection=check_projection(data["projection"]),
            )
        except DynidentError:
            raise
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError) as error:
            raise IdentificationError(f"this is not a fit written by dynident: {type(error).__name__} {error}") from error


def _root(covariance: Array) -> Array:
    """Return L with L^T L = covariance, also when it is singular."""
    std = np.sqrt(np.diag(covariance))
    scale = np.where(std > 0.0, std, 1.0)  # units and excitation differ by many decades; correlations do not
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    keep = values > 0.0
    return np.asarray(np.sqrt(values[keep])[:, None] * vectors[:, keep].T * std)
