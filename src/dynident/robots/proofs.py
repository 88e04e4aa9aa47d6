"""What the ready machines are proved on: motions to identify from, other motions to compare controllers on, published numbers.

DualV runs Fourier motions of its platform in a box around its home; two faster ones stand for the two trajectories of
[Briot2015, Table 4], which are not printed. The RRR robot writes letters ([Kostic2002, section V]; path and speeds are
our own). Every other machine moves through a box around the pose it starts from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident import robots
from dynident.control import Cascade
from dynident.drive import Drive
from dynident.errors import DynidentError
from dynident.excitation import MotionLimits, assume_limits, check_motion, limits_of
from dynident.friction import FrictionLaw, Sigmoid
from dynident.mechanics import Motion
from dynident.mechanism import Mechanism, effort_units
from dynident.robots import cft, dualv, rrr
from dynident.simulate import VirtualRobot, home_of, standard_machine, with_noise
from dynident.testbench import TrackingProof, identify_friction, identify_machine, tracking_proof
from dynident.trajectory import Fourier, Trajectory, joint_motion, write

Array = NDArray[np.float64]

BOX = {"rad": 0.4, "m": 0.05}
"""Half-widths of the box of robots without a `BOX` of their own."""
TOOLS = {"five_bar": "platform", "mast": "platform"}
"""Link that is the tool, of machines with loops."""
REPAIR = 0.2
"""Inertia added to q4 and q5 of CFT [kg m^2] that makes its mass matrix positive definite everywhere."""
POSES = 30
"""Poses that are tried for the motions of a robot of one's own."""
FASTEST = 0.35
"""Period of DualV's two trajectories [s]: about the shortest that its motors allow (115 of 127 N m)."""


@dataclass(frozen=True, eq=False)
class ProofCase:
    """A proof that can be run.

    Parameters
    ----------
    machine : VirtualRobot
        Robot with drives, control and sensors.
    training : list
        Motions to identify from.
    motions : mapping of str to motion
        Motions to compare controllers on.
    published : mapping, optional
        Largest errors of the paper, in 1e-3 of the unit.
    efforts : mapping, optional
        Effort shares of the paper.
    options : mapping
        Passed to `dynident.testbench.tracking_proof`.
    second : (str, projection), optional
        Name and projection of a second identification from the same logs, whose model is tried too.
    friction : (str, FrictionLaw), optional
        Name and friction law of another identification from the same logs, tried too.
    """

    machine: VirtualRobot
    training: Sequence[Any]
    motions: Mapping[str, Any]
    published: Mapping[str, Sequence[Sequence[float]]] | None = None
    efforts: Mapping[str, Sequence[Sequence[float]]] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    second: tuple[str, str | Sequence[str]] | None = None
    friction: tuple[str, FrictionLaw] | None = None

    def run(self, seed: int = 0, **options: Any) -> TrackingProof:
        """Run the proof.

        Parameters
        ----------
        seed : int
            Seed of all noise.
        **options
            Passed to `dynident.testbench.tracking_proof`.

        Returns
        -------
        TrackingProof
            What came out.
        """
        training, chosen = list(self.training), {**self.options, **options}
        if self.second is not None:
            name, projection = self.second
            fit = identify_machine(self.machine, training, projection=projection, seed=seed)
            chosen["others"] = {name: fit.identified, **chosen.get("others", {})}
        if self.friction is not None:
            name, law = self.friction
            known = identify_friction(self.machine, training, law, seed=seed)
            chosen["others"] = {name: known, **chosen.get("others", {})}
        return tracking_proof(self.machine, training, self.motions, seed=seed, **chosen)

    def table(self, proof: TrackingProof) -> str:
        """Return the proof as text, with the paper's numbers beside it.

        Parameters
        ----------
        proof : TrackingProof
            What came out.

        Returns
        -------
        str
            Lines.
        """
        return proof.table(self.published, self.efforts)


def random_motion(
    centre: ArrayLike, box: ArrayLike, seed: int = 0, duration: float = 10.0, harmonics: int = 5, periods: int = 1
) -> Trajectory:
    """Return a random Fourier motion from rest to rest that fills a box around a pose.

    Parameters
    ----------
    centre : array_like, (n,)
        Where it starts and ends.
    box : array_like, (n,)
        Largest distance from there.
    seed : int
        Seed of the coefficients.
    duration : float
        One period [s].
    harmonics : int
        Number of harmonics.
    periods : int
        How many periods.

    Returns
    -------
    Trajectory
        The motion.
    """
    start, width = np.asarray(centre, dtype=np.float64), np.asarray(box, dtype=np.float64)
    if start.shape != width.shape or start.ndim != 1 or not np.all(width > 0.0):
        raise DynidentError(f"box is {width.tolist()} around {start.tolist()}; give one half-width above zero per coordinate")
    family = Fourier(1.0 / duration, harmonics, rest=True, periods=periods)
    draw = np.random.default_rng(seed).normal(size=(family.size, start.size))
    shape = family.basis(np.linspace(0.0, duration, 400)) @ draw
    shape0 = family.basis(np.zeros(1)) @ draw
    scale = width / np.max(np.abs(shape - shape0), axis=0)
    return Trajectory(family, (scale * draw + np.outer(family.constant(), start - scale * shape0[0])).T)


