"""The motor: one equivalent direct-current circuit for DC machines and, with RMS values, for AC servo machines.

V = R i + L di/dt + K_E omega,          tau = K_t i                                    [Roldan2017, eqs. 3.1-3.3]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import number, numbers
from dynident.errors import DescriptionError


def winding_rate(voltage: Any, current: Any, speed: Any, numbers: tuple[Any, Any, Any]) -> Any:
    """Return di/dt of a winding; `numbers` are R, L and K_E. For expressions, numbers and arrays."""
    R, L, emf = numbers
    return (voltage - R * current - emf * speed) / L


def resistive_current(voltage: Any, speed: Any, resistance: Any, emf: Any) -> Any:
    """Return the current of a winding without inductance; for expressions, numbers and arrays."""
    return (voltage - emf * speed) / resistance


@dataclass(frozen=True)
class Motor:
    """A motor with its limits; numbers in SI."""

    torque_constant: float  #: K_t [N m/A]
    resistance: float = 0.0  #: R of the winding [ohm]; zero where the current loop hides it
    inductance: float = 0.0  #: L of the winding [H]; zero likewise
    back_emf: float | None = None  #: K_E [V s/rad]; in SI it equals the torque constant, which is taken when it is not given
    inertia: float = 0.0  #: Of the rotor and all that is rigid with it [kg m^2]
    current_limit: float = math.inf  #: Largest absolute current [A]
    #: Largest absolute voltage [V]. With it the motor cannot push itself beyond its no-load speed V / K_E; a load that
    #: drives it beyond makes it generate.
    voltage_limit: float = math.inf
    #: Largest speed of the rotor that bearings, encoder or gear allow [rad/s]. Nothing in the drive stops at it, so a
    #: simulation goes beyond and reports which motor did, when and how long; sizing counts it as a limit.
    speed_limit: float = math.inf

    def __post_init__(self) -> None:
        units = {"torque_constant": "N m/A", "resistance": "ohm", "inductance": "H", "inertia": "kg m^2"}
        for name, unit in units.items():
            object.__setattr__(self, name, number(f"motor: {name}", getattr(self, name), least=0.0, unit=unit))
        if self.back_emf is not None:
            object.__setattr__(self, "back_emf", number("motor: back_emf", self.back_emf, least=0.0, unit="V s/rad"))
        for name, unit in {"current_limit": "A", "voltage_limit": "V", "speed_limit": "rad/s"}.items():
            checked = number(f"motor: {name}", getattr(self, name), above=0.0, infinite=True, unit=unit)
            object.__setattr__(self, name, checked)

    @property
    def emf_constant(self) -> float:
        """K_E as used: `back_emf`, or the torque constant where that is not given [V s/rad]."""
        return self.torque_constant if self.back_emf is None else self.back_emf

    def torque(self, current: ArrayLike) -> Array:
        """Return the torque ``tau = K_t i`` [N m] of a current [A]."""
        return np.asarray(self.torque_constant * numbers(current, "current"))

    def current(self, torque: ArrayLike) -> Array:
        """Current of a torque, ``i = tau / K_t``."""
        self._needs_torque_constant("a current command")
        return np.asarray(numbers(torque, "torque") / self.torque_constant)

    def voltage(self, current: ArrayLike, speed: ArrayLike, current_rate: ArrayLike = 0.0) -> Array:
        """Voltage at the terminals, ``V = R i + L di/dt + K_E omega``."""
        i, omega, rate = numbers(current, "current"), numbers(speed, "speed"), numbers(current_rate, "current_rate")
        return np.asarray(self.resistance * i + self.inductance * rate + self.emf_constant * omega)

    def copper_loss(self, current: ArrayLike) -> Array:
        """Heat of the winding, ``P = R i^2``."""
        return np.asarray(self.resistance * numbers(current, "current") ** 2)

    @classmethod
    def ac(
        cls,
        torque_constant: float,
        resistance: float = 0.0,
        inductance: float = 0.0,
        inertia: float = 0.0,
        current_limit: float = math.inf,
        voltage_limit: float = math.inf,
        speed_limit: float = math.inf,
    ) -> Motor:
        """Three-phase servo motor from the line-to-line RMS numbers of its data sheet."""
        limit = number("motor: voltage_limit", voltage_limit, above=0.0, infinite=True, unit="V RMS line to line")
        return cls(
            torque_constant,
            1.5 * number("motor: resistance", resistance, least=0.0, unit="ohm"),
            1.5 * number("motor: inductance", inductance, least=0.0, unit="H"),
            inertia=inertia,
            current_limit=current_limit,
            voltage_limit=math.sqrt(3.0) * limit,
            speed_limit=speed_limit,
        )

    def _needs_torque_constant(self, what: str) -> None:
        if self.torque_constant == 0.0:
            raise DescriptionError(f"motor: torque_constant is 0, and {what} needs one above zero; give K_t in N m/A")
