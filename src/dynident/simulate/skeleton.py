"""Mechanism and friction as the arrays that the compiled simulation runs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynident.errors import SimulationError
from dynident.friction import DynamicLaw, Friction
from dynident.mechanics.batch import inertial_values
from dynident.mechanics.joint_terms import joint_groups, motor_columns
from dynident.mechanics.packed import MASS, SPEED, Arena, add_tree
from dynident.mechanism import Mechanism
from dynident.mechanism.loops import LINEAR, LoopArrays
from dynident.mechanism.tree import FREE, SPHERICAL, TreeArrays
from dynident.simulate import layout as at
from dynident.simulate.laws import TERM_ROWS, WIDTH, Row, law_rows, row_numbers
from dynident.simulate.native import add_native

Array = NDArray[np.float64]


def actuator_rows(mechanism: Mechanism) -> Array:
    """Return N (k, n_tree) with rho = N q_t + n0, on tree coordinates whether there are loops or not.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with k actuators.

    Returns
    -------
    ndarray, (k, n_tree)
        Rows of the actuators, their ratios included.
    """
    N = mechanism.actuator_matrix[0]
    if mechanism.loops:
        return np.array(N)
    rows = np.zeros((N.shape[0], len(mechanism.tree.coordinates)))
    rows[:, own_coordinates(mechanism)] = N
    return rows


def own_coordinates(mechanism: Mechanism) -> NDArray[np.int64]:
    """Return the tree coordinates that are the robot's own.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.

    Returns
    -------
    ndarray of int, (n,)
        Indices into the tree's coordinates.
    """
    return np.array([mechanism.tree.coordinates.index(name) for name in mechanism.coordinate_names], dtype=np.int64)


def joint_inertias(mechanism: Mechanism) -> tuple[Array, list[tuple[Array, Row]]]:
    """Return what joint and motor terms of a mechanism are in a simulation.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.

    Returns
    -------
    base : ndarray, (n_tree, n_tree)
        Rotor inertias `ia` of joints and coupled motors.
    rows : list of (ndarray (n_tree,), Row)
        Friction, offsets and springs, with the form of the tree coordinates that each acts on.
    """
    values = mechanism.parameters.values
    count = len(mechanism.tree.coordinates)
    unit, base = np.eye(count), np.zeros((count, count))
    rows: list[tuple[Array, Row]] = []
    found = [
        (unit[c], group.term.symbol, values[column])
        for group in joint_groups(mechanism)
        for c, column in zip(group.coordinates, group.columns, strict=True)
    ]
    found += [(row, term.symbol, values[column]) for column, term, row in motor_columns(mechanism)]
    for form, symbol, value in found:
        if value == 0.0:
            continue
        if symbol == "ia":
            base += value * np.outer(form, form)
        else:
            if symbol not in TERM_ROWS:
                raise SimulationError(f"the simulation has no form of the joint term '{symbol}'; set its parameter to zero")
            kind, way, more = TERM_ROWS[symbol]
            rows.append((form, Row(kind, way, (float(value), *more))))
    return base, rows


def add_skeleton(arena: Arena, mechanism: Mechanism, base: Array, motors: Array) -> None:
    """Add the regions of a mechanism: its tree, what follows from its own coordinates, its actuators, and work space.

    Parameters
    ----------
    arena : Arena
        Where to.
    mechanism : Mechanism
        Robot.
    base, motors : ndarray, (n_tree, n_tree)
        Constant inertias added to the bodies', and those kept apart for the decoupled simulation.
    """
    if any(coupling.function is not None for coupling in mechanism.couplings):
        names = ", ".join(c.joint for c in mechanism.couplings if c.function is not None)
        raise SimulationError(
            f"robot '{mechanism.name}': the couplings of {names} are Python functions, which the simulation cannot compile; "
            "describe them by loops or by linear couplings"
        )
    tree = mechanism.tree.arrays
    count, n = len(mechanism.tree.coordinates), mechanism.dof
    own = own_coordinates(mechanism)
    rest = np.setdiff1d(np.arange(count), own)
    cuts: LoopArrays | None = None
    g0 = np.zeros(count)
    if mechanism.loops:
        cuts, rest = mechanism.closure.selected, mechanism.closure.dependent
        G = np.zeros((count, n))
        G[own, np.arange(n)] = 1.0
    else:
        G, g0 = mechanism.coupling_map
    m = rest.size if cuts is not None else 0
    add_tree(arena, tree, inertial_values(mechanism, mechanism.parameters.values), base)
    add_native(arena, mechanism)
    N = actuator_rows(mechanism)
    single = np.count_nonzero(N, axis=1) == 1
    arena.number(at.DOF, n)
    arena.number(at.MODE, at.LOOPED if cuts is not None else (at.COUPLED if mechanism.couplings else at.TREE))
    arena.number(at.BALLS, int(np.isin(tree.kind, (SPHERICAL, FREE)).any()))
    arena.number(at.MISSING, rest.size)
    arena.number(at.ACTUATORS, N.shape[0])
    arena.integers(at.INDEPENDENT, own)
    arena.integers(at.DEPENDENT, rest)
    arena.integers(at.SWAP, [np.zeros(m), np.zeros(m) if cuts is None else block_ends(cuts, tree, rest)])
    arena.integers(at.DRIVEN, np.where(single, np.argmax(N != 0.0, axis=1), -1))
    arena.floats(at.MAP, G)
    arena.floats(at.CONSTANT, g0)
    arena.floats(at.CURVE, np.zeros(count))
    if cuts is not None:
        places = np.column_stack([cuts.node_a, cuts.node_b, cuts.point_a, cuts.point_b])
        same = [i > 0 and cuts.kind[i - 1] != LINEAR and bool(np.array_equal(places[i], places[i - 1])) for i in range(m)]
        arena.integers(at.CUT, np.stack([cuts.kind, cuts.node_a, cuts.node_b, same], axis=1))
        points = [cuts.point_a, cuts.point_b, cuts.vector_a, cuts.vector_b, cuts.offset[:, None]]
        arena.floats(at.CUTS, np.concatenate(points, axis=1))
        arena.floats(at.LINEAR, cuts.linear)
    for key, shape in ((at.JACOBIAN, (m, count)), (at.LU, (m, m)), (at.RIGHT, (m, n + 1)), (at.WORK, (count, max(n, 1)))):
        arena.floats(key, np.zeros(shape))
    for key, shape in ((at.GENERAL, (n, n)), (at.OTHER, (n, n)), (at.TRIAL, (2, n))):
        arena.floats(key, np.zeros(shape))
    arena.floats(at.COUPLING, N)
    arena.floats(at.OFFSETS, mechanism.actuator_matrix[1])
    arena.floats(at.MOTORS, motors)


def block_ends(cuts: LoopArrays, tree: TreeArrays, dependent: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the diagonal block of every closure equation ends.

    Equations of legs that are listed one after the other depend on different joints; their Jacobian is then block diagonal.

    Parameters
    ----------
    cuts : LoopArrays
        Closure equations, m of them.
    tree : TreeArrays
        Flat tree.
    dependent : ndarray of int, (m,)
        Dependent tree coordinates.

    Returns
    -------
    ndarray of int, (m,)
        First equation and dependent coordinate behind the block.
    """
    felt = cuts.linear != 0.0
    for i, kind in enumerate(cuts.kind):
        for node in (cuts.node_a[i], cuts.node_b[i]) if kind != LINEAR else ():
            if node >= 0:
                felt[i, tree.support[node, : tree.support_count[node]]] = True
    felt = felt[:, dependent]
    m = dependent.size
    bounds = [k for k in range(1, m + 1) if not felt[:k, k:].any() and not felt[k:, :k].any()]
    return np.array([next(k for k in bounds if k > i) for i in range(m)], dtype=np.int64)


