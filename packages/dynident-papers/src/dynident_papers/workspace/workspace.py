"""Workspace and singularities of a robot: reachable positions, and the distance from singularities of both types.

    J_c q_t' = 0,  motions the loops allow:  q_t' = N z,    platform  y' = T N z,    motors  rho' = A N z
    [T N; A N] = [Q_T; Q_A] R,   type 1: smallest singular value of Q_T,   type 2: of Q_A        (cosine-sine decomposition)

Type 1: the robot can move while the platform rests (serial, the border of the workspace). Type 2: the platform can move while
the motors rest (parallel) [Gosselin1990]. Both are 0 at a singularity and 1 at most, for any choice of coordinates.
A map is grown from home cell by cell, so it shows one working or assembly mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import choice, number
from dynident.errors import DynidentError
from dynident.graph.expression import Node
from dynident.mechanics import actuator_jacobian, close_positions, jacobian
from dynident.mechanics.branch import Branch
from dynident.mechanics.dynamics import positions_of_frame
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import cached, coordinates, quantity
from dynident.mechanics.inverse_kinematics_damped import robot_size
from dynident.mechanism import Mechanism
from dynident.results import Result
from dynident_lab.joint_reactions import constraint_jacobians

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUTPUTS = ("pose", "position")
LARGEST_MAP = 501  # points of an axis


@dataclass(frozen=True, eq=False)
class Singularity(Result):
    """Distances of poses from singularities; every index is 0 at a singularity and 1 at most.

    Parameters
    ----------
    type1 : ndarray, (N,)
        Serial: near 0 the robot moves while the platform rests.
    type2 : ndarray, (N,)
        Parallel: near 0 the platform moves while the motors rest.
    constraint : ndarray, (N,)
        Ratio of smallest to largest singular value of the closure equations: near 0 the loops gain a freedom. 1 without loops.
    dexterity : ndarray, (N,)
        Inverse condition number of the velocities of the platform per velocity of the motors.
    """

    type1: Array
    type2: Array
    constraint: Array
    dexterity: Array

    def singular(self, limit: float = 0.05) -> dict[str, list[int]]:
        """Return the samples with an index below a limit, by kind: "type 1", "type 2" and "constraint"."""
        kinds = {"type 1": self.type1, "type 2": self.type2, "constraint": self.constraint}
        return {name: np.flatnonzero(x < limit).tolist() for name, x in kinds.items()}

    def plot(self) -> Figure:
        """Draw the four indices over the samples."""
        from dynident.figures import BLUE, GREEN, MUTED, ORANGE, one_axes  # noqa: PLC0415 - matplotlib is an extra

        figure, axes = one_axes(7.2, 3.6, "sample", "index", "Distance to singularities (0 is on one)")
        rows = {"type 1 (serial)": self.type1, "type 2 (parallel)": self.type2, "constraint": self.constraint}
        for (name, values), colour in zip(
            (rows | {"dexterity": self.dexterity}).items(), (BLUE, ORANGE, GREEN, MUTED), strict=True
        ):
            axes.plot(values, color=colour, linewidth=1.1, label=name)
        axes.set_ylim(0.0, 1.05)
        axes.legend(frameon=False, fontsize=8)
        return figure


def singularity_indices(
    mechanism: Mechanism, q: ArrayLike, frame: str, *, outputs: str = "pose", length: float | None = None
) -> Singularity:
    """Return the distance of poses to singularities of type 1 and 2, for robots with and without loops.

    Successive rows of q (N, n) must be close; the outputs are the pose or the position of the frame; length [m] makes metres
    and radians comparable (the size of the robot).
    """
    x = coordinates(mechanism, q, "q")
    positions = close_positions(mechanism, x) if mechanism.loops else x
    return _indices(mechanism, positions, frame, choice("outputs", outputs, OUTPUTS), _length(mechanism, length))


def _length(mechanism: Mechanism, length: float | None) -> float:
    return robot_size(mechanism) if length is None else number("length", length, least=1e-6, unit="m")


def _indices(mechanism: Mechanism, positions: Array, frame: str, outputs: str, length: float) -> Singularity:
    """Return the indices at closed positions of the tree."""
    count = positions.shape[0]
    if mechanism.loops:
        T, A, spectrum = _through_loops(mechanism, positions, frame)
    else:
        T, A = jacobian(mechanism, positions, frame), actuator_jacobian(mechanism, positions)
        spectrum = np.ones((count, 1))
    T = T * np.array([1.0 / length] * 3 + [1.0] * 3)[:, None]
    T = T[:, :3] if outputs == "position" else T
    A = A / _motor_scale(mechanism, length)[:, None]
    if A.shape[1] == 0:
        raise DynidentError(f"robot '{mechanism.name}' has no motors; declare its actuators")
    both = np.concatenate([T, A], axis=1)
    Q = np.linalg.qr(both)[0]
    low = [np.linalg.svd(part, compute_uv=False) for part in (Q[:, : T.shape[1]], Q[:, T.shape[1] :])]
    least = [s[:, -1] if part.shape[1] >= Q.shape[2] else np.zeros(count) for s, part in zip(low, (T, A), strict=True)]
    gains = np.linalg.svd(T @ np.linalg.pinv(A), compute_uv=False)[:, : Q.shape[2]]
    return Singularity(least[0], least[1], spectrum[:, -1] / spectrum[:, 0], gains[:, -1] / gains[:, 0])


def _through_loops(mechanism: Mechanism, positions: Array, frame: str) -> tuple[Array, Array, Array]:
    """Return platform twists and motor rates of the admissible motions, and the spectrum of the loops."""
    closure = mechanism.closure
    width, node = positions.shape[1], mechanism.frame(frame)[0]
    J = constraint_jacobians(mechanism, positions)
    _, spectrum, rows = np.linalg.svd(J)
    rank = closure.dependent.size
    null = np.swapaxes(rows[:, rank:], 1, 2)

    def make(x: Equations) -> list[list[Node]]:
        zero = (x.graph.zero,) * 6
        columns = x.loops(closure.arrays).state.columns[node] if node >= 0 else {}
        found = [(*columns[d][1], *columns[d][0]) if d in columns else zero for d in range(width)]
        return [[column[i] for column in found] for i in range(6)]

    still = np.zeros((len(positions), mechanism.dof))
    arrays = {"q": np.ascontiguousarray(positions), "v": still, "a": still}
    T = quantity(mechanism, "tree_twists", make, (6, width), arrays, key=node)
    lever = mechanism.frame(frame)[1].translation
    T[:, :3] += np.cross(T[:, 3:], lever, axisa=1, axisc=1)
    return T @ null, mechanism.actuator_matrix[0] @ null, spectrum[:, :rank]


def _motor_scale(mechanism: Mechanism, length: float) -> Array:
    """Return the divisor of every motor rate: its gear ratio, and the length where it drives a slider."""
    slides = {joint.name for joint in mechanism.joints if joint.kind == "prismatic"}
    return np.array(
        [
            abs(actuator.ratio) * (length if all(name in slides for name in actuator.coupling) else 1.0)
            for actuator in mechanism.actuators
        ]
    )


@dataclass(frozen=True, eq=False)
class WorkspaceMap(Result):
    """Indices of a robot over a grid of two of its coordinates; NaN at unreachable points."""

    robot: str  # Name of the robot
    frame: str  # Name of its platform
    names: tuple[str, str]  # The two coordinates of the grid
    first: Array  # Values of the first coordinate
    second: Array  # Values of the second coordinate
    held: Mapping[str, float]  # The coordinates that stay
    units: tuple[str, str]  # Units of the two coordinates
    position: Array  # Origin of the frame [m]
    type1: Array  # As in `Singularity`
    type2: Array  # As in `Singularity`
    constraint: Array  # As in `Singularity`
    dexterity: Array  # As in `Singularity`
    allowed: NDArray[np.bool_]  # Reached, with every joint within its limits

    def __post_init__(self) -> None:
        cells = np.size(self.first), np.size(self.second)
        for name in ("position", "type1", "type2", "constraint", "dexterity", "allowed"):
            shape = np.shape(getattr(self, name))
            if shape[:2] != cells:
                raise DynidentError(f"{name} has shape {shape}; the grid has {cells[0]} x {cells[1]} cells")

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Cells reachable on the same branch, (n1, n2)."""
        return np.isfinite(self.type1)

    @property
    def area(self) -> float:
        """Size of the reached part in units of the two coordinates."""
        cell = (
            (self.first[-1] - self.first[0])
            * (self.second[-1] - self.second[0])
            / ((self.first.size - 1) * (self.second.size - 1))
        )
        return float(cell * self.reached.sum())

    def summary(self) -> str:
        """Return the extent and the worst indices as text."""
        share, p = self.reached.mean(), self.position[self.reached]
        ranges = ", ".join(
            f"{axis} {low:.4g} to {high:.4g} m" for axis, low, high in zip("xyz", p.min(axis=0), p.max(axis=0), strict=True)
        )
        worst = ", ".join(f"{kind} {np.nanmin(x):.3g}" for kind, x in (("type 1", self.type1), ("type 2", self.type2)))
        return (
            f"{self.robot}: {100.0 * share:.1f} % of {self.first.size} x {self.second.size} cells over "
            f"{', '.join(self.names)} are reached, {100.0 * self.allowed.mean():.1f} % within all limits\n"
            f"  {self.frame}: {ranges}\n  least indices: {worst}"
        )

    def plot(self, space: str = "coordinates", limit: float = 0.05) -> Figure:
        """Draw both indices over the grid, or over the platform positions."""
        from dynident_papers.workspace.plot import plot_workspace  # noqa: PLC0415 - matplotlib is an extra

        return plot_workspace(self, choice("space", space, ("coordinates", "frame")), limit)


