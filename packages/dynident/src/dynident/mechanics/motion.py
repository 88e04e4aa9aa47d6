"""`Motion`: positions, velocities and accelerations over time, sample-major."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import finite_rows, numbers
from dynident.errors import DynidentError
from dynident.figures import over_time

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
        """Return a motion of arrays (N,) and (N, n) that are known to be in order."""
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
    """Return a motion that may have been given as arrays (q, v, a), (N, n) each, whose samples are numbered, not timed."""
    if isinstance(motion, Motion):
        return motion
    if not isinstance(motion, tuple) or len(motion) != 3:
        raise DynidentError(f"motion is a {type(motion).__name__}; give a Motion, or its arrays as (q, v, a)")
    q = numbers(motion[0], "motion: q")
    return Motion(np.arange(float(len(q) if q.ndim > 1 else 1)), q, *motion[1:])
