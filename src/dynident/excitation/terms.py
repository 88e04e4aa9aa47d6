"""Joint terms with smoothed signs, and their derivatives by the joint's own motion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError

Array = NDArray[np.float64]


def smooth_term(symbol: str, q: Array, v: Array, a: Array, eps: float) -> tuple[Array, Array, Array, Array]:
    """Return a joint term's column and its derivatives by q, v and a.

    Parameters
    ----------
    symbol : str
        Key of `dynident.friction.TERMS`.
    q, v, a : ndarray, (N,)
        Motion of the joint.
    eps : float
        Speed over which a sign is smoothed; 0 keeps the sign (its derivative is then 0).

    Returns
    -------
    column, dq, dv, da : ndarray, (N,)
        Column and derivatives.
    """
    zero, one = np.zeros_like(v), np.ones_like(v)
    if symbol in ("ia", "fv", "k"):
        dq, dv, da = (one if symbol == s else zero for s in ("k", "fv", "ia"))
        return {"ia": a, "fv": v, "k": q}[symbol], dq, dv, da
    if symbol == "off":
        return one, zero, zero, zero
    if symbol in ("fvp", "fvn"):
        inside = v > 0.0 if symbol == "fvp" else v < 0.0
        return np.where(inside, v, 0.0), zero, inside.astype(np.float64), zero
    if symbol not in ("fc", "fcp", "fcn"):
        raise DynidentError(f"joint term '{symbol}' has no smooth form; take it out of the robot's terms")
    sign = np.tanh(v / eps) if eps > 0.0 else np.sign(v)
    slope = (1.0 - sign**2) / eps if eps > 0.0 else zero
    if symbol == "fc":
        return sign, zero, slope, zero
    moving = one if eps > 0.0 else np.abs(sign)
    return 0.5 * (sign + (moving if symbol == "fcp" else -moving)), zero, 0.5 * slope, zero
