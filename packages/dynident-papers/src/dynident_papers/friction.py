"""Friction laws with memory from the literature: Dahl, generalised Maxwell slip; the core has `dynident.friction.LuGre`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynident.checks import not_negative, positive
from dynident.errors import DescriptionError
from dynident.friction import Coulomb, DynamicLaw, Friction, Stribeck, Viscous
from dynident.friction.dynamic import relaxation_weights, simpson_mean, stribeck_curve
from dynident.graph.algebra import absolute, both, equal, exp, maximum, opposite, power, sign, where
from dynident.graph.expression import Node
from dynident.graph.routine import Routine


@dataclass(frozen=True)
class Dahl(DynamicLaw):
    """Dahl's law ``df/dx = sigma0 |1 - f sgn(v) / fc|^i sgn(1 - f sgn(v) / fc)`` with ``f = sigma0 z``, plus ``fv v``.

    Exact for velocities that are linear between samples, because the law depends only on the distance.
    """

    sigma0: float  #: Stiffness of the bristles [N m/rad or N/m]
    fc: float  #: Coulomb friction [N m or N]
    exponent: float = 1.0  #: Shape i of the curve; 1 is the usual one
    fv: float = 0.0  #: Viscous friction [N m s/rad or N s/m]

    states = 1

    def __post_init__(self) -> None:
        positive("Dahl", sigma0=self.sigma0, fc=self.fc, exponent=self.exponent)
        not_negative("Dahl", fv=self.fv)

    @property
    def steady(self) -> Friction:
        """Coulomb and viscous friction."""
        return (Coulomb() + Viscous()).using(fc=self.fc, fv=self.fv)

    def force(self, z: Sequence[Any], v: Any, p: Mapping[str, Any]) -> Any:
        """Return the friction from the state."""
        return p["sigma0"] * z[0] + p["fv"] * v

    def _piece(self, routine: Routine, v0: Node, v1: Node, dt: Node, p: Mapping[str, Node]) -> None:
        distance, i = 0.5 * (v0 + v1) * dt, p["exponent"]
        way = sign(distance)
        gap = 1.0 - way * (p["sigma0"] / p["fc"]) * routine.load("state")
        size, travel = absolute(gap), p["sigma0"] / p["fc"] * absolute(distance)
        left = size * exp(-travel)
        if not i.is_const(1.0):
            bent = maximum(power(size, 1.0 - i) + (i - 1.0) * travel, 0.0)
            left = where(both(size > 0.0, bent > 0.0), power(bent, 1.0 / (1.0 - i)), 0.0)
        routine.store("state", 0, way * (p["fc"] / p["sigma0"]) * (1.0 - sign(gap) * left))


@dataclass(frozen=True)
class GeneralisedMaxwellSlip(DynamicLaw):
    """Generalised Maxwell slip law: n parallel spring-slider elements [Roldan2017, eq. 2.28].

        f = sum_i (k_i z_i + sigma_i dz_i/dt) + fv v
        sticking: dz_i/dt = v                             until |k_i z_i| reaches share_i g(v)
        slipping: k_i dz_i/dt = sgn(v) C (share_i - |k_i z_i| / g(v))   until v changes its sign

    State law of [AlBender2005]. An element that slips and reverses keeps its
    deflection: hysteresis has non-local memory, which LuGre lacks.
    """

    stiffness: tuple[float, ...]  #: k_i [N m/rad or N/m]
    share: tuple[float, ...]  #: Share of the friction of each element; the sum is one
    fc: float  #: Coulomb friction of all elements together [N m or N]
    fs: float  #: Breakaway friction of all elements together [N m or N]
    vs: float  #: Stribeck speed [rad/s or m/s]
    attraction: float  #: C, the rate at which a slipping element goes to the Stribeck curve [N m/s or N/s]
    damping: tuple[float, ...] = ()  #: sigma_i [N m s/rad or N s/m]; empty for none
    fv: float = 0.0  #: Viscous friction [N m s/rad or N s/m]
    exponent: float = 2.0  #: delta of the Stribeck curve

    def __post_init__(self) -> None:
        name, n = "GeneralisedMaxwellSlip", len(self.stiffness)
        positive(name, fc=self.fc, fs=self.fs, vs=self.vs, attraction=self.attraction, exponent=self.exponent)
        not_negative(name, fv=self.fv, **{f"damping[{i}]": value for i, value in enumerate(self.damping)})
        positive(name, **{f"stiffness[{i}]": value for i, value in enumerate(self.stiffness)})
        positive(name, **{f"share[{i}]": value for i, value in enumerate(self.share)})
        if n == 0 or len(self.share) != n or len(self.damping) not in (0, n):
            raise DescriptionError(
                f"{name} has {n} stiffnesses, {len(self.share)} shares and {len(self.damping)} dampings; "
                "give as many shares as stiffnesses and as many or no dampings"
            )
        if abs(sum(self.share) - 1.0) > 1e-9:
            raise DescriptionError(f"{name}: the shares add to {sum(self.share)}; normalise them to a sum of one")

    @property
    def states(self) -> int:
        """Two per element: deflection z_i, and mode (0 sticks, +1 or -1 slips that way)."""
        return 2 * len(self.stiffness)

    @property
    def parameters(self) -> dict[str, float]:
        """Values by name; element i has ``stiffness[i]``, ``share[i]`` and ``damping[i]``."""
        columns = (self.stiffness, self.share, self.damping or (0.0,) * len(self.stiffness))
        named = zip(("stiffness", "share", "damping"), columns, strict=True)
        elements = {f"{name}[{i}]": float(x) for name, values in named for i, x in enumerate(values)}
        return elements | {n: float(getattr(self, n)) for n in ("fc", "fs", "vs", "attraction", "fv", "exponent")}

    @property
    def steady(self) -> Friction:
        """Stribeck and viscous friction."""
        return (Stribeck(self.exponent) + Viscous()).using(fc=self.fc, fs=self.fs, vs=self.vs, fv=self.fv)

    def force(self, z: Sequence[Any], v: Any, p: Mapping[str, Any]) -> Any:
        """Return the friction from the state."""
        n, g, total = len(self.stiffness), stribeck_curve(p, v), p["fv"] * v
        for i in range(n):
            k, mode = p[f"stiffness[{i}]"], z[n + i]
            slip = p["attraction"] * (mode * p[f"share[{i}]"] - k * z[i] / g) / k
            total = total + k * z[i] + p[f"damping[{i}]"] * where(equal(mode, 0.0), v, slip)
        return total

    def _piece(self, routine: Routine, v0: Node, v1: Node, dt: Node, p: Mapping[str, Node]) -> None:
        for i in range(len(self.stiffness)):
            self._element(routine, i, v0, v1, dt, p)

    def _element(self, routine: Routine, i: int, v0: Node, v1: Node, dt: Node, p: Mapping[str, Node]) -> None:
        """Stick until the spring reaches its limit (found by bisection), then slip for the rest of the piece."""
        mode, way, k, share = len(self.stiffness) + i, sign(v0 + v1), p[f"stiffness[{i}]"], p[f"share[{i}]"]
        begin, bounds = routine.local(f"begin{i}", 2), routine.local(f"bounds{i}", 2)
        z = routine.load("state", i)

        def reached(theta: Any) -> Any:
            """Return the deflection of a sticking element after a part of the piece."""
            return z + dt * theta * (v0 + 0.5 * theta * (v1 - v0))

        def lacks(theta: Any) -> Any:
            """Return the remaining force to slip."""
            return share * stribeck_curve(p, v0 + theta * (v1 - v0)) - way * k * reached(theta)

        routine.store_all(begin, 0, [v0, dt])  # velocity and time left where slipping begins
        slips = both(equal(routine.load("state", mode), way), opposite(equal(v0, 0.0)))
        with routine.when(opposite(slips)):
            with routine.when(lacks(1.0) > 0.0):
                routine.store("state", i, reached(1.0))
                routine.store("state", mode, 0.0)
                routine.store(begin, 1, 0.0)
            with routine.otherwise():
                routine.store_all(bounds, 0, [0.0, 1.0])
                with routine.repeat(50):
                    low, high = routine.load_all(bounds, 0, 2)
                    middle = 0.5 * (low + high)
                    sticks = lacks(middle) > 0.0
                    routine.store_all(bounds, 0, [where(sticks, middle, low), where(sticks, high, middle)])
                theta = routine.load(bounds, 1)
                routine.store("state", i, reached(theta))
                routine.store("state", mode, way)
                routine.store_all(begin, 0, [v0 + theta * (v1 - v0), dt * (1.0 - theta)])
        a, rest = routine.load_all(begin, 0, 2)
        with routine.when(rest > 0.0):
            decay, first, last = relaxation_weights(
                p["attraction"] * rest * simpson_mean(lambda v: 1.0 / stribeck_curve(p, v), a, v1)
            )
            target = way * share * (first * stribeck_curve(p, a) + last * stribeck_curve(p, v1)) / k
            routine.store("state", i, decay * routine.load("state", i) + target)
