"""The machine code of every robot that is simulated, made once per process and geometry."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache

from dynident.errors import DynidentError
from dynident.mechanics.packed import CLOSURE, MOTION, SOLVE, Arena
from dynident.mechanism import Mechanism
from dynident.symbolic.motion import motion_tasks
from dynident.symbolic.print_llvm import Native

LARGEST = 8000  # nodes of the expressions: a dozen axes in general position, a second of compilation that grows with the square

log = logging.getLogger(__name__)


class _Geometry:
    """What the code of a robot depends on, as a key; the robot itself comes along."""

    def __init__(self, mechanism: Mechanism) -> None:
        parts = [*mechanism.tree.arrays, *(mechanism.closure.selected if mechanism.loops else ())]
        self.key = (mechanism.dof, *((part.shape, part.tobytes()) for part in parts))
        self.mechanism = mechanism

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Geometry) and self.key == other.key


@lru_cache(maxsize=256)
def _native(geometry: _Geometry) -> Native | None:
    try:
        return Native(motion_tasks(geometry.mechanism, LARGEST))
    except DynidentError:
        log.info("robot '%s' is simulated by the code for any robot: its own would be too long", geometry.mechanism.name)
        return None


def own_code(mechanism: Mechanism) -> Native | None:
    """Return the machine code of a robot's equation of motion.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.

    Returns
    -------
    Native or None
        Functions ``motion``, ``solve`` and, with loops, ``closure``; None for a robot so large that compiling would take long.
    """
    from dynident.mechanics.native_kernels import global_compiler_lock  # noqa: PLC0415 - numba is imported on first use

    with global_compiler_lock:  # LLVM is shared with numba and compiles for one thread at a time
        return _native(_Geometry(mechanism))


def add_native(arena: Arena, mechanism: Mechanism) -> None:
    """Add the addresses of a robot's own code.

    Parameters
    ----------
    arena : Arena
        Where to.
    mechanism : Mechanism
        Robot.
    """
    code = own_code(mechanism)
    arena.keep(code)  # the cache may forget it
    address: Callable[[str], int] = code.address if code is not None else lambda _: 0
    arena.number(MOTION, address("motion"))
    arena.number(CLOSURE, address("closure"))
    arena.number(SOLVE, address("solve"))