@dataclass(eq=False)
class Rubbing:
    """All friction of a robot: who has it, its rows, and how fast it stops its owner.

    Parameters
    ----------
    owners : list of str
        Joint forms first ("joint elbow"), then one per rotor ("motor elbow").
    forms : list of ndarray, (n_tree,)
        Forms of the joints.
    rows : list of list of Row
        Rows of every owner.
    stick : ndarray
        Speed that a unit force takes away within one step, per owner; see `settle`.
    """

    owners: list[str]
    forms: list[Array]
    rows: list[list[Row]]
    stick: Array = field(default_factory=lambda: np.zeros(0))

    def add(self, arena: Arena, count: int) -> None:
        """Add the regions of the friction.

        Parameters
        ----------
        arena : Arena
            Where to.
        count : int
            Number of tree coordinates.
        """
        flat = [row for rows in self.rows for row in rows]
        forms = np.array(self.forms).reshape(len(self.forms), count)
        single = (np.count_nonzero(forms, axis=1) == 1) & (forms.max(axis=1, initial=0.0) == 1.0)
        arena.number(at.FORMS, len(self.forms))
        arena.number(at.MEMORY, self.memory)
        arena.number(at.OWNERS, len(self.rows))
        arena.integers(at.LAW_FIRST, np.cumsum([0, *(len(rows) for rows in self.rows)]))
        arena.integers(at.LAW_KIND, np.array([(row.kind, row.way + at.WAVED * row.wave) for row in flat]).reshape(-1, 2))
        arena.floats(at.LAW, np.zeros((len(flat), at.LAW_WIDTH)))
        arena.integers(at.FORM, np.where(single, np.argmax(forms, axis=1), -1) if self.forms else np.zeros(0))
        arena.floats(at.FORM_ROWS, forms)
        arena.floats(at.RUB, np.zeros(len(self.forms)))
        arena.number(at.PLACED, int(any(row.wave in (at.COSINE, at.SINE) for row in flat)))
        arena.floats(at.GRIP, np.zeros((len(self.rows) + 1, at.GRIP_WIDTH)))
        arena.floats(at.REPLY, np.zeros((len(self.rows), 2, count)))

    def settle(self, arena: Arena, stick: Array, step: float | None = None) -> None:
        """Write the numbers of all rows, and who can stick.

        Parameters
        ----------
        arena : Arena
            Packed.
        stick : ndarray
            As from `sticking`, one per owner.
        step : float, optional
            Step of a plant [s]; when omitted (a controller's model) jumps are softened instead.
        """
        self.stick = stick
        grip = arena.view(at.GRIP)
        grip[:-1, at.JUMPS] = [any(row.holds for row in rows) for rows in self.rows]
        grip[:-1, at.ASKS_LOAD] = [any(row.wave == at.LOAD for row in rows) for rows in self.rows]
        if step is None:
            grip[:-1, at.SOFT] = grip[:-1, at.JUMPS] / stick
        else:
            grip[-1, at.RATE] = 1.0 / step
        numbers = [row_numbers(row, float(s)) for rows, s in zip(self.rows, stick, strict=True) for row in rows]
        arena.view(at.LAW)[:, :WIDTH] = np.array(numbers).reshape(-1, WIDTH)

    @property
    def jumps(self) -> Array:
        """1 for every owner whose friction jumps with the sign of its speed, else 0."""
        return np.array([float(any(row.jump > 0.0 for row in rows)) for rows in self.rows])

    @property
    def memory(self) -> int:
        """2 when a law has bristles, 1 when friction can hold or looks at the load, else 0."""
        every = [row for rows in self.rows for row in rows]
        if any(row.kind >= at.DAHL for row in every):
            return 2
        return int(any(row.holds or row.wave == at.LOAD for row in every))

    @property
    def warms(self) -> bool:
        """Whether a law looks at the temperature."""
        return any(row.warmth for rows in self.rows for row in rows)


