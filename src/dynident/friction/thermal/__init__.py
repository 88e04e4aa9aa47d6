"""Temperature of joints: thermal models that friction heats and that scale the friction."""

from dynident.friction.thermal.coupled import Thermal, WarmFriction
from dynident.friction.thermal.fractional import Fractional
from dynident.friction.thermal.mittag_leffler import mittag_leffler, mittag_leffler_derivatives
from dynident.friction.thermal.model import ThermalModel, Warming
from dynident.friction.thermal.power import copper_losses, duty_cycle, iron_losses, mean_power, rms_power, winding_resistance
from dynident.friction.thermal.two_pole import Recurrence, TwoPole
from dynident.friction.thermal.zones import AdvancedSecondOrder, FirstOrder, SecondOrder

__all__ = [
    "AdvancedSecondOrder",
    "FirstOrder",
    "Fractional",
    "Recurrence",
    "SecondOrder",
    "Thermal",
    "ThermalModel",
    "TwoPole",
    "WarmFriction",
    "Warming",
    "copper_losses",
    "duty_cycle",
    "iron_losses",
    "mean_power",
    "mittag_leffler",
    "mittag_leffler_derivatives",
    "rms_power",
    "winding_resistance",
]
