from .models import AdvancedSecondOrder as AdvancedSecondOrder
from .models import FirstOrder as FirstOrder
from .models import SecondOrder as SecondOrder
from .models import Thermal as Thermal
from .models import ThermalModel as ThermalModel
from .models import WarmFriction as WarmFriction
from .models import Warming as Warming
from .models import Weakening as Weakening
from .schedules import cooling_test as cooling_test
from .schedules import heating_test as heating_test

__all__ = [
    "AdvancedSecondOrder",
    "FirstOrder",
    "SecondOrder",
    "Thermal",
    "ThermalModel",
    "WarmFriction",
    "Warming",
    "Weakening",
    "cooling_test",
    "heating_test",
]
