"""Exact base parameters of robots that `derive` does not take (loops): numbers recognised as monomials of the lengths.

The regrouping matrix of a robot with loops is found by numbers on its closed configurations (`identify.base_parameters`). Its
entries are often as simple as 1/2 or 2/L^2: a multiple of 1/12 times powers of few lengths. Such an entry is recognised when
exactly that product equals it to `tolerance`; anything else stays a number and is marked as not exact. One geometry is seen
only, so this is recognition and not proof: check it with another set of lengths where the robot can be built with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from dynident.errors import DynidentError
from dynident.symbolic.regroup import Coefficient, Monomial, Regrouping

LARGEST = 12.0  # of a factor


def recognise(
    regrouping: ArrayLike, columns: Sequence[int], names: Sequence[str], lengths: Mapping[str, float], tolerance: float = 1e-8
) -> Regrouping:
    """Return base parameters beta = K phi with the entries of K as monomials of the lengths.

    Parameters
    ----------
    regrouping : array_like, (b, p)
        K, such as ``identify.base_parameters(robot).regrouping``.
    columns : sequence of int, (b,)
        Standard parameters that lead the combinations.
    names : sequence of str, (p,)
        Names of all standard parameters.
    lengths : mapping of str to float
        Lengths that may appear, by the symbol to write [m].
    tolerance : float
        Largest relative difference of a recognised entry.

    Returns
    -------
    Regrouping
        ``expressions`` reads it, ``exact`` says whether every entry was recognised.
    """
    K, symbols, values = np.asarray(regrouping, dtype=np.float64), tuple(lengths), np.array(list(lengths.values()), dtype=float)
    if K.shape != (len(columns), len(names)):
        raise DynidentError(f"regrouping has shape {K.shape}; {len(columns)} columns and {len(names)} names need as many")
    if not np.all(np.isfinite(values) & (values > 0.0)):
        raise DynidentError(f"lengths are {dict(lengths)}; give lengths above zero in metres")
    table = []
    for row in K:
        visible = np.flatnonzero(np.abs(row) > tolerance)
        table.append({int(j): _monomial(float(row[j]), symbols, values, tolerance) for j in visible})
    return Regrouping(tuple(map(int, columns)), tuple(names), tuple(table), ())


def _monomial(value: float, symbols: tuple[str, ...], lengths: np.ndarray, tolerance: float) -> Coefficient:
    for powers in _powers(len(symbols)):
        factor = value / float(np.prod(lengths ** np.array(powers, dtype=float)))
        near = round(12.0 * factor) / 12.0
        if 0.0 < abs(near) <= LARGEST and abs(factor - near) <= tolerance * abs(near):
            return Coefficient(((near, powers),), symbols)
    return Coefficient(((value, (0,) * len(symbols)),), symbols, exact=False)


def _powers(count: int) -> Iterator[Monomial]:
    """Yield exponents, plain numbers first, up to two lengths above or below."""
    every = [powers for powers in product(range(-2, 3), repeat=count) if sum(map(abs, powers)) <= 2]
    yield from sorted(every, key=lambda powers: (sum(map(abs, powers)), -sum(powers)))
