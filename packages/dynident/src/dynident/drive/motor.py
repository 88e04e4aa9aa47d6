"""The motor: one equivalent direct-current circuit for DC machines and, with RMS values, for AC servo machines.

V = R i + L di/dt + K_E omega,          tau = K_t i                                    [Roldan2017, eqs. 3.1-3.3]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dynident.checks import number


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
