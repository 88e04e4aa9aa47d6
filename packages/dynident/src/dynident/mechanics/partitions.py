"""Choice of the motors for the equations of an over-actuated robot, and their noise amplification.

    A = Q R,    Gamma = J_r^-T A^T tau = Q_r^-T Q^T tau,    J_r, Q_r = rows of A and Q of the motors that are kept
    g = 1 / smallest singular value of Q_r >= 1

Q^T tau has the noise of the motors themselves, so g is the factor by which a partition amplifies noise in the worst direction.
Unlike the condition number of J_r, g does not depend on the units of the coordinates. It is infinite where the robot driven
by these motors alone is singular.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import IdentificationError, SignalWarning, require, warn
from dynident.mechanics.actuation import actuator_jacobian
from dynident.mechanics.functions import Motion, coordinates
from dynident.mechanism.mechanism import Mechanism
from dynident.results import Result

AMPLIFIED = 5.0  # largest RMS amplification for least squares with constant weights
MANY = 1000  # largest number of partitions


@dataclass(frozen=True)
class Partition:
    """One choice of as many motors as degrees of freedom."""

    motors: tuple[str, ...]  # Motors of the equations; the torques of the others are projected on them
    typical: float  # RMS noise amplification along the motion
    worst: float  # Largest noise amplification along the motion
    time: float  # Time of the largest amplification [s], or the number of the pose


@dataclass(frozen=True, eq=False)
class Partitions(Result):
    """All choices of motors, best first."""

    robot: str  # Its name
    choices: tuple[Partition, ...]  # Best first, by `Partition.typical`

    @property
    def best(self) -> Partition:
        """The choice with the least noise amplification."""
        return self.choices[0]

    def summary(self) -> str:
        """Return the ranking as a text table. One line per choice; badly conditioned choices are marked."""
        width = max(len(", ".join(choice.motors)) for choice in self.choices)
        lines = [
            f"{self.robot}: noise of the motors is amplified by (1 is best; projection 'gls' has 1 always)",
            f"{'motors':<{width}}  {'typical':>9}  {'worst':>9}  at",
        ]
        for c in self.choices:
            mark = "  badly conditioned" if c.typical > AMPLIFIED else ""
            lines.append(f"{', '.join(c.motors):<{width}}  {c.typical:>9.3g}  {c.worst:>9.3g}  {c.time:.4g}{mark}")
        return "\n".join(lines)


def rank_partitions(mechanism: Mechanism, motion: Motion | ArrayLike) -> Partitions:
    """Rank the motors on which the torques of redundant motors can be projected (case 2 of [Briot2015]) along a motion.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and more actuators.
    motion : Motion or array_like, (N, n)
        Motion, or poses.

    Returns
    -------
    Partitions
        Best first; `Partitions.best.motors` is a ``projection=`` of `Regression.from_log`.

    Examples
    --------
    >>> from dynident.mechanics import rank_partitions
    >>> from dynident_papers.robots import dualv
    >>> rank_partitions(dualv.mechanism(), [[0.0, 0.0, 0.0]]).best.worst < 2.5
    True
    """
    require(mechanism, Mechanism, "mechanism")
    n, k = mechanism.dof, len(mechanism.actuators)
    if k <= n:
        raise IdentificationError(
            f"robot '{mechanism.name}' has {k} actuators for {n} degrees of freedom; a choice needs more actuators"
        )
    q = motion.q if isinstance(motion, Motion) else coordinates(mechanism, motion, "motion")
    t = motion.t if isinstance(motion, Motion) else np.arange(float(len(q)))
    if comb(k, n) > MANY:
        raise IdentificationError(
            f"robot '{mechanism.name}' has {comb(k, n)} choices of {n} among {k} motors, more than {MANY}; use "
            "projection='gls', which needs no choice"
        )
    found = _choices(mechanism, q, t, combinations(range(k), n))
    return Partitions(mechanism.name, tuple(sorted(found, key=lambda choice: (choice.typical, choice.motors))))


def _choices(mechanism: Mechanism, q: Array, t: Array, choices: Iterable[Sequence[int]]) -> list[Partition]:
    """Return the amplification of noise by some choices of motors along a motion."""
    Q = np.linalg.qr(actuator_jacobian(mechanism, q))[0]
    names = [actuator.name for actuator in mechanism.actuators]
    found = []
    for kept in choices:
        g = amplification(Q[:, list(kept)])
        at = int(np.argmax(g))
        found.append(Partition(tuple(names[i] for i in kept), float(np.sqrt(np.mean(g**2))), float(g[at]), float(t[at])))
    return found


def amplification(rows: Array) -> Array:
    """Return 1 / smallest singular value of square rows of Q, (N,)."""
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / np.linalg.svd(rows, compute_uv=False)[:, -1])


def warn_of_projection(mechanism: Mechanism, motion: Motion, motors: tuple[str, ...]) -> None:
    """Warn if the motors of a projection amplify noise strongly, and name better ones."""
    kept = [i for i, actuator in enumerate(mechanism.actuators) if actuator.name in motors]
    own = _choices(mechanism, motion.q, motion.t, [kept])[0]
    if own.typical > AMPLIFIED:
        best = rank_partitions(mechanism, motion).best
        other = f" or {', '.join(best.motors)} (by {best.typical:.2g})" if best.typical < 0.5 * own.typical else ""
        warn(
            f"the projection on {', '.join(motors)} is badly conditioned: it amplifies motor noise by "
            f"{own.typical:.2g} along this motion and by {own.worst:.2g} at t = {own.time:.4g} s; use projection='gls'{other}",
            SignalWarning,
        )
