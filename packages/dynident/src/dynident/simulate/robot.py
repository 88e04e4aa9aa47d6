"""The virtual robot: mechanism, drives and controller in one object that runs like a real robot; and the standard machine.

`standard_machine` completes a mechanism by given or ideal drives, a standard controller and recorder. Its assumptions: ideal
drives have neither inertia nor friction and give the commanded torque at once (1 N m/A at the motor), up to the effort limits
of the description; encoders are on the joints with 2^20 counts per turn, or a micrometre, and an exact velocity; control
runs at 1 kHz, plant at 4 kHz, and the controller knows the robot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import choice, number
from dynident.control.cascade import cascade_for, gains_for, spread
from dynident.control.laws import PID, Cascade, ComputedTorque, Controller, OpenLoop, check_preload
from dynident.control.task import TaskCascade, TaskComputedTorque, TaskPID, bound_space
from dynident.drive.drive import Drive, Encoder, Motor, Transmission
from dynident.drive.joint_terms import Law, beside_drives, check_gears, identified_model, joint_side
from dynident.errors import DynidentError, SimulationError, require
from dynident.friction.dynamic import DynamicLaw
from dynident.friction.law import Friction
from dynident.mechanics.actuation import actuator_jacobian
from dynident.mechanics.dynamics import mass_matrix
from dynident.mechanism.force import Force
from dynident.mechanism.mechanism import Mechanism
from dynident.results import Frozen
from dynident.simulate.machine import COMPILED, remembered
from dynident.simulate.record import End, Heating, Run, Sensors, check_channels, check_voltage, notify
from dynident.simulate.reference import Disturbance
from dynident.simulate.run import THERMAL_CYCLE, Runner
from dynident.trajectory.reference import Reference, Start, reference_of


@dataclass(frozen=True, eq=False)
class VirtualRobot(Frozen):
    """A robot with its drives and its controller, for simulation in time.

    The actuator coordinates rho are those behind the gears, rho = c q; a rotor turns by theta = ratio rho with the ratio of its
    drive's transmission, so a gear ratio that the mechanism states for an actuator must be that of its drive.

    Examples
    --------
    >>> import numpy as np
    >>> import dynident as di
    >>> from dynident.control import PID
    >>> from dynident.drive import Drive, Motor
    >>> from dynident.simulate import VirtualRobot
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0)], gravity=(0, -9.81, 0)).with_payload(1.0)
    >>> robot = VirtualRobot(arm, [Drive("joint_1", Motor(1.0))], PID(400.0, 20.0, cycle=1e-3))
    >>> run = robot.simulate(di.Motion([0.0, 0.5], np.zeros((2, 1)), np.zeros((2, 1)), np.zeros((2, 1))))
    >>> len(run.log)
    501
    """

    mechanism: Mechanism  #: The robot: tree, couplings or loops, with its own joint terms
    drives: Sequence[Drive]  #: One drive per actuator of the mechanism, in any order
    #: Control law; another object with `cycle`, `command`, `reset` and `update` is called from Python once per cycle
    controller: Cascade | PID | ComputedTorque | OpenLoop | TaskPID | TaskComputedTorque | TaskCascade | Controller
    _: KW_ONLY
    #: Laws on tree coordinates, in addition to the joint terms of the mechanism. Load-dependent laws use the joint load
    #: after friction of the previous step; temperature-dependent laws use the temperature of `thermal`, or the
    #: ambient one.
    friction: Mapping[str, Law] = field(default_factory=dict)
    #: Thermal models by tree coordinate or actuator; they scale the friction of that name, except for
    #: temperature-dependent laws. A `Thermal` includes its friction law.
    thermal: Mapping[str, Heating] = field(default_factory=dict)
    sensors: Sensors = field(default_factory=Sensors)  #: Settings of the recorder
    step: float = 1.25e-4  #: Step of the plant [s]; all cycle times are whole multiples of it
    name: str = ""  #: Name in logs and reports; the mechanism's when empty
    ambient: float = 20.0  #: Temperature of the surroundings [degree Celsius]

    def __post_init__(self) -> None:
        require(self.mechanism, Mechanism, "mechanism")
        require(self.sensors, Sensors, "sensors")
        set_ = object.__setattr__
        set_(self, "drives", _ordered(self.mechanism, self.drives))
        check_gears(self.mechanism, self.drives)
        set_(self, "mechanism", joint_side(self.mechanism))
        set_(self, "step", number("step", self.step, above=0.0, unit="s", kind=SimulationError))
        set_(self, "ambient", number("ambient", self.ambient, unit="degree Celsius", kind=SimulationError))
        if not isinstance(self.name, str):
            raise SimulationError(f"name is a {type(self.name).__name__}; give a text")
        _check_controller(self.controller, self.mechanism)
        self._check_friction()

    def _check_friction(self) -> None:
        tree = self.mechanism.tree.coordinates
        motors = [drive.actuator for drive in self.drives]
        for label in ("friction", "thermal"):
            if not isinstance(getattr(self, label), Mapping):
                raise SimulationError(f"{label} is a {type(getattr(self, label)).__name__}; give a mapping of names")
        for force in self.mechanism.forces:
            if not isinstance(force, Force) or "a" in force.looks_at or force.jumps:
                what = "is numeric" if not isinstance(force, Force) else "jumps with the velocity or needs accelerations"
                raise SimulationError(
                    f"force '{force.names[0]}' {what}, so it cannot be simulated; use a friction law or a body"
                )
        laws, heat, drives = dict(self.friction), {}, list(self.drives)
        for name, value in self.thermal.items():
            if name not in tree and name not in motors:
                raise SimulationError(f"thermal names '{name}'; joints are {', '.join(tree)} and actuators {', '.join(motors)}")
            if not hasattr(value, "heating"):
                kind = type(value).__name__
                raise SimulationError(
                    f"thermal['{name}'] is a {kind}; give a thermal model such as SecondOrder, a Thermal or a Heating"
                )
            heat[name] = value.heating()
            if (law := getattr(value, "friction", None)) is not None:
                self._bring_law(name, law, laws, drives)
        for name, law in laws.items():
            if name not in tree:
                raise SimulationError(f"friction names '{name}'; joints are {', '.join(tree)}")
            if not isinstance(law, Friction | DynamicLaw):
                raise SimulationError(
                    f"friction['{name}'] is a {type(law).__name__}; give a law with numbers, as in Coulomb().using(fc=1.0)"
                )
        object.__setattr__(self, "friction", MappingProxyType(laws))
        object.__setattr__(self, "thermal", MappingProxyType(heat))
        object.__setattr__(self, "drives", tuple(drives))

    def _bring_law(self, name: str, law: Friction, laws: dict[str, Law], drives: list[Drive]) -> None:
        """Assign the law of a `Thermal` to the joint of its name, or otherwise to the drive."""
        motors = [drive.actuator for drive in drives]
        if name in self.mechanism.tree.coordinates:
            if laws.get(name, law) is not law:
                raise SimulationError(f"joint '{name}' has a law in friction and another in thermal; give one of them")
            laws[name] = law
            return
        i = motors.index(name)
        if drives[i].friction is not None and drives[i].friction is not law:
            raise SimulationError(f"drive '{name}' has a friction law and another in thermal; give one of them")
        drives[i] = replace(drives[i], friction=law)

    def __repr__(self) -> str:
        title = self.name or self.mechanism.name
        law = type(self.controller).__name__
        return f"VirtualRobot('{title}': {self.mechanism.dof} coordinates, {len(self.drives)} drives, {law})"

    @cached_property
    def prepared(self) -> dict[Any, Any]:
        """The machine of the last run before it moved, by start and options."""
        return {}

    @cached_property
    def _identified(self) -> tuple[Mechanism, tuple[str, ...]]:
        check_voltage(self)
        effort, friction = self.sensors.effort, self.friction
        parts = (self.mechanism, *self.drives, *friction.values())
        key = (effort, *friction)
        return remembered(key, parts, lambda: identified_model(self.mechanism, self.drives, friction, effort))

    @property
    def model(self) -> Mechanism:
        """True model for identification: drive inertia and friction as joint terms, gears and gains as actuators."""
        return self._identified[0]

    @property
    def model_notes(self) -> tuple[str, ...]:
        """Effects that `model` cannot represent, one sentence each: nonlinear friction, elasticity, efficiency."""
        return self._identified[1]

    def reference(self, source: object) -> Reference:
        """Return a motion, trajectory, plan or plan file, in the robot's coordinates, as a reference of this robot."""
        return reference_of(source, self.mechanism)

    def simulate(
        self,
        reference: object,
        *,
        start: Start | End | None = None,
        duration: float | None = None,
        method: str = "coupled",
        loop: str = "exact",
        seed: int | np.random.SeedSequence = 0,
        log_cycle: float | None = None,
        disturbance: Disturbance | ArrayLike | Callable[[float], ArrayLike] | None = None,
        wrenches: Mapping[str, Any] | None = None,
        thermal_cycle: float = THERMAL_CYCLE,
        progress: Callable[[float, float], object] | None = None,
    ) -> Run:
        """Run the robot along a reference and record a log like a real robot's.

        The same seed gives bit-identical results. Joints that dry friction can hold stand still.
        """
        check_channels(self)
        options = (start, duration, method, loop, seed, log_cycle, disturbance, wrenches, thermal_cycle, progress)
        return Runner(self, self.reference(reference), *options).run()


