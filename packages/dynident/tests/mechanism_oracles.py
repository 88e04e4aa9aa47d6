"""Independent plain computations that the mechanism tests compare with: no kernels, no tree arrays."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dynident.errors import DescriptionWarning
from dynident.mechanics import Motion, inverse_dynamics
from dynident.mechanism import Joint, Mechanism, Parameters, Placement
from dynident.mechanism.elements import rotation_exp


def moved_joint(joint: Joint, x: np.ndarray) -> Placement:
    """Pose of a child frame in its joint frame by Rodrigues' formula, joint kind by joint kind."""
    if joint.kind in ("revolute", "continuous"):
        return Placement(rotation_exp(joint.axis * x[0]))
    if joint.kind == "prismatic":
        return Placement(np.eye(3), joint.axis * x[0])
    if joint.kind == "universal":
        return Placement(rotation_exp(joint.axis * x[0]) @ rotation_exp(joint.axis2 * x[1]))
    if joint.kind == "planar":
        first, second = joint.plane
        return Placement(rotation_exp(joint.axis * x[2]), first * x[0] + second * x[1])
    if joint.kind == "spherical":
        return Placement(rotation_exp(x))
    if joint.kind == "free":
        return Placement(rotation_exp(x[3:]), x[:3])
    return Placement()


def loop_gaps(mechanism: Mechanism, q: np.ndarray) -> np.ndarray:
    """By how much a tree configuration (n_tree,) misses the loops and couplings, from the poses of the links alone."""
    named = dict(zip(mechanism.tree.coordinates, q, strict=True))
    links = poses(mechanism, named)
    gaps = []
    for loop in mechanism.loops:
        A, B = links[loop.body_a] @ loop.placement_a, links[loop.body_b] @ loop.placement_b
        apart, across = A.translation - B.translation, np.linalg.svd(loop.axis[None])[2][1:]
        if loop.kind in ("prismatic", "weld"):
            gaps += [A.rotation[:, i] @ B.rotation[:, (i + 1) % 3] for i in range(3)]
        if loop.kind == "prismatic":
            gaps += [apart @ A.rotation @ side for side in across]
        else:
            gaps += apart.tolist()
        partners = {"revolute": across, "universal": loop.axis2[None]}.get(loop.kind, ())
        gaps += [(A.rotation @ loop.axis) @ (B.rotation @ other) for other in partners]
    for coupling in mechanism.couplings:
        gaps.append(named[coupling.joint] - sum(c * named[name] for name, c in coupling.of.items()) - coupling.offset)
    return np.array(gaps)


def poses(mechanism: Mechanism, q: Mapping[str, float]) -> dict[str, Placement]:
    """Pose of every link in the root, by walking the joints; q by tree coordinate, 0 where absent."""
    found = {mechanism.root: Placement()}
    waiting = list(mechanism.joints)
    while waiting:
        joint = next(j for j in waiting if j.parent in found)
        waiting.remove(joint)
        x = [q.get(c, 0.0) for c in joint.coordinates]
        found[joint.child] = found[joint.parent] @ joint.placement @ moved_joint(joint, np.array(x))
    return found


def from_pseudo_inertia(P: np.ndarray) -> np.ndarray:
    """Ten inertial parameters from the pseudo-inertia: I = tr(Sigma) 1 - Sigma."""
    sigma = P[:3, :3]
    inertia = np.trace(sigma) * np.eye(3) - sigma
    return np.concatenate([[P[3, 3]], P[:3, 3], inertia[np.triu_indices(3)]])


def possible_body(theta: np.ndarray) -> np.ndarray:
    """Ten inertial parameters from log-Cholesky ones: any ten numbers give a body that is physically possible."""
    a, d1, d2, d3, s12, s23, s13, *t = theta
    U = np.array(
        [[np.exp(d1), s12, s13, t[0]], [0.0, np.exp(d2), s23, t[1]], [0.0, 0.0, np.exp(d3), t[2]], [0.0, 0.0, 0.0, 1.0]]
    )
    return from_pseudo_inertia(np.exp(2.0 * a) * U @ U.T)


def random_parameters(mechanism: Mechanism, seed: int = 0) -> Parameters:
    """Random physically possible bodies and random joint terms.

    Links fixed to others keep their inertia, so the random group is added to the prior one when that has mass.
    """
    rng = np.random.default_rng(seed)
    prior = mechanism.parameters
    values = rng.normal(size=len(prior))
    for i in range(len(mechanism.tree.bodies)):
        body = possible_body(rng.normal(scale=0.3, size=10) + np.array([0.3, -1, -1, -1, 0, 0, 0, 0, 0, 0]))
        values[10 * i : 10 * i + 10] = body + prior.values[10 * i : 10 * i + 10]
    return prior.replace(values, provenance="random")


def random_motion(mechanism: Mechanism, samples: int = 20, seed: int = 1) -> Motion:
    rng = np.random.default_rng(seed)
    shape = (samples, mechanism.dof)
    return Motion(np.arange(samples) * 0.01, *(rng.uniform(-1.0, 1.0, shape) for _ in range(3)))


def torque_difference(one: Mechanism, two: Mechanism, parameters: Parameters | None = None, seed: int = 1) -> float:
    """Largest relative difference of the inverse dynamics of two robots, columns matched by name."""
    motion = random_motion(one, seed=seed)
    order = [one.coordinate_names.index(name) for name in two.coordinate_names]
    a = inverse_dynamics(one, motion, parameters)
    b = inverse_dynamics(two, Motion(motion.t, motion.q[:, order], motion.v[:, order], motion.a[:, order]))
    return float(np.max(np.abs(a[:, order] - b)) / np.max(np.abs(a)))


def quietly(reader, *args, **kwargs):
    """Call a reader without its DescriptionWarnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        return reader(*args, **kwargs)


def shared_urdfs() -> list[Path]:
    """URDF files of the shared data, an empty list where the folder is absent."""
    folder = Path(os.environ.get("DYNIDENT_DATA", Path(__file__).parents[4] / "shared" / "data"))
    return sorted(folder.glob("*/*.urdf"))
