"""Joints that warm up while they run: friction power of one stretch heats a model, which scales the friction of the next.

    W = mean friction power of the stretch / ratio        y+ = advance(y, W, dt)        ratio+ = alpha (T - T0) + beta

A law that looks at the temperature itself (`TemperatureDependent`) takes its own factor instead of the ratio. Temperatures
change within minutes, so stretches of a second are as good as steps of a millisecond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control.checks import gain
from dynident.drive import Drive
from dynident.errors import SimulationError
from dynident.friction import Thermal, ThermalModel
from dynident.mechanism import Mechanism

if TYPE_CHECKING:
    from dynident.simulate.plant import Assembly

Array = NDArray[np.float64]

#: Numbers of a friction row (`dynident.simulate.laws`) that are forces or stiffnesses: all of them grow with the ratio.
FORCES = {1: (0,), 2: (0,), 3: (0,), 4: (0, 1), 5: (0,), 6: (0, 1), 8: (0, 1), 9: (0, 1, 2, 3), 10: (0, 2, 3, 4, 5)}
COLDEST = 0.05  # smallest friction ratio that is simulated: below it a linear law has left its range


@dataclass(frozen=True, eq=False)
class Heating:
    """A thermal model and what heats it beside friction.

    Parameters
    ----------
    model : ThermalModel
        `FirstOrder`, `SecondOrder` or another model of finite order.
    copper : float
        Share of the motor's copper losses that heats the rubbing parts, 0 to 1.
    start : array_like (n,), optional
        State of the model at the start; a long rest at the ambient temperature when omitted.
    """

    model: ThermalModel
    copper: float = 0.0
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, ThermalModel):
            raise SimulationError(
                f"thermal model is a {type(self.model).__name__}; give one of finite order, such as FirstOrder or SecondOrder"
            )
        share = gain("heating", "copper", self.copper)
        if not isinstance(share, float) or share > 1.0:
            raise SimulationError(f"heating: copper = {self.copper} must be a share between 0 and 1; give one number")
        object.__setattr__(self, "copper", share)


def heating_of(value: object, name: str) -> Heating:
    """Return what a user gave as the thermal model of a joint or drive.

    Parameters
    ----------
    value : Heating, Thermal or ThermalModel
        The model.
    name : str
        Joint or actuator, for messages.

    Returns
    -------
    Heating
        The same.
    """
    if isinstance(value, Heating):
        return value
    if isinstance(value, Thermal) and isinstance(value.model, ThermalModel):
        return Heating(value.model)
    if isinstance(value, ThermalModel):
        return Heating(value)
    raise SimulationError(
        f"thermal['{name}'] is a {type(value).__name__}; give a thermal model such as SecondOrder, a Thermal or a Heating"
    )


class Heat:
    """Temperatures of all joints and drives of a robot during a run, and what they do to the friction.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n_tree tree coordinates and k actuators.
    drives : sequence of Drive
        One per actuator, in their order.
    thermal : mapping of str to Heating
        By tree coordinate or actuator; a name that is both scales the friction of both.
    ambient : float
        Temperature of the surroundings [degree Celsius].
    """

    def __init__(self, mechanism: Mechanism, drives: Sequence[Drive], thermal: Mapping[str, Heating], ambient: float) -> None:
        self.ambient = ambient
        self.heating = dict(thermal)
        self.state = {}
        for name, heating in self.heating.items():
            start = heating.model.simulate([0.0, 1.0], 0.0, heating.start, ambient).state[0]
            self.state[name] = np.array(start)
        tree, motors = mechanism.tree.coordinates, [actuator.name for actuator in mechanism.actuators]
        self._joints = {name: tree.index(name) for name in thermal if name in tree}
        self._drives = {name: motors.index(name) for name in thermal if name in motors}
        self._resistance = np.array([drive.motor.resistance for drive in drives])
        self._sizes = len(tree), len(motors)
        driven = {next(iter(a.coupling)): a.name for a in mechanism.actuators if len(a.coupling) == 1}
        self._motor_of = {**{c: motors.index(m) for c, m in driven.items()}, **self._drives}
        self._shown = [next((name for name in (a.name, *a.coupling) if name in self.heating), "") for a in mechanism.actuators]

    @property
    def temperature(self) -> Array:
        """Temperature behind every actuator, (k,): of its own model, or of its joint's; ambient without either."""
        known = {name: self._temperature(name) for name in self.heating}
        return np.array([known.get(name, self.ambient) for name in self._shown])

    def _temperature(self, name: str) -> float:
        return float(self.heating[name].model._temperature(self.state[name], np.array(self.ambient)))

    def ratio(self, name: str) -> float:
        """Return friction over that of the law, at the present temperature.

        Parameters
        ----------
        name : str
            Joint or actuator with a thermal model.

        Returns
        -------
        float
            The ratio.
        """
        return max(COLDEST, float(self.heating[name].model.ratio(self._temperature(name))))

    def scales(self) -> Array:
        """Return the friction ratio and the temperature of every joint and every drive.

        Returns
        -------
        ndarray, (2, n_tree + k)
            Of the tree's joints, then of the drives; 1 and the ambient temperature [degree Celsius] without a thermal model.
        """
        tree, motors = self._sizes
        out = np.array([np.ones(tree + motors), np.full(tree + motors, self.ambient)])
        for name in self.heating:
            both = self.ratio(name), self._temperature(name)
            if name in self._joints:
                out[:, self._joints[name]] = both
            if name in self._drives:
                out[:, tree + self._drives[name]] = both
        return out

    def advance(self, joint_power: Array, drive_power: Array, current: Array, dt: float) -> None:
        """Let one stretch of the run heat the robot.

        Parameters
        ----------
        joint_power : ndarray, (n_tree,)
            Mean friction power of the tree's joints [W].
        drive_power : ndarray, (k,)
            Mean friction power of the drives [W].
        current : ndarray, (k,)
            Root mean square currents [A].
        dt : float
            Length of the stretch [s].
        """
        copper = self._resistance * current**2
        for name, heating in self.heating.items():
            power = 0.0
            if name in self._joints:
                power += float(joint_power[self._joints[name]])
            if name in self._drives:
                power += float(drive_power[self._drives[name]])
            motor = self._motor_of.get(name)
            losses = heating.copper * float(copper[motor]) if motor is not None else 0.0
            cold = power / self.ratio(name)
            self.state[name] = heating.model.advance(self.state[name], cold, dt, self.ambient, losses=losses)


