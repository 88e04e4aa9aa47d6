"""Ready tracking proofs, and the proof of a user's robot: random motions inside its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynident import excitation  # its names load on first use
from dynident.arrays import Array
from dynident.drive import Drive
from dynident.errors import DynidentError
from dynident.friction import FrictionLaw
from dynident.mechanism import Mechanism
from dynident.simulate import VirtualRobot, standard_machine, with_noise
from dynident.trajectory import random_motion
from dynident_lab.testbench.tracking import identify_friction, tracking_proof, training_logs
from dynident_lab.testbench.tracking_result import TrackingProof

BOX = {"rad": 0.4, "m": 0.05}
"""Half-widths of the box of robots without a `BOX`."""
POSES = 30
"""Poses tried for the motions of a user's robot."""


@dataclass(frozen=True, eq=False)
class ProofCase:
    """A proof that is ready to run."""

    machine: VirtualRobot  # Robot with drives, control and sensors
    training: Sequence[Any]  # Motions to identify from
    motions: Mapping[str, Any]  # Motions to compare controllers on
    published: Mapping[str, Sequence[Sequence[float]]] | None = None  # Largest errors of the paper, in 1e-3 of the unit
    efforts: Mapping[str, Sequence[Sequence[float]]] | None = None  # Effort shares of the paper
    options: Mapping[str, Any] = field(default_factory=dict)  # Passed to `dynident_lab.testbench.tracking_proof`
    friction: tuple[str, FrictionLaw] | None = None

    def run(self, seed: int = 0, **options: Any) -> TrackingProof:
        """Run the proof."""
        training, chosen = training_logs(self.machine, list(self.training), seed), {**self.options, **options}
        if self.friction is not None:
            name, law = self.friction
            known = identify_friction(self.machine, training, law, seed=seed)
            chosen["others"] = {name: known, **chosen.get("others", {})}
        return tracking_proof(self.machine, training, self.motions, seed=seed, **chosen)

    def table(self, proof: TrackingProof) -> str:
        """Return the proof as text, with the paper's numbers for comparison."""
        return proof.table(self.published, self.efforts)


def own_case(
    robot: Mechanism,
    described: Mechanism | None = None,
    controller: str = "computed_torque",
    bandwidth: float = 10.0,
    seed: int = 0,
    drives: Sequence[Drive] | None = None,
) -> ProofCase:
    """Return the case of a user's robot: random motions inside its limits, with its drives or ideal ones.

    `robot` is the true robot, such as ``fit.model``; `described` is the prior one, `catalogue_model` when omitted. The
    controller is one of `dynident.simulate.standard_controller` with its bandwidth in Hz.
    """
    assumed = excitation.assume_limits(robot)
    robot, limits = assumed.mechanism, excitation.limits_of(assumed.mechanism, assumed.settings)
    centre, box = _room(limits, seed)
    training = [random_motion(centre, box, seed + i) for i in range(2)]
    motions = {f"motion {i}": random_motion(centre, 0.7 * box, seed + 100 + i) for i in (1, 2)}
    poses = training[0].sample(20.0).q
    if drives is not None:  # drives of held joints are removed
        drives = [drive for drive in drives if drive.actuator in {actuator.name for actuator in robot.actuators}]
    machine = standard_machine(robot, poses, drives=drives, controller=controller, bandwidth=bandwidth)
    law = f"a controller '{controller}' of {bandwidth:g} Hz"
    said = f"ideal drives and {law} are assumed" if drives is None else f"{law} is assumed"
    options: dict[str, Any] = {"notes": (*assumed.notes, said, *machine.model_notes)}
    if described is not None:
        held = [joint.name for joint in described.joints if joint.kind != "fixed" and robot.joint(joint.name).kind == "fixed"]
        before = described.lock({name: np.zeros(len(described.joint(name).coordinates)) for name in held})
        # Drives are known in advance: without their rotors the catalogue would have additional errors.
        options["catalogue"] = before if drives is None else standard_machine(before, poses, drives=drives).model
    return ProofCase(with_noise(machine, training[0]), training, motions, options=options)


def _room(limits: excitation.MotionLimits, seed: int) -> tuple[Array, Array]:
    """Return a pose and half-widths around it in which random motions keep all limits."""
    from dynident.excitation.designs import check_motion  # noqa: PLC0415 - ready cases do not need it

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
    raise DynidentError(f"no pose of {POSES} tried permits a motion within the limits; relax them, or fix joints")
