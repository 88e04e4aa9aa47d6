"""The compiled functions of every robot, made once per process and geometry.

Parameters are inputs, so one robot's code serves all its copies with other masses; only the geometry is built in.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from weakref import WeakKeyDictionary

from dynident.graph import Compiled, Function, Node
from dynident.mechanics.equations import Equations, has_opaque_couplings, positions_of
from dynident.mechanism import Mechanism

KEPT = 512  # functions kept in memory

Outputs = dict[str, Sequence[Node | None]]
Maker = Callable[[Equations], Outputs]

_functions: OrderedDict[Hashable, Compiled] = OrderedDict()
_keys: WeakKeyDictionary[Mechanism, Hashable] = WeakKeyDictionary()
_lock = threading.RLock()


def geometry_key(mechanism: Mechanism) -> Hashable:
    """Return what the code of a robot depends on: its tree, couplings, loops, joint and motor terms, but not its numbers."""
    with _lock:
        found = _keys.get(mechanism)
        if found is None:
            found = _keys[mechanism] = _key(mechanism)
        return found


def _key(mechanism: Mechanism) -> Hashable:
    parts = [*mechanism.tree.arrays, *(mechanism.closure.selected if mechanism.loops else ())]
    arrays = tuple((part.shape, part.tobytes()) for part in parts)
    free = tuple(mechanism.closure.independent.tolist()) if mechanism.loops else ()
    frames = tuple(
        (name, node, pose.rotation.tobytes(), pose.translation.tobytes())
        for name, (node, pose) in mechanism.tree.frames.items()
    )
    couplings = tuple((c.joint, tuple(c.of.items()), c.offset, c.function, c.gradient) for c in mechanism.couplings)
    motors = tuple((a.name, tuple(a.coupling.items())) for a in mechanism.actuators)
    terms = (mechanism.joint_columns, mechanism.actuator_columns, mechanism.tree.bodies)
    return arrays, free, frames, couplings, motors, terms, mechanism.coordinate_names


def function_of(
    mechanism: Mechanism,
    name: str,
    make: Maker,
    key: Hashable = (),
    rows: frozenset[str] = frozenset(),
    inputs: Mapping[str, int] | None = None,
    shared: Mapping[str, int] | None = None,
) -> Compiled:
    """Return a compiled function of a robot.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    name : str
        Name of the function.
    make : callable
        Its outputs, from the robot's equations; called when there is no such function yet.
    key : hashable
        What else it depends on, such as a frame.
    rows : frozenset of str
        Arrays with samples last.
    inputs : mapping of str to int, optional
        Further inputs.
    shared : mapping of str to int, optional
        What all samples share instead of ``phi``.

    Returns
    -------
    Compiled
        Function of the arrays ``q``, ``v``, ``a`` (and ``G``, ``b`` of couplings known by numbers only) and the shared ``phi``.
    """
    whole = (name, key, rows, geometry_key(mechanism))
    with _lock:
        found = _functions.get(whole)
        if found is None:
            outputs = make(Equations(mechanism))
            n = mechanism.dof
            takes = {"q": positions_of(mechanism), "v": n, "a": n}
            if has_opaque_couplings(mechanism):
                takes |= {"G": len(mechanism.tree.coordinates) * n, "b": len(mechanism.tree.coordinates)}
            same = {"phi": len(mechanism.parameters)} if shared is None else shared
            found = Compiled(Function(name, takes | dict(inputs or {}), outputs, same, rows))
            _functions[whole] = found
            while len(_functions) > KEPT:
                _functions.popitem(last=False)
        else:
            _functions.move_to_end(whole)
        return found