def rubbing_of(
    mechanism: Mechanism,
    rows: Sequence[tuple[Array, Row]],
    friction: Mapping[str, Friction | DynamicLaw],
    motors: Sequence[tuple[str, Friction | DynamicLaw | None]],
) -> Rubbing:
    """Collect the friction of joints and rotors.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    rows : sequence of (ndarray (n_tree,), Row)
        From the mechanism's own terms.
    friction : mapping of str to Friction or DynamicLaw
        More friction, by tree coordinate.
    motors : sequence of (str, Friction, DynamicLaw or None)
        Name and friction of every rotor, in the order of the actuators.

    Returns
    -------
    Rubbing
        Not yet settled.
    """
    names = mechanism.tree.coordinates
    gathered: dict[tuple[float, ...], tuple[str, Array, list[Row]]] = {}

    def owner(form: Array) -> list[Row]:
        used = np.flatnonzero(form)
        name = f"joint {names[used[0]]}" if used.size == 1 else "motor of " + " and ".join(names[i] for i in used)
        return gathered.setdefault(tuple(form.tolist()), (name, form, []))[2]

    for form, row in rows:
        owner(form).append(row)
    for coordinate, law in friction.items():
        if coordinate not in names:
            raise SimulationError(
                f"friction names '{coordinate}', which is no joint of '{mechanism.name}'; they are {', '.join(names)}"
            )
        j, more = names.index(coordinate), law_rows(law, coordinate)
        if any(row.wave == at.LOAD for row in more) and not actuator_rows(mechanism)[:, j].any():
            raise SimulationError(
                f"friction of '{coordinate}' grows with its load, but no drive loads that joint; give it a law without load"
            )
        owner(np.eye(len(names))[j]).extend(more)
    joints = list(gathered.values())
    of_motors = [law_rows(law, name) if law is not None else [] for name, law in motors]
    return Rubbing(
        [name for name, _, _ in joints] + [f"motor {name}" for name, _ in motors],
        [form for _, form, _ in joints],
        [list(rows) for _, _, rows in joints] + of_motors,
    )


