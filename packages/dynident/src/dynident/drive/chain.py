"""Rotor, gears and load as a chain of masses joined by shafts [Roldan2017, section 3.2.2].

    J x'' + c x' + k x = (tau_m, 0, ..., -tau_d)        J diagonal; c, k tridiagonal chains                  (3.13)

tau_d is the torque that the mechanism requires, so it enters with a minus sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynident.checks import number, row
from dynident.errors import DescriptionError


def accelerations(torques: Sequence[Any], inertias: Sequence[Any]) -> list[Any]:
    """Return those of masses in a row, each between the torques of two shafts; for expressions, numbers and arrays."""
    return [(torques[i] - torques[i + 1]) / J for i, J in enumerate(inertias)]


@dataclass(frozen=True)
class Chain:
    """A chain of n masses (rotor first, load last) and n - 1 shafts."""

    inertias: tuple[float, ...]  #: (n,), J of the masses [kg m^2]
    stiffness: tuple[float, ...] = ()  #: (n - 1,), k of the shafts [N m/rad]
    damping: tuple[float, ...] = ()  #: (n - 1,), c of the shafts [N m s/rad]; zero if not given
    viscous: tuple[float, ...] = ()  #: (n,), friction b of each mass against the frame [N m s/rad]; zero if not given

    def __post_init__(self) -> None:
        J = row("chain: inertias", self.inertias, above=0.0)
        k = row("chain: stiffness", self.stiffness, above=0.0)
        c = row("chain: damping", self.damping, least=0.0) or (0.0,) * len(k)
        b = row("chain: viscous", self.viscous, least=0.0) or (0.0,) * len(J)
        if not J or len(k) != len(J) - 1 or len(c) != len(k) or len(b) != len(J):
            raise DescriptionError(
                f"chain: there are {len(J)} inertias, {len(k)} stiffnesses, {len(c)} dampings and {len(b)} viscous "
                "coefficients; n inertias need n - 1 shafts and n viscous coefficients"
            )
        for name, values in {"inertias": J, "stiffness": k, "damping": c, "viscous": b}.items():
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.inertias)

    def loaded(self, inertia: float) -> Chain:
        """Chain with more inertia on its last mass, as of a mechanism at one configuration."""
        more = number("chain: inertia of the load", inertia, least=0.0, unit="kg m^2")
        return replace(self, inertias=(*self.inertias[:-1], self.inertias[-1] + more))
