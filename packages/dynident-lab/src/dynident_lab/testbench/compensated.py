"""Friction compensation that knows how warm the joints are: laws and thermal models, advanced with the speeds.

f = f_cold(v) [alpha (T - T0) + beta]        W = f_cold(v) v, filtered by the thermal model        [Pagani2022, Algorithm 1]
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers, step_length
from dynident.errors import IdentificationError
from dynident.results import Result
from dynident_lab.testbench.heating import CampaignStudy
from dynident_lab.thermal.zones import FirstOrder, SecondOrder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FrictionCompensation(Result):
    """Torques that cancel the friction of all joints, whatever their temperature.

    Parameters
    ----------
    joints : tuple of str
        Joints in the order of the torques.
    coefficients : tuple of tuple of float
        Cold friction a0, a1, ... of every joint.
    models : tuple of SecondOrder or FirstOrder
        Thermal model of every joint; without an anchor its temperature is in units of friction ratio.
    """

    joints: tuple[str, ...]
    coefficients: tuple[tuple[float, ...], ...]
    models: tuple[SecondOrder | FirstOrder, ...]

    @classmethod
    def of(cls, study: CampaignStudy) -> FrictionCompensation:
        """Return the compensation that a campaign identified.

        Parameters
        ----------
        study : CampaignStudy
            What `campaign_study` found.

        Returns
        -------
        FrictionCompensation
            Ready to run.
        """
        chosen = [(entry, entry.best.model) for entry in study.heating]
        for entry, model in chosen:
            if not isinstance(model, SecondOrder | FirstOrder):
                raise IdentificationError(f"joint '{entry.joint}' has a {type(model).__name__}; fit SecondOrder or FirstOrder")
        models = tuple(model for _, model in chosen if isinstance(model, SecondOrder | FirstOrder))
        return cls(tuple(entry.joint for entry, _ in chosen), tuple(entry.coefficients for entry, _ in chosen), models)

    def start(self) -> tuple[Array, ...]:
        """Return the state of joints that have rested for long.

        Returns
        -------
        tuple of ndarray
            One state per joint, for `step`.
        """
        return tuple(model.simulate([0.0, 1.0], 0.0).state[0] for model in self.models)

    def cold(self, v: ArrayLike) -> Array:
        """Return the friction of cold joints."""
        speed = numbers(v, "v")
        if speed.shape != (len(self.joints),):
            raise IdentificationError(f"v has shape {speed.shape}; give {len(self.joints)} speeds: {', '.join(self.joints)}")
        powers = [
            np.sign(x) * np.polynomial.polynomial.polyval(abs(x), a) for x, a in zip(speed, self.coefficients, strict=True)
        ]
        return np.array(powers)

    def step(self, v: ArrayLike, dt: float, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        """Return the torques to add now, and the state after a step of this speed."""
        f, step = self.cold(v), step_length(dt)
        speed = numbers(v, "v")
        ratio = np.array([float(m.ratio(y[0])) for m, y in zip(self.models, state, strict=True)])
        after = tuple(m.advance(y, float(p), step) for m, y, p in zip(self.models, state, f * speed, strict=True))
        return f * ratio, after

    def to_c(self, folder: str | os.PathLike[str], name: str = "compensation") -> list[Path]:
        """Write `step` as C99 with its numbers, and a program that checks itself."""
        from dynident_lab.testbench.compensation_c import write_c  # noqa: PLC0415 - rarely needed

        return write_c(self, folder, name)

    def plot(self) -> Figure:
        """Draw the friction of cold joints against speed.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from dynident.figures import label, one_axes  # noqa: PLC0415 - matplotlib is an extra

        figure, axes = one_axes(7.2, 3.6, "speed [rad/s, m/s]", "cold friction [N m, N]", "Friction compensation")
        v = np.linspace(0.0, 3.0, 100)
        for joint, a in zip(self.joints, self.coefficients, strict=True):
            axes.plot(v, np.polynomial.polynomial.polyval(v, a), linewidth=1.1, label=label(joint))
        axes.legend(frameon=False, fontsize=8)
        return figure

    def summary(self) -> str:
        """Return the compensation as text.

        Returns
        -------
        str
            One line per joint.
        """
        lines = []
        for joint, a, model in zip(self.joints, self.coefficients, self.models, strict=True):
            law = " ".join(f"a{k} {x:.4g}" for k, x in enumerate(a))
            lines.append(
                f"{joint}: {law}; {type(model).__name__} {' '.join(f'{n} {getattr(model, n):.4g}' for n in model.names)}"
            )
        return "\n".join(lines)
