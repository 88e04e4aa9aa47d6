from .coupled import Thermal as Thermal
from .coupled import WarmFriction as WarmFriction
from .fractional import Fractional as Fractional
from .mittag_leffler import mittag_leffler as mittag_leffler
from .mittag_leffler import mittag_leffler_derivatives as mittag_leffler_derivatives
from .model import ThermalModel as ThermalModel
from .model import Warming as Warming
from .schedules import cooling_test as cooling_test
from .schedules import heating_test as heating_test
from .two_pole import Recurrence as Recurrence
from .two_pole import TwoPole as TwoPole
from .zones import AdvancedSecondOrder as AdvancedSecondOrder
from .zones import FirstOrder as FirstOrder
from .zones import SecondOrder as SecondOrder

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
    "cooling_test",
    "heating_test",
    "mittag_leffler",
    "mittag_leffler_derivatives",
]