def writing(
    text: str = "om y", height: float = 0.06, speed: float = 0.4, acceleration: float = 2.0, rate: float = 500.0
) -> Motion:
    """Return the joint motion of the RRR robot that writes letters in a plane of constant y [Kostic2002, section V]."""
    task = write(text, height, (0.1, -0.4, 0.5), speed=speed, acceleration=acceleration)
    return joint_motion(rrr.mechanism(), task.sample(rate), posture="front up")


def proof_case(name: str, machine: VirtualRobot | None = None, seed: int = 0) -> ProofCase:
    """Return what a machine is proved on: motions to identify from, others to compare controllers on, published numbers.

    Parameters
    ----------
    name : str
        One of `ROBOTS`; with a machine any name.
    machine : VirtualRobot, optional
        The machine; `ready_machine` of the name when omitted.
    seed : int
        Seed of the random motions.

    Returns
    -------
    ProofCase
        The proof, not yet run.
    """
    machine = ready_machine(name) if machine is None else machine
    make = {"dualv": _dualv, "rrr": _rrr}.get(name)
    case = _other(name, machine, seed) if make is None else make(machine, seed)
    notes = getattr(getattr(robots, name), "NOTES", ()) if name in robots.ROBOTS else ()
    return replace(case, options={"notes": notes, **case.options})


def own_case(
    robot: Mechanism,
    described: Mechanism | None = None,
    controller: str = "computed_torque",
    bandwidth: float = 10.0,
    seed: int = 0,
    drives: Sequence[Drive] | None = None,
) -> ProofCase:
    """Return what a robot of one's own is proved on: random motions inside its limits, with its drives or ideal ones.

    Parameters
    ----------
    robot : Mechanism
        The robot as it counts as true, such as ``fit.identified``.
    described : Mechanism, optional
        What was known before, such as the description; `catalogue_model` of the robot when omitted.
    controller : str
        See `dynident.simulate.standard_controller`.
    bandwidth : float
        Of the controller [Hz].
    seed : int
        Seed of motions and noise.
    drives : sequence of Drive, optional
        As of `dynident.simulate.read_drives`; ideal ones when omitted.

    Returns
    -------
    ProofCase
        The case; what was assumed is among its notes.
    """
    assumed = assume_limits(robot)
    robot, limits = assumed.mechanism, limits_of(assumed.mechanism, assumed.settings)
    centre, box = _room(limits, seed)
    training = [random_motion(centre, box, seed + i) for i in range(2)]
    motions = {f"motion {i}": random_motion(centre, 0.7 * box, seed + 100 + i) for i in (1, 2)}
    poses = training[0].sample(20.0).q
    if drives is not None:  # those of joints that are held have nothing to turn
        drives = [drive for drive in drives if drive.actuator in {actuator.name for actuator in robot.actuators}]
    machine = standard_machine(robot, poses, drives=drives, controller=controller, bandwidth=bandwidth)
    law = f"a controller '{controller}' of {bandwidth:g} Hz"
    said = f"ideal drives and {law} are assumed" if drives is None else f"{law} is assumed"
    options: dict[str, Any] = {"notes": (*assumed.notes, said, *machine.model_notes)}
    if described is not None:
        held = [joint.name for joint in described.joints if joint.kind != "fixed" and robot.joint(joint.name).kind == "fixed"]
        before = described.lock({name: np.zeros(len(described.joint(name).coordinates)) for name in held})
        # Drives are known before too: without their rotors a catalogue would look worse than it is.
        options["catalogue"] = before if drives is None else standard_machine(before, poses, drives=drives).model
    return ProofCase(with_noise(machine, training[0]), training, motions, options=options)