def sticking(arena: Arena, place: int, forms: Array, loads: Array, step: float, jumps: Array) -> Array:
    """Return the speed that a unit force takes away from each form within one step.

        v_s = f h / J,      J = 1 / (c M^-1 c^T) the inertia that form c feels at the pose

    When several forms that feel each other stick at once, all are made softer by their common gain, so that the slopes together
    stay within what one step can follow.

    Parameters
    ----------
    arena : Arena
        Packed mechanism.
    place : int
        Region with the tree positions of the pose, usually the start.
    forms : ndarray, (F, n_tree)
        Forms of tree coordinates.
    loads : ndarray, (F,)
        Inertias of forms that move on their own (rotors on elastic shafts); 0 for those that move with the mechanism.
    step : float
        Step [s].
    jumps : ndarray, (F,)
        1 where the form has friction that jumps, else 0.

    Returns
    -------
    ndarray, (F,)
        h / J of every form [rad/s per N m, m/s per N].
    """
    from dynident.simulate.motion_kernels import motion_at  # noqa: PLC0415 - numba is imported on first use
    from dynident.simulate.skeleton_kernels import closure_map  # noqa: PLC0415

    K, F = arena.K, arena.F
    if K[at.MODE] == at.LOOPED:
        closure_map(K, F, K[place])
    arena.view(SPEED)[:] = 0.0
    motion_at(K, F, K[place])
    lower, G = np.tril(arena.view(MASS)), arena.view(at.MAP)
    tree = lower + np.tril(lower, -1).T
    if K[at.METHOD] != at.ONE and place == at.STATE:
        tree = tree + arena.view(at.MOTORS)
    rows = forms @ G
    compliance = rows @ np.linalg.pinv(G.T @ tree @ G) @ rows.T
    inverse = np.abs(np.diagonal(compliance)).copy()
    free = loads > 0.0
    inverse[free] = 1.0 / loads[free]
    inverse[inverse == 0.0] = 1.0
    scaled = compliance / np.sqrt(np.outer(inverse, inverse))
    scaled[free, :] = 0.0
    scaled[:, free] = 0.0
    active = jumps > 0.0
    common = max(1.0, float(np.abs(np.linalg.eigvalsh(scaled[np.ix_(active, active)])).max(initial=0.0)))
    return np.asarray(step * inverse * common)
