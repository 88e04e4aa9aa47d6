"""Base parameters: the combinations of standard parameters that a robot's torques can show at all.

    beta = K phi,    K = [1, B] (b, p)

b numbers beta predict every torque, and nothing more can ever be learnt from torques; `regrouping.py` finds K. Back to standard
parameters: the same torques, and the missing directions from a stated rule.

    minimise  (phi - phi0)^T D^-1 (phi - phi0)   subject to   K phi = beta
    phi = phi0 + D K^T (K D K^T)^-1 (beta - K phi0)

"prior": phi0 is the description and D its natural spread; "minimum_norm": phi0 = 0 and D = 1. Neither asks whether a body can
exist; `dynident.identify.physical` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import IdentificationError
from dynident.friction.terms import TERMS, JointTerm, term_of
from dynident.identify.states import random_motion
from dynident.mechanics.dynamics import inverse_dynamics
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters
from dynident.results import Result

Array = NDArray[np.float64]

RECOVERIES = ("prior", "minimum_norm")


@dataclass(frozen=True, eq=False)
class BaseParameters(Result):
    """The identifiable combinations beta = K phi.

    Parameters
    ----------
    mechanism : Mechanism
        Robot they belong to.
    columns : ndarray of int, (b,)
        Standard parameters that lead the combinations; their regressor columns are the base regressor.
    regrouping : ndarray, (b, p)
        K, with K[:, columns] = 1.
    unidentifiable : tuple of str
        Standard parameters without any effect on torques.
    seen : ndarray of bool, (n, b)
        Which base columns each coordinate's torque depends on at all.
    rank_gap : float
        How clear-cut the rank is; large is safe. The smaller of two ratios of the smallest kept to the largest rejected:
        of singular values of the scaled regressor, and of sizes of its columns (a column is compared with those of its unit,
        and left out before scaling when it has no effect).
    """

    mechanism: Mechanism
    columns: NDArray[np.int64]
    regrouping: Array
    unidentifiable: tuple[str, ...]
    seen: NDArray[np.bool_]
    rank_gap: float

    def __repr__(self) -> str:
        of = self.regrouping.shape[1]
        return f"BaseParameters(robot '{self.mechanism.name}': rank {self.rank} of {of}, rank gap {self.rank_gap:.2g})"

    @cached_property
    def rank(self) -> int:
        """Number of base parameters b."""
        return int(self.columns.size)

    @cached_property
    def described(self) -> Array:
        """Values (b,) that the description gives them."""
        values = self.values(self.mechanism.parameters.values)
        values.flags.writeable = False
        return values

    @property
    def leaders(self) -> tuple[str, ...]:
        """Standard parameter that leads each combination."""
        names = self.mechanism.parameters.names
        return tuple(names[c] for c in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each base parameter: the leader's, with an R behind when others are regrouped into it."""
        several = np.count_nonzero(self.regrouping, axis=1) > 1
        return tuple(name + ("R" if more else "") for name, more in zip(self.leaders, several, strict=True))

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each base parameter."""
        units = self.mechanism.parameters.units
        return tuple(units[c] for c in self.columns)

    @property
    def expressions(self) -> tuple[str, ...]:
        """Each base parameter as a readable sum, as in ``Izz_link1R = Izz_link1 + ia_joint1 + 0.0625 m_link2``."""
        names = self.mechanism.parameters.names
        lines = []
        for label, leader, row in zip(self.names, self.columns, self.regrouping, strict=True):
            terms = names[leader]
            for j in np.flatnonzero(row):
                if j != leader:
                    size = f"{abs(row[j]):.6g}"
                    terms += f" {'-' if row[j] < 0 else '+'} {'' if size == '1' else size + ' '}{names[j]}"
            lines.append(f"{label} = {terms}")
        return tuple(lines)

    def values(self, parameters: ArrayLike) -> Array:
        """Return beta = K phi.

        Parameters
        ----------
        parameters : array_like, (p,)
            Standard parameters.

        Returns
        -------
        ndarray, (b,)
            Base parameters.
        """
        return np.asarray(self.regrouping @ np.asarray(parameters, dtype=np.float64))

    def fingerprint(self) -> Array:
        """Return torques (4 n,) that tell this robot's geometry, gravity and terms from another's, whatever its parameters.

        They are those of four fixed random states when the base parameters are 1, 2, ..., b over b.
        """
        if self.mechanism.own_regressor:  # its names are all that is known of it
            return np.zeros(0)
        phi = np.zeros(len(self.mechanism.parameters))
        phi[self.columns] = np.arange(1.0, self.rank + 1.0) / self.rank
        return inverse_dynamics(self.mechanism, random_motion(self.mechanism, 4), phi).ravel()

    def fits(self, fingerprint: ArrayLike) -> bool:
        """Return whether a fingerprint is of these base parameters, to a millionth."""
        mine, other = self.fingerprint(), np.asarray(fingerprint, dtype=np.float64)
        same = mine.shape == other.shape
        return same and bool(np.max(np.abs(mine - other), initial=0.0) <= 1e-6 * np.max(np.abs(mine), initial=0.0))


def columns_of(mechanism: Mechanism, bodies: Sequence[str]) -> list[int]:
    """Return the standard parameters of some bodies."""
    for body in bodies:
        if body not in mechanism.tree.bodies:
            raise IdentificationError(
                f"body '{body}' has no parameters of its own in robot '{mechanism.name}'; add it with separate=True"
            )
    inertial = mechanism.tree.inertias.size
    return [i for i, owner in enumerate(mechanism.parameters.owners[:inertial]) if owner in bodies]


def recover_standard(base: BaseParameters, beta: Array, combinations: Array, recovery: str = "prior") -> Parameters:
    """Return standard parameters that give the estimated base parameters.

    Parameters
    ----------
    base : BaseParameters
        Base parameters.
    beta : ndarray, (b,)
        Their estimated values.
    combinations : ndarray, (k, b)
        E: what is known of them is E beta; the unit matrix when all were estimated.
    recovery : {"prior", "minimum_norm"}
        Rule for the directions that torques do not show.

    Returns
    -------
    result : Parameters
        Standard parameters with E K phi = E beta.
    """
    if recovery not in RECOVERIES:
        raise IdentificationError(f"recovery is '{recovery}'; it must be one of {', '.join(RECOVERIES)}")
    prior = base.mechanism.parameters
    K = combinations @ base.regrouping
    phi0 = prior.values if recovery == "prior" else np.zeros(len(prior))
    spread = natural_spread(base.mechanism) if recovery == "prior" else np.ones(len(prior))
    root = K * spread  # K D^(1/2)
    x, _, rank, singular = np.linalg.lstsq(root, combinations @ beta - K @ phi0, rcond=None)
    phi = phi0 + spread * x
    if rank:
        # Rounding leaves an error of up to p eps cond(K D^(1/2)) ||x|| in every x: a smaller parameter is zero, and its sign
        # (of a mass, say) would depend on the processor. A prior value that the data left alone is exact and stays.
        error = len(prior) * np.finfo(float).eps * singular[0] / singular[rank - 1] * np.linalg.norm(x)
        phi = np.where((np.abs(phi) <= spread * error) & (phi != phi0), 0.0, phi)
    return prior.replace(phi, provenance=f"identified, {recovery} recovery")


def natural_spread(mechanism: Mechanism) -> Array:
    """Return how much each prior value may plausibly be off: mass m, first moment m r, inertia m r^2, r the radius of gyration.

    A body without a prior gets the mean mass of those that have one, and a size from its robot's geometry when there is none.
    """
    phi = mechanism.tree.inertias.reshape(-1, 10)
    mass = phi[:, 0]
    gyration = 0.5 * (phi[:, 4] + phi[:, 7] + phi[:, 9])  # tr(Sigma) = tr(I)/2
    known = (mass > 0.0) & (gyration > 0.0)
    typical = float(np.mean(mass[known])) if known.any() else 1.0
    length = float(np.sqrt(np.mean(gyration[known] / mass[known]))) if known.any() else _size(mechanism)
    m = np.where(known, mass, typical)
    r = np.where(known, np.sqrt(np.where(known, gyration, 1.0) / m), length)
    spread = np.empty_like(phi)
    spread[:, 0], spread[:, 1:4], spread[:, 4:] = m, (m * r)[:, None], (m * r**2)[:, None]
    joint_terms = np.full(len(mechanism.parameters) - spread.size, typical * length**2)
    return np.concatenate([spread.ravel(), joint_terms])


def joint_terms(mechanism: Mechanism) -> dict[int, JointTerm | None]:
    """Return the joint term that each parameter behind the bodies is, by its number: coulomb.fc of a law is what fc is.

    A breakaway friction fs is a Coulomb friction too; other parameters of laws and forces are no terms.
    """
    names = mechanism.parameters.names
    laws = {
        own.name: own.name.removesuffix(f"_{own.coordinate}").rpartition(".")[2]
        for own in mechanism.own_columns
        if own.coordinate
    }
    alike = {"fs": "fc"}
    return {
        k: TERMS.get(alike.get(laws[name], laws[name])) if (name := names[k]) in laws else term_of(name)
        for k in range(mechanism.tree.inertias.size, len(names))
    }


def _size(mechanism: Mechanism) -> float:
    """Return how far the mass of a body is from its origin, as the distances between joints suggest [m]."""
    distances = np.linalg.norm(mechanism.tree.arrays.translation, axis=1)
    distances = distances[distances > 0.0]
    return 0.5 * float(np.mean(distances)) if distances.size else 0.1
