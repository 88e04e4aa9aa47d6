"""`Parameters`, the named values of a robot, and the ten inertial parameters of a body.

    phi = [m, mx, my, mz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]     (10,), SI, all in the LINK FRAME

with first moment h = m c and rotational inertia about the link frame's ORIGIN, I = I_c - m [c]x [c]x.
The pseudo-inertia is the 4x4 moment matrix

    P = [[Sigma, h], [h^T, m]],    Sigma = tr(I)/2 1 - I,

and a body is physically consistent if P is positive semi-definite [Wensing2018].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.graph.algebra import S, Square, Triple, plus, product, scale, times, transposed
from dynident.graph.expression import Node
from dynident.results import Tabular

if TYPE_CHECKING:
    from dynident.mechanism.mechanism import Mechanism

ROUNDING = 1e-9  # permitted negative value of the smallest eigenvalue of P / tr(P)


@dataclass(frozen=True, eq=False)
class Parameters(Tabular):
    """A named vector of standard parameters.

    Body parameters are `m, mx, my, mz, Ixx ... Izz` in the LINK FRAME, first moment m c, inertia about the link origin.
    Names are ``symbol_owner``, as in ``Izz_link1`` or ``fv_joint1``.
    """

    names: tuple[str, ...]  #: Unique names, in column order of the regressor
    values: Array  #: (p,), numbers in SI units
    units: tuple[str, ...] = ()  #: Unit of each number
    owners: tuple[str, ...] = ()  #: Body, joint or actuator of each number
    provenance: str = ""  #: Origin of the numbers
    _index: Mapping[str, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        values = _numbers(self.values)
        names = tuple(self.names)
        if values.shape != (len(names),):
            raise DescriptionError(
                f"parameters: {len(names)} names but values of shape {values.shape}; give one number per name"
            )
        index = {name: i for i, name in enumerate(names)}
        if len(index) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DescriptionError(f"parameter '{twice}' is named twice; names must be unique")
        for label in ("units", "owners"):
            given = tuple(getattr(self, label)) or ("",) * len(names)
            if len(given) != len(names):
                raise DescriptionError(f"parameters: {len(names)} names but {len(given)} {label}; give one per name")
            object.__setattr__(self, label, given)
        values.flags.writeable = False
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_index", index)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __getitem__(self, name: str) -> float:
        return float(self.values[self.index(name)])

    def index(self, name: str) -> int:
        """Return the position of a parameter in the vector."""
        try:
            return self._index[name]
        except (KeyError, TypeError):  # a list cannot be looked up
            symbol = str(name).split("_", maxsplit=1)[0]
            near = [other for other in self.names if other.split("_")[0] == symbol][:4] or list(self.names[:4])
            raise DescriptionError(f"unknown parameter '{name}'; names look like {', '.join(near)}") from None

    def replace(self, values: ArrayLike | Mapping[str, float], provenance: str | None = None) -> Parameters:
        """Return a copy with other numbers."""
        if isinstance(values, Mapping):
            new = self.values.copy()
            for name, value in values.items():
                new[self.index(name)] = _numbers(value)
        else:
            new = _numbers(values)
        return replace(self, values=new, provenance=self.provenance if provenance is None else provenance)

    def __repr__(self) -> str:
        return f"Parameters({len(self)} of {len(set(self.owners))} bodies and joints; {self.provenance or 'no provenance'})"

    def _columns(self) -> dict[str, Any]:
        """One row per number."""
        return {"parameter": self.names, "value": self.values, "unit": self.units, "owner": self.owners}

    def to_dict(self) -> dict[str, float]:
        """Return the numbers by name."""
        return {name: float(value) for name, value in zip(self.names, self.values, strict=True)}


def _numbers(values: ArrayLike) -> Array:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DescriptionError(f"parameters: values are not numbers ({error}); give one number per name") from error


Inertia = tuple[Node, ...]
"""The ten parameters as expressions."""

SYMBOLS: tuple[str, ...] = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
UNITS: tuple[str, ...] = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)


def skew(x: ArrayLike) -> Array:
    """Return [x]x, the matrix with [x]x y = x cross y."""
    a, b, c = np.asarray(x, dtype=np.float64)
    return np.array([[0.0, -c, b], [c, 0.0, -a], [-b, a, 0.0]])


def _check(phi: ArrayLike) -> Array:
    values = np.asarray(phi, dtype=np.float64)
    if values.shape != (10,):
        raise DescriptionError(f"inertial parameters have shape {values.shape}; give the 10 numbers {', '.join(SYMBOLS)}")
    return values


def inertia_matrix(phi: ArrayLike) -> Array:
    """Return the rotational inertia about the link origin."""
    xx, xy, xz, yy, yz, zz = _check(phi)[4:]
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def from_com(mass: float, com: ArrayLike, inertia: ArrayLike) -> Array:
    """Return phi (10,) of `mass` [kg], `com` c (3,) [m] and `inertia` I_c (3, 3) about it [kg m^2]: I = I_c - m [c]x [c]x."""
    c = np.asarray(com, dtype=np.float64)
    cx = skew(c)
    moved = np.asarray(inertia, dtype=np.float64) - mass * (cx @ cx)
    return np.concatenate([[float(mass)], mass * c, moved[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]])


def to_com(phi: ArrayLike) -> tuple[float, Array, Array]:
    """Return mass, centre of mass and inertia about it, the inverse of `from_com`."""
    values = _check(phi)
    mass, h = float(values[0]), values[1:4]
    if mass == 0.0 and np.any(h != 0.0):
        raise DescriptionError(f"a body has zero mass but a first moment of {h.tolist()} kg m")
    c = h / mass if mass != 0.0 else np.zeros(3)
    cx = skew(c)
    return mass, c, inertia_matrix(values) + mass * (cx @ cx)


def principal(phi: ArrayLike) -> tuple[float, Array, Array, Array]:
    """Return mass, centre of mass, principal moments and principal axes of a body."""
    mass, com, inertia = to_com(phi)
    moments, axes = np.linalg.eigh(inertia)
    if np.linalg.det(axes) < 0.0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return mass, com, moments, axes


def from_principal(mass: float, com: ArrayLike, moments: ArrayLike, axes: ArrayLike) -> Array:
    """Return phi (10,) of `mass` [kg], `com` (3,) [m], principal `moments` (3,) about it [kg m^2] and `axes` (3, 3)."""
    R = np.asarray(axes, dtype=np.float64)
    return from_com(mass, com, R @ np.diag(np.asarray(moments, dtype=np.float64)) @ R.T)


def pseudo_inertia(phi: ArrayLike) -> Array:
    """Return P = [[Sigma, h], [h^T, m]] with Sigma = tr(I)/2 1 - I [Wensing2018]."""
    values = _check(phi)
    inertia = inertia_matrix(values)
    P = np.empty((4, 4))
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    P[:3, 3] = P[3, :3] = values[1:4]
    P[3, 3] = values[0]
    return P


def moved(phi: Sequence[S], R: Square[S], r: Triple[S]) -> tuple[S, ...]:
    """Return inertial parameters in another frame, x' = R x + r, as expressions or numbers.

    h' = R h + m r,   I' = R I R^T + (2 r.Rh + m r.r) 1 - r (Rh)^T - (Rh) r^T - m r r^T
    """
    m, h = phi[0], times(R, (phi[1], phi[2], phi[3]))
    turned = product(product(R, tensor(phi)), transposed(R))
    first = plus(h, scale(r, m))
    # With b = Rh + h': r.b and r b^T hold all three shifts at once.
    b = plus(h, first)
    x, y, z = r[0] * b[0], r[1] * b[1], r[2] * b[2]
    xy = turned[0][1] - (r[0] * first[1] + h[0] * r[1])
    xz = turned[0][2] - (r[0] * first[2] + h[0] * r[2])
    yz = turned[1][2] - (r[1] * first[2] + h[1] * r[2])
    return m, first[0], first[1], first[2], turned[0][0] + (y + z), xy, xz, turned[1][1] + (x + z), yz, turned[2][2] + (x + y)


def tensor(phi: Sequence[S]) -> Square[S]:
    """Return the inertia tensor of ten parameters."""
    return (phi[4], phi[5], phi[6]), (phi[5], phi[7], phi[8]), (phi[6], phi[8], phi[9])


def transform(phi: ArrayLike, rotation: ArrayLike, translation: ArrayLike) -> Array:
    """Return phi of the same body in another frame A, given in frame B, with the pose (R, p) of B in A."""
    x, y, z = np.asarray(rotation, dtype=np.float64).tolist()
    return np.array(moved(_check(phi).tolist(), (x, y, z), np.asarray(translation, dtype=np.float64).tolist()))


def transform_matrix(rotation: ArrayLike, translation: ArrayLike) -> Array:
    """Return the matrix (10, 10) of `transform`; for poses (..., 3, 3) and (..., 3), one matrix each."""
    R: Any = np.moveaxis(np.asarray(rotation, dtype=np.float64), (-2, -1), (0, 1))[..., None]
    r: Any = np.moveaxis(np.asarray(translation, dtype=np.float64), -1, 0)[..., None]
    units: Any = np.eye(10)
    return np.stack(np.broadcast_arrays(*moved(units, R, r)), axis=-2)


@dataclass(frozen=True)
class Consistency:
    """Physical consistency of a body."""

    name: str  #: Body
    ok: bool  #: True when mass > 0 and the pseudo-inertia is positive semi-definite (relative tolerance 1e-9)
    mass: float  #: Mass [kg]
    sentence: str  #: The finding in words, with the size of a violation


def check_consistency(phi: ArrayLike, name: str = "body") -> Consistency:
    """Check that a body is physically consistent: m > 0 and P >= 0.

    Parameters
    ----------
    phi : array_like, (10,)
        Inertial parameters.
    name : str
        Name used in the sentence.

    Returns
    -------
    Consistency
        Verdict with mass and a sentence.
    """
    values = _check(phi)
    P = pseudo_inertia(values)
    trace, mass = float(np.trace(P)), float(values[0])
    smallest = float(np.linalg.eigvalsh(P)[0] / trace) if trace > 0.0 else -1.0
    if mass > 0.0 and smallest >= -ROUNDING:
        sentence = f"body '{name}' is physically possible (smallest eigenvalue {smallest:.3g} of the trace)"
        return Consistency(name, True, mass, sentence)
    reason = f"its mass is {mass:.6g} kg"
    if mass > 0.0:
        moments = principal(values)[2]
        excess = (2.0 * np.max(moments) - np.sum(moments)) / np.sum(np.abs(moments))
        reason = f"its principal moments break the triangle inequality by {excess:.3g} of their sum"
        if np.min(moments) < 0.0:
            reason = f"a principal moment of inertia is negative ({np.min(moments):.4g} kg m^2)"
    return Consistency(name, False, mass, f"body '{name}' is physically impossible: {reason}")


def natural_spread(mechanism: Mechanism) -> Array:
    """Return the plausible error of each prior value: mass m, first moment m r, inertia m r^2, r the radius of gyration.

    A body without a prior gets the mean mass of those that have one, and a size from its robot's geometry when there is none.
    """
    phi = mechanism.tree.inertias.reshape(-1, 10)
    mass = phi[:, 0]
    gyration = 0.5 * (phi[:, 4] + phi[:, 7] + phi[:, 9])  # tr(Sigma) = tr(I)/2
    known = (mass > 0.0) & (gyration > 0.0)
    typical = float(np.mean(mass[known])) if known.any() else 1.0
    length = float(np.sqrt(np.mean(gyration[known] / mass[known]))) if known.any() else _size(mechanism)
    m = np.where(known, mass, typical)
    r = np.where(known, np.sqrt(np.where(known, gyration, 1.0) / m), length)
    spread = np.empty_like(phi)
    spread[:, 0], spread[:, 1:4], spread[:, 4:] = m, (m * r)[:, None], (m * r**2)[:, None]
    joint_terms = np.full(len(mechanism.parameters) - spread.size, typical * length**2)
    return np.concatenate([spread.ravel(), joint_terms])


def _size(mechanism: Mechanism) -> float:
    """Return the typical distance of a body's mass from its origin, from the distances between joints [m]."""
    distances = np.linalg.norm(mechanism.tree.arrays.translation, axis=1)
    distances = distances[distances > 0.0]
    return 0.5 * float(np.mean(distances)) if distances.size else 0.1
