"""Base parameters: the identifiable combinations of a robot's standard parameters.

    beta = K phi,    K = [1, B] (b, p)

The b numbers beta determine every torque, and torques determine no more than beta. Recovered standard parameters give the
same torques; a stated rule sets the unidentifiable directions.

    minimise  (phi - phi0)^T D^-1 (phi - phi0)   subject to   K phi = beta
    phi = phi0 + D K^T (K D K^T)^-1 (beta - K phi0)

"prior": phi0 is the description and D its natural spread; "minimum_norm": phi0 = 0 and D = 1. Neither enforces physical
consistency; see `dynident.identify.posterior.physical`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import ConditionWarning, IdentificationError, require, warn
from dynident.friction.terms import TERMS, JointTerm, term_of
from dynident.identify.regression.rows import Rows, law_signals
from dynident.mechanics.closure import random_closed_motion
from dynident.mechanics.functions import Motion, weighted_regressor
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.tree import FIXED
from dynident.parallel import one_blas_thread
from dynident.results import Result


@dataclass(frozen=True, eq=False)
class BaseParameters(Result):
    """The identifiable combinations beta = K phi."""

    mechanism: Mechanism  #: Robot of the parameters
    #: (b,), standard parameters that lead the combinations; their regressor columns are the base regressor
    columns: NDArray[np.int64]
    regrouping: Array  #: (b, p), K, with K[:, columns] = 1
    unidentifiable: tuple[str, ...]  #: Standard parameters without any effect on torques
    seen: NDArray[np.bool_]  #: (n, b), mask of the base columns in each coordinate's torque
    #: Margin of the rank decision; large is safe. The smaller of two ratios of the smallest kept to the largest rejected: of
    #: singular values of the scaled regressor, and of sizes of its columns (a column is compared with those of its unit, and
    #: left out before scaling when it has no effect).
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
        """Described values (b,)."""
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
        """Name of each base parameter: its leader, with suffix R if others are regrouped into it."""
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
        """Return beta = K phi (b,) of standard parameters (p,)."""
        return np.asarray(self.regrouping @ np.asarray(parameters, dtype=np.float64))

    def fingerprint(self) -> Array:
        """Return torques (4 n,) that identify the robot's geometry, gravity and terms, independent of its parameters.

        They are those of four fixed random states when the base parameters are 1, 2, ..., b over b.
        """
        if self.mechanism.own_regressor:  # only its names are known
            return np.zeros(0)
        phi = np.zeros(len(self.mechanism.parameters))
        phi[self.columns] = np.arange(1.0, self.rank + 1.0) / self.rank
        n, motion = self.mechanism.dof, random_motion(self.mechanism, 4)
        if "load" in (wanted := law_signals(self.mechanism)):  # of one unit
            signals = dict.fromkeys(wanted, np.ones((4, len(self.mechanism.friction))))
            W, _ = Rows(self.mechanism).equations(motion, None, np.arange(phi.size), signals=signals)
            return np.asarray(np.einsum("npt,p->tn", W, phi).ravel())
        # The code of these rows exists already: they found the base parameters.
        return (weighted_regressor(self.mechanism, motion, np.broadcast_to(np.eye(n), (len(motion), n, n))) @ phi).ravel()

    def fits(self, fingerprint: ArrayLike) -> bool:
        """Return whether a fingerprint matches these base parameters to a relative 1e-6."""
        mine, other = self.fingerprint(), np.asarray(fingerprint, dtype=np.float64)
        same = mine.shape == other.shape
        return same and bool(np.max(np.abs(mine - other), initial=0.0) <= 1e-6 * np.max(np.abs(mine), initial=0.0))


def columns_of(mechanism: Mechanism, bodies: Sequence[str]) -> list[int]:
    """Return the standard parameters of some bodies."""
    for body in bodies:
        if body not in mechanism.tree.bodies:
            raise IdentificationError(
                f"body '{body}' has no separate parameters in robot '{mechanism.name}'; add it with separate=True"
            )
    inertial = mechanism.tree.inertias.size
    return [i for i, owner in enumerate(mechanism.parameters.owners[:inertial]) if owner in bodies]


def joint_terms(mechanism: Mechanism) -> dict[int, JointTerm | None]:
    """Return the joint term of each parameter after those of the bodies, by its index; coulomb.fc of a law counts as fc.

    The break-away friction fs also counts as fc; other parameters of laws and forces have no joint term.
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


