from .fractional import Fractional as Fractional
from .mittag_leffler import mittag_leffler as mittag_leffler
from .mittag_leffler import mittag_leffler_derivatives as mittag_leffler_derivatives
from .power import copper_losses as copper_losses
from .power import duty_cycle as duty_cycle
from .power import iron_losses as iron_losses
from .power import mean_power as mean_power
from .power import rms_power as rms_power
from .power import winding_resistance as winding_resistance
from .two_pole import Recurrence as Recurrence
from .two_pole import TwoPole as TwoPole

__all__ = [
    "Fractional",
    "Recurrence",
    "TwoPole",
    "copper_losses",
    "duty_cycle",
    "iron_losses",
    "mean_power",
    "mittag_leffler",
    "mittag_leffler_derivatives",
    "rms_power",
    "winding_resistance",
]