def _ordered(mechanism: Mechanism, drives: object) -> tuple[Drive, ...]:
    """Return the drives in the order of the actuators; missing, unknown and repeated drives are errors."""
    if isinstance(drives, Drive) or not isinstance(drives, Sequence):
        raise SimulationError(f"drives is a {type(drives).__name__}; give a list with one Drive for every actuator")
    wanted = [actuator.name for actuator in mechanism.actuators]
    if not wanted:
        raise SimulationError(f"robot '{mechanism.name}' has no actuators; declare which joints are driven")
    found: dict[str, Drive] = {}
    for drive in drives:
        require(drive, Drive, "drives: an element")
        if drive.actuator not in wanted:
            raise SimulationError(f"drive '{drive.actuator}' has no actuator; robot '{mechanism.name}' has {', '.join(wanted)}")
        if drive.actuator in found:
            raise SimulationError(f"actuator '{drive.actuator}' has two drives; give one")
        found[drive.actuator] = drive
    missing = [name for name in wanted if name not in found]
    if missing:
        raise SimulationError(f"actuators {', '.join(missing)} have no drive; give a Drive for each")
    return tuple(found[name] for name in wanted)


def _check_controller(controller: object, mechanism: Mechanism) -> None:
    if isinstance(controller, COMPILED):
        owner = getattr(controller, "owner", type(controller).__name__)
        check_preload(owner, getattr(controller, "preload", 0.0), mechanism)
        if isinstance(controller, TaskPID | TaskComputedTorque | TaskCascade):
            bound_space(owner, controller.space, getattr(controller, "model", mechanism))
        return
    lacking = [name for name in ("cycle", "command", "reset", "update") if not hasattr(controller, name)]
    if lacking:
        raise SimulationError(
            f"controller is a {type(controller).__name__} without {', '.join(lacking)}; give a Cascade, PID, ComputedTorque, "
            "OpenLoop, a law in a work space, or an object with cycle, command, reset and update"
        )


