from .power import copper_losses as copper_losses
from .power import duty_cycle as duty_cycle
from .power import iron_losses as iron_losses
from .power import mean_power as mean_power
from .power import rms_power as rms_power
from .power import winding_resistance as winding_resistance

__all__ = [
    "copper_losses",
    "duty_cycle",
    "iron_losses",
    "mean_power",
    "rms_power",
    "winding_resistance",
]
