"""DualV: lengths and published results of [Briot2015] (Tables 1 to 4), and assumptions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.identify import Fit
from dynident_papers.robots.shared import Assumption, check_length

ANCHOR_RADIUS = 0.41  # l_OA, Table 1 [m]
ANCHOR_ANGLES = np.deg2rad([15.52, 164.48, -164.48, -15.52])  # gamma_i, Table 1
HALF_TURNS = np.array([0, 0, 1, 1])  # k of (53): legs 3 and 4 meet the platform on its other side

WORKING_MODES: dict[str, tuple[int, int, int, int]] = {"inward": (-1, 1, -1, 1), "outward": (1, -1, 1, -1)}
"""Signs of sin q_2i. The paper does not state the mode; other patterns are nearly singular at home."""


@dataclass(frozen=True)
class Geometry:
    """Lengths of DualV and its working mode."""

    r_p: float = 0.11
    working_mode: str = "inward"  # ``"inward"`` or ``"outward"``, see `WORKING_MODES`
    d2: float = 0.28  # Length A_i B_i [m], Table 1
    d3: float = 0.28  # Length B_i C_i [m], Table 1

    def __post_init__(self) -> None:
        for label in ("r_p", "d2", "d3"):
            check_length("DualV", label, getattr(self, label))
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


PAYLOAD_WEIGHED = 5.37
"""Mass of the payload on the scales [kg]."""

TABLE_2: dict[str, dict[str, tuple[float, float]]] = {
    "case 1": {
        "Izz_link1_1R": (4.45e-2, 1.58),
        "Izz_link1_2R": (4.81e-2, 1.39),
        "Izz_link1_3R": (4.81e-2, 1.41),
        "Izz_link1_4R": (5.07e-2, 1.38),
        "Izz_platform": (2.06e-2, 1.37),
        "m_platform": (1.92, 1.08),
        "Izz_payload": (1.61e-2, 1.71),
        "mx_payload": (-1.27e-1, 0.76),
        "m_payload": (5.42, 0.30),
    },
    "case 2": {
        "Izz_link1_1R": (4.12e-2, 3.14),
        "Izz_link1_2R": (4.62e-2, 3.09),
        "Izz_link1_3R": (4.57e-2, 2.54),
        "Izz_link1_4R": (5.79e-2, 1.89),
        "Izz_platform": (2.05e-2, 2.23),
        "m_platform": (1.96, 1.48),
        "Izz_payload": (1.64e-2, 3.04),
        "mx_payload": (-1.27e-1, 1.51),
        "m_payload": (5.52, 0.29),
    },
}
"""Table 2: essential parameters (SI) with relative standard deviations [%].

The paper does not mark the regrouping into the platform: its m_4 is m_4 + sum mx_2i / d3, with about half of the
distal links. Its case 2 stops at a ratio of 10.8, above the stated 10.
"""

RELATIVE_ERROR_NORM: dict[str, float] = {"case 1": 0.110, "case 2": 0.091}
"""||residual|| / ||Y|| of the fits of Table 2."""

TABLE_3: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "case 1": ((9.1, 8.5, 7.5, 8.9), (9.8, 8.5, 7.6, 10.5)),
    "case 2": ((9.1, 8.5, 8.0, 8.6), (10.0, 8.6, 8.2, 11.7)),
}
"""Table 3: relative torque errors [%] of motors 1 to 4 on trajectories 1 and 2; the means are 8.8 and 9.09 (9.2 in print)."""

TABLE_4: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "PD": ((6.35, 6.50, 8.00, 8.25), (7.70, 7.65, 9.40, 7.60)),
    "case 1": ((2.79, 2.15, 1.95, 2.10), (2.90, 2.65, 2.20, 2.05)),
    "case 2": ((2.80, 2.11, 2.06, 2.04), (2.83, 2.67, 2.25, 2.10)),
}
"""Table 4: largest tracking errors [1e-3 rad] of motors 1 to 4 on trajectories 1 and 2, with PD and with computed torque."""


BANDWIDTH, DAMPING, DERIVATIVE_FILTER, LARGEST_TORQUE = 70.0, 0.7, 70.0, 127.0  # Hz, -, Hz, N m: section 5
FIRST_MODE = 100.0  # Hz: "the natural frequency of the robot estimated at about 100Hz using finite element analysis"
STEP = 1.25e-4  # s
CONTROLLERS = ("feedforward", "pd", "computed torque")


BOX = (0.08, 0.05, 0.6)
"""Half-widths of the box of poses around home [m, m, rad]; 0.4 to 0.5 rad do not give the paper's nine parameters."""