def workspace_map(
    mechanism: Mechanism,
    frame: str,
    over: Sequence[str] | None = None,
    ranges: Sequence[Sequence[float]] | None = None,
    *,
    held: Mapping[str, float] | None = None,
    size: int = 61,
    outputs: str = "pose",
    length: float | None = None,
) -> WorkspaceMap:
    """Map reach and singularities of a robot over two of its coordinates, on the branch of its home.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with or without loops and at least two degrees of freedom.
    frame : str
        Link that is the platform or tool.
    over : sequence of str, (2,), optional
        Coordinates of the grid; with loops any of the tree (platform, motors). The robot's first two when omitted.
    ranges : sequence of (low, high), (2,), optional
        Their ranges; the limits of their joints when omitted.
    held : mapping of str to float, optional
        Fixed values of the other coordinates of a pose; home values of the robot's own coordinates when omitted.
    size : int
        Cells along each coordinate.
    outputs : {"pose", "position"}
        Outputs of the platform, as in `singularity_indices`.
    length : float, optional
        Length [m] that makes metres and radians comparable; the size of the robot when omitted.

    Returns
    -------
    WorkspaceMap
        Indices over the grid.
    """
    names = _names(mechanism, over)
    stay = _held(mechanism, names, held)
    if number("size", size, least=3) > LARGEST_MAP:
        raise DynidentError(f"size is {size:.6g}; give a whole number from 3 to {LARGEST_MAP}")
    axes = _axes(mechanism, names, ranges, size)
    given = (*names, *stay)
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    cells = np.concatenate([grid, np.broadcast_to(np.array(list(stay.values())), (*grid.shape[:2], len(stay)))], axis=2)
    if mechanism.loops:
        closed = _grown(mechanism, cells, given)
    else:
        order = [given.index(name) for name in mechanism.coordinate_names]
        closed = np.ascontiguousarray(cells[:, :, order])
    reached = np.isfinite(closed).all(axis=2)
    positions = np.ascontiguousarray(closed[reached])
    found = _indices(mechanism, positions, frame, choice("outputs", outputs, OUTPUTS), _length(mechanism, length))
    point = np.full((*reached.shape, 3), np.nan)
    point[reached] = positions_of_frame(mechanism, positions, frame)
    allowed = np.zeros(reached.shape, dtype=np.bool_)
    allowed[reached] = _within(mechanism, positions)
    slides = {joint.name for joint in mechanism.joints if joint.kind == "prismatic"}

    def spread(values: Array) -> Array:
        out = np.full(reached.shape, np.nan)
        out[reached] = values
        return out

    units = ("m" if names[0] in slides else "rad", "m" if names[1] in slides else "rad")
    return WorkspaceMap(
        mechanism.name,
        frame,
        names,
        axes[0],
        axes[1],
        stay,
        units,
        point,
        spread(found.type1),
        spread(found.type2),
        spread(found.constraint),
        spread(found.dexterity),
        allowed,
    )


