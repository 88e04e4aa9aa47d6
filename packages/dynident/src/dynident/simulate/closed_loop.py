"""The closed loop as a function of the model, for estimators that simulate.

    model, factors  ->  machine of that model with the same controller  ->  motion

Inertia and friction of the drives are in the joint terms of the model (`VirtualRobot.model`), so nothing counts twice;
ratios, torque constants, encoders and control loops stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast

from dynident.arrays import Array
from dynident.control.laws import PID, Cascade, OpenLoop
from dynident.drive.drive import Drive, Transmission
from dynident.errors import SimulationError, require
from dynident.mechanics.functions import Motion
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.log import Log
from dynident.simulate.record import Sensors
from dynident.simulate.robot import VirtualRobot

DELAY, BIAS = "delay", "bias:"  # additive unknowns, not factors


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """A machine that runs with any model of its robot."""

    machine: VirtualRobot  #: Controller, drives and cycles as they are on the robot; its own masses and friction are not used
    #: References of the robot, one motion per log, each starting at the first time of its log; see
    #: `reference_motion`
    references: Motion | Sequence[Motion]
    #: Unknown numbers of the machine: "gain:<actuator>" is the torque constant of a drive, "controller.<field>" a gain of
    #: the controller: estimators find a factor for each. "delay" is the delay of commands to the controller [s],
    #: "bias:<joint>" the bias of the encoder of a joint [rad, m].
    unknown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(self.machine, VirtualRobot, "machine")
        motions = (self.references,) if isinstance(self.references, Motion) else tuple(self.references)
        for motion in motions:
            require(motion, Motion, "references")
        if not motions:
            raise SimulationError("references is empty; give the commanded motion, one per log")
        if self.machine.sensors.effort == "voltage":
            raise SimulationError(
                "a machine that logs voltages is not supported because back-EMF and friction are combined; log currents"
            )
        object.__setattr__(self, "references", motions)
        object.__setattr__(self, "unknown", tuple(self.unknown))
        self.machine_of(self.machine.model, dict.fromkeys(self.unknown, 1.0))
        wrong = [name for name in self.unknown if name.startswith(BIAS) and name.removeprefix(BIAS) not in self._joints]
        if wrong:
            raise SimulationError(f"unknown names '{wrong[0]}'; the joints are {', '.join(self._joints)}")

    @property
    def _joints(self) -> tuple[str, ...]:
        return self.machine.model.coordinate_names

    @property
    def model(self) -> Mechanism:
        """The model with the original numbers of the machine."""
        return self.machine.model

    @property
    def count(self) -> int:
        """Number of references."""
        return len(self.references)

    def reference(self, log: int) -> Motion:
        """Return the reference motion of a log, by its number."""
        if not 0 <= log < self.count:
            raise SimulationError(f"there are {self.count} references, but log {log + 1} needs one too; give one per log")
        return self.references[log]  # type: ignore[index]

    def machine_of(self, model: Mechanism, factors: Mapping[str, float] | None = None) -> VirtualRobot:
        """Return the machine of another model."""
        drives = [_bare(drive) for drive in self.machine.drives]
        controller: Any = self.machine.controller
        names = [drive.actuator for drive in drives]
        for name, factor in (factors or {}).items():
            if name == DELAY or name.startswith(BIAS):  # of commands and encoder readings, not of the machine
                continue
            kind, _, rest = name.partition(":" if name.startswith("gain:") else ".")
            if kind == "gain" and rest in names:
                drives, controller = _with_gain(drives, controller, names.index(rest), factor)
            elif kind == "controller" and is_dataclass(controller) and rest in {f.name for f in fields(controller)}:
                law: Any = controller  # any dataclass with this field
                controller = replace(law, **{rest: factor * np.asarray(getattr(law, rest), dtype=np.float64)})
            else:
                raise SimulationError(
                    f"unknown names '{name}'; it is 'gain:<actuator>' of {', '.join(names)}, 'controller.<field>' of "
                    f"{type(controller).__name__}, '{DELAY}' or '{BIAS}<joint>'"
                )
        sensors = Sensors(effort=self.machine.sensors.effort, side=self.machine.sensors.side)
        return replace(
            self.machine, mechanism=model, drives=drives, controller=controller, friction={}, thermal={}, sensors=sensors
        )

    def motion(self, model: Mechanism, log: int, t: Array, factors: Mapping[str, float] | None = None) -> Motion:
        """Run the machine of a model and return its motion; its encoders show the positions plus their bias."""
        reference, given = self.reference(log), factors or {}
        start = reference.t[0]
        own = Motion(reference.t - start, reference.q, reference.v, reference.a)
        if late := given.get(DELAY, 0.0):
            own = _late(own, late)
        # The encoders close the loop: a positive encoder bias makes the joint stay behind by the same amount.
        bias = np.array([given.get(BIAS + name, 0.0) for name in self._joints])
        own = Motion(own.t, own.q - bias, own.v, own.a)
        run = self.machine_of(model, factors).simulate(own, duration=float(t[-1] - start))
        found = run.truth.motion
        inside = np.clip(t - start, found.t[0], found.t[-1])
        return Motion(t, *(scipy.interpolate.CubicSpline(found.t, x)(inside) for x in (found.q, found.v, found.a)))


def _late(motion: Motion, delay: float) -> Motion:
    """Return a motion that starts after a delay [s], at rest until then."""
    curve, before = scipy.interpolate.CubicSpline(motion.t, motion.q), motion.t - delay < motion.t[0]
    at = np.clip(motion.t - delay, motion.t[0], motion.t[-1])
    q, v, a = (np.asarray(curve(at, order)) for order in range(3))
    v[before], a[before] = 0.0, 0.0
    return Motion(motion.t, q, v, a)


def reference_motion(log: Log) -> Motion:
    """Return the reference motion: cubic splines through the commanded positions of a `log`, and derivatives."""
    require(log, Log, "log")
    q = log.reference
    if q is None:
        raise SimulationError(f"log '{log.name}' has no reference; give the commanded positions (reference=)")
    if not np.isfinite(q).all():
        raise SimulationError(f"the reference of log '{log.name}' is not finite; repair it")
    curve = scipy.interpolate.CubicSpline(log.t, q)
    return Motion(log.t, q, curve(log.t, 1), curve(log.t, 2))


def _with_gain(drives: list[Drive], controller: Any, i: int, factor: float) -> tuple[list[Drive], Any]:
    """Return drives and controller such that drive i has a different torque constant than the controller assumes."""
    if isinstance(controller, PID):  # it commands torques, which the machine converts to currents by the true constant
        scale = np.ones(len(drives))
        scale[i] = factor
        gains: dict[str, Any] = {
            name: scale * np.asarray(getattr(controller, name), dtype=np.float64) for name in ("kp", "kd", "ki")
        }
        return drives, replace(controller, **gains)
    if isinstance(controller, Cascade | OpenLoop):
        motor = drives[i].motor
        changed = replace(drives[i], motor=replace(motor, torque_constant=factor * motor.torque_constant))
        return [*drives[:i], changed, *drives[i + 1 :]], controller
    raise SimulationError(f"a gain of a drive under {type(controller).__name__} cannot be varied; PID and Cascade can")


def _bare(drive: Drive) -> Drive:
    """Return a drive without inertia, friction and elasticity of its own, and with an exact encoder on the same side."""
    encoder = replace(drive.encoder, resolution=0.0, noise=0.0)
    gear = Transmission(ratio=drive.transmission.ratio)
    return replace(drive, motor=replace(drive.motor, inertia=0.0), transmission=gear, friction=None, encoder=encoder)