ASSUMPTIONS: Mapping[str, Assumption] = {
    "geometry": Assumption("inward, r_p = 0.11 m", "", "neither is printed, see `dynident_papers.robots.dualv.Geometry`"),
    "torque_constant": Assumption(
        1.0, "N m/A", "not printed; amplifiers report torque, so an ampere stands for a newton metre"
    ),
    "compliance": Assumption(
        "between arms and platform, lumped behind each motor",
        "",
        "the paper prints the frequency of the first mode only; all motors have the shaft stiffness that gives the platform "
        "its 100 Hz at home with held rotors",
    ),
    "motor_side": Assumption(
        0.04,
        "kg m^2",
        "rotor and arm, in front of the compliance, out of the 0.045 to 0.051 of zz_1i in Table 2. With a rotor of a few "
        "1e-3 alone there the printed gains would not be stable on a mode of 100 Hz at any realistic cycle time",
    ),
    "load_side": Assumption(1e-3, "kg m^2", "what turns with the far end of the shaft; the rest of zz_1i stays in the link"),
    "mode_damping": Assumption(0.02, "-", "of that mode, usual for bolted structures with bearings"),
    "motor_friction": Assumption(
        (1.0, 1.3, 0.1, 0.05),
        "N m, N m, rad/s, N m s/rad",
        "Coulomb, breakaway, Stribeck speed, viscous: sealed bearings, 1 % of the largest torque; small as in the paper, "
        "where friction is not among the essential parameters",
    ),
    "joint_friction": Assumption((0.1, 0.01), "N m, N m s/rad", "Coulomb, viscous of each passive joint: preloaded bearings"),
    "encoder": Assumption((1e-5, 5e-6), "rad", "resolution and noise, the order of direct-drive encoders"),
    "cycle": Assumption(
        2.5e-4,
        "s",
        "not printed; its hold of 0.125 ms in the mean stands for computing and amplifiers too. With the gains as printed and "
        "a mode of 100 Hz a dead time of 0.19 ms is no longer stable",
    ),
    "preload": Assumption(0.0, "N m", "as in 5.4: the overconstraint is set to zero"),
    "gain_inertia": Assumption(
        "pose of home, without a payload",
        "",
        "PD torques are w_c^2 J e + 2 d w_c J e' with the inertia J that a motor moves there: the paper prints w_c and d only. "
        "Gains for the payload too would be twice as high, and the motors' encoders in front of the compliance would swing at "
        "267 Hz",
    ),
}
"""Values not printed in the paper, chosen before any proof was run with them."""
NOTES = (
    "the structure behind the motors is elastic, with a first mode of 100 Hz; encoders, on which the paper's errors are based, "
    "do not see this, and no rigid model corrects it; a model that is too heavy may even look better at the platform",
)
"""Notes on the comparison with the paper."""


_BODY = {"m": "m", "mx": "mx", "my": "my", "Izz": "zz"}


def paper_symbol(name: str) -> str:
    """Return the symbol of a parameter in [Briot2015], as in zz_11R for ``Izz_link1_1R`` and m_5 for ``m_payload``."""
    found = re.fullmatch(r"(?P<symbol>[A-Za-z]+)_(?:link|q)(?P<joint>\d)_(?P<leg>\d)(?P<tail>R?)", name)
    if found:
        symbol = _BODY.get(found["symbol"], found["symbol"])
        return f"{'fs' if symbol == 'fc' else symbol}_{found['joint']}{found['leg']}{found['tail']}"
    found = re.fullmatch(r"(?P<symbol>[A-Za-z]+)_(?P<body>platform|payload)(?P<tail>R?)", name)
    if found:
        return f"{_BODY.get(found['symbol'], found['symbol'])}_{4 if found['body'] == 'platform' else 5}{found['tail']}"
    return name


def _rows(name: str, given: Fit | Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    if isinstance(given, Fit):
        percent = 100.0 * given.relative_std
        chosen = zip(given.base.names, given.values, percent, given.active, strict=True)
        return {label: (float(value), float(sigma)) for label, value, sigma, active in chosen if active}
    if not isinstance(given, Mapping):
        raise DynidentError(
            f"DualV: '{name}' is a {type(given).__name__}; give a Fit, or a mapping of name to (value, percent)"
        )
    return dict(given)


def essential_table(cases: Mapping[str, Fit | Mapping[str, tuple[float, float]]] | None = None) -> str:
    """Return a table like [Briot2015, Table 2]: one row per essential parameter, value and relative deviation per case."""
    found = {label: _rows(label, given) for label, given in (cases or TABLE_2).items()}
    names = list(dict.fromkeys(name for rows in found.values() for name in rows))
    head = f"{'param.':<9}" + "".join(f"{label:>13}{'%sigma':>9}" for label in found)
    lines = [head, "-" * len(head)]
    for name in names:
        line = f"{paper_symbol(name):<9}"
        for rows in found.values():
            line += f"{rows[name][0]:>13.3g}{rows[name][1]:>9.2f}" if name in rows else f"{'-':>13}{'-':>9}"
        lines.append(line)
    return "\n".join(lines)
