"""`CompiledFunction`: one quantity of a robot at one sample as machine code, for control loops in Python.

The batch functions of `dynident.mechanics` check, copy and allocate; here all arrays are allocated once, so that a call costs
about a microsecond more than its machine code. Numbers (masses, payload, friction) are inputs of the code, so `update` changes
them without compiling again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynident.arrays import Array
from dynident.control.feedforward import feedforward_function
from dynident.errors import DynidentError
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Function
from dynident.mechanics.branch import Branch
from dynident.mechanics.dynamics import SINGULAR, forward_dynamics_function
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import cached, declared, geometry_key, motion_key, node_values
from dynident.mechanism.force import Columns

if TYPE_CHECKING:
    from dynident.mechanism.mechanism import Mechanism


FLOAT = np.dtype(np.float64)


class Quantity(NamedTuple):
    """A quantity that can be compiled.

    Its first output is the result; a second output must be above `bound`, otherwise there is no result.
    """

    inputs: tuple[str, ...]  # in the order of the call
    function: Callable[[Mechanism, str], Function]  # of a robot and a link
    shape: Callable[[Mechanism], tuple[int, ...]]
    framed: bool = False  # of a link, which must be named
    bound: float = 0.0


def _made(name: str, make: Callable[[Equations, str], Sequence[Any]]) -> Callable[[Mechanism, str], Function]:
    """Return a function of robot and link; `make` returns a vector or matrix of expressions."""

    def function(robot: Mechanism, frame: str) -> Function:
        rows = make(Equations(robot), frame)
        entries = [entry for row in rows for entry in (row if isinstance(row, Sequence) else (row,))]
        return declared(robot, name, {"out": entries}, parameters=True)

    return function


def _vector(robot: Mechanism) -> tuple[int, ...]:
    return (robot.dof,)


def _square(robot: Mechanism) -> tuple[int, ...]:
    return (robot.dof, robot.dof)


QUANTITIES = {
    "inverse_dynamics": Quantity(("q", "v", "a"), _made("inverse_dynamics", lambda x, _: x.torques()), _vector),
    "forward_dynamics": Quantity(("q", "v", "tau"), lambda robot, _: forward_dynamics_function(robot), _vector, bound=SINGULAR),
    "feedforward": Quantity(
        ("q", "v", "a"), lambda robot, _: feedforward_function(robot, {}), lambda robot: (len(robot.actuators),)
    ),
    "gravity": Quantity(("q",), _made("gravity", lambda x, _: x.gravity()), _vector),
    "mass_matrix": Quantity(("q",), _made("mass_matrix", lambda x, _: x.mass_matrix()), _square),
    "coriolis_matrix": Quantity(("q", "v"), _made("coriolis_matrix", lambda x, _: x.coriolis_matrix()), _square),
    "regressor": Quantity(
        ("q", "v", "a"), _made("regressor", lambda x, _: x.regressor()), lambda robot: (robot.dof, len(robot.parameters))
    ),
    "jacobian": Quantity(("q",), _made("jacobian", Equations.jacobian), lambda robot: (6, robot.dof), framed=True),
    "frame_pose": Quantity(("q",), _made("frame_pose", Equations.pose_matrix), lambda _: (4, 4), framed=True),
}


class CompiledFunction:
    """One quantity of a robot at one sample, for control loops.

        f = robot.compiled("inverse_dynamics")
        tau = f(q, v, a)                # a new array
        f(q, v, a, out=tau)             # nothing is allocated

    Each object has its own memory: use one object per thread. The interpreter lock is released during a call. The first
    object of a robot's geometry compiles, which takes from 0.1 s to seconds unless the code is in the cache on disk. A pickled
    object is compiled again where it is loaded.

    With loops, positions are the independent coordinates. Each call closes the loops from the last closed configuration (home
    at first), along the straight line between both; if this fails, an error is raised and `out` is unchanged.

    Parameters
    ----------
    robot : Mechanism
        Robot with n coordinates and p standard parameters.
    name : str
        ``"inverse_dynamics"`` f(q, v, a) -> (n,), ``"forward_dynamics"`` f(q, v, tau) -> (n,), ``"gravity"`` f(q) -> (n,),
        ``"mass_matrix"`` f(q) -> (n, n), ``"coriolis_matrix"`` f(q, v) -> (n, n), ``"regressor"`` f(q, v, a) -> (n, p),
        ``"jacobian"`` f(q) -> (6, n) in the axes of the link, ``"frame_pose"`` f(q) -> (4, 4), or ``"feedforward"``
        f(q, v, a) -> (k,), torques of the k actuators on the joint side with friction, of minimum norm if k > n.
    frame : str, optional
        Link of the Jacobian or pose.

    Examples
    --------
    >>> import numpy as np, dynident as di
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0)], convention="standard", gravity=(0, -9.81, 0)).with_payload(2.0)
    >>> f = arm.compiled("inverse_dynamics")
    >>> f(np.zeros(1), np.zeros(1), np.zeros(1)).round(4)
    array([5.886])
    """

    def __init__(self, robot: Mechanism, name: str, frame: str | None = None) -> None:
        if name not in QUANTITIES:
            raise DynidentError(f"'{name}' cannot be compiled; use one of {', '.join(QUANTITIES)}")
        if any(isinstance(force, Columns) for force in robot.forces):
            raise DynidentError(f"robot '{robot.name}' has forces given as Python functions of arrays; they cannot be compiled")
        quantity = QUANTITIES[name]
        if quantity.framed and frame is None:
            raise DynidentError(f"'{name}' needs a link; give frame=, such as '{robot.bodies[-1].name}'")
        if not quantity.framed and frame is not None:
            raise DynidentError(f"'{name}' has no frame; omit frame=")
        if frame is not None:
            robot.frame(frame)
        self.robot, self.name, self.frame = robot, name, frame
        self._first = robot  # compiled for its bodies
        self.inputs, self.shape, self._bound = quantity.inputs, quantity.shape(robot), quantity.bound
        code = cached(robot, ("one sample", name, frame), lambda: Compiled(quantity.function(robot, frame or ""), 1))
        function = code.function
        arrays = {label: np.zeros((1, size)) for label, size in function.inputs.items()}
        made = {label: np.zeros((1, len(entries))) for label, entries in function.outputs.items()}
        self._shared = {label: np.zeros(size) for label, size in function.shared.items()}
        result, *check = made.values()
        self._out, self._ok = result.reshape(self.shape), check[0] if check else None
        self._strides = self._out.strides
        self._accepted: Array | None = None  # most recent `out`
        self._closing = _Closing(robot, arrays["q"]) if robot.loops else None
        given = arrays | ({"q": self._closing.given} if self._closing else {})
        self._n, self._count = robot.dof, len(self.inputs)
        self._q, self._v, self._a = [*(given[label][0] for label in self.inputs), *np.zeros((2, robot.dof))][:3]
        self._table = code.table({**arrays, **made, **self._shared}, 1)  # addresses of the arrays
        self._arguments = ctypes.c_int64(0), ctypes.c_int64(1), ctypes.c_void_p(self._table.ctypes.data)
        self._arrays, self._code = arrays, code.call
        self.update(robot)

    def update(self, robot: Mechanism) -> None:
        """Use the numbers of a robot with the same geometry: other parameters or friction, with or without a payload."""
        if motion_key(robot) != motion_key(self._first):
            raise DynidentError(
                f"robot '{robot.name}' has a different geometry or different terms; compile it with robot.compiled()"
            )
        if "phi" in self._shared:
            self._shared["phi"][:] = carried_by(self._first, robot)
        if "law" in self._shared:
            self._shared["law"][:] = robot.law_values
        self.robot = robot

    def __call__(self, q: Array, v: Array | None = None, a: Array | None = None, out: Array | None = None) -> Array:
        """Return the quantity at one sample, given vectors in the order of `inputs`; see the class."""
        # Unrolled, because a loop over three vectors takes longer than the machine code of a robot with six axes.
        n, count = self._n, self._count
        if (v is None) is (count > 1) or (a is None) is (count > 2):
            raise DynidentError(f"'{self.name}' takes the vectors {', '.join(self.inputs)}")
        if len(q) != n or (v is not None and len(v) != n) or (a is not None and len(a) != n):
            raise DynidentError(f"'{self.name}' takes vectors of {n} numbers; q has the shape {np.shape(q)}")
        self._q[...] = q
        if v is not None:
            self._v[...] = v
        if a is not None:
            self._a[...] = a
        if out is not None and out is not self._accepted:  # a check per call would take a tenth of its time
            if out.shape != self.shape or out.dtype != FLOAT or out.strides != self._strides:
                raise DynidentError(f"out of '{self.name}' must be a contiguous float64 array of shape {self.shape}")
            self._accepted = out
        if self._closing is not None:
            self._closing()
        self._code(*self._arguments)
        if self._ok is not None and not self._ok[0, 0] > self._bound:
            raise DynidentError(f"'{self.name}' of robot '{self.robot.name}' is singular at q = {q}")
        if out is None:
            return self._out.copy()
        out[...] = self._out
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledFunction, (self.robot, self.name, self.frame)

    def __repr__(self) -> str:
        return f"<compiled {self.name}({', '.join(self.inputs)}) -> {self.shape} of robot '{self.robot.name}'>"


def carried_by(first: Mechanism, robot: Mechanism) -> Array:
    """Return the parameters of a robot in the node frames of the `first` robot, which has the same geometry.

    Bodies of only one of the two, such as a payload, are merged with another body on the same node.
    """
    values = node_values(robot, robot.parameters.values)
    if geometry_key(robot, frames=False) == geometry_key(first, frames=False):
        return values
    own, other = first.tree, robot.tree
    phi = np.zeros(len(first.parameters))
    phi[own.inertias.size :] = values[other.inertias.size :]
    place: dict[int, int] = {}
    for k, body in enumerate(own.bodies):
        place.setdefault(own.frames[body][0], 10 * k)
    for k, body in enumerate(other.bodies):
        node = other.frames[body][0]
        if node not in place:
            raise DynidentError(
                f"'{body}' is on a link without mass in the compiled robot; compile robot '{robot.name}' itself"
            )
        phi[place[node] : place[node] + 10] += values[10 * k : 10 * k + 10]
    return phi


class _Closing:
    """Closes the loops at one sample, from the last closed configuration: `given` (1, n) -> `closed` (1, n_tree)."""

    def __init__(self, robot: Mechanism, closed: Array) -> None:
        self.robot, names = robot, robot.coordinate_names
        self._walk = cached(robot, ("branch", names), lambda: Branch(robot, names)).walk
        self.given, self._closed = np.zeros((1, robot.dof)), closed
        self._head, self._start = np.array([1.0, -1.0]), np.array(robot.closure.home, dtype=np.float64)
        self._work = np.zeros(3 * closed.size + 8)
        arrays = self._head, self.given, self._start, self._work, self._closed
        self._arguments = tuple(ctypes.c_void_p(array.ctypes.data) for array in arrays)

    def __call__(self) -> None:
        self._walk(*self._arguments)
        if self._head[1] >= 0.0:
            self._head[1] = -1.0
            at = ", ".join(f"{name} = {x:.6g}" for name, x in zip(self.robot.coordinate_names, self.given[0], strict=True))
            raise DynidentError(
                f"robot '{self.robot.name}' cannot reach {at} from its last position: out of reach, or through a singularity; "
                "give positions in smaller steps or away from there"
            )
        self._start[:] = self._closed[0]
