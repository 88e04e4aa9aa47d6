"""The drive of one actuator: motor, transmission, friction and sensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dynident.arrays import Array
from dynident.drive.chain import Chain, accelerations
from dynident.drive.encoder import CurrentSensor, Encoder
from dynident.drive.motor import Motor, resistive_current, winding_rate
from dynident.drive.transmission import Transmission, shaft_torque
from dynident.errors import DescriptionError, require
from dynident.friction.dynamic import DynamicLaw
from dynident.friction.law import Friction


@dataclass(frozen=True)
class Drive:
    """Drive of one actuator of a mechanism."""

    actuator: str  #: Name of the actuator in the mechanism
    motor: Motor  #: The motor
    transmission: Transmission = field(default_factory=Transmission)  #: Between the rotor and the actuator coordinate
    friction: Friction | DynamicLaw | None = None  #: Acts on the rotor at the rotor's speed [N m at the motor]
    encoder: Encoder = field(default_factory=Encoder)  #: Position sensor
    current_sensor: CurrentSensor = field(default_factory=CurrentSensor)  #: Current sensor

    def __post_init__(self) -> None:
        if not isinstance(self.actuator, str) or not self.actuator:
            raise DescriptionError(f"drive: actuator is {self.actuator!r}; give the name of an actuator of the mechanism")
        require(self.motor, Motor, f"drive '{self.actuator}': motor")
        require(self.transmission, Transmission, f"drive '{self.actuator}': transmission")
        require(self.encoder, Encoder, f"drive '{self.actuator}': encoder")
        require(self.current_sensor, CurrentSensor, f"drive '{self.actuator}': current_sensor")
        if self.friction is not None and not isinstance(self.friction, Friction | DynamicLaw):
            raise DescriptionError(
                f"drive '{self.actuator}': friction is a {type(self.friction).__name__}; give a law with numbers, as in "
                "(Coulomb() + Viscous()).using(fc=0.1, fv=1e-3), or a dynamic law such as LuGre"
            )
        if not self.transmission.rigid and self.motor.inertia == 0.0:
            raise DescriptionError(
                f"drive '{self.actuator}': the rotor turns an elastic shaft but motor.inertia is 0; give it in kg m^2"
            )

    @cached_property
    def rigid(self) -> bool:
        """Whether rotor and actuator coordinate move together."""
        return self.transmission.rigid

    @property
    def inertia(self) -> float:
        """All inertias of the drive, at the motor [kg m^2]."""
        return self.motor.inertia + sum(self.transmission.inertias)

    @property
    def input_inertia(self) -> float:
        """Inertias in front of the gear, at the motor [kg m^2]: all but the last of the transmission, which turns with rho."""
        return self.motor.inertia + sum(self.transmission.inertias[:-1])

    @property
    def output_inertia(self) -> float:
        """Inertia that moves with the actuator coordinate [kg m^2, or kg of a slide]: of an elastic drive its last mass."""
        return self.transmission.ratio**2 * (self.inertia if self.rigid else self.transmission.inertias[-1])

    @property
    def reflected_inertia(self) -> float:
        """All inertias of the drive as the actuator coordinate feels them, ``ratio^2 J`` [kg m^2, or kg of a slide]."""
        return self.transmission.ratio**2 * self.inertia

    @property
    def states(self) -> int:
        """Number of masses that have a coordinate of their own: all but the last of an elastic chain, none of a rigid one."""
        return len(self.transmission.stiffness)

    @property
    def chain(self) -> Chain:
        """Rotor and masses behind it as a chain, without backlash and friction."""
        if self.rigid:
            return Chain((self.inertia,))
        shafts = self.transmission
        return Chain((self.motor.inertia, *shafts.inertias), shafts.stiffness, shafts.damping)


def linear_drive(chain: Chain | None, motor: Motor, voltage: bool) -> tuple[Array, Array, Array]:
    """Return A, B and the current's row of a drive without play, losses and limits: x' = A x + B u, i = row (x, u).

    x are angles and speeds of the masses, and the current of a winding with inductance; u is the command (the voltage, or else
    the current) and the torque that the mechanism requires of the last mass.
    """
    n = 0 if chain is None else len(chain)
    winding = voltage and motor.inductance > 0.0
    size = 2 * n + winding

    def rates(y: Array) -> list[float]:
        theta, omega, command, load = y[:n], y[n : 2 * n], y[-2], y[-1]
        speed = omega[0] if n else 0.0
        current = command if not voltage else 0.0
        if winding:
            current = y[2 * n]
        elif voltage and motor.resistance > 0.0:
            current = resistive_current(command, speed, motor.resistance, motor.emf_constant)
        found = [*omega]
        if chain is not None:
            shafts = zip(chain.stiffness, chain.damping, strict=True)
            twists = [shaft_torque(theta[i] - theta[i + 1], omega[i] - omega[i + 1], k, c) for i, (k, c) in enumerate(shafts)]
            free = accelerations([motor.torque_constant * current, *twists, load], chain.inertias)
            found += [a - b * w / J for a, b, w, J in zip(free, chain.viscous, omega, chain.inertias, strict=True)]
        if winding:
            found.append(winding_rate(command, current, speed, (motor.resistance, motor.inductance, motor.emf_constant)))
        return [*found, current]

    columns = np.array([rates(unit) for unit in np.eye(size + 2)]).T  # the equations are linear
    return columns[:size, :size], columns[:size, size:], columns[size]