CONTROLLERS = ("computed_torque", "feedforward", "pd", "p", "cascade")
BANDWIDTH, DAMPING, CYCLE, STEP = 10.0, 0.7, 1e-3, 2.5e-4  # Hz, -, s, s
POSES = 64  # along a reference
COUNT = {"revolute": 2.0 * math.pi / 2**20, "prismatic": 1e-6}  # rad, m
BANDWIDTHS = (1e-3, 1e4)  # of a standard controller [Hz]


def actuator_inertia(mechanism: Mechanism, q: ArrayLike) -> Array:
    """Return the inertia moved by every actuator, J_i = (k / n) [(A^+)^T M A^+]_ii, at one pose or as mean of several.

    For over-actuated robots (k > n) A^T J A = M on average, so gains from J give the desired bandwidth.
    """
    robot, x = joint_side(mechanism), np.atleast_2d(np.asarray(q, dtype=np.float64))
    inverse = np.linalg.pinv(actuator_jacobian(robot, x))
    own = np.einsum("pik,pij,pjk->k", inverse, mass_matrix(robot, x), inverse) / x.shape[0]
    return np.asarray(inverse.shape[2] / inverse.shape[1] * own)


def standard_controller(
    kind: str,
    model: Mechanism,
    q: ArrayLike,
    *,
    drives: Sequence[Drive] = (),
    bandwidth: float = BANDWIDTH,
    damping: float = DAMPING,
    cycle: float = CYCLE,
) -> PID | ComputedTorque | Cascade:
    """Return a controller of a given bandwidth.

    Parameters
    ----------
    kind : {"computed_torque", "feedforward", "pd", "p", "cascade"}
        Computed torque with the model; PD with the model as feed-forward; PD alone; P alone, which needs damping by friction;
        P-PI cascade with velocity feed-forward, its velocity loop five times as fast. Coupled joints are faster in some
        directions than each alone: a cascade keeps a gain margin of 2 and a phase margin of 30 degrees in all of them, if
        necessary with less bandwidth and a warning.
    model : Mechanism
        Model of the robot, drives included.
    q : array_like, (n,) or (N, n)
        Pose, or poses along the path, whose inertias set the gains.
    drives : sequence of Drive
        Drives for the currents of a cascade; ideal ones when empty.
    bandwidth, damping : float
        Frequency and damping of the error's second-order equation [Hz, -].
    cycle : float
        Cycle time [s]; a cascade's velocity loop runs at a quarter of it.
    """
    choice("controller", kind, CONTROLLERS)
    kp, kd = gains_for(bandwidth, damping)
    if not BANDWIDTHS[0] <= bandwidth <= BANDWIDTHS[1]:
        raise SimulationError(f"bandwidth is {bandwidth:g} Hz; give one from {BANDWIDTHS[0]:g} to {BANDWIDTHS[1]:g} Hz")
    if kind == "computed_torque":
        return ComputedTorque(model, kp, kd, cycle=cycle)
    J = actuator_inertia(model, q)
    if kind in ("pd", "p", "feedforward"):
        many = len(model.actuators) > model.dof
        damped = 0.0 * J if kind == "p" else kd * J
        return PID(kp * J, damped, cycle=cycle, project=many, feedforward=model if kind == "feedforward" else None)
    exact = all(drive.encoder.velocity == "exact" for drive in drives)
    law, reached = cascade_for(spread(joint_side(model), q, J), bandwidth, damping, cycle, exact=exact)
    if reached < bandwidth:
        notify(
            f"robot '{model.name}' has coupled joints, for which a cascade of {bandwidth:g} Hz is too fast at a velocity "
            f"cycle of {law.velocity_cycle:g} s; {reached:.3g} Hz are used (a cycle of {cycle * reached / bandwidth:.2g} s "
            f"allows {bandwidth:g} Hz)",
        )
    ratio = np.array([drive.transmission.ratio for drive in drives] or np.ones(J.size))
    constant = np.array([drive.motor.torque_constant for drive in drives] or np.ones(J.size))
    own = J / (ratio**2 * constant)
    return replace(law, velocity_gain=law.velocity_gain * own, velocity_integral=law.velocity_integral * own)