def _room(limits: MotionLimits, seed: int) -> tuple[Array, Array]:
    """Return a pose and half-widths around it in which random motions keep all limits."""
    low, high = limits.lower, limits.upper
    generator = np.random.default_rng(seed)
    for k in range(POSES):
        centre = 0.5 * (low + high) + (k > 0) * generator.uniform(-0.5, 0.5, low.size) * (high - low)
        wide = np.minimum.reduce([np.full(low.size, BOX["rad"]), 0.9 * (high - centre), 0.9 * (centre - low)])
        wide = np.minimum(wide, 0.3 * np.where(np.isfinite(limits.velocity), limits.velocity, np.inf))
        if not np.all(wide > 1e-3):
            continue
        for share in (1.0, 0.5, 0.25, 0.1):
            curves = [random_motion(centre, share * wide, seed + i) for i in (0, 1, 101, 102)]
            if all(min(check_motion(limits, curve, 50.0).values(), default=1.0) > 0.0 for curve in curves):
                return centre, share * wide
    raise DynidentError(f"no pose of {POSES} tried leaves room for a motion inside the limits; relax them, or hold joints")


def _dualv(machine: VirtualRobot, seed: int) -> ProofCase:
    """Two trajectories as fast as the motors allow; identified projected on the platform (case 1) and on three motors."""
    home = np.zeros(3)
    training = [random_motion(home, dualv.BOX, seed + i, 1.0) for i in range(4)]
    motions = {f"trajectory {i}": random_motion(home, dualv.BOX, seed + 100 + i, FASTEST, periods=2) for i in (1, 2)}
    options = {"projection": "independent", "effort_unit": "N m", "tool": "platform", "shafts": True}
    case_2 = ("identified, case 2", ("motor_1", "motor_2", "motor_3"))
    return ProofCase(with_noise(machine, training[0], 0.1), training, motions, dualv.TABLE_4, None, options, case_2)


def _rrr(machine: VirtualRobot, seed: int) -> ProofCase:
    """The writing task; identified with viscous and Coulomb friction, and with the friction law of [Kostic2002]."""
    task = writing()
    training = [random_motion(task.q[0], (0.9, 0.7, 0.9), seed + i, 8.0) for i in range(2)]
    ratio = tuple(n / c for n, c in zip(rrr.RMS_FEEDFORWARD, rrr.RMS_FEEDBACK, strict=True))
    efforts: dict[str, list[Sequence[float]]] = {
        "model's share": [rrr.RMS_FEEDFORWARD],
        "feedback's share": [rrr.RMS_FEEDBACK],
        "ratio": [ratio],
    }
    return ProofCase(
        with_noise(machine, training[0]),
        training,
        {"writing 'om y'": task},
        efforts=efforts,
        options={"effort_unit": "V"},
        friction=("identified, sigmoid friction", Sigmoid(2)),
    )


def _other(name: str, machine: VirtualRobot, seed: int) -> ProofCase:
    """Motions through a box around the pose the machine starts from."""
    law = machine.controller
    if isinstance(law, Cascade):  # without it the lag of the position loop hides what a model can do
        machine = replace(machine, controller=replace(law, velocity_feedforward=1.0))
    m = machine.mechanism
    units = effort_units(m)
    usual = [BOX["m" if units[name] == "N" else "rad"] for name in m.coordinate_names]
    box = np.array(getattr(getattr(robots, name, None), "BOX", usual))
    centre = home_of(m)
    if name == "cft":  # at zero its arm is stretched
        pose = np.atleast_2d(cft.ASSUMPTIONS["pose"].value)
        centre, box = cft.cartesian_reference([0.0], pose, 0.0 * pose, 0.0 * pose).q[0], 0.5 * box
    training = [random_motion(centre, box, seed + i) for i in range(2)]
    motions = {f"motion {i}": random_motion(centre, 0.7 * box, seed + 100 + i, 6.0) for i in (1, 2)}
    options = {"tool": TOOLS[name]} if name in TOOLS else {}
    return ProofCase(with_noise(machine, training[0]), training, motions, options=options)


def ready_machine(name: str, added_inertia: float | None = None) -> VirtualRobot:
    """Return the machine of a robot of the literature, able to run anywhere in its workspace.

    Parameters
    ----------
    name : str
        One of `ROBOTS`.
    added_inertia : float, optional
        Inertia added to q4 and q5 of ``cft`` [kg m^2]; 0.2 when omitted, as its published numbers alone make the mass matrix
        indefinite on a third of the workspace. Other machines take none.

    Returns
    -------
    VirtualRobot
        The machine with its own drives and controller.
    """
    if name not in robots.ROBOTS:
        raise DynidentError(f"there is no machine '{name}'; machines are {', '.join(robots.ROBOTS)}")
    if name != "cft" and added_inertia is not None:
        raise DynidentError(f"added inertia is {added_inertia:g}, but '{name}' needs none; it is for 'cft' only")
    options = {"added_inertia": REPAIR if added_inertia is None else added_inertia} if name == "cft" else {}
    machine: VirtualRobot = getattr(robots, name).machine(**options)
    return machine
