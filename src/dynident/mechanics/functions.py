"""The compiled functions of every robot, made once per process and geometry.

Parameters are inputs, so one robot's code serves all its copies with other masses; only the geometry is built in.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from dynident.errors import DescriptionError
from dynident.graph import Compiled, Function, Node, reachable
from dynident.mechanics.equations import LOAD, Equations, has_opaque_couplings, opaque_columns, positions_of
from dynident.mechanism import Force, Mechanism

KEPT = 512  # functions kept in memory

Outputs = Mapping[str, Sequence[Node | None]]
T = TypeVar("T")

_made: OrderedDict[Hashable, Any] = OrderedDict()
_keys: WeakKeyDictionary[Mechanism, Hashable] = WeakKeyDictionary()
_lock = threading.RLock()


def cached(mechanism: Mechanism, key: Hashable, build: Callable[[], T]) -> T:
    """Return what was built before for a robot of this geometry, or build it now; other threads wait."""
    with _lock:
        whole = (key, geometry_key(mechanism))
        if whole not in _made:
            _made[whole] = build()
            while len(_made) > KEPT:
                _made.popitem(last=False)
        _made.move_to_end(whole)
        found: T = _made[whole]
        return found


def geometry_key(mechanism: Mechanism) -> Hashable:
    """Return what the code of a robot depends on: its tree, couplings, loops, joint and motor terms, but not its numbers."""
    found = _keys.get(mechanism)
    if found is None:
        loops = (*mechanism.closure.selected, *mechanism.closure.arrays) if mechanism.loops else ()
        parts = [*mechanism.tree.arrays, *loops]
        placed = mechanism.tree.frames.items()
        found = _keys[mechanism] = (
            tuple((part.shape, part.tobytes()) for part in parts),
            tuple(mechanism.closure.independent.tolist()) if mechanism.loops else (),
            tuple((name, node, pose.rotation.tobytes(), pose.translation.tobytes()) for name, (node, pose) in placed),
            tuple((c.joint, tuple(c.of.items()), c.offset, c.function, c.gradient) for c in mechanism.couplings),
            tuple((a.name, tuple(a.coupling.items())) for a in mechanism.actuators),
            (mechanism.joint_columns, mechanism.actuator_columns, mechanism.tree.bodies, mechanism.coordinate_names),
            tuple((name, friction.law) for name, friction in mechanism.friction.items()),
            tuple(force.key if isinstance(force, Force) else (force.names, force.function) for force in mechanism.forces),
        )
    return found


def compiled(
    mechanism: Mechanism,
    name: str,
    outputs: Outputs,
    rows: frozenset[str] = frozenset(),
    more: Mapping[str, int] | None = None,
    parameters: bool = False,
    shared: Mapping[str, int] | None = None,
) -> Compiled:
    """Compile outputs that were made from a robot's `Equations`; `rows` are those with samples last.

    Inputs are q, v, a (G and b of couplings known by numbers only) and `more`; shared by all samples are the standard
    parameters phi, if asked for, and what `shared` names.
    """
    n, wide = mechanism.dof, len(mechanism.tree.coordinates)
    inputs = {"q": positions_of(mechanism), "v": n, "a": n, **(more or {})}
    if has_opaque_couplings(mechanism):
        inputs |= {"G": wide * n, "b": wide}
    same = {**({"phi": len(mechanism.parameters)} if parameters else {}), **(shared or {})}
    if mechanism.friction or mechanism.forces:
        nodes = reachable([node for own in outputs.values() for node in own if node is not None])
        used = {node.name.split("[")[0] for node in nodes if node.op == "symbol"}
        inputs |= {"F": opaque_columns(mechanism)} if "F" in used else {}
        same |= {"law": mechanism.law_values.size} if "law" in used else {}
        if LOAD in used and LOAD not in inputs:
            raise DescriptionError(
                f"friction of robot '{mechanism.name}' depends on the load of its joints, which is known only where efforts "
                "were measured: predict with load=, or leave that law out"
            )
    return Compiled(Function(name, inputs, outputs, same, rows))


def function_of(
    mechanism: Mechanism, name: str, make: Callable[[Equations], Outputs], key: Hashable = (), parameters: bool = False
) -> Compiled:
    """Return a compiled function of a robot; `make` gives its outputs and is called when there is no such function yet."""
    return cached(mechanism, (name, key), lambda: compiled(mechanism, name, make(Equations(mechanism)), parameters=parameters))