def standard_machine(
    mechanism: Mechanism,
    q: ArrayLike | None = None,
    *,
    drives: Sequence[Drive] | None = None,
    controller: str = "computed_torque",
    bandwidth: float = BANDWIDTH,
    cycle: float = CYCLE,
    step: float = STEP,
) -> VirtualRobot:
    """Return a virtual robot of a mechanism and optional drives, with the assumptions of this module.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    q : array_like (n,) or (N, n), optional
        Pose, or poses along the path, whose inertias set the gains; home, or zero, when omitted.
    drives : sequence of Drive, optional
        Its drives, as of `read_drives`; ideal ones when omitted. Rotor inertia and friction of a joint in the mechanism
        include those of its drive, so they count once.
    controller : {"computed_torque", "feedforward", "pd", "p", "cascade"}
        See `standard_controller`.
    bandwidth, cycle : float
        Bandwidth of the controller [Hz], and its cycle time [s].
    step : float
        Step of the simulation [s].
    """
    require(mechanism, Mechanism, "mechanism")
    if drives is None:
        known, turned = mechanism, ideal_drives(mechanism)
    else:
        turned, mechanism = tuple(drives), beside_drives(mechanism, drives)
        known = identified_model(mechanism, turned, {}, "joint_torque")[0]
    pose = home_of(mechanism) if q is None else q
    law = standard_controller(controller, known, pose, drives=turned, bandwidth=bandwidth, cycle=cycle)
    if len(turned) < mechanism.dof:  # their encoders do not give all joints
        sensors = Sensors(effort="motor_torque", side="motor")
    else:
        sensors = Sensors(effort="joint_torque", side="joint")
    return VirtualRobot(mechanism, turned, law, sensors=sensors, step=step, name=mechanism.name)