def _names(mechanism: Mechanism, over: Sequence[str] | None) -> tuple[str, str]:
    known = mechanism.tree.coordinates if mechanism.loops else mechanism.coordinate_names
    chosen = tuple(mechanism.coordinate_names[:2] if over is None else over)
    if len(set(chosen)) != 2 or any(name not in known for name in chosen):
        raise DynidentError(f"over is {', '.join(map(str, chosen)) or 'empty'}; name two different of {', '.join(known)}")
    return chosen[0], chosen[1]


def _held(mechanism: Mechanism, names: tuple[str, str], held: Mapping[str, float] | None) -> dict[str, float]:
    known = mechanism.tree.coordinates if mechanism.loops else mechanism.coordinate_names
    if held is None:
        home = dict(zip(mechanism.tree.coordinates, mechanism.closure.home, strict=True)) if mechanism.loops else {}
        others = [name for name in mechanism.coordinate_names if name not in names]
        chosen = {name: float(home.get(name, 0.0)) for name in others[: mechanism.dof - 2]}
    else:
        chosen = {name: number(f"held[{name!r}]", value) for name, value in held.items()}
    if len(chosen) != mechanism.dof - 2 or any(name not in known or name in names for name in chosen):
        raise DynidentError(
            f"held names {', '.join(chosen) or 'nothing'}; robot '{mechanism.name}' has {mechanism.dof} degrees of freedom, "
            f"so give positions of {mechanism.dof - 2} coordinates besides {' and '.join(names)}"
        )
    return chosen


