"""Parameters identifiable from a joint's torque, by two factorisations of its regressor [Pagani2022, section 1.3].

    Y_j = Q R        parameter k is seen by joint j when |r_kk| is above a threshold (1e-4)
    Y_j N^-1 = U S V^T        columns of unit length; where s_1 / s_n is above a limit (100), parameters that stand out in the
                              last column of V depend on each other, and the last of them is dropped

`base_parameters` selects the estimated parameters, for all joints together with the regrouping; this is only a report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.mechanics import Motion, MotionLike, regressor
from dynident.mechanism import Mechanism
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SAMPLES = 400  # random states when no motion is given
STANDS_OUT = 0.5  # share of the largest entry of V's last column
INERTIAL = 10  # parameters of a body


@dataclass(frozen=True, eq=False)
class JointReduction(Result):
    """Singular values of one joint's own parameters, before and after dependent ones were dropped."""

    joint: str  # Joint
    names: tuple[str, ...]  # Parameters of its own body after QR, then friction and motor inertia of the joint
    singular_values: Array  # Singular values of the normalised columns, descending
    V: Array  # Right singular vectors, one per column
    dropped: tuple[str, ...]  # Parameters that were dropped, in order
    condition: tuple[float, ...]  # Condition number before each drop, and after the last
    derived: ClassVar[tuple[str, ...]] = ("kept",)

    @property
    def kept(self) -> tuple[str, ...]:
        """Identified parameters."""
        return tuple(name for name in self.names if name not in self.dropped)

    def summary(self) -> str:
        """Return the joint as text: singular values, condition numbers, dropped and kept parameters."""
        values = " ".join(f"{s:.4g}" for s in self.singular_values)
        chain = " -> ".join(f"{c:.5g}" for c in self.condition)
        last = sorted(zip(np.abs(self.V[:, -1]), self.names, strict=True), reverse=True)[:3]
        stands = ", ".join(f"{name} {x:.4f}" for x, name in last)
        return (
            f"joint {self.joint}: singular values {values}\n  condition {chain}; last direction {stands}; dropped "
            f"{', '.join(self.dropped) or 'none'}; kept {', '.join(self.kept)}"
        )

    def plot(self) -> Figure:
        """Draw the singular values."""
        from dynident.figures import BLUE, label, one_axes  # noqa: PLC0415 - matplotlib is an extra

        figure, axes = one_axes(7.2, 3.2, "number", "singular value", f"{label(self.joint)}: columns of unit length")
        axes.semilogy(np.arange(1, self.singular_values.size + 1), np.maximum(self.singular_values, 1e-20), "o", color=BLUE)
        return figure


@dataclass(frozen=True, eq=False)
class Reduction(Result):
    """Parameters identifiable from the torque of each joint."""

    mechanism: str  # Robot
    names: tuple[str, ...]  # Inertial parameters, body by body
    diagonal: Array  # Diagonal of R for every joint's regressor; zero columns have zero
    threshold: float  # Threshold of the diagonal
    limit: float  # Limit of the condition number
    joints: tuple[JointReduction, ...]  # Own parameters of every joint
    derived: ClassVar[tuple[str, ...]] = ("counts", "selected")

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which parameter (p) is seen by which joint (n)."""
        return np.asarray(np.abs(self.diagonal) > self.threshold)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of parameters seen by each joint."""
        return tuple(int(x) for x in self.seen.sum(axis=0))

    @property
    def selected(self) -> int:
        """Number of identified parameters of all joints."""
        return sum(len(joint.kept) for joint in self.joints)

    def summary(self) -> str:
        """Return the report as text: the diagonals as a table, then one paragraph per joint."""
        head = "".join(f"{joint.joint[:12]:>13}" for joint in self.joints)
        lines = [f"{self.mechanism}: diag(R) of every joint's regressor, zero below {self.threshold:g}", f"  {'':<14}{head}"]
        for name, row in zip(self.names, self.diagonal, strict=True):
            lines.append(f"  {name:<14}" + "".join(f"{x:>13.4f}" if abs(x) > self.threshold else f"{x:>13.1e}" for x in row))
        lines.append(f"  {'seen':<14}" + "".join(f"{count:>13}" for count in self.counts))
        return "\n".join([*lines, *(joint.summary() for joint in self.joints), f"{self.selected} parameters are selected"])

    def plot(self) -> Figure:
        """Draw the diagonals of R, one line per joint."""
        from dynident.figures import label, one_axes  # noqa: PLC0415 - matplotlib is an extra

        figure, axes = one_axes(9.0, 3.6, "parameter", "|diag(R)|", f"{label(self.mechanism)}: what each joint sees")
        for j, joint in enumerate(self.joints):
            x = np.arange(1, len(self.names) + 1)
            axes.semilogy(x, np.maximum(np.abs(self.diagonal[:, j]), 1e-20), ".", markersize=4, label=label(joint.joint))
        axes.axhline(self.threshold, color="black", linewidth=0.7)
        axes.legend(frameon=False, fontsize=8, ncols=3)
        return figure


