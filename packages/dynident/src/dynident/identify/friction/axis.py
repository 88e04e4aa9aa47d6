"""One axis by separable least squares: inertia and linear friction are eliminated while the friction's shape is searched.

    fit_axis(effort, Viscous() + Tanh(), v, {"J": a})                 one axis [Roldan2017, section 4.1.2]

Single values of a `Sigmoid` law are not identifiable: (Bf, w) and (-Bf, -w) are the same law, terms can be exchanged, and
two terms of opposite sign can be traded against each other. Compare curves: ``fit.friction["axis"](v)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import IdentificationError, SignalWarning, warn
from dynident.figures import BLUE, ORANGE, label, one_axes
from dynident.friction.law import Friction, FrictionLaw, State, Sum
from dynident.friction.laws import Asymmetric, Sigmoid, TemperatureDependent
from dynident.identify.friction.problem import Blocks, Problem, direction_note, limit_note, limited
from dynident.identify.friction.search import Found, search, shape_bounds
from dynident.results import Result
from dynident.signals.quality import Finding, note

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ROWS = 1024
DOTS = 4000  # samples in a figure, at most about
SIGMOID_NOTE = (
    "single values of a sigmoid law are not identifiable: (Bf, w) and (-Bf, -w) are the same law and terms of opposite sign "
    "trade against each other; judge and compare the curve only"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class AxisFit(Result):
    """Fit of one axis."""

    linear: tuple[str, ...]  # Names of the linear and of the shape parameters
    shape: tuple[str, ...]  # Names of the linear and of the shape parameters
    values: Array  # Linear parameters first; zero where the data do not show them
    covariance: Array  # Their covariance; infinite variance where the data do not show a parameter
    laws: Mapping[str, FrictionLaw]  # Law of each joint
    sigma: Mapping[str, float]  # Standard deviation of the residual of each joint [N m or N]
    rows: int  # Number of equations
    relative: float  # ||e|| / ||tau|| on the data of the fit; not a validation
    passes: int  # Passes over all samples that the search took
    notes: tuple[str, ...] = ()  # What to know about the result
    fixed: tuple[str, ...] = ()  # Names of the columns beside the friction
    residuals: Array = field(default_factory=lambda: np.zeros(0))
    speed: Array = field(default_factory=lambda: np.zeros(0))
    resistance: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def parameters(self) -> dict[str, float]:
        """All values by name."""
        return dict(zip(self.linear + self.shape, self.values.tolist(), strict=True))

    @property
    def std(self) -> dict[str, float]:
        """Standard deviations by name; infinite where the data do not show a parameter."""
        return dict(zip(self.linear + self.shape, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    @property
    def eta(self) -> Array:
        """Shape parameters of all joints, (S,)."""
        return self.values[len(self.linear) :]

    @property
    def friction(self) -> dict[str, Friction]:
        """Law with its numbers of each joint."""
        result = {}
        first, shape = len(self.linear) - sum(len(law.linear) for law in self.laws.values()), len(self.linear)
        for joint, law in self.laws.items():
            rho, eta = self.values[first : first + len(law.linear)], self.values[shape : shape + len(law.shape)]
            result[joint] = Friction(law, np.concatenate([rho, eta]))
            first, shape = first + rho.size, shape + eta.size
        return result

    def summary(self) -> str:
        """Return the fit as a text table. Parameters with standard deviations, residuals and notes."""
        width = max(len(name) for name in self.linear + self.shape)
        lines = [
            f"{len(self.linear)} linear and {len(self.shape)} shape parameters from {self.rows} equations, "
            f"error on the data of the fit {100 * self.relative:.2f} %, {self.passes} passes",
            f"{'parameter':<{width}}  {'value':>12}  {'std':>10}",
        ]
        std = self.std
        for name, value in self.parameters.items():
            shown = f"{std[name]:>10.3g}" if np.isfinite(std[name]) else "not excited"
            lines.append(f"{name:<{width}}  {value:>12.5g}  {shown}{'  (shape)' if name in self.shape else ''}")
        lines.append("residual: " + ", ".join(f"{joint} {s:.4g}" for joint, s in self.sigma.items()))
        return "\n".join([*lines, *self.notes])

    def plot(self) -> Figure:
        """Draw friction against speed: what was measured less the other columns, and the law."""
        ((name, friction),) = self.friction.items()
        figure, axes = one_axes(7.2, 3.6, "speed [rad/s, m/s]", "friction [N m, N]", f"Friction of {label(name)}")
        known = np.flatnonzero(np.isfinite(self.residuals))
        shown = known[:: max(1, known.size // DOTS)]
        axes.plot(self.speed[shown], self.resistance[shown], ".", color=BLUE, markersize=3, label="measured")
        sides = [side for side in (self.speed[self.speed < 0.0], self.speed[self.speed > 0.0]) if side.size]
        if friction.law.looks_at <= {"v"}:
            for k, side in enumerate(sides):  # one line each: the jump at rest is none
                v = np.linspace(side.min(), side.max(), 400)
                axes.plot(v, friction(v), color=ORANGE, linewidth=1.4, label="" if k else "law")
        else:  # it depends on more than the speed: the law at the samples
            axes.plot(
                self.speed[shown], (self.resistance - self.residuals)[shown], ".", color=ORANGE, markersize=3, label="law"
            )
        axes.legend(frameon=False, fontsize=8.5)
        return figure

    def predict(self, state: State | ArrayLike, fixed: Mapping[str, ArrayLike] | None = None) -> Array:
        """Predict the effort."""
        if len(self.friction) != 1:
            raise IdentificationError(f"the fit has {len(self.friction)} friction laws; predict is for the one of an axis")
        (friction,) = self.friction.values()
        result = friction(state)
        if fixed is None:
            return result
        missing = [name for name in self.fixed if name not in fixed]
        if missing:
            raise IdentificationError(f"columns {', '.join(missing)} are missing; give all of {', '.join(self.fixed)}")
        for name, value in zip(self.fixed, self.values, strict=False):
            result = result + value * np.asarray(fixed[name], dtype=np.float64)
        return result


def fit_axis(
    effort: ArrayLike,
    law: FrictionLaw,
    state: State | ArrayLike,
    fixed: Mapping[str, ArrayLike] | None = None,
    start: ArrayLike | None = None,
    starts: int = 12,
    seed: int = 0,
    passes: int = 200,
    name: str = "axis",
) -> AxisFit:
    """Fit one axis: ``effort = sum_i x_i fixed_i + f(state; rho, eta)``.

    Parameters
    ----------
    effort : array_like, (N,)
        Torque or force [N m or N]. Samples at a limit (saturated) are left out, with a warning.
    law : FrictionLaw
        Friction law.
    state : State or array_like, (N,)
        Velocity, and what else the law looks at.
    fixed : mapping of str to array_like (N,), optional
        Columns of the other linear parameters by name, as in ``{"J": a, "Qa": cos(q), "Qb": -sin(q)}``.
    start : array_like (S,), optional
        Shape parameters from which to start; many starts when omitted.
    starts : int
        Starting points per shape parameter.
    seed : int
        Seed of the random ones.
    passes : int
        Largest number of passes over the samples.
    name : str
        Name of the axis.

    Returns
    -------
    AxisFit
        Parameters with covariance, residuals and the friction law with its numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from dynident.friction import Tanh, Viscous
    >>> v = np.sin(np.arange(500) * 0.05)
    >>> fit = fit_axis(2.0 * v + 3.0 * np.tanh(8.0 * v), Viscous() + Tanh(), v)
    >>> round(fit.parameters["tanh.beta"], 6)
    8.0
    """
    given = State.of(state)
    tau = np.asarray(effort, dtype=np.float64)
    if tau.ndim != 1 or given.v.shape != tau.shape:
        raise IdentificationError(f"effort has shape {tau.shape} and v has shape {given.v.shape}; both must be one-dimensional")
    columns = {column: np.asarray(values, dtype=np.float64) for column, values in (fixed or {}).items()}
    for column, values in {"effort": tau, **columns}.items():
        if values.shape != tau.shape:
            raise IdentificationError(f"fixed column '{column}' has shape {values.shape} but effort has {tau.shape}")
        if not np.isfinite(values).all():
            raise IdentificationError(f"{column} is not finite at sample {int(np.argmin(np.isfinite(values)))}; remove it")
    notes = direction_note(name, given.v)
    cut = limited(tau)
    keep = ~cut
    if cut.any():
        notes.append(limit_note(name, cut, used=False))
        warn(notes[-1].sentence, SignalWarning)
    W = np.stack([values[keep] for values in columns.values()]) if columns else np.zeros((0, int(keep.sum())))
    inner = given.take(keep)
    count = int(keep.sum())
    width, used = len(columns), tau[keep]
    pairs = [(k, s) for k in range(len(law.linear)) for s in range(len(law.shape))]

    def tile(span: slice) -> Blocks:
        def blocks(eta: Array, step: int, _: Sequence[int]) -> list[Array]:
            at = inner.take(slice(span.start, span.stop, step))
            bend = law.columns(at, eta, "shape")
            bends = [bend[:, k, s] for k, s in pairs]
            return [np.vstack([W[:, span][:, ::step], law.columns(at, eta).T, *bends, used[span][::step]])]

        return blocks

    problem = Problem(
        (name,),
        [np.arange(width + len(law.linear))],
        [[(width + k, s) for k, s in pairs]],
        width + len(law.linear),
        len(law.shape),
        [tile(slice(i, min(i + ROWS, count))) for i in range(0, count, ROWS)],
        [list(range(len(law.shape)))],
        (count,),
    )
    bounds = shape_bounds([law], [inner.v], [name])
    found = search(problem, bounds, None if start is None else np.asarray(start, dtype=np.float64), starts, seed, passes)
    square = float(used @ used)
    scatter = found.sigma * np.sqrt(problem.independence)
    fit = AxisFit(
        linear=(*columns, *law.linear),
        shape=law.shape,
        values=np.concatenate([found.projection.x, found.eta]),
        covariance=covariance(problem, found),
        laws={name: law},
        sigma=dict(zip(problem.names, scatter.tolist(), strict=True)),
        rows=count,
        relative=float(np.sqrt(found.projection.squares.sum() / square)) if square > 0.0 else float("nan"),
        passes=found.passes,
        notes=tuple(note.sentence for note in (*notes, *shape_notes({name: law}, law.shape, found))),
        fixed=tuple(columns),
    )
    residuals = np.where(keep, tau - fit.predict(given, columns), np.nan)
    return replace(fit, residuals=residuals, speed=given.v, resistance=fit.predict(given) + residuals)


def covariance(problem: Problem, found: Found) -> Array:
    """Covariance of linear and shape parameters together, ``(D^T D)^-1`` with D the weighted derivative."""
    size = problem.linear + found.eta.size
    result = np.diag(np.full(size, np.inf))
    shapes, solved = np.flatnonzero(~found.at_bound), found.projection.solved
    index = np.concatenate([solved, problem.linear + shapes])
    D = found.projection.direct[:, np.concatenate([np.arange(solved.size), solved.size + shapes])]
    length = np.linalg.norm(D, axis=0)
    alive = length > 0.0
    index, D, length = index[alive], D[:, alive], length[alive]
    _, s, V = np.linalg.svd(D / length, full_matrices=False)
    good = s > 1e-10 * s[0]
    spread = (V[good].T / s[good]) / length[:, None]
    block = spread @ spread.T
    hidden = np.sum(V[~good] ** 2, axis=0) > 1e-6
    block[hidden, hidden] = np.inf
    result[np.ix_(index, index)] = block
    return result


def shape_notes(laws: Mapping[str, FrictionLaw], shape: tuple[str, ...], found: Found) -> list[Finding]:
    """Say which shape parameters the data do not determine, and that those of sigmoids never are."""
    said = list[Finding]()
    edge = [name for name, at in zip(shape, found.at_bound, strict=True) if at]
    if edge:
        text = f"{', '.join(edge)} ended at the edge of the interval that these speeds can show: the data do not determine it"
        said.append(note("shape_undetermined", text, "warning"))
    if any(_has_sigmoid(law) for law in laws.values()):
        said.append(note("sigmoid", SIGMOID_NOTE))
    return said


def _has_sigmoid(law: FrictionLaw) -> bool:
    if isinstance(law, Sum):
        return any(_has_sigmoid(member) for member in law.members)
    inner = law.law if isinstance(law, Asymmetric | TemperatureDependent) else None
    return isinstance(law, Sigmoid) or (inner is not None and _has_sigmoid(inner))