Group = tuple[list[int], list[int]]  # columns of the neighbours, and own columns in the order in which they should lead

# Within a body the classical independent set of a revolute joint comes first, so that Iyy, mz and m are the ones regrouped.
BODY_ORDER = ("Ixx", "Ixy", "Ixz", "Iyz", "Izz", "mx", "my", "Iyy", "mz", "m")

STATES = 300  # random states of a large robot
FEWEST = 10  # random states in which a force must be defined
HUGE = 1e100  # a torque per unit of a parameter whose square is no number any more
MOST = 300  # coordinates: the regrouping of more takes more than 1 GB


def _preferred(mechanism: Mechanism) -> list[int]:
    """Return the standard columns in the order in which they should become independent."""
    bodies = len(mechanism.tree.bodies)
    symbols = [name.split("_")[0] for name in mechanism.parameters.names[:10]]
    within = [symbols.index(symbol) for symbol in BODY_ORDER] if bodies else []
    order = [10 * body + k for body in range(bodies) for k in within]
    return [*order, *range(10 * bodies, len(mechanism.parameters))]


def symmetric_order(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the parameters of a robot with equal legs in an order that keeps the legs equal [Briot2015, eq. 43].

    Parameters outside the legs come first; then each leg parameter, for all legs in turn. Legs are bodies and joints whose
    names differ in their last number only (``link1_1`` to ``link1_4``).
    """
    names = mechanism.parameters.names
    stems = [re.sub(r"_?\d+$", "", owner) for owner in mechanism.parameters.owners]
    members: dict[str, dict[str, None]] = {}
    for stem, owner in zip(stems, mechanism.parameters.owners, strict=True):
        members.setdefault(stem, {})[owner] = None
    places = {stem: i for i, stem in enumerate(members)}
    bodies = 10 * len(mechanism.tree.bodies)

    def key(c: int) -> tuple[bool, bool, int, int, int]:
        stem, symbol = stems[c], names[c].split("_")[0]
        kind = BODY_ORDER.index(symbol) if c < bodies else list(TERMS).index(symbol) if symbol in TERMS else len(TERMS)
        return c >= bodies, len(members[stem]) > 1, places[stem], kind, c

    return tuple(names[c] for c in sorted(range(len(names)), key=key))


def base_parameters(
    mechanism: Mechanism,
    order: Sequence[str] | str | None = None,
    tolerance: float = 3e-5,
    seed: int = 0,
    removable: Sequence[str] = (),
) -> BaseParameters:
    """Find the base parameters of a robot.

    Columns of the regressor on random states are scaled to unit length and taken one after the other; a column whose part
    orthogonal to those already taken is below `tolerance` is regrouped. The rank is checked against the singular values.

    The default tolerance is far above round-off: a right angle written as 1.5708 makes columns independent by a few
    millionths, which no measurement resolves.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with p standard parameters.
    order : sequence of str or "symmetric", optional
        Standard parameters that should lead combinations, most wanted first; the rest follows in the default order
        (bodies from the base outward, then joint terms). "symmetric" keeps equal legs equal [Briot2015, eq. 43].
    tolerance : float
        Relative size below which an orthogonal part of a column counts as zero.
    seed : int
        Seed of the random states.
    removable : sequence of str
        Bodies with separate parameters that are absent in part of the data, such as a payload: only data with and without
        the body separate its parameters from those of the link that carries it.

    Returns
    -------
    BaseParameters
        Rank, columns, regrouping and expressions.

    Examples
    --------
    >>> import dynident as di
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.2, 0, 0, 0)], gravity=(0, -9.81, 0)).with_terms(())
    >>> di.base_parameters(arm).rank
    6
    """
    require(mechanism, Mechanism, "mechanism")
    if not 0.0 < tolerance < 1.0:
        raise IdentificationError(f"tolerance is {tolerance}; it must be between 0 and 1 (3e-5 is usual)")
    ranking = _preferred(mechanism)
    if order is not None:
        if isinstance(order, str) and order != "symmetric":
            raise IdentificationError(f"order is '{order}'; give 'symmetric', or names of parameters in a list")
        chosen = symmetric_order(mechanism) if isinstance(order, str) else order
        wanted = [mechanism.parameters.index(name) for name in chosen]
        ranking = [*dict.fromkeys([*wanted, *ranking])]
    n = mechanism.dof
    if n == 0:
        raise IdentificationError(f"robot '{mechanism.name}' has no moving joint, so there is nothing to identify")
    if mechanism.own_regressor:  # the author of a custom regressor guarantees base parameters
        p = len(mechanism.parameters)
        every = np.arange(p, dtype=np.int64)
        return BaseParameters(mechanism, every, np.eye(p), (), np.ones((n, p), dtype=bool), float("inf"))
    groups: list[Group] = [([], ranking)]
    if n > LARGE:
        if n > MOST:
            raise IdentificationError(
                f"robot '{mechanism.name}' has {n} coordinates; base parameters are found for {MOST} at most: lock joints, or "
                "identify its limbs one by one"
            )
        # Every coordinate moves one joint, and every motor drives one coordinate.
        if not (mechanism.loops or mechanism.couplings or any(len(a.coupling) > 1 for a in mechanism.actuators)):
            groups = neighbourhoods(mechanism, ranking)
    Y = _defined(mechanism, _random_rows(mechanism, len(groups) > 1, seed))
    if removable:
        bare = Y.copy()
        bare[:, :, columns_of(mechanism, removable)] = 0.0
        Y = np.concatenate([Y, bare])
    return _regrouped(mechanism, Y, groups, tolerance, seed)


def _random_rows(mechanism: Mechanism, large: bool, seed: int) -> Array:
    """Return the regressor in random states (N, n, p); for a large robot, one random sum of its rows per state."""
    n, p = mechanism.dof, len(mechanism.parameters)
    samples = STATES if large else max(50, -(-3 * p // n))
    motion = random_motion(mechanism, samples, seed)
    if wanted := law_signals(mechanism):
        shape = (len(motion), len(mechanism.friction))
        signals = {name: np.random.default_rng(seed + 2).uniform(-50.0, 50.0, shape) for name in wanted}
        every = np.arange(p, dtype=np.int64)
        return Rows(mechanism).equations(motion, None, every, signals=signals)[0].transpose(2, 0, 1)
    if large:
        return weighted_regressor(mechanism, motion, np.random.default_rng(seed).standard_normal((samples, 1, n)))
    return weighted_regressor(mechanism, motion, np.broadcast_to(np.eye(n), (len(motion), n, n)))


def _defined(mechanism: Mechanism, Y: Array) -> Array:
    """Return the states with finite columns: a force such as log(q) is not defined everywhere."""
    number = np.all(np.abs(Y) < HUGE, axis=1)  # (states, columns)
    if np.all(number):
        return Y
    never = np.sum(number, axis=0) < FEWEST
    if np.any(never):
        names = ", ".join(mechanism.parameters.names[c] for c in np.flatnonzero(never))
        raise IdentificationError(
            f"the torques of {names} are not finite within the joint range; check the expression of that force"
        )
    return np.asarray(Y[np.all(number, axis=1)])


def _regrouped(mechanism: Mechanism, Y: Array, groups: list[Group], tolerance: float, seed: int) -> BaseParameters:
    """Find independent columns group by group, and express the other columns by them."""
    names, p = mechanism.parameters.names, Y.shape[2]
    W = Y.reshape(-1, p)
    size = np.linalg.norm(W, axis=0)
    relative = size / _family_size(mechanism.parameters.units, size)
    # A friction curve may bend at speeds of few samples: every nonzero column counts as visible.
    first = p - len(mechanism.own_columns)
    curved = [first + i for i, own in enumerate(mechanism.own_columns) if own.kind in ("linear", "shape")]
    relative[curved] = np.where(size[curved] > 0.0, 1.0, 0.0)
    relative[mechanism.known_columns] = 0.0  # a known value needs no estimate
    visible = relative > tolerance
    scaled = np.where(visible, W / np.where(visible, size, 1.0), 0.0)
    K, kept = np.zeros((p, p)), list[int]()  # K in units of scaled columns; its rows of the columns kept are the regrouping
    shortest, longest = np.inf, 0.0
    with one_blas_thread():
        for neighbours, own in groups:
            beside = [c for c in neighbours if visible[c]]
            mine = [c for c in own if visible[c]]
            chosen, rest, least = _independent(scaled, beside, mine, tolerance)
            basis, others = [*beside, *chosen], [c for c in mine if c not in set(chosen)]
            B = np.linalg.lstsq(scaled[:, basis], scaled[:, others], rcond=None)[0]
            B[np.abs(B) < 1e-10 + 10.0 * rest[others]] = 0.0  # the remainder of a column bounds the error of its coefficients
            K[chosen, chosen] = 1.0
            K[:, others] = K[:, basis] @ B
            kept += chosen
            shortest, longest = min(shortest, least), max(longest, float(np.max(rest, initial=0.0)))
        rank, gap = len(kept), shortest / max(longest, np.finfo(float).eps)
        if len(groups) == 1:
            # Nearly equal slopes of a friction curve do not concern the rank of the robot's structure.
            rigid = np.setdiff1d(np.arange(p), curved)
            gap = _checked_rank(mechanism, scaled[:, rigid], rank - len(set(kept) & set(curved)), tolerance)
    unknown = np.delete(relative, mechanism.known_columns)
    gap = min(gap, _gap(np.sort(unknown)[::-1], int(np.count_nonzero(visible))))

    columns = np.array(kept, dtype=np.int64)
    regrouping = K[columns] * (np.where(visible, size, 0.0) / size[columns][:, None])
    regrouping[:, columns] = np.eye(rank)
    nearest = np.round(regrouping)
    regrouping = np.where(np.abs(regrouping - nearest) < 1e-10 * np.maximum(1.0, np.abs(nearest)), nearest, regrouping)
    invisible = tuple(names[j] for j in range(p) if not visible[j] and j not in mechanism.known_columns)
    if len(groups) > 1:  # the rows one by one, in a few states
        few, n = random_motion(mechanism, 3, seed + 1), mechanism.dof
        Y = weighted_regressor(mechanism, few, np.broadcast_to(np.eye(n), (3, n, n)))
    seen = np.any(np.abs(Y[:, :, columns]) > 1e-12 * size[columns], axis=0)
    return BaseParameters(mechanism, columns, regrouping, invisible, seen, gap)


def _checked_rank(mechanism: Mechanism, scaled: Array, rank: int, tolerance: float) -> float:
    """Return the gap of the singular values at a rank; warn if they indicate another rank."""
    singular = np.asarray(np.linalg.svd(scaled, compute_uv=False), dtype=np.float64)
    by_svd = int(np.count_nonzero(singular > tolerance * singular[0]))
    if by_svd != rank:
        warn(
            f"the rank of robot '{mechanism.name}' is ambiguous: {rank} by QR, {by_svd} by singular values at tolerance "
            f"{tolerance:g}; check for almost parallel axes, or set tolerance= (--rank-tolerance)",
            ConditionWarning,
        )
    return _gap(singular, rank)


def _gap(values: Array, kept: int) -> float:
    """Return the ratio of the smallest kept to the largest rejected of falling values, limited by round-off."""
    if kept == values.size:
        return float(np.inf)
    return float(values[kept - 1] / max(values[kept], np.finfo(float).eps * values[0]))


def _family_size(units: Sequence[str], size: Array) -> Array:
    """Return, for each column, the largest column of the same unit: masses and friction cannot be compared."""
    families = np.array([unit.replace(" ", "") for unit in units])
    largest = np.array([np.max(size[families == family]) for family in families])
    return np.asarray(np.maximum(largest, 1e-9 * np.max(size)))


def _independent(W: Array, before: list[int], order: list[int], tolerance: float) -> tuple[list[int], Array, float]:
    """Return independent columns in `order`, the remainders of the others, and the shortest independent remainder.

    Gram-Schmidt, twice for safety, beginning with the columns `before`; all have unit length.
    """
    Q = np.zeros((W.shape[0], len(before) + len(order)), order="F")
    kept, rest, least, count = list[int](), np.zeros(W.shape[1]), np.inf, 0
    for c in [*before, *order]:
        w = W[:, c]
        for _ in range(2):
            w = w - Q[:, :count] @ (Q[:, :count].T @ w)
        length = float(np.linalg.norm(w))
        if length > tolerance:
            Q[:, count] = w / length
            count += 1
        if c in before:
            continue
        if length > tolerance:
            kept.append(c)
            least = min(least, length)
        else:
            rest[c] = length
    return kept, rest, least


def neighbourhoods(mechanism: Mechanism, ranking: list[int]) -> list[Group]:
    """Return the columns of every node of a tree with those of the nodes between it and the next body towards the base.

    Parameters unidentifiable from a body's own torque regroup only with those of the next body [Gautier1991].
    """
    tree, place = mechanism.tree, {c: i for i, c in enumerate(ranking)}
    node_of = [tree.frames[body][0] for body in tree.bodies]
    driven = {int(d): i for i, d in enumerate(tree.arrays.dof) if tree.arrays.kind[i] != FIXED}
    coordinate = {name: d for d, name in enumerate(tree.coordinates)}
    owners = [node_of[c // 10] for c in range(10 * len(node_of))]
    drives = {a.name: next(iter(a.coupling)) for a in mechanism.actuators}
    moved = [name for name, _ in mechanism.joint_columns] + [drives[name] for name, _ in mechanism.actuator_columns]
    for name in moved:
        owners.append(driven[max(d for d in driven if d <= coordinate[name])])
    own: dict[int, list[int]] = {}
    for c in sorted(range(len(owners)), key=place.__getitem__):
        own.setdefault(owners[c], []).append(c)
    groups = []
    for node in sorted(own):
        beside, above = list[int](), int(tree.arrays.parent[node])
        while above >= 0:
            beside += own.get(above, [])
            if above in node_of:
                break
            above = int(tree.arrays.parent[above])
        groups.append((beside, own[node]))
    more = [c for c in ranking if c >= len(owners)]  # laws and force elements may depend on any joint
    return [*groups, ([c for _, mine in groups for c in mine], more)] if more else groups


LARGE = 64  # coordinates above which a tree moves more calmly, and its columns are compared with their neighbours' only
SLOWEST = 4.0  # decades of speed below the largest at which friction laws are evaluated


def random_motion(mechanism: Mechanism, samples: int, seed: int = 0) -> Motion:
    """Return unrelated random states that reveal every parameter: a whole turn, speeds and accelerations of order 1 to 10."""
    if mechanism.loops:
        moved = random_closed_motion(mechanism, 2 * samples, seed)
        if not mechanism.friction:
            return moved
        slow = 10.0 ** np.random.default_rng(seed + 1).uniform(-SLOWEST, 0.0, (2 * samples, 1))
        slow[::4], slow[1::4] = 1.0, 1.0
        return Motion(moved.t, moved.q, moved.v * slow, moved.a)
    generator = np.random.default_rng(seed)
    n = mechanism.dof
    calm = n**-0.5 if n > LARGE else 1.0  # otherwise the far end of a long chain would dominate
    q, v, a = (generator.uniform(-size, size, (samples, n)) for size in (np.pi, 3.0 * calm, 10.0 * calm))
    if mechanism.friction:  # friction curves can have structure at any speed, down to very small ones
        v[::2] *= 10.0 ** generator.uniform(-SLOWEST, 0.0, v[::2].shape)
    return Motion(np.arange(float(samples)), q, v, a)