def ideal_drives(mechanism: Mechanism) -> tuple[Drive, ...]:
    """Return drives with the assumptions of this module, one per actuator."""
    joints = {coordinate: joint for joint in mechanism.joints for coordinate in joint.coordinates}
    drives = []
    for actuator in mechanism.actuators:
        (first, *others) = actuator.coupling
        joint = joints[first]
        limit = joint.limits.effort if not others and joint.limits.effort > 0.0 else math.inf
        encoder = Encoder(COUNT["prismatic" if joint.kind == "prismatic" else "revolute"], "joint", velocity="exact")
        gear = Transmission.gear(actuator.ratio)
        drives.append(Drive(actuator.name, Motor(1.0, current_limit=limit / abs(actuator.ratio)), gear, encoder=encoder))
    return tuple(drives)


def poses_of(reference: Reference) -> Array:
    """Return poses at equal time steps along a reference, for setting gains."""
    return reference.sample(np.linspace(0.0, reference.duration, POSES)).q


def home_of(mechanism: Mechanism) -> Array:
    """Return the pose of the description: home for a robot with loops, zero otherwise."""
    if not mechanism.loops:
        return np.zeros(mechanism.dof)
    return np.asarray(mechanism.closure.home[mechanism.closure.independent], dtype=np.float64)


def with_noise(machine: VirtualRobot, motion: object, efforts: float = 0.01, positions: float = 1e-5) -> VirtualRobot:
    """Return a machine whose recorder adds white noise to the log; the controller's measurements are unchanged.

    Parameters
    ----------
    machine : VirtualRobot
        The machine.
    motion : Motion, trajectory or plan
        Motion whose RMS effort scales the noise.
    efforts : float
        Standard deviation of the effort noise over the RMS effort.
    positions : float
        Standard deviation of the positions at the actuator coordinates [rad, m].
    """
    require(machine, VirtualRobot, "machine")
    if not (np.isfinite(efforts) and efforts >= 0.0 and np.isfinite(positions) and positions >= 0.0):
        raise DynidentError(f"noise of efforts is {efforts} and of positions {positions}; give numbers of at least 0")
    quiet = replace(machine, sensors=replace(machine.sensors, effort_noise=0.0, position_noise=0.0))
    effort = quiet.simulate(motion).log.effort if efforts > 0.0 else np.zeros((1, len(machine.drives)))
    turns = np.array([abs(drive.transmission.ratio) for drive in machine.drives])
    spread = positions * (turns if machine.sensors.side == "motor" else np.ones_like(turns))
    size = efforts * np.sqrt(np.mean(effort**2, axis=0))
    return replace(machine, sensors=replace(machine.sensors, effort_noise=size, position_noise=spread))
