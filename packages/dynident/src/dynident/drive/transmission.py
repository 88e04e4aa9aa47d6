"""The transmission between rotor and actuator coordinate: gear, screw or belt, rigid or elastic [Roldan2017, section 3.2.3]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import number, numbers, row
from dynident.errors import DescriptionError
from dynident.graph.elementary import clip, equal, where


def gear_share(torque: Any, speed: Any, efficiency: Any) -> Any:
    """Return the share of torque that passes a gear: eta if power flows to the output, 1 / eta if from there, 1 at rest."""
    return where(equal(speed, 0.0), 1.0, where(equal(torque > 0.0, speed > 0.0), efficiency, 1.0 / efficiency))


def shaft_torque(twist: Any, rate: Any, stiffness: Any, damping: Any, play: Any = None) -> Any:
    """Return the torque of an elastic shaft, with half its play; for expressions, numbers and arrays."""
    if play is None:
        return stiffness * twist + damping * rate
    rest = twist - clip(twist, play)
    return where(equal(rest, 0.0), 0.0, stiffness * rest + damping * rate)


@dataclass(frozen=True)
class Transmission:
    """Gear, screw or belt between the rotor (angle theta) and the actuator coordinate rho: ``theta = ratio rho``.

    With stiffness it is a chain of masses behind the rotor: rotor - shaft 1 - inertia 1 - shaft 2 - inertia 2 ...; the LAST
    inertia moves rigidly with rho. Everything is seen at the motor. A shaft with the twist d carries ``k d + c d_dot``. With
    play, ``k (|d| - b/2) sgn(d) + c d_dot`` acts in the last shaft where ``|d| > b/2``, and nothing in between.

    Efficiency: the output receives ``ratio efficiency tau`` while power flows to it (tau omega > 0) and
    ``ratio tau / efficiency`` when it drives the motor. tau is the torque that reaches the gear: that of the motor less what
    the friction of the rotor and all inertias but the last (with the rotor's) take; of an elastic transmission that of the
    last shaft. At rest the gear holds any load between the two.
    """

    ratio: float = 1.0  #: Motor angle per unit of rho [rad/rad, or rad/m of a slide]; negative when it reverses
    efficiency: float = 1.0  #: In (0, 1]
    inertias: tuple[float, ...] = ()  #: Behind the rotor, seen at the motor [kg m^2]
    stiffness: tuple[float, ...] = ()  #: Of the shafts, one per inertia [N m/rad]; empty is rigid
    damping: tuple[float, ...] = ()  #: Of the shafts, one per inertia [N m s/rad]; zero if not given
    backlash: float = 0.0  #: Play of the last shaft, from stop to stop [rad at the motor]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", _not_zero("ratio", self.ratio))
        efficiency = number("transmission: efficiency", self.efficiency, above=0.0)
        if efficiency > 1.0:
            raise DescriptionError(f"transmission: efficiency is {efficiency:g}; give a number above 0 and at most 1")
        object.__setattr__(self, "efficiency", efficiency)
        stiff = row("transmission: stiffness", self.stiffness, above=0.0)
        # Masses of a rigid transmission may be zero; one on a spring may not: it would have no equation of motion.
        if stiff:
            inertias = row("transmission: inertias", self.inertias, above=0.0)
        else:
            inertias = row("transmission: inertias", self.inertias, least=0.0)
        damping = row("transmission: damping", self.damping, least=0.0)
        if stiff and len(stiff) != len(inertias):
            raise DescriptionError(
                f"transmission: there are {len(stiff)} stiffnesses and {len(inertias)} inertias; give one shaft in front of "
                "each inertia, or no stiffness for a rigid transmission"
            )
        if damping and len(damping) != len(stiff):
            raise DescriptionError(
                f"transmission: there are {len(damping)} dampings and {len(stiff)} stiffnesses; give one of each per shaft"
            )
        object.__setattr__(self, "inertias", inertias)
        object.__setattr__(self, "stiffness", stiff)
        object.__setattr__(self, "damping", damping or (0.0,) * len(stiff))
        object.__setattr__(self, "backlash", number("transmission: backlash", self.backlash, least=0.0, unit="rad"))
        if self.backlash > 0.0 and not stiff:
            raise DescriptionError(
                f"transmission: backlash is {self.backlash:g} rad but there is no shaft to hold it; give stiffness and inertias"
            )

    @property
    def rigid(self) -> bool:
        """Whether all masses turn together."""
        return not self.stiffness

    @classmethod
    def gear(cls, ratio: float, **options: Any) -> Transmission:
        """Gear with a rotary output."""
        return cls(ratio, **options)

    @classmethod
    def screw(cls, lead: float, ratio: float = 1.0, **options: Any) -> Transmission:
        """Screw behind a gear, ``2 pi ratio / lead`` (eq. 3.28)."""
        return cls(2.0 * math.pi * _not_zero("ratio", ratio) / _not_zero("lead", lead), **options)

    @classmethod
    def belt(cls, pitch: float, ratio: float = 1.0, **options: Any) -> Transmission:
        """Belt (or rack) behind a gear, ``2 pi ratio / pitch`` (eqs. 3.28, 4.35)."""
        return cls(2.0 * math.pi * _not_zero("ratio", ratio) / _not_zero("pitch", pitch), **options)

    def motor_torque(self, torque: ArrayLike, speed: ArrayLike) -> Array:
        """Torque at the motor that gives a wanted torque or force at the output; the inverse of `output_torque`."""
        tau, omega = numbers(torque, "torque") / self.ratio, numbers(speed, "speed")
        return np.asarray(tau / gear_share(tau, omega, self.efficiency))


def _not_zero(what: str, value: float) -> float:
    checked = number(f"transmission: {what}", value)
    if checked == 0.0:
        raise DescriptionError(f"transmission: {what} is 0; give a number that is not zero")
    return checked
