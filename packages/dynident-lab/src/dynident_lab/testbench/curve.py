"""One curve of friction against speed, and a law fitted to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.friction import FrictionLaw, Polynomial
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class CurveFit:
    """A friction law fitted to one curve by weighted least squares."""

    law: FrictionLaw  # The law
    values: Array  # Linear parameters in the order of ``law.linear``
    std: Array  # Their standard deviations
    relative: float  # ``||e|| / ||f||`` over the points of the curve

    def __call__(self, v: Array) -> Array:
        """Return the friction at given speeds."""
        return np.asarray(self.law.columns(v) @ self.values)


@dataclass(frozen=True, eq=False)
class FrictionCurve(Result):
    """Friction against speed at one temperature."""

    label: str  # Common property of the points, as in "21.3 degC" or "5 to 10 min"
    t: float  # Mean time of its plateaus [s]
    temperature: float  # Mean temperature of its plateaus [degC]; NaN without a sensor
    speed: Array  # Speeds with sign, rising [rad/s or m/s]
    torque: Array  # Mean friction [N m or N]
    std: Array  # Standard deviation of the mean [N m or N]
    count: NDArray[np.int64]  # Number of plateaus in each point
    derived: ClassVar[tuple[str, ...]] = ("polynomial",)

    @property
    def polynomial(self) -> CurveFit:
        """The polynomial of [Pagani2022] fitted to the points."""
        return self.fit()

    def plot(self) -> Figure:
        """Draw the points with two standard deviations, and the polynomial."""
        from dynident.figures import BLUE, MUTED, label, one_axes  # noqa: PLC0415 - matplotlib is an extra

        figure, axes = one_axes(7.2, 3.6, "speed [rad/s, m/s]", "friction [N m, N]", f"Friction, {label(self.label)}")
        fit = self.polynomial
        for side in (self.speed[self.speed < 0.0], self.speed[self.speed > 0.0]):
            if side.size:
                v = np.linspace(side.min(), side.max(), 200)
                axes.plot(v, fit(v), color=MUTED, linewidth=1.2)
        axes.errorbar(self.speed, self.torque, 2.0 * self.std, fmt="o", color=BLUE, markersize=4, linewidth=0.9)
        return figure

    @property
    def both(self) -> bool:
        """Whether the curve has both directions."""
        return bool(np.any(self.speed > 0.0) and np.any(self.speed < 0.0))

    def fit(self, law: FrictionLaw | None = None) -> CurveFit:
        """Fit a law that is linear in its parameters."""
        sizes = np.unique(np.round(np.abs(self.speed) / np.abs(self.speed).max(), 2)).size
        chosen = law or Polynomial(min(3, max(sizes - 1, 0)))
        if chosen.shape or len(chosen.linear) > self.speed.size:
            raise IdentificationError(
                f"law '{chosen.name}' has {len(chosen.linear)} linear and {len(chosen.shape)} shape parameters, but only "
                f"linear ones are fitted, to {self.speed.size} points; use more speeds or another law"
            )
        # The deviation of a point is at least 0.1 % of the curve: otherwise noise-free points would have infinite weight.
        sigma = np.hypot(self.std, 1e-3 * np.abs(self.torque).max())
        X, y = chosen.columns(self.speed) / sigma[:, None], self.torque / sigma
        inverse = np.linalg.pinv(X)
        values = inverse @ y
        free = max(y.size - values.size, 1)
        inflate = max(1.0, float(np.sum((y - X @ values) ** 2)) / free)
        e = self.torque - chosen.columns(self.speed) @ values
        return CurveFit(
            chosen,
            values,
            np.sqrt(inflate * np.diag(inverse @ inverse.T)),
            float(np.linalg.norm(e) / np.linalg.norm(self.torque)),
        )
