"""The torque regressor Y of tau = Y(q, v, a) phi, and the energy and momentum regressors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.graph.compiled import Compiled
from dynident.graph.expression import reverse
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import Outputs, cached, declared, entering, function_of, quantity, run
from dynident.mechanics.motion import MotionLike, as_motion
from dynident.mechanism.mechanism import Mechanism


def regressor(mechanism: Mechanism, motion: MotionLike, out: Array | None = None) -> Array:
    """Return Y with tau = Y phi for the standard parameters phi of `mechanism.parameters`.

        M(q) a + C(q, v) v + g(q) + rotor, friction, offset and spring torques = Y(q, v, a) phi

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and p standard parameters.
    motion : Motion or (q, v, a)
        N samples.
    out : ndarray (N, n, p), optional
        Where to write it, contiguous float64; touching fresh memory of this size costs more than computing it.

    Returns
    -------
    ndarray, (N, n, p)
        Regressor; columns in the order of ``mechanism.parameters.names``, N m or N per unit of the parameter.

    Examples
    --------
    >>> import numpy as np, dynident as di
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.2, 0, 0, 0)], convention="standard")
    >>> motion = di.Motion([0.0], [0.1, 0.2], [1.0, -1.0], [0.5, 0.5])
    >>> di.regressor(arm, motion).shape
    (1, 2, 28)
    """
    motion = as_motion(motion)
    arrays = entering(mechanism, motion)
    shape = (mechanism.dof, len(mechanism.parameters))
    if out is not None and not isinstance(out, np.ndarray):
        raise DynidentError(f"out is a {type(out).__name__}; give a contiguous float64 array to write into")
    if out is not None and (out.shape != (len(motion), *shape) or out.dtype != np.float64 or not out.flags.c_contiguous):
        wanted = (len(motion), *shape)
        raise DynidentError(
            f"out has shape {out.shape} and type {out.dtype}; give a contiguous float64 array of shape {wanted}"
        )
    return quantity(mechanism, "regressor", Equations.regressor, shape, arrays, out=out)


def weighted_regressor(mechanism: Mechanism, motion: MotionLike, weights: ArrayLike) -> Array:
    """Return sums of the regressor's rows, w^T Y(q, v, a), by one reverse sweep: its cost grows with n, not with n^2.

    With w = v it is the regressor of the power that the actuators exert.
    """
    motion = as_motion(motion)

    def build() -> Compiled:
        x = Equations(mechanism, links=True)
        row = reverse(x.torques(), x.graph.symbols("w", mechanism.dof), x.phi)
        return Compiled(declared(mechanism, "weighted_regressor", {"Y": row}, more={"w": mechanism.dof}))

    w = numbers(weights, "weights")
    if w.ndim != 3 or w.shape[0] != len(motion) or w.shape[2] != mechanism.dof:
        raise DynidentError(f"weights have shape {w.shape}; give (N, m, n) with N = {len(motion)} and n = {mechanism.dof}")
    entered = entering(mechanism, motion).items()
    arrays = {name: array if name == "law" else np.repeat(array, w.shape[1], axis=0) for name, array in entered}
    arrays["w"] = np.ascontiguousarray(w.reshape(-1, mechanism.dof))
    p = len(mechanism.parameters)
    Y = run(cached(mechanism, ("weighted_regressor", ()), build), arrays, None, {"Y": (p,)})["Y"]
    return Y.reshape(*w.shape[:2], p)


def energy_regressor(mechanism: Mechanism, motion: MotionLike) -> tuple[Array, Array]:
    """Return the energy regressors Y_T, Y_U (N, p) of a `mechanism` along a `motion` (q, v, a): T = Y_T phi, U = Y_U phi [J].

        T = sum m v.v/2 + h.(v x omega) + omega.I omega/2 + ia v_joint^2/2,   U = -sum g.(m p + R h) + k q^2/2 + off q

    Columns of what is not conservative are zero: friction, the offset of `spherical` and `free` joints (a torque fixed in the
    child frame), and the spring of a `free` joint or of a `spherical` one with unequal stiffnesses.
    """
    motion = as_motion(motion)

    def make(x: Equations) -> Outputs:
        kinetic, potential = x.energies()
        return {"T": reverse([kinetic], [1.0], x.phi), "U": reverse([potential], [1.0], x.phi)}

    arrays, p = entering(mechanism, motion), len(mechanism.parameters)
    out = run(function_of(mechanism, "energies", make, links=True), arrays, None, {"T": (p,), "U": (p,)})
    return out["T"], out["U"]


def momentum_regressor(mechanism: Mechanism, motion: MotionLike) -> Array:
    """Return the regressor (N, n, p) of the generalised momentum M(q) v = Y_p phi of a `mechanism` along a `motion`."""
    arrays, shape = entering(mechanism, as_motion(motion)), (mechanism.dof, len(mechanism.parameters))
    make = lambda x: [reverse([momentum], [1.0], x.phi) for momentum in x.momentum()]  # noqa: E731 - read with the line below
    return quantity(mechanism, "momentum", make, shape, arrays, links=True)
