"""`Motion`, and the compiled functions of every robot, built once per process and geometry and run over batches of samples.

Parameters are inputs, so copies of a robot with other masses share its code; only the geometry is built in. Inputs are
checked against the robot first. The regressors are Y of tau = Y(q, v, a) phi, and the energy and momentum regressors.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import finite_rows, numbers
from dynident.errors import DescriptionError, DynidentError, require
from dynident.figures import over_time
from dynident.graph.algebra import absolute
from dynident.graph.compiled import Compiled, Evaluated
from dynident.graph.expression import Function, Node, reachable, reverse
from dynident.mechanics.equations import Equations, opaque_columns
from dynident.mechanics.newton_euler import positions_of
from dynident.mechanism.force import Columns, Force
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters, transform_matrix
from dynident.mechanism.tree import FIXED, PRISMATIC, REVOLUTE, SPHERICAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion of n coordinates at N samples.

    One sample may be given as plain vectors; it becomes a batch of one.
    """

    t: Array  #: (N,), time [s], strictly increasing
    q: Array  #: (N, n), positions [rad or m], columns in the order of `Mechanism.coordinate_names`
    v: Array  #: (N, n), velocities
    a: Array  #: (N, n), accelerations

    def __init__(self, t: ArrayLike, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> None:
        time, *arrays = [numbers(x, f"motion: {label}") for x, label in ((t, "t"), (q, "q"), (v, "v"), (a, "a"))]
        time = time if time.ndim else time[None]
        shape, _, _ = shapes = [x.shape if x.ndim > 1 else (1, *x.shape) for x in arrays]
        if time.ndim != 1 or len(shape) != 2 or shapes != [shape] * 3 or time.size != shape[0]:
            given = ", ".join(f"{label} {x.shape}" for label, x in zip("tqva", (time, *arrays), strict=True))
            raise DynidentError(f"motion: shapes do not match ({given}); expected t (N,) and q, v, a (N, n)")
        if time.size > 1 and not (rising := time[1:] > time[:-1]).all():
            bad = int(np.argmin(rising)) + 1
            raise DynidentError(
                f"motion: time does not increase at sample {bad} (t = {time[bad]}); sort or clean the time stamps"
            )
        for label, x in zip("tqva", (time, *arrays), strict=True):
            view = finite_rows("motion: " + label, x).reshape(-1 if label == "t" else shape)
            view.flags.writeable = False
            object.__setattr__(self, label, view)

    @classmethod
    def unchecked(cls, t: Array, q: Array, v: Array, a: Array) -> Motion:
        """Return a motion of valid arrays (N,) and (N, n), without checks."""
        motion = object.__new__(cls)
        for label, array in (("t", t), ("q", q), ("v", v), ("a", a)):
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(motion, label, view)
        return motion

    def __len__(self) -> int:
        return int(self.q.shape[0])

    @property
    def dof(self) -> int:
        """Number of coordinates n."""
        return int(self.q.shape[1])

    def __getitem__(self, rows: slice) -> Motion:
        """Return the samples of a slice as a Motion."""
        if not isinstance(rows, slice):
            raise DynidentError(f"motion: index is {rows!r}; use a slice such as motion[0:100]")
        if rows.step is not None and rows.step < 0:
            raise DynidentError(f"motion: the step of the slice is {rows.step}; time must increase")
        return Motion.unchecked(self.t[rows], self.q[rows], self.v[rows], self.a[rows])

    def plot(self, names: Sequence[str] | None = None) -> Figure:
        """Draw positions, velocities and accelerations over time, one curve per coordinate."""
        if names is not None and len(names) != self.dof:
            raise DynidentError(f"motion: {len(names)} names for {self.dof} coordinates; give one name for each")
        rates = {
            "position\n[rad, m]": self.q,
            "velocity\n[rad/s, m/s]": self.v,
            "acceleration\n[rad/s\u00b2, m/s\u00b2]": self.a,
        }
        return over_time(self.t, rates, names)


MotionLike = Motion | tuple[ArrayLike, ArrayLike, ArrayLike]


def as_motion(motion: MotionLike) -> Motion:
    """Return a motion, from arrays (q, v, a), (N, n) each, with sample numbers as times if necessary."""
    if isinstance(motion, Motion):
        return motion
    if not isinstance(motion, tuple) or len(motion) != 3:
        raise DynidentError(f"motion is a {type(motion).__name__}; give a Motion, or its arrays as (q, v, a)")
    q = numbers(motion[0], "motion: q")
    return Motion(np.arange(float(len(q) if q.ndim > 1 else 1)), q, *motion[1:])


Outputs = Mapping[str, Sequence[Node | None]]
T = TypeVar("T")
KEPT = 512  # functions kept in memory, in addition to functions of robots in use
MOMENTS = (4, 7, 9)  # Ixx, Iyy, Izz among the ten parameters of a body
_made: OrderedDict[Hashable, Any] = OrderedDict()
_own: WeakKeyDictionary[Mechanism, dict[Hashable, Any]] = WeakKeyDictionary()  # comparing geometries takes longer than a call
_keys: WeakKeyDictionary[Mechanism, tuple[Hashable, Hashable, Hashable]] = WeakKeyDictionary()
_lock = threading.RLock()


def cached(mechanism: Mechanism, key: Hashable, build: Callable[[], T], frames: bool = True) -> T:
    """Return the cached object for a robot of this geometry, or build it; other threads wait.

    Objects that use no link frame (`frames` false) are shared by robots that differ only in these, as with a payload.
    """
    with _lock:
        own = _own.get(mechanism)
        if own is None:
            own = _own[mechanism] = {}
        if key not in own:
            whole = (key, geometry_key(mechanism, frames))
            if whole not in _made:
                _made[whole] = build()
                while len(_made) > KEPT:
                    _made.popitem(last=False)
            _made.move_to_end(whole)
            own[key] = _made[whole]
        found: T = own[key]
        return found


def geometry_key(mechanism: Mechanism, frames: bool = True) -> Hashable:
    """Return the cache key of a robot's code: its tree, couplings, loops, joint and motor terms, but not its numbers.

    The key includes the frames of the links unless `frames` is false.
    """
    _, tree, whole = _geometry(mechanism)
    return whole if frames else tree


def motion_key(mechanism: Mechanism) -> Hashable:
    """Return the part of `geometry_key` that determines the kinematics, independent of the bodies."""
    return _geometry(mechanism)[0]


def _geometry(mechanism: Mechanism) -> tuple[Hashable, Hashable, Hashable]:
    """Return the keys of a robot's kinematics, of these with its bodies, and of both with the frames of its links."""
    found = _keys.get(mechanism)
    if found is None:
        loops = (*mechanism.closure.selected, *mechanism.closure.arrays) if mechanism.loops else ()
        parts = [*mechanism.tree.arrays, *loops]
        placed = mechanism.tree.frames.items()
        moving = (
            tuple([(part.shape, part.tobytes()) for part in parts]),
            tuple(mechanism.closure.independent.tolist()) if mechanism.loops else (),
            tuple((c.joint, tuple(c.of.items()), c.offset, c.function) for c in mechanism.couplings),
            tuple((a.name, tuple(a.coupling.items())) for a in mechanism.actuators),
            (mechanism.joint_columns, mechanism.actuator_columns, mechanism.coordinate_names),
            tuple((name, friction.law) for name, friction in mechanism.friction.items()),
            tuple(force.key if isinstance(force, Force) else (force.names, force.function) for force in mechanism.forces),
        )
        poses = tuple([(name, node, pose.rotation.tobytes(), pose.translation.tobytes()) for name, (node, pose) in placed])
        tree = moving, mechanism.tree.bodies
        found = _keys[mechanism] = moving, tree, (tree, poses)
    return found


def declared(
    mechanism: Mechanism,
    name: str,
    outputs: Outputs,
    rows: frozenset[str] = frozenset(),
    more: Mapping[str, int] | None = None,
    parameters: bool = False,
    shared: Mapping[str, int] | None = None,
) -> Function:
    """Return outputs that were made from a robot's `Equations` as a function; `rows` are those with samples last.

    Inputs are q, v, a and `more`; all samples share the standard parameters phi (with `parameters`) and the arrays `shared`.
    """
    inputs = {"q": positions_of(mechanism), "v": mechanism.dof, "a": mechanism.dof, **(more or {})}
    same = {**({"phi": len(mechanism.parameters)} if parameters else {}), **(shared or {})}
    if mechanism.friction or mechanism.forces:
        nodes = reachable([node for own in outputs.values() for node in own if node is not None])
        used = {node.name.split("[")[0] for node in nodes if node.op == "symbol"}
        inputs |= {"F": opaque_columns(mechanism)} if "F" in used else {}
        same |= {"law": mechanism.law_values.size} if "law" in used else {}
        if "phi" in used and "phi" not in same:
            raise DescriptionError(
                f"friction of robot '{mechanism.name}' depends on the load of its joints, so that its torque is not linear in "
                "the parameters; fit_friction identifies it"
            )
    return Function(name, inputs, outputs, same, rows)


def function_of(
    mechanism: Mechanism,
    name: str,
    make: Callable[[Equations], Outputs],
    key: Hashable = (),
    parameters: bool = False,
    links: bool = False,
    few: bool = False,
) -> Compiled | Evaluated:
    """Return a compiled function of a robot; `make` returns its outputs and is called if the function is not cached.

    The `key` identifies constants built into the function, such as the name of a frame. `few`: it is called for some hundred
    samples only, and evaluated by NumPy.
    """

    def made() -> Compiled | Evaluated:
        outputs = make(Equations(mechanism, links=links))
        return (Evaluated if few else Compiled)(declared(mechanism, name, outputs, parameters=parameters))

    return cached(mechanism, (name, key, few), made, frames=key != ())


# ---------------------------------------------------------------------- inputs
def tree_only(mechanism: Mechanism, purpose: str) -> None:
    """Raise an error for a robot with loops where only trees are supported."""
    if mechanism.loops:
        names = ", ".join(loop.name for loop in mechanism.loops)
        raise DescriptionError(f"{purpose} is for trees only, but robot '{mechanism.name}' has loops ({names})")


def coordinates(mechanism: Mechanism, values: ArrayLike, what: str) -> Array:
    """Return an (N, n) array of coordinates after checking it against the robot; one sample may be a plain vector."""
    require(mechanism, Mechanism, "mechanism")
    array = numbers(values, what)
    return finite_rows(what, _fitting(mechanism, array[None, :] if array.ndim == 1 else array, what))


def _fitting(mechanism: Mechanism, array: Array, what: str) -> Array:
    """Return a contiguous array with one column per coordinate of the robot."""
    if array.ndim != 2 or array.shape[1] != mechanism.dof:
        raise DynidentError(
            f"{what} has shape {array.shape} but robot '{mechanism.name}' has {mechanism.dof} coordinates "
            f"({', '.join(mechanism.coordinate_names)}); give one column per coordinate"
        )
    return np.ascontiguousarray(array)


def entering(mechanism: Mechanism, motion: Motion, positions: Array | None = None) -> dict[str, Array]:
    """Return the contiguous input arrays of a robot's functions: q, v, a, and numbers of friction laws and columns.

    With loops q are the closed positions (N, n_tree) of the tree, computed unless given.
    """
    return entering_arrays(mechanism, _fitting(mechanism, motion.q, "motion.q"), motion.v, motion.a, positions)


def entering_arrays(mechanism: Mechanism, q: Array, v: Array, a: Array, positions: Array | None = None) -> dict[str, Array]:
    """Return the same from checked arrays (N, n), which is faster for a single sample than with a `Motion`."""
    arrays = {"q": q, "v": np.ascontiguousarray(v), "a": np.ascontiguousarray(a)}
    if mechanism.loops:
        from dynident.mechanics.closure import close_positions  # noqa: PLC0415 - it stands on this file

        arrays["q"] = close_positions(mechanism, q) if positions is None else np.ascontiguousarray(positions)
    if mechanism.law_values.size:
        arrays["law"] = mechanism.law_values
    own = [force.evaluate(q, v, a) for force in mechanism.forces if isinstance(force, Columns)]
    if own:  # columns by number: all coordinates of the first, then of the next
        arrays["F"] = np.ascontiguousarray(np.concatenate(own, axis=2).transpose(0, 2, 1).reshape(len(q), -1))
    return arrays


def at_rest(mechanism: Mechanism, q: ArrayLike, v: ArrayLike | None = None) -> Motion:
    """Return a motion through given positions without acceleration (and without velocity when none is given)."""
    x = coordinates(mechanism, q, "q")
    rates = np.zeros(x.shape) if v is None else coordinates(mechanism, v, "v")
    if rates.shape != x.shape:
        raise DynidentError(f"v has {rates.shape[0]} samples but q has {x.shape[0]}; they must agree")
    return Motion.unchecked(np.arange(float(len(x))), x, rates, np.zeros(x.shape))


def values_of(mechanism: Mechanism, parameters: Parameters | ArrayLike | None) -> Array:
    """Return the standard parameter vector, checked against the robot; its own values when None."""
    require(mechanism, Mechanism, "mechanism")
    if parameters is None:
        return mechanism.parameters.values
    expected = mechanism.parameters
    if isinstance(parameters, Parameters):
        if parameters.names != expected.names:
            odd = sorted(set(parameters.names) ^ set(expected.names))[:3]
            raise DescriptionError(
                f"parameters do not belong to robot '{mechanism.name}': they differ in {', '.join(odd) or 'their order'}; "
                "start from mechanism.parameters.replace(...)"
            )
        values = parameters.values
    else:
        values = numbers(parameters, "parameters")
    if values.shape != (len(expected),):
        raise DescriptionError(
            f"parameters have shape {values.shape} but robot '{mechanism.name}' has {len(expected)} "
            f"({' ... '.join(expected.names[:: max(1, len(expected) - 1)])}); give one number each"
        )
    if not np.all(np.isfinite(values)):
        bad = int(np.argmin(np.isfinite(values)))
        raise DescriptionError(f"parameter '{expected.names[bad]}' is {values[bad]}; every parameter must be finite")
    return values


def node_values(mechanism: Mechanism, values: Array) -> Array:
    """Return the standard parameters with the inertial ones in node frames, the input of compiled functions."""
    tree = mechanism.tree
    phi = np.array(values, dtype=np.float64)
    if tree.to_node is not None:
        phi[: tree.inertias.size] = tree.to_node @ phi[: tree.inertias.size]
    return phi


def lumped_values(mechanism: Mechanism) -> Array:
    """Return the standard parameters of a robot as input of compiled code of `lumped_symbols`."""
    phi, count = node_values(mechanism, np.array(mechanism.parameters.values)), mechanism.tree.inertias.size
    phi[:count] = _lumping(mechanism) @ phi[:count]
    return phi


def lumped_symbols(mechanism: Mechanism, phi: Sequence[Node]) -> list[Node]:
    """Return standard parameters as expressions, inertial ones zero where the robot's structure allows it."""
    used = [bool(np.any(row)) for row in _lumping(mechanism)]
    return [*(x if own else x.graph.zero for x, own in zip(phi, used, strict=False)), *phi[len(used) :]]


def _lumping(mechanism: Mechanism) -> Array:
    return cached(mechanism, "lumping", lambda: lumping(mechanism), frames=False)


def lumping(mechanism: Mechanism) -> Array:
    """Return L (10 b, 10 b) with phi' = L phi in node frames: inertia indistinguishable from the parent's is moved there.

    Inertia symmetric about the axis u of a hinge may belong to the parent or to the child: a mass at its origin,
    a first moment along u, an inertia J (1 - u u^T). So may the inertia tensor behind a slide. Moved from the tips to the
    base, phi' has zeros for m, h.u and one moment of inertia behind every hinge, for six moments behind every slide.
    Accelerations are the same with phi and phi'; the potential energy differs by a constant.
    """
    tree = mechanism.tree.arrays
    L = np.eye(mechanism.tree.inertias.size)
    for i in reversed(range(tree.parent.size)):
        column, parent = int(tree.column[i]), int(tree.parent[i])
        if column < 0 or (parent >= 0 and tree.column[parent] < 0):  # no parameters to move, or no parent to move them to
            continue
        own = L[column : column + 10]
        alike = _alike(int(tree.kind[i]), tree.axis[i]) @ own
        if parent >= 0:
            above = int(tree.column[parent])
            L[above : above + 10] += transform_matrix(tree.rotation[i], tree.translation[i]) @ alike
        own -= alike
    return L


def _alike(kind: int, axis: Array) -> Array:
    """Return the projector onto the inertial parameters that a parent link cannot distinguish at any position of a joint."""
    if kind == FIXED:
        return np.eye(10)
    part = np.zeros((10, 10))
    part[0, 0] = kind in (REVOLUTE, SPHERICAL)
    part[4:, 4:] = (kind == PRISMATIC) * np.eye(6)
    along = np.flatnonzero(np.abs(axis) > 1e-12)
    if kind == REVOLUTE and along.size == 1:  # for oblique axes only the mass is moved, which leaves zeros too
        part[1 + along[0], 1 + along[0]] = 1.0
        one, other = np.delete(MOMENTS, along[0])
        part[one, other] = part[other, other] = 1.0
    return part


# ---------------------------------------------------------------------- evaluation
def run(
    function: Compiled | Evaluated,
    arrays: Mapping[str, Array],
    values: Array | None,
    shapes: Mapping[str, tuple[int, ...]],
    out: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """Return the outputs of a robot's function over all samples; `shapes` are those of one sample."""
    samples = arrays["q"].shape[0]
    given = out or {}
    made = {name: given[name] if name in given else np.empty((samples, *shape)) for name, shape in shapes.items()}
    shared = {} if values is None else {"phi": values}
    function(samples, {**arrays, **shared, **made})
    return made


def quantity(
    mechanism: Mechanism,
    name: str,
    make: Callable[[Equations], Sequence[Node] | Sequence[Sequence[Node]]],
    shape: tuple[int, ...],
    arrays: Mapping[str, Array],
    values: Array | None = None,
    key: Hashable = (),
    out: Array | None = None,
    few: bool = False,
) -> Array:
    """Return one vector or matrix of a robot over all samples, (N, *shape); `values` are its parameters, `few` as above."""

    def outputs(x: Equations) -> Outputs:
        rows = [row if isinstance(row, Sequence) else (row,) for row in make(x)]
        return {"out": [entry for row in rows for entry in row]}

    function = function_of(mechanism, name, outputs, key, parameters=values is not None, few=few)
    return run(function, arrays, values, {"out": shape}, {} if out is None else {"out": out})["out"]


class TreeMotion(NamedTuple):
    """Motion of all tree coordinates, (N, n_tree) each, and its projector from the robot's coordinates."""

    q: Array
    v: Array
    a: Array
    G: Array | None  # (N, n_tree, n), v = G nu; None for a plain tree


class ClosedMotion(NamedTuple):
    """A motion of all tree coordinates, (N, n_tree) each, that keeps the loops closed."""

    q: Array
    v: Array
    a: Array
    G: Array  # (N, n_tree, n), v = G nu
    pivot: Array  # (N,), smallest over largest pivot of the closure; near zero at a singularity of the chosen coordinates


def tree_motion(mechanism: Mechanism, motion: MotionLike) -> TreeMotion:
    """Return q, v, a of all tree coordinates, from couplings and loop closure where present."""
    arrays = entering(mechanism, as_motion(motion))
    if not mechanism.loops and not mechanism.couplings:
        return TreeMotion(arrays["q"], arrays["v"], arrays["a"], None)
    return TreeMotion(*tree_rates(mechanism, arrays)[:4])


def tree_rates(mechanism: Mechanism, arrays: Mapping[str, Array]) -> ClosedMotion:
    """Return the tree motion of a mechanism with couplings or loops, from the arrays of `entering`."""

    def make(x: Equations) -> Outputs:
        projector = [entry for row in x.G or [] for entry in row]
        return {"qt": x.tree_q, "vt": x.tree_v, "at": x.tree_a, "G": projector, "pivot": [absolute(x.pivot)]}

    wide = len(mechanism.tree.coordinates)
    shapes = {"qt": (wide,), "vt": (wide,), "at": (wide,), "G": (wide, mechanism.dof), "pivot": ()}
    return ClosedMotion(*run(function_of(mechanism, "tree_motion", make), arrays, None, shapes).values())


def project(G: Array | None, rows: Array) -> Array:
    """Return G^T x: forces of the tree coordinates (N, n_tree) on the robot's own."""
    return rows if G is None else np.asarray(np.einsum("stn,st->sn", G, rows))


def regressor(mechanism: Mechanism, motion: MotionLike, out: Array | None = None) -> Array:
    """Return Y with tau = Y phi for the standard parameters phi of `mechanism.parameters`.

        M(q) a + C(q, v) v + g(q) + rotor, friction, offset and spring torques = Y(q, v, a) phi

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and p standard parameters.
    motion : Motion or (q, v, a)
        N samples.
    out : ndarray (N, n, p), optional
        Output array, contiguous float64; allocation of new memory costs more than the computation.

    Returns
    -------
    ndarray, (N, n, p)
        Regressor; columns in the order of ``mechanism.parameters.names``, N m or N per unit of the parameter.

    Examples
    --------
    >>> import numpy as np, dynident as di
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.2, 0, 0, 0)], convention="standard")
    >>> motion = di.Motion([0.0], [0.1, 0.2], [1.0, -1.0], [0.5, 0.5])
    >>> di.regressor(arm, motion).shape
    (1, 2, 28)
    """
    motion = as_motion(motion)
    arrays = entering(mechanism, motion)
    shape = (mechanism.dof, len(mechanism.parameters))
    if out is not None and not isinstance(out, np.ndarray):
        raise DynidentError(f"out is a {type(out).__name__}; give a contiguous float64 array to write into")
    if out is not None and (out.shape != (len(motion), *shape) or out.dtype != np.float64 or not out.flags.c_contiguous):
        wanted = (len(motion), *shape)
        raise DynidentError(
            f"out has shape {out.shape} and type {out.dtype}; give a contiguous float64 array of shape {wanted}"
        )
    return quantity(mechanism, "regressor", Equations.regressor, shape, arrays, out=out)


def weighted_regressor(mechanism: Mechanism, motion: MotionLike, weights: ArrayLike) -> Array:
    """Return sums of the regressor's rows, w^T Y(q, v, a), by one reverse sweep: its cost grows with n, not with n^2.

    With w = v it is the regressor of the actuator power. It is for some hundred samples (`Evaluated`).
    """
    motion = as_motion(motion)

    def build() -> Evaluated:
        x = Equations(mechanism, links=True)
        row = reverse(x.torques(), x.graph.symbols("w", mechanism.dof), x.phi)
        return Evaluated(declared(mechanism, "weighted_regressor", {"Y": row}, more={"w": mechanism.dof}))

    w = numbers(weights, "weights")
    if w.ndim != 3 or w.shape[0] != len(motion) or w.shape[2] != mechanism.dof:
        raise DynidentError(f"weights have shape {w.shape}; give (N, m, n) with N = {len(motion)} and n = {mechanism.dof}")
    entered = entering(mechanism, motion).items()
    arrays = {name: array if name == "law" else np.repeat(array, w.shape[1], axis=0) for name, array in entered}
    arrays["w"] = np.ascontiguousarray(w.reshape(-1, mechanism.dof))
    p = len(mechanism.parameters)
    Y = run(cached(mechanism, ("weighted_regressor", ()), build), arrays, None, {"Y": (p,)})["Y"]
    return Y.reshape(*w.shape[:2], p)


def energy_regressor(mechanism: Mechanism, motion: MotionLike) -> tuple[Array, Array]:
    """Return the energy regressors Y_T, Y_U (N, p) of a `mechanism` along a `motion` (q, v, a): T = Y_T phi, U = Y_U phi [J].

        T = sum m v.v/2 + h.(v x omega) + omega.I omega/2 + ia v_joint^2/2,   U = -sum g.(m p + R h) + k q^2/2 + off q

    Columns of non-conservative terms are zero: friction, the offset of `spherical` and `free` joints (a torque fixed in the
    child frame), and the spring of a `free` joint or of a `spherical` one with unequal stiffnesses.
    """
    motion = as_motion(motion)

    def make(x: Equations) -> Outputs:
        kinetic, potential = x.energies()
        return {"T": reverse([kinetic], [1.0], x.phi), "U": reverse([potential], [1.0], x.phi)}

    arrays, p = entering(mechanism, motion), len(mechanism.parameters)
    out = run(function_of(mechanism, "energies", make, links=True), arrays, None, {"T": (p,), "U": (p,)})
    return out["T"], out["U"]
