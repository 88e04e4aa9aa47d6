"""The seam for generated code: a kernel of one robot that stands in for the generic ones.

A kernel sees what the generic ones see (tree coordinates, inertial parameters in node frames) and fills the same arrays, so
couplings, loops, joint terms and frames stay where they are. It belongs to one `Mechanism` object and goes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

from dynident.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Kernel:
    """Compiled functions of one robot; they must release the interpreter lock.

    Parameters
    ----------
    inverse_dynamics : callable
        ``inverse_dynamics(phi, q, v, a, tau)`` writes tau (N, n_tree).
    regressor : callable
        ``regressor(q, v, a, Y)`` writes the entries of Y (N, n_tree, p) that are not zero.
    regressor_rows : callable
        ``regressor_rows(q, v, a, slot, W)`` writes column c as rows of samples into W[:, slot[c]] where slot[c] >= 0.
    columns : frozenset of int
        Inertial columns that the regressor functions compute; others are left to the generic kernels.
    """

    inverse_dynamics: Callable[..., object]
    regressor: Callable[..., object]
    regressor_rows: Callable[..., object]
    columns: frozenset[int]


_KERNELS: WeakKeyDictionary[Mechanism, Kernel] = WeakKeyDictionary()


def use_kernel(mechanism: Mechanism, kernel: Kernel | None) -> None:
    """Use a generated kernel for a robot from now on.

    Parameters
    ----------
    mechanism : Mechanism
        Robot; this object, not its changed copies.
    kernel : Kernel or None
        Kernel generated for it (``symbolic.compile_kernel``); None goes back to the generic one.
    """
    if kernel is None:
        _KERNELS.pop(mechanism, None)
    else:
        _KERNELS[mechanism] = kernel


def kernel_of(mechanism: Mechanism, columns: Iterable[int] = ()) -> Kernel:
    """Return the kernel to use for a robot.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    columns : iterable of int
        Inertial columns of the regressor that are needed.

    Returns
    -------
    Kernel
        The generated kernel when there is one that has these columns, else the generic one.
    """
    from dynident.mechanics import kernels  # noqa: PLC0415 - numba is imported on first use

    own = _KERNELS.get(mechanism)
    if own is not None and own.columns.issuperset(columns):
        return own
    tree = mechanism.tree.arrays
    return Kernel(
        partial(kernels.inverse_dynamics, tree),
        partial(kernels.regressor, tree),
        partial(kernels.regressor_rows, tree),
        frozenset(),
    )