def _axes(
    mechanism: Mechanism, names: tuple[str, str], ranges: Sequence[Sequence[float]] | None, size: float
) -> tuple[Array, Array]:
    limits = {joint.name: (joint.limits.lower, joint.limits.upper) for joint in mechanism.joints if joint.limits is not None}
    found = [limits.get(name, (-np.inf, np.inf)) for name in names] if ranges is None else [tuple(x) for x in ranges]
    if len(found) != 2 or any(len(x) != 2 or not np.isfinite(x).all() or not x[0] < x[1] for x in found):
        raise DynidentError(f"ranges of {' and '.join(names)} are {found}; give two finite pairs (low, high) as ranges=")
    first, second = (np.linspace(low, high, int(size)) for low, high in found)
    return first, second


def _within(mechanism: Mechanism, positions: Array) -> NDArray[np.bool_]:
    """Return a mask of closed positions with every joint within its limits."""
    names = mechanism.tree.coordinates if mechanism.loops else mechanism.coordinate_names
    limits = {joint.name: joint.limits for joint in mechanism.joints if joint.limits is not None}
    inside = np.ones(len(positions), dtype=np.bool_)
    for i, name in enumerate(names):
        if name in limits:
            inside &= (positions[:, i] >= limits[name].lower) & (positions[:, i] <= limits[name].upper)
    return inside


def _grown(mechanism: Mechanism, cells: Array, given: tuple[str, ...]) -> Array:
    """Return closed tree positions (n1, n2, n_tree) of all cells reached from home through neighbours, else NaN."""
    branch = cached(mechanism, ("branch", given), lambda: Branch(mechanism, given))
    shape = cells.shape[:2]
    home = mechanism.closure.home
    scale = np.ptp(cells[:, :, :2], axis=(0, 1))
    seed = np.unravel_index(np.argmin(np.sum(((cells[:, :, :2] - home[branch.free[:2]]) / scale) ** 2, axis=2)), shape)
    closed = np.full((*shape, branch.width), np.nan)
    way, bad = branch.close(np.linspace(home[branch.free], cells[seed], 41), home)
    if bad >= 0:
        where = ", ".join(f"{name} = {x:.6g}" for name, x in zip(given, cells[seed], strict=True))
        raise DynidentError(
            f"robot '{mechanism.name}' does not reach the cell nearest to its home ({where}); move ranges= or held= "
            "towards home"
        )
    closed[seed], side = branch.side_by_side(way[-1:])
    fresh, sign = np.array([seed]), float(np.sign(side[0]))
    while fresh.size:
        found: list[NDArray[np.int64]] = []
        for shift in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            to = fresh + shift
            ok = np.all((to >= 0) & (to < shape), axis=1)
            to, origin = to[ok], fresh[ok]
            new = np.isnan(closed[to[:, 0], to[:, 1], 0])
            to, origin = to[new], origin[new]
            if not to.size:
                continue
            guess = closed[origin[:, 0], origin[:, 1]]
            guess[:, branch.free] = cells[to[:, 0], to[:, 1]]
            now, side = branch.side_by_side(guess)
            good = side * sign > 0.0
            closed[to[good, 0], to[good, 1]] = now[good]
            found.append(to[good])
        fresh = np.concatenate(found) if found else np.zeros((0, 2), dtype=np.int64)
    return closed
