"""Individual parameters from base parameters and trusted ones, by enumerating subsets.

Base parameters beta = K phi do not determine p - b parameters. Holding p - b of the trusted parameters at their values v
completes the system; every choice S of them is one square system

    [ K   ]         [ beta ]
    [ E_S ] phi  =  [ v_S  ]                        [Roldan2017, eqs. 5.35-5.43]

Each regular system gives one solution phi_S; their mean and spread are the result of [Roldan2017]. The best combination
has a closed form: with standard deviations s of the trusted values, the estimate of least mean squared error that keeps
K phi = beta is the mean of all phi_S with weights

    w_S  ~  det(A_S)^2 / prod_{i in S} s_i^2        ([Jacobi1841]: least squares as a weighted mean of square systems)

so precise trusted values and well-conditioned subsets have large weights, and nearly singular ones small weights.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.friction.terms import term_of
from dynident.identify import BaseParameters
from dynident_papers.identify.individual import Individual

REGULAR = 1e-8  # smallest singular value, columns of unit length, below which a square system counts as singular
LIMIT = 2_000_000  # largest number of subsets
BATCH = 4096
POSITIVE = ("m", "Ixx", "Iyy", "Izz")  # physically positive parameters of bodies


def enumerate_subsets(
    regrouping: ArrayLike,
    beta: ArrayLike,
    names: Sequence[str],
    trusted: Mapping[str, float],
    deviations: Mapping[str, float] | None = None,
    covariance: ArrayLike | None = None,
    known: Mapping[str, float] | None = None,
    positive: Collection[str] | None = None,
) -> Individual:
    """Solve K phi = beta with every subset of the trusted parameters that makes it square."""
    K, values, labels = np.asarray(regrouping, dtype=np.float64), np.asarray(beta, dtype=np.float64), tuple(names)
    if K.ndim != 2 or K.shape != (values.size, len(labels)) or not (np.all(np.isfinite(K)) and np.all(np.isfinite(values))):
        raise IdentificationError(
            f"K has shape {K.shape} for {values.size} base parameters and {len(labels)} names; give finite numbers, one row "
            "per base parameter and one column per name"
        )
    sure = _named(known or {}, labels, "known")
    trust = {name: x for name, x in _named(trusted, labels, "trusted").items() if name not in sure}
    acts = [i for i, name in enumerate(labels) if np.any(K[:, i]) or name in sure]
    K, labels = K[:, acts], tuple(labels[i] for i in acts)
    trust, place = {n: x for n, x in trust.items() if n in labels}, {name: i for i, name in enumerate(labels)}
    spread = _deviations(trust, deviations)
    certain = [place[n] for n in sure]
    doubt, free = [place[n] for n in trust], [i for n, i in place.items() if n not in trust and n not in sure]
    rest = values - K[:, certain] @ np.array([sure[labels[i]] for i in certain])
    C = np.zeros((values.size, values.size)) if covariance is None else np.asarray(covariance, dtype=np.float64)
    if C.shape != (values.size, values.size):
        raise IdentificationError(f"covariance has shape {C.shape}; it must be {(values.size, values.size)}, that of beta")
    T = _needed(K[:, [*doubt, *free]], C)
    A, rest = T @ K, T @ rest

    # Untrusted parameters are unknown in every subset: the complement of their columns determines the trusted ones.
    Q, R = np.linalg.qr(A[:, free], mode="complete")
    size = np.linalg.norm(A, axis=0)  # a column is dependent if its remainder is small relative to its norm
    if len(free) > rest.size or (free and np.min(np.abs(np.diag(R)) / size[free]) < REGULAR):
        raise IdentificationError(
            f"{len(free)} untrusted parameters cannot be determined from {rest.size} equations; trust more of "
            f"{', '.join(labels[i] for i in free[:8])}"
        )
    f = rest.size - len(free)
    reduced, goal = Q[:, len(free) :].T @ A[:, doubt], Q[:, len(free) :].T @ rest
    trusts = np.array([trust[labels[i]] for i in doubt])
    considered = comb(len(doubt), f)
    if considered > LIMIT:
        raise IdentificationError(
            f"{len(doubt)} trusted parameters, {f} of them solved for, make {considered} subsets, more than {LIMIT}; name the "
            "best of them as known"
        )
    solved, opened, log_det = _solve_all(reduced, size[doubt], goal, trusts, f)
    if not len(solved):
        raise IdentificationError(
            f"none of the {considered} subsets is solvable; trust other parameters than {', '.join(trust)}"
        )

    held = np.zeros((len(solved), len(labels)), dtype=bool)
    held[:, certain] = True
    held[:, doubt] = ~opened
    solutions = np.empty(held.shape)
    solutions[:, certain] = [sure[labels[i]] for i in certain]
    solutions[:, doubt] = solved
    top = Q[:, : len(free)].T @ (rest[:, None] - A[:, doubt] @ solved.T)
    solutions[:, free] = np.linalg.solve(R[: len(free)], top).T
    log_weight = 2.0 * log_det + 2.0 * np.where(opened, np.log(spread), 0.0).sum(axis=1)
    weights = np.exp(log_weight - np.max(log_weight))
    weights /= weights.sum()
    must = np.array([positive is None or name in positive for name in labels])
    given = spread if deviations else np.zeros(len(doubt))
    P = _covariance(A, doubt, free, spread, given, T @ C @ T.T)
    return Individual(labels, K, values, considered, solutions, held, weights, P, must)


def individual_parameters(
    base: BaseParameters,
    beta: ArrayLike,
    trusted: Mapping[str, float],
    deviations: Mapping[str, float] | None = None,
    covariance: ArrayLike | None = None,
    known: Mapping[str, float] | None = None,
) -> Individual:
    """Return the individual parameters of a robot from its base parameters and trusted ones.

    Masses, moments of inertia, rotor and friction terms must be above zero; products, first moments and offsets need not.
    """
    names = base.mechanism.parameters.names
    terms = {name: term_of(name) for name in names}
    positive = [n for n, term in terms.items() if (term.passive if term else n.split("_")[0] in POSITIVE)]
    return enumerate_subsets(base.regrouping, beta, names, trusted, deviations, covariance, known, positive)


def _named(given: Mapping[str, float], names: tuple[str, ...], what: str) -> dict[str, float]:
    for name, value in given.items():
        if name not in names:
            raise IdentificationError(f"{what} parameter '{name}' does not exist; names look like {', '.join(names[:4])}")
        if not np.isfinite(value):
            raise IdentificationError(f"{what} parameter '{name}' is {value}; give a finite number")
    return {name: float(value) for name, value in given.items()}


def _deviations(trust: Mapping[str, float], given: Mapping[str, float] | None) -> Array:
    """Return the standard deviations of the trusted values; an equal share of each value when omitted."""
    if not given:
        sizes = np.abs(list(trust.values()))
        return np.where(sizes > 0.0, sizes, np.median(sizes[sizes > 0.0]) if np.any(sizes > 0.0) else 1.0)
    for name in trust:
        if not (np.isfinite(given.get(name, np.nan)) and given[name] > 0.0):
            raise IdentificationError(
                f"the standard deviation of trusted parameter '{name}' is {given.get(name)}; give one above zero, or name the "
                "parameter as known"
            )
    return np.array([float(given[name]) for name in trust])


def _needed(A: Array, C: Array) -> Array:
    """Return T whose rows are the combinations of equations to solve: all, or fewer if known parameters make some redundant.

    Redundant equations are combined by least squares, weighted with the covariance of the equations when it is regular.
    """
    rank = int(np.linalg.matrix_rank(A))
    if rank == A.shape[0]:
        return np.eye(rank)
    try:
        white = np.linalg.inv(np.linalg.cholesky(C))
    except np.linalg.LinAlgError:
        white = np.eye(A.shape[0])
    return np.asarray(np.linalg.svd(white @ A)[0][:, :rank].T @ white)


def _solve_all(reduced: Array, size: Array, goal: Array, trusts: Array, f: int) -> tuple[Array, NDArray[np.bool_], Array]:
    """Solve the (f, f) system of every choice of f unknown trusted parameters; return values, choices and log |det|."""
    n = trusts.size
    solved: list[Array] = []
    opened: list[NDArray[np.bool_]] = []
    sizes: list[Array] = []
    choices = combinations(range(n), f)
    while True:
        index = np.array(list(islice(choices, BATCH)), dtype=np.int64)
        if not len(index):
            break
        if f == 0:  # the untrusted parameters need all equations: one subset, which holds all trusted ones
            return trusts[None].copy(), np.zeros((1, n), dtype=bool), np.zeros(1)
        squares = np.moveaxis(reduced[:, index], 1, 0)
        good = np.linalg.svd(squares / size[index][:, None, :], compute_uv=False)[:, -1] > REGULAR
        index, squares = index[good], squares[good]
        if not len(index):
            continue
        choice = np.zeros((len(index), n), dtype=bool)
        np.put_along_axis(choice, index, True, axis=1)
        right = goal - np.where(choice, 0.0, trusts) @ reduced.T
        values = np.tile(trusts, (len(index), 1))
        np.put_along_axis(values, index, np.linalg.solve(squares, right[:, :, None])[:, :, 0], axis=1)
        solved.append(values)
        opened.append(choice)
        sizes.append(np.linalg.slogdet(squares)[1])
    if not solved:
        return np.zeros((0, n)), np.zeros((0, n), dtype=bool), np.zeros(0)
    return np.concatenate(solved), np.concatenate(opened), np.concatenate(sizes)


def _covariance(K: Array, doubt: list[int], free: list[int], spread: Array, given: Array, C: Array) -> Array:
    """Return the covariance of the least-squares estimate with K phi = beta exact: phi = M_b beta + M_v v."""
    p, b, t = K.shape[1], K.shape[0], len(doubt)
    unknown = [*doubt, *free]
    A = K[:, unknown]
    # Optimality: D^-2 (x - v) + A^T l = 0 on trusted parameters, A^T l = 0 on the others, A x = beta.
    D = np.zeros((len(unknown), len(unknown)))
    D[range(t), range(t)] = 1.0 / spread**2
    system = np.block([[D, A.T], [A, np.zeros((b, b))]])
    right = np.zeros((len(unknown) + b, b + t))
    right[len(unknown) :, :b] = np.eye(b)
    right[range(t), range(b, b + t)] = 1.0 / spread**2
    M = np.linalg.solve(system, right)[: len(unknown)]
    result = np.zeros((p, p))
    result[np.ix_(unknown, unknown)] = M[:, :b] @ C @ M[:, :b].T + (M[:, b:] * given**2) @ M[:, b:].T
    return result
