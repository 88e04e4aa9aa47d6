"""Any static law, weakened by the heat it makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DescriptionError
from dynident.friction import Friction
from dynident.friction.law import State
from dynident.results import Result
from dynident_lab.thermal.fractional import Fractional
from dynident_lab.thermal.model import ThermalModel, Warming

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WarmFriction(Result):
    """Friction of a joint that heats itself."""

    torque: Array  # Friction [N m or N]
    cold: Array  # Friction of the same motion at the reference temperature
    warming: Warming  # Temperatures, friction ratio and power

    def plot(self) -> Figure:
        """Draw friction and cold friction over time, and the temperature below."""
        from dynident.figures import BLUE, ORANGE, SKY, finish, new_figure  # noqa: PLC0415 - matplotlib is an extra

        figure, minutes = new_figure(7.2, 4.6), self.warming.t / 60.0
        above, below = figure.add_subplot(2, 1, 1), figure.add_subplot(2, 1, 2)
        above.plot(minutes, self.cold, color=SKY, linewidth=1.0, label="at the reference temperature")
        above.plot(minutes, self.torque, color=BLUE, linewidth=1.0, label="as it warms up")
        below.plot(minutes, self.warming.temperature, color=ORANGE, linewidth=1.2)
        above.legend(frameon=False, fontsize=8)
        finish(above, "", "friction [N m, N]", "")
        finish(below, "time [min]", "temperature [degC]", "")
        figure.tight_layout()
        return figure


@dataclass(frozen=True, eq=False)
class Thermal:
    """A static law and the thermal model that scales it: ``f = f_cold(v, q, tau) [alpha (T - T0) + beta]``.

    Friction curves at different temperatures are multiples of each other [Pagani2022, fig. 22 and eq. 102].
    """

    friction: Friction  # Law with its numbers at the reference temperature
    model: ThermalModel | Fractional  # Thermal model of the joint

    def __call__(self, state: State) -> Array:
        """Friction at known temperatures."""
        if not isinstance(state, State):
            raise DescriptionError("friction at a temperature needs both; give State(v, T=...) instead of the velocity alone")
        return np.asarray(self.friction(state) * self.model.ratio(state.channel("T", "thermal")))

    def simulate(
        self, t: ArrayLike, state: State | ArrayLike, start: ArrayLike | None = None, ambient: ArrayLike | None = None
    ) -> WarmFriction:
        """Friction and temperature along a motion that starts cold; the power ``f_cold v`` holds from sample to sample."""
        given = State.of(state)
        cold = self.friction(given)
        if isinstance(self.model, Fractional):
            if ambient is not None:
                raise DescriptionError("the fractional model knows only its reference temperature; leave ambient out")
            warming = self.model.simulate(t, cold * given.v, None if start is None else float(np.asarray(start).item()))
        else:
            warming = self.model.simulate(t, cold * given.v, start, ambient)
        return WarmFriction(cold * warming.ratio, cold, warming)
