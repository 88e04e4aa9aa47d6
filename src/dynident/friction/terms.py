"""Joint terms: what a joint or a motor adds to the torque beside the bodies, one linear column each.

    tau_joint = ia a + fv v + fc sign(v) + off + k q          (symmetric friction)
    tau_joint = ia a + fvp v+ + fvn v- + fcp [v>0] - fcn [v<0] (asymmetric friction)

Every term is a column that depends on the joint's own q, v, a only, so any set of them can be switched on, in any
order; nothing else in the toolkit knows their number (FIGAROH #12: columns must be laid out from flags).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DescriptionError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class JointTerm:
    """One linear joint parameter and the column that multiplies it.

    Parameters
    ----------
    symbol : str
        Name of the parameter, as in `fv`.
    meaning : str
        What it is, in a few words.
    unit_revolute, unit_prismatic : str
        SI unit on a rotating and on a sliding joint.
    column : callable
        ``column(q, v, a)`` with arrays of one shape returns the regressor column, same shape.
    """

    symbol: str
    meaning: str
    unit_revolute: str
    unit_prismatic: str
    column: Callable[[Array, Array, Array], Array]


TERMS: dict[str, JointTerm] = {
    term.symbol: term
    for term in (
        JointTerm("ia", "rotor inertia seen at the joint", "kg m^2", "kg", lambda q, v, a: a),
        JointTerm("fv", "viscous friction", "N m s/rad", "N s/m", lambda q, v, a: v),
        JointTerm("fc", "Coulomb friction", "N m", "N", lambda q, v, a: np.sign(v)),
        JointTerm("off", "constant offset", "N m", "N", lambda q, v, a: np.ones_like(v)),
        JointTerm("k", "spring stiffness about q = 0", "N m/rad", "N/m", lambda q, v, a: q),
        JointTerm("fvp", "viscous friction, forward", "N m s/rad", "N s/m", lambda q, v, a: np.maximum(v, 0.0)),
        JointTerm("fvn", "viscous friction, backward", "N m s/rad", "N s/m", lambda q, v, a: np.minimum(v, 0.0)),
        JointTerm("fcp", "Coulomb friction, forward", "N m", "N", lambda q, v, a: (v > 0.0).astype(np.float64)),
        JointTerm("fcn", "Coulomb friction, backward", "N m", "N", lambda q, v, a: -(v < 0.0).astype(np.float64)),
    )
}

SYMMETRIC: tuple[str, ...] = ("ia", "fv", "fc", "off")
"""Default terms of every joint: rotor inertia, viscous and Coulomb friction, offset."""

ASYMMETRIC: tuple[str, ...] = ("ia", "fvp", "fvn", "fcp", "fcn")
"""Friction that differs between the two directions; the offset is inside (fcp - fcn)/2."""


def check_terms(symbols: Iterable[str]) -> tuple[str, ...]:
    """Return the symbols as a tuple after checking that each is known and named once.

    Parameters
    ----------
    symbols : iterable of str
        Keys of `TERMS`.

    Returns
    -------
    tuple of str
        The same symbols.
    """
    chosen = tuple(symbols)
    for symbol in chosen:
        if symbol not in TERMS:
            raise DescriptionError(f"unknown joint term '{symbol}'; known terms are {', '.join(TERMS)}")
    if len(set(chosen)) != len(chosen):
        raise DescriptionError(f"joint terms are named twice in {chosen}; name each once")
    return chosen