def scaled_numbers(assembly: Assembly, numbers: Array, scales: Array) -> Array:
    """Return the numbers of all friction rows at other temperatures; offsets and springs do not change by a ratio.

    Parameters
    ----------
    assembly : Assembly
        Robot as arrays.
    numbers : ndarray, (rows, 9)
        Numbers at the reference temperatures.
    scales : ndarray, (2, n_tree + k)
        Friction ratio and temperature of every tree coordinate and every drive, as from `Heat.scales`.

    Returns
    -------
    ndarray, (rows, 9)
        Scaled copy.
    """
    out, rubbing = numbers.copy(), assembly.rubbing
    drives = scales.shape[1] - assembly.plant.drive.shape[0] - len(rubbing.forms)
    r = 0
    for owner, rows in enumerate(rubbing.rows):
        used = np.flatnonzero(rubbing.forms[owner]) if owner < len(rubbing.forms) else np.array([drives + owner])
        for row in rows:
            factor = float(scales[0, used[0]]) if used.size == 1 else 1.0
            columns = FORCES.get(row.kind, ())
            if row.warmth:
                rise = [alpha * (scales[1, used[0]] - reference) for alpha, reference in row.warmth]
                factor, columns = max(COLDEST, float(np.prod(1.0 + np.array(rise)))), FORCES.get(row.kind, (0,))
            out[r, list(columns)] *= factor
            r += 1
    return out
