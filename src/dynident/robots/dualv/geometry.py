"""Geometry of DualV: Table 1, the radius of the platform and the working mode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError

Array = NDArray[np.float64]

ANCHOR_RADIUS = 0.41  # l_OA, Table 1 [m]
ANCHOR_ANGLES = np.deg2rad([15.52, 164.48, -164.48, -15.52])  # gamma_i, Table 1
HALF_TURNS = np.array([0, 0, 1, 1])  # k of (53): legs 3 and 4 meet the platform on its other side

WORKING_MODES: dict[str, tuple[int, int, int, int]] = {"inward": (-1, 1, -1, 1), "outward": (1, -1, 1, -1)}
"""Signs of sin q_2i. The paper does not say which it is; other patterns are nearly singular at home."""


@dataclass(frozen=True)
class Geometry:
    """Lengths of DualV and its working mode.

    Parameters
    ----------
    r_p : float
        Half the distance C1 C3 on the platform [m]. NOT printed; 0.11 m is inferred (right-angle elbows at home).
    working_mode : str
        ``"inward"`` or ``"outward"``, see `WORKING_MODES`.
    d2, d3 : float
        Lengths A_i B_i and B_i C_i [m], Table 1.
    """

    r_p: float = 0.11
    working_mode: str = "inward"
    d2: float = 0.28
    d3: float = 0.28

    def __post_init__(self) -> None:
        for label in ("r_p", "d2", "d3"):
            value = getattr(self, label)
            if not isinstance(value, int | float | np.floating) or not np.isfinite(value) or value <= 0.0:
                raise DynidentError(f"DualV: {label} is {value!r}; give a positive length in metres")
        if self.working_mode not in WORKING_MODES:
            raise DynidentError(f"DualV: working mode is {self.working_mode!r}; it is one of {', '.join(WORKING_MODES)}")

    @property
    def elbows(self) -> Array:
        """Signs of sin q_2i, (4,)."""
        return np.array(WORKING_MODES[self.working_mode], dtype=np.float64)

    @property
    def anchors(self) -> Array:
        """Motor axes A_i in the base frame, (4, 2) [m]."""
        return ANCHOR_RADIUS * np.stack([np.cos(ANCHOR_ANGLES), np.sin(ANCHOR_ANGLES)], axis=1)
