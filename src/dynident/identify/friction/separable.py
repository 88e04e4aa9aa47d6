"""One axis by separable least squares: inertia and linear friction are eliminated while the friction's shape is searched.

    fit_axis(effort, Viscous() + Tanh(), v, {"J": a})                 one axis [Roldan2017, section 4.1.2]

Single values of a `Sigmoid` law are not identifiable: (Bf, w) and (-Bf, -w) are the same law, terms can be exchanged, and
two terms of opposite sign can be traded against each other. Compare curves: ``fit.friction["axis"](v)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import IdentificationError, SignalWarning, warn
from dynident.friction import FrictionLaw, State
from dynident.identify.friction.checks import direction_note, limit_note, limited
from dynident.identify.friction.problem import Blocks, Problem
from dynident.identify.friction.result import AxisFit, axis_result
from dynident.identify.friction.search import search, shape_bounds

Array = NDArray[np.float64]

ROWS = 1024


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
    columns = {label: np.asarray(values, dtype=np.float64) for label, values in (fixed or {}).items()}
    for label, values in {"effort": tau, **columns}.items():
        if values.shape != tau.shape:
            raise IdentificationError(f"fixed column '{label}' has shape {values.shape} but effort has {tau.shape}")
        if not np.isfinite(values).all():
            raise IdentificationError(f"{label} is not finite at sample {int(np.argmin(np.isfinite(values)))}; remove it")
    notes = [note for note in [direction_note(name, given.v)] if note]
    cut = limited(tau)
    keep = ~cut
    if cut.any():
        notes.append(limit_note(name, cut, used=False))
        warn(notes[-1], SignalWarning)
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
    linear = (*columns, *law.linear)
    result = axis_result(problem, law, found, linear, notes, float(tau[keep] @ tau[keep]))
    fit = AxisFit(**result, fixed=tuple(columns))
    residuals = np.where(keep, tau - fit.predict(given, columns), np.nan)
    rubbing = fit.predict(given) + residuals
    return AxisFit(**result, fixed=tuple(columns), residuals=residuals, speed=given.v, resistance=rubbing)
