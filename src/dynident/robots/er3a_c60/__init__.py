"""An arm like the ER3A-C60 (Efort), the six-axis robot of document 3.

R. Pagani, "Innovative experimental procedures and dynamics models for industrial robot manipulators", PhD thesis, University of
Brescia, chapters 2 to 5. Numbers in brackets are the thesis' equations. It prints ranges, speeds, payload, mass, reach
(Table 4), the thermal model of axis 4 (130) and the time constants of all axes (Table 8), but neither a DH table nor
identified inertias or friction: everything else is in `ASSUMPTIONS`, each with its reason. Three printed lengths fix most of
the geometry: a2 + a3 = 340 mm, d4 + d6 = 377 mm and a1 + a2 + hypot(a3, d4) = 628 mm.
"""

from dynident.robots.assumptions import Assumption
from dynident.robots.er3a_c60.data import (
    AMBIENT,
    ASSUMPTIONS,
    AXIS_4,
    CAPSULES,
    COLD_OVER_HOT,
    CYCLE_TIME,
    CYCLES,
    FAULT,
    FRICTION_4,
    FUNDAMENTAL,
    HARMONICS,
    JOINTS,
    LINK_LENGTHS,
    MASS,
    MAY_TOUCH,
    PAYLOAD,
    PLATEAUS,
    POWER_4,
    RANGES,
    REACH,
    REPEATABILITY,
    SAMPLING,
    SINES,
    SPEEDS,
    TIME_CONSTANTS,
    WARMING_SHARE,
    WARMING_TIME,
)
from dynident.robots.er3a_c60.machine import machine
from dynident.robots.er3a_c60.model import (
    assumed,
    dh_table,
    friction_coefficients,
    friction_laws,
    friction_powers,
    limit_settings,
    limits,
    linear_friction,
    mechanism,
    thermal_models,
)

__all__ = [
    "AMBIENT",
    "ASSUMPTIONS",
    "AXIS_4",
    "CAPSULES",
    "COLD_OVER_HOT",
    "CYCLES",
    "CYCLE_TIME",
    "FAULT",
    "FRICTION_4",
    "FUNDAMENTAL",
    "HARMONICS",
    "JOINTS",
    "LINK_LENGTHS",
    "MASS",
    "MAY_TOUCH",
    "PAYLOAD",
    "PLATEAUS",
    "POWER_4",
    "RANGES",
    "REACH",
    "REPEATABILITY",
    "SAMPLING",
    "SINES",
    "SPEEDS",
    "TIME_CONSTANTS",
    "WARMING_SHARE",
    "WARMING_TIME",
    "Assumption",
    "assumed",
    "dh_table",
    "friction_coefficients",
    "friction_laws",
    "friction_powers",
    "limit_settings",
    "limits",
    "linear_friction",
    "machine",
    "mechanism",
    "thermal_models",
]