def reduction(
    mechanism: Mechanism, motion: MotionLike | None = None, threshold: float = 1e-4, limit: float = 100.0, seed: int = 0
) -> Reduction:
    """Report which parameters are seen by which joint (QR) and which of a joint's own ones depend on each other (SVD).

    Parameters
    ----------
    mechanism : Mechanism
        Tree whose joints each have one coordinate and carry one body, with the joint terms that are to be identified.
    motion : Motion or (q, v, a), optional
        Motion whose regressor is factorised; random states when omitted.
    threshold : float
        Diagonal entries of R below it are zero; 1e-4 in [Pagani2022].
    limit : float
        Largest accepted condition number; 100 in [Pagani2022].
    seed : int
        Seed of the random states.

    Returns
    -------
    Reduction
        Both reports.
    """
    n = mechanism.dof
    if mechanism.loops or len(mechanism.joint_names) < n or len(mechanism.coordinate_names) != len(mechanism.tree.coordinates):
        raise IdentificationError(f"the reduction of '{mechanism.name}' needs a tree without couplings; use base_parameters")
    if not threshold > 0.0 or not limit > 1.0:
        raise IdentificationError(f"threshold = {threshold} and limit = {limit}; give one above 0 and one above 1")
    if motion is None:
        generator = np.random.default_rng(seed)
        q, v, a = (generator.uniform(-np.pi, np.pi, (SAMPLES, n)) for _ in range(3))
        motion = Motion(np.arange(float(SAMPLES)), q, v, a)
    Y, names = regressor(mechanism, motion), mechanism.parameters.names
    owners = mechanism.parameters.owners
    bodies = [i for i, owner in enumerate(owners) if owner not in mechanism.coordinate_names]
    diagonal = np.zeros((len(bodies), n))
    for j in range(n):
        columns = Y[:, j][:, bodies]
        some = np.flatnonzero(np.any(columns != 0.0, axis=0))
        diagonal[some, j] = np.diag(np.linalg.qr(columns[:, some], mode="r"))
    carried = [bodies[k * INERTIAL : (k + 1) * INERTIAL] for k in range(len(bodies) // INERTIAL)]
    joints = []
    for j, joint in enumerate(mechanism.coordinate_names):
        own = [i for i in carried[j] if abs(diagonal[bodies.index(i), j]) > threshold]
        terms = [i for i, owner in enumerate(owners) if owner == joint and np.any(Y[:, j, i] != 0.0)]
        rotors = [i for i in terms if names[i].startswith("ia")]
        columns_ = [*own, *(i for i in terms if i not in rotors), *rotors]
        joints.append(_reduced(joint, Y[:, j][:, columns_], tuple(names[i] for i in columns_), limit))
    return Reduction(mechanism.name, tuple(names[i] for i in bodies), diagonal, threshold, limit, tuple(joints))


def _reduced(joint: str, columns: Array, names: tuple[str, ...], limit: float) -> JointReduction:
    """Drop dependent columns of one joint, the last of them first, until the condition number is accepted."""
    X = columns / np.linalg.norm(columns, axis=0)
    kept, dropped, conditions = list(range(len(names))), list[str](), list[float]()
    first: tuple[Array, Array] | None = None
    while True:
        _, s, Vt = np.linalg.svd(X[:, kept], full_matrices=False)
        first = first or (s, Vt.T)
        conditions.append(float(s[0] / max(s[-1], np.finfo(float).tiny)))
        if conditions[-1] <= limit or len(kept) == 1:
            return JointReduction(joint, names, *first, tuple(dropped), tuple(conditions))
        last = np.abs(Vt[-1])
        worst = int(np.flatnonzero(last > STANDS_OUT * last.max())[-1])
        dropped.append(names[kept.pop(worst)])
