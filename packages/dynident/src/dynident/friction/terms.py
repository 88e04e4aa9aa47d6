"""Joint terms: contributions of a joint or a motor to the torque, in addition to the bodies, one linear column each.

    tau_joint = ia a + fv v + fc sign(v) + off + k q           (symmetric friction)
    tau_joint = Iz a + ...                                      (bodies whose centre of mass is known: mass elsewhere)
    tau_joint = ia a + fvp v+ + fvn v- + fcp [v>0] - fcn [v<0]  (asymmetric friction)
    tau_joint = ... + f2 v |v| + f3 v^3                         (polynomial friction [Pagani2022, eq. 88])

Every term is one expression of q, v, a of its joint, so any set of them can be switched on, in any order; no other code
depends on their number or names (FIGAROH #12: columns must be laid out from flags).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.friction.law import directed, jumps, smooth
from dynident.graph.algebra import absolute, maximum, minimum, sign, where
from dynident.graph.expression import Graph, Node, evaluate_nodes, substitute


@dataclass(frozen=True)
class JointTerm:
    """One linear joint parameter and the expression that it multiplies."""

    symbol: str  #: Name of the parameter, as in `fv`
    meaning: str  #: Meaning in a few words
    unit_revolute: str  #: SI unit on a rotating joint
    unit_prismatic: str  #: SI unit on a sliding joint
    #: ``expression(q, v, a)``, written with operators and the functions of `dynident.graph`, so that it takes
    #: expressions, numbers and arrays alike
    expression: Callable[[Any, Any, Any], Any]
    passive: bool = False  #: Whether physics keeps the parameter from being negative
    friction: bool = False  #: Whether the term dissipates energy
    rotor: bool = False  #: Whether the term is an inertia, proportional to the acceleration
    mirrored: str = ""  #: Term that takes its place when the joint's direction is reversed; empty for the term itself

    def __post_init__(self) -> None:
        if not self.symbol.isidentifier() or "_" in self.symbol:
            raise DescriptionError(
                f"joint term '{self.symbol}': the symbol must be letters and digits, such as 'f2'; rename it"
            )
        object.__setattr__(self, "mirrored", self.mirrored or self.symbol)

    def column(self, q: Array, v: Array, a: Array) -> Array:
        """Regressor column."""
        return np.broadcast_to(np.asarray(self.expression(q, v, a), dtype=np.float64), np.shape(v))

    def smooth(self, q: Any, v: Any, a: Any, width: Any) -> Any:
        """Return the term, of expressions or arrays, with jumps spread over a speed: ``sign(v)`` is ``tanh(v / width)``."""
        return self._changed(smooth, q, v, a, width)

    def directed(self, q: Any, v: Any, a: Any, way: Any) -> Any:
        """Return the branch for one direction, +1 or -1: ``sign(v)`` is ``way``, also at breakaway (v = 0)."""
        return self._changed(directed, q, v, a, way)

    def _changed(self, change: Callable[[Node, Node, Node], Node], q: Any, v: Any, a: Any, by: Any) -> Any:
        graph = v.graph if isinstance(v, Node) else Graph()
        given = dict(zip(("own q", "own v", "own a", "own change"), (q, v, a, by), strict=True))
        own = [graph.symbol(name) for name in given]
        node = change(graph.node(self.expression(*own[:3])), own[1], own[3])
        if isinstance(v, Node):
            return substitute([node], {symbol: graph.node(x) for symbol, x in zip(own, given.values(), strict=True)})[0]
        return np.broadcast_to(evaluate_nodes([node], given)[0], np.shape(v))

    @property
    def kind(self) -> str:
        """Category: "rotor" inertia, "friction" or "other"."""
        return "rotor" if self.rotor else "friction" if self.friction else "other"

    @property
    def jumps(self) -> bool:
        """Whether the column jumps at rest, as dry friction does."""
        graph = Graph()
        return jumps(graph.node(self.expression(*(graph.symbol(name) for name in "qva"))))

    def reflected(self, turns: float) -> tuple[str, float]:
        """Return the term on the other side of a gear, and the ratio of its parameter there to the parameter here.

        `turns` of the joint with the term, per turn of the coordinate that carries it afterwards; negative when the gear
        reverses.
        """
        there = TERMS[self.mirrored] if turns < 0.0 else self
        for x in (1.0, -1.0):  # a term that acts in one direction only is nonzero in one of them
            unit = float(there.expression(x, x, x))
            if unit:
                return there.symbol, float(turns * self.expression(turns * x, turns * x, turns * x)) / unit
        raise DescriptionError(f"joint term '{self.symbol}' is zero at unit speed and cannot be converted to the motor side")


_VISCOUS, _DRY = ("N m s/rad", "N s/m"), ("N m", "N")
_friction = partial(JointTerm, passive=True, friction=True)

TERMS: dict[str, JointTerm] = {
    term.symbol: term
    for term in (
        JointTerm("ia", "rotor inertia seen at the joint", "kg m^2", "kg", lambda q, v, a: a, passive=True, rotor=True),
        JointTerm(
            "Iz", "moment of a body that turns with the joint", "kg m^2", "kg", lambda q, v, a: a, passive=True, rotor=True
        ),
        _friction("fv", "viscous friction", *_VISCOUS, lambda q, v, a: v),
        _friction("fc", "Coulomb friction", *_DRY, lambda q, v, a: sign(v)),
        JointTerm("off", "constant offset", *_DRY, lambda q, v, a: 1.0),
        JointTerm("k", "spring stiffness about q = 0", "N m/rad", "N/m", lambda q, v, a: q, passive=True),
        _friction("fvp", "viscous friction, forward", *_VISCOUS, lambda q, v, a: maximum(v, 0.0), mirrored="fvn"),
        _friction("fvn", "viscous friction, backward", *_VISCOUS, lambda q, v, a: minimum(v, 0.0), mirrored="fvp"),
        _friction("fcp", "Coulomb friction, forward", *_DRY, lambda q, v, a: where(v > 0.0, 1.0, 0.0), mirrored="fcn"),
        _friction("fcn", "Coulomb friction, backward", *_DRY, lambda q, v, a: where(v < 0.0, -1.0, 0.0), mirrored="fcp"),
        # A polynomial may dissipate at every speed although one coefficient is negative, so its terms are not marked passive.
        JointTerm("f2", "quadratic friction", "N m s^2/rad^2", "N s^2/m^2", lambda q, v, a: v * absolute(v), friction=True),
        JointTerm("f3", "cubic friction", "N m s^3/rad^3", "N s^3/m^3", lambda q, v, a: v * v * v, friction=True),
    )
}
"""All joint terms by symbol; `register` adds to them."""

SYMMETRIC: tuple[str, ...] = ("ia", "fv", "fc", "off")
"""Default terms of every joint: rotor inertia, viscous and Coulomb friction, offset."""

ASYMMETRIC: tuple[str, ...] = ("ia", "fvp", "fvn", "fcp", "fcn")
"""Friction that differs between the two directions; the offset is inside (fcp - fcn)/2."""

_BODY = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")  # parameters of bodies have these names


def register(*terms: JointTerm) -> None:
    """Register joint terms for the whole toolkit.

    Parameters
    ----------
    *terms : JointTerm
        The terms; their symbols must be new. Two terms that mirror each other are registered together.
    """
    added = {term.symbol: term for term in terms}
    for term in terms:
        if term.symbol in TERMS or term.symbol in _BODY or added[term.symbol] is not term:
            known = TERMS[term.symbol].meaning if term.symbol in TERMS else "a parameter of bodies, or named twice"
            raise DescriptionError(f"joint term '{term.symbol}' exists already ({known}); choose another symbol")
        if term.mirrored not in TERMS and term.mirrored not in added:
            raise DescriptionError(
                f"joint term '{term.symbol}' is mirrored by '{term.mirrored}', which is unknown; register both together"
            )
    TERMS.update(added)


def term_of(parameter: str) -> JointTerm | None:
    """Return the joint term of a parameter such as ``fv_joint1``; None for parameters of bodies."""
    return TERMS.get(parameter.split("_", maxsplit=1)[0])


def check_terms(symbols: str | Iterable[str]) -> tuple[str, ...]:
    """Return the symbols, or the only one, as a tuple after checking that each is known and unique."""
    chosen = (symbols,) if isinstance(symbols, str) else tuple(symbols)
    for symbol in chosen:
        if not isinstance(symbol, str) or symbol not in TERMS:
            raise DescriptionError(f"unknown joint term '{symbol}'; known terms are {', '.join(TERMS)}")
    if len(set(chosen)) != len(chosen):
        raise DescriptionError(f"joint terms are named twice in {chosen}; name each once")
    return chosen
