"""Interface of controllers written in Python; the simulation calls them once per cycle and moves the robot in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from dynident.arrays import Array
from dynident.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from dynident.drive.drive import Drive


@dataclass(frozen=True, eq=False)
class Setpoint:
    """Reference at one time."""

    q: Array  #: (n,), positions of the coordinates
    v: Array  #: (n,), their velocities
    a: Array  #: (n,), their accelerations
    rho: Array  #: (k,), positions of the actuator coordinates
    rho_v: Array  #: (k,), their velocities


@dataclass(frozen=True, eq=False)
class Measurement:
    """Sensor readings at one time."""

    rho: Array  #: (k,), sensed positions of the actuator coordinates
    rho_v: Array  #: (k,), their velocities as the drive estimates them
    x: Array  #: (n,), positions of the coordinates that belong to them
    v: Array  #: (n,), their velocities
    current: Array  #: (k,), sensed motor currents [A]


class Machine(Protocol):
    """The robot a controller drives, as far as it needs to know it; `VirtualRobot` is one."""

    @property
    def mechanism(self) -> Mechanism:
        """The robot."""

    @property
    def drives(self) -> Sequence[Drive]:
        """One drive per actuator, in the order of ``mechanism.actuators``."""


class Controller(Protocol):
    """A control law in Python: reset once, then one update per cycle.

    An attribute `delay` [s], where there is one, is the time from the measurement to the command at the motors.
    """

    @property
    def cycle(self) -> float:
        """Time between two updates [s]."""

    @property
    def command(self) -> Literal["torque", "current", "voltage"]:
        """Kind of command that `update` returns: torques behind the gear [N m, N], motor currents [A] or motor voltages [V]."""

    def reset(self, robot: Machine, start: Measurement) -> None:
        """Forget the past and prepare for a run: called once before the first update."""

    def update(self, t: float, reference: Setpoint, measurement: Measurement) -> Array:
        """Return the command that is held until the next update."""
