"""Joint terms with smoothed signs, and their derivatives by the joint's own motion."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dynident.friction import TERMS, JointTerm
from dynident.graph import Graph, Node, derivative, evaluate

Array = NDArray[np.float64]


def smooth_term(symbol: str, q: Array, v: Array, a: Array, eps: float) -> tuple[Array, Array, Array, Array]:
    """Return a joint term's column and its derivatives by q, v and a.

    Parameters
    ----------
    symbol : str
        Key of `dynident.friction.TERMS`.
    q, v, a : ndarray, (N,)
        Motion of the joint.
    eps : float
        Speed over which a sign is smoothed; 0 keeps the sign (its derivative is then 0).

    Returns
    -------
    column, dq, dv, da : ndarray, (N,)
        Column and derivatives.
    """
    found = evaluate(_forms(TERMS[symbol], eps > 0.0), {"q": q, "v": v, "a": a, "eps": eps})
    column, dq, dv, da = (np.broadcast_to(np.asarray(x, dtype=np.float64), v.shape) for x in found)
    return column, dq, dv, da


@lru_cache(maxsize=256)
def _forms(term: JointTerm, soft: bool) -> list[Node]:
    graph = Graph()
    q, v, a, eps = (graph.symbol(name) for name in ("q", "v", "a", "eps"))
    column = term.smooth(q, v, a, eps) if soft else graph.node(term.expression(q, v, a))
    return [column, *(derivative(column, x) for x in (q, v, a))]
