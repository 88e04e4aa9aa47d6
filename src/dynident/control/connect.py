"""Linear blocks joined by wires: block-diagonal systems closed by u = K y + L r, algebraic loops included.

x' = A x + B u,  y = C x + D u,   u = K y + L r   =>   u = (1 - K D)^-1 (K C x + L r)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.drive import StateSpace
from dynident.errors import DynidentError

Array = NDArray[np.float64]
Wire = Mapping[str, float]


def first_order(a: float, b: float, c: float, d: float, name: str) -> StateSpace:
    """Return x' = a x + b u, y = c x + d u."""
    A, B, C, D = (np.array([[x]]) for x in (a, b, c, d))
    return StateSpace(A, B, C, D, (f"{name}.in",), (name,))


def gain_block(value: float, name: str) -> StateSpace:
    """Return y = value u."""
    return StateSpace(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), np.array([[value]]), (f"{name}.in",), (name,))


def pi_block(proportional: float, integral: float, name: str) -> StateSpace:
    """Return y = kp u + ki int u dt."""
    return first_order(0.0, 1.0, integral, proportional, name)


def low_pass_block(frequency: float, name: str) -> StateSpace:
    """Return a first-order low-pass."""
    corner = 2.0 * np.pi * frequency
    return first_order(-corner, corner, 1.0, 0.0, name) if frequency else gain_block(1.0, name)


def delay_block(delay: float, name: str, order: int = 5) -> StateSpace:
    """Return the Pade approximation of a dead time, exp(-s delay).

    Its amplitude is one at all frequencies; of order 5 its phase is right to 1e-4 degrees up to the frequency 0.5 / delay.
    """
    if delay == 0.0:
        return gain_block(1.0, name)
    c = [1.0]
    for k in range(1, order + 1):
        c.append(c[-1] * (order - k + 1) / (k * (2 * order - k + 1)))
    # In the dimensionless p = s delay: D(p) = sum c_k p^k, N(p) = D(-p); controllable form, then back to seconds.
    top = np.array([c[k] * (-1.0) ** k for k in range(order + 1)]) / c[order]
    bottom = np.array(c) / c[order]
    A = np.diag(np.ones(order - 1), 1)
    A[-1] = -bottom[:order]
    B = np.zeros((order, 1))
    B[-1] = 1.0
    C = (top[:order] - top[order] * bottom[:order])[None]
    return StateSpace(A / delay, B / delay, C, np.array([[top[order]]]), (f"{name}.in",), (name,))


def connect(
    blocks: Sequence[StateSpace], wires: Mapping[str, Wire], inputs: Sequence[str], outputs: Mapping[str, Wire]
) -> StateSpace:
    """Return the system of blocks joined by wires."""
    sizes = np.cumsum([0] + [len(block.A) for block in blocks])
    ins = [name for block in blocks for name in block.inputs]
    outs = [name for block in blocks for name in block.outputs]
    A, B = np.zeros((sizes[-1], sizes[-1])), np.zeros((sizes[-1], len(ins)))
    C, D = np.zeros((len(outs), sizes[-1])), np.zeros((len(outs), len(ins)))
    row = column = 0
    for block, i, j in zip(blocks, sizes[:-1], sizes[1:], strict=True):
        p, m = block.D.shape
        A[i:j, i:j], B[i:j, column : column + m] = block.A, block.B
        C[row : row + p, i:j], D[row : row + p, column : column + m] = block.C, block.D
        row, column = row + p, column + m
    K, L = np.zeros((len(ins), len(outs))), np.zeros((len(ins), len(inputs)))
    for name, sources in wires.items():
        for source, value in sources.items():
            target = L[:, inputs.index(source)] if source in inputs else K[:, outs.index(source)]
            target[ins.index(name)] += value
    P = np.zeros((len(outputs), len(outs)))
    for i, sources in enumerate(outputs.values()):
        for source, value in sources.items():
            P[i, outs.index(source)] += value
    loop = np.eye(len(ins)) - K @ D
    if np.linalg.cond(loop) > 1e12:
        raise DynidentError("the loops have no solution: a gain around an algebraic loop is exactly one; change a gain")
    inside, outside = np.linalg.solve(loop, K @ C), np.linalg.solve(loop, L)
    return StateSpace(A + B @ inside, B @ outside, P @ (C + D @ inside), P @ D @ outside, tuple(inputs), tuple(outputs))
