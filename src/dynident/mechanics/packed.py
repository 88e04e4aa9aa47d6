"""Arrays of many sorts packed into two, integers K and floats F, for the compiled code that treats one sample at a time.

K begins with a header: K[KEY] is a number (how many nodes), or the place in K or F where region KEY begins.
"""

from __future__ import annotations

from weakref import finalize

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.mechanism.tree import NODE_DOF, REVOLUTE, TreeArrays

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

HEADER = 96  # numbers at the beginning of K

# Keys of the tree; rooms above add their own from OWN on.
NODES, COUNT, NODE, SUPPORT, RECORDS, TWISTS, PHI, BASE, MASS, FORCE, SPEED, FACTOR, MOTION, CLOSURE, SOLVE, OWN = range(16)

RECORD = 80  # numbers per node, beginning with its orientation R (9)
ORIGIN, TWIST, BIAS, INERTIA, WRENCH, TURN, SHIFT, AXIS = (np.uint64(i) for i in (9, 12, 18, 24, 34, 40, 67, 70))


class Arena:
    """Collects regions, then packs them.

    Regions may be asked for by `view` after `pack`: they share memory with F and K.
    """

    def __init__(self) -> None:
        self._header = np.zeros(HEADER, dtype=np.int64)
        self._integers: list[Integers] = []
        self._floats: list[Array] = []
        self._shapes: dict[int, tuple[bool, tuple[int, ...]]] = {}
        self._sizes = [HEADER, 0]
        self._kept: list[object] = []

    def keep(self, thing: object) -> None:
        """Keep something alive as long as K, which holds its address.

        Parameters
        ----------
        thing : object
            What must not vanish.
        """
        self._kept.append(thing)

    def number(self, key: int, value: int) -> None:
        """Set a number of the header.

        Parameters
        ----------
        key : int
            Which.
        value : int
            The number.
        """
        self._header[key] = value

    def integers(self, key: int, values: ArrayLike) -> None:
        """Add a region of integers.

        Parameters
        ----------
        key : int
            Its name.
        values : array_like of int
            What it begins with.
        """
        array = np.array(values, dtype=np.int64)
        self._shapes[key] = (False, array.shape)
        self._header[key] = self._sizes[0]
        self._sizes[0] += array.size
        self._integers.append(array.ravel())

    def floats(self, key: int, values: ArrayLike) -> None:
        """Add a region of floats.

        Parameters
        ----------
        key : int
            Its name.
        values : array_like
            What it begins with.
        """
        array = np.array(values, dtype=np.float64)
        self._shapes[key] = (True, array.shape)
        self._header[key] = self._sizes[1]
        self._sizes[1] += array.size
        self._floats.append(array.ravel())

    def pack(self) -> tuple[Integers, Array]:
        """Return K and F.

        Returns
        -------
        K : ndarray of int
            Header and integers.
        F : ndarray
            Floats.
        """
        self.K = np.concatenate([self._header, *self._integers])
        self.F = np.concatenate([*self._floats, np.zeros(1)])
        finalize(self.K, self._kept.clear).atexit = False
        return self.K, self.F

    def view(self, key: int) -> NDArray[np.float64]:
        """Return a region of floats of packed arrays; changes go through.

        Parameters
        ----------
        key : int
            Its name.

        Returns
        -------
        ndarray
            In the shape it was added with.
        """
        shape = self._shapes[key][1]
        first = int(self.K[key])
        return self.F[first : first + int(np.prod(shape))].reshape(shape)

    def integer_view(self, key: int) -> Integers:
        """Return a region of integers of packed arrays; changes go through.

        Parameters
        ----------
        key : int
            Its name.

        Returns
        -------
        ndarray of int
            In the shape it was added with.
        """
        shape = self._shapes[key][1]
        first = int(self.K[key])
        return self.K[first : first + int(np.prod(shape))].reshape(shape)


def add_tree(arena: Arena, tree: TreeArrays, phi: Array, base: Array) -> None:
    """Add the regions of a tree with k nodes and n coordinates.

    NODE : record of the parent, kind, first coordinate, number of coordinates, inertial column, number of supporting ones.
    RECORDS : for the base and every node R and ORIGIN in the base frame; TWIST and BIAS (angular, linear: velocity, and
    acceleration without joint accelerations, less gravity); INERTIA m, h, I and WRENCH (moment, force) of its subtree; and of
    its joint TURN (as in `TreeArrays`; the placement of other than revolute joints), SHIFT and AXIS.
    TWISTS : twist of every coordinate at the base origin. MASS, FORCE, SPEED, FACTOR : M, h, v and the factors of M.
    MOTION, CLOSURE, SOLVE : addresses of the robot's own code (`symbolic.motion`); 0 while there is none.

    Parameters
    ----------
    arena : Arena
        Where to.
    tree : TreeArrays
        Flat tree.
    phi : ndarray
        Inertial parameters in node frames.
    base : ndarray, (n, n)
        Constant inertias on top of the bodies' (rotors).
    """
    k, n = tree.support.shape
    count = np.array(NODE_DOF, dtype=np.int64)[tree.kind]
    arena.number(NODES, k)
    arena.number(COUNT, n)
    arena.integers(NODE, np.stack([tree.parent + 1, tree.kind, tree.dof, count, tree.column, tree.support_count], axis=1))
    arena.integers(SUPPORT, tree.support)
    record = np.zeros((k + 1, RECORD))
    record[0, :9] = np.eye(3).ravel()
    record[0, 21:24] = -tree.gravity  # the base accelerates upward instead of gravity pulling down
    record[1:, 40:67], record[1:, 67:70], record[1:, 70:73] = tree.turn.reshape(k, 27), tree.translation, tree.axis
    other = np.flatnonzero(tree.kind != REVOLUTE)
    record[other + 1, 40:49] = tree.rotation[other].reshape(-1, 9)
    arena.floats(RECORDS, record)
    arena.floats(TWISTS, np.zeros((n, 6)))
    arena.floats(PHI, phi)
    arena.floats(BASE, base)
    arena.floats(MASS, base)
    arena.floats(FORCE, np.zeros(n))
    arena.floats(SPEED, np.zeros(n))
    arena.floats(FACTOR, np.zeros((n, n)))
