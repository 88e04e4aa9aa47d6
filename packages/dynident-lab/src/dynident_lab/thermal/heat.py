"""Joints that warm up during a run: friction power of one interval heats a model, which scales the friction of the next.

    W = mean friction power of the stretch / ratio        y+ = advance(y, W, dt)        ratio+ = alpha (T - T0) + beta

A law that depends on temperature itself (`TemperatureDependent`) uses its own factor instead of the ratio. Temperatures
change within minutes, so intervals of a second are as accurate as steps of a millisecond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import gain
from dynident.errors import SimulationError
from dynident.results import stored
from dynident.simulate.friction import COLDEST, Owner
from dynident_lab.thermal.models import ThermalModel

if TYPE_CHECKING:
    from dynident.simulate.robot import VirtualRobot


@dataclass(frozen=True, eq=False)
class Heating:
    """A thermal model and its heat sources in addition to friction."""

    model: ThermalModel  #: `FirstOrder`, `SecondOrder` or another model of finite order
    copper: float = 0.0  #: Share of the motor's copper losses that heats the friction surfaces, 0 to 1
    #: (n,), state of the model at the start; a long rest at the ambient temperature when omitted
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

    def heating(self) -> Heating:
        """Return itself, as `VirtualRobot` requires of a thermal model."""
        return self

    @staticmethod
    def begin(robot: VirtualRobot) -> Heat:
        """Return the temperatures of all joints and drives at the start of a run."""
        return Heat(robot)


class Heat:
    """Temperatures of all joints and drives of a robot during a run, and the resulting friction ratios."""

    def __init__(self, robot: VirtualRobot) -> None:
        mechanism, self.ambient = robot.mechanism, robot.ambient
        self.heating: dict[str, Any] = dict(robot.thermal)
        self.state = {
            name: np.array(heating.model.simulate([0.0, 1.0], 0.0, heating.start, self.ambient).state[0])
            for name, heating in self.heating.items()
        }
        tree, motors = mechanism.tree.coordinates, tuple(actuator.name for actuator in mechanism.actuators)
        self._tree, self._motors = tree, motors
        self._joints = {name: tree.index(name) for name in self.heating if name in tree}
        self._drives = {name: motors.index(name) for name in self.heating if name in motors}
        self._resistance = np.array([drive.motor.resistance for drive in robot.drives])
        driven = {next(iter(a.coupling)): a.name for a in mechanism.actuators if len(a.coupling) == 1}
        self._motor_of = {**{c: motors.index(m) for c, m in driven.items()}, **self._drives}
        self._shown = [next((name for name in (a.name, *a.coupling) if name in self.heating), "") for a in mechanism.actuators]
        self._sums: list[Array] = [np.zeros(len(tree)), np.zeros(len(motors)), np.zeros(len(motors))]
        self._rows = 0

    @property
    def temperature(self) -> Array:
        """Temperature behind every actuator, (k,): from its own model, or its joint's; ambient without either."""
        known = {name: self._temperature(name) for name in self.heating}
        return np.array([known.get(name, self.ambient) for name in self._shown])

    def zones(self) -> dict[str, Array]:
        """Return the temperatures of all zones of all thermal models [degree Celsius], by joint or actuator."""
        return {name: state.copy() for name, state in self.state.items()}

    def rested(self, duration: float) -> Heat:
        """Return a copy after some time [s] without losses."""
        cooled = copy(self)
        cooled.state = {
            name: np.asarray(self.heating[name].model.advance(state, 0.0, duration, self.ambient))
            for name, state in self.state.items()
        }
        return cooled

    def memory(self) -> dict[str, Any]:
        """Return temperatures and the losses of the present interval as plain data."""
        state = {name: values.tolist() for name, values in self.state.items()}
        return {"state": state, "sums": [total.tolist() for total in self._sums], "rows": self._rows}

    def remember(self, memory: Mapping[str, Any]) -> None:
        """Continue from a state returned by `memory`."""
        state, sums = stored(memory, "state", dict[str, Array], "heat"), stored(memory, "sums", list[Array], "heat")
        if {name: x.shape for name, x in state.items()} != {name: x.shape for name, x in self.state.items()}:
            raise SimulationError(f"the state of the machine has temperatures of {', '.join(state)}; start the run again")
        if [x.shape for x in sums] != [x.shape for x in self._sums]:
            raise SimulationError("the state of the machine has losses of another machine; start the run again")
        self.state, self._sums, self._rows = state, sums, stored(memory, "rows", int, "heat")

    def _temperature(self, name: str) -> float:
        return float(self.heating[name].model.temperature(self.state[name], np.array(self.ambient)))

    def ratio(self, name: str) -> float:
        """Return the ratio of friction to its law, at the present temperature of a joint or actuator."""
        return max(COLDEST, float(self.heating[name].model.ratio(self._temperature(name))))

    def heats(self, owner: Owner) -> str | None:
        """Return the joint or actuator that gives an owner of friction its temperature."""
        if owner.motor < 0 and owner.joint < 0:
            return None
        name = self._motors[owner.motor] if owner.motor >= 0 else self._tree[owner.joint]
        return name if name in self.heating else None

    def sources(self, name: str) -> tuple[int, int, int, float]:
        """Return the heat sources of a model: tree coordinate, drive and motor (-1 for none), and watts per square ampere."""
        motor = self._motor_of.get(name, -1)
        copper = self.heating[name].copper * float(self._resistance[motor]) if motor >= 0 else 0.0
        return self._joints.get(name, -1), self._drives.get(name, -1), motor, copper

    def scales(self, owners: Sequence[Owner]) -> tuple[Array, Array]:
        """Return the friction ratio and the temperature of every owner of friction; 1 and ambient without a thermal model."""
        ratio, temperature = np.ones(len(owners)), np.full(len(owners), self.ambient)
        for i, owner in enumerate(owners):
            name = self.heats(owner)
            if name is not None:
                ratio[i], temperature[i] = self.ratio(name), self._temperature(name)
        return ratio, temperature

    def add(self, joint_power: Array, drive_power: Array, current: Array) -> None:
        """Add friction powers (N, n_tree), (N, k) [W] and currents (N, k) [A] of further samples of this interval."""
        rows = (joint_power, drive_power, current**2)
        # Sequential summation: the sum is bit-identical for any division of a run.
        self._sums = [np.cumsum(np.vstack([total, part]), axis=0)[-1] for total, part in zip(self._sums, rows, strict=True)]
        self._rows += joint_power.shape[0]

    def advance(self, dt: float) -> None:
        """Heat the robot with the mean powers of an interval of dt [s]."""
        joint, drive, square = (total / max(self._rows, 1) for total in self._sums)
        for name, heating in self.heating.items():
            own, turning, motor, copper = self.sources(name)
            power = (float(joint[own]) if own >= 0 else 0.0) + (float(drive[turning]) if turning >= 0 else 0.0)
            losses = copper * float(square[motor]) if motor >= 0 else 0.0
            cold = power / self.ratio(name)
            self.state[name] = heating.model.advance(self.state[name], cold, dt, self.ambient, losses=losses)
        self._sums, self._rows = [np.zeros_like(total) for total in self._sums], 0
