from .dynamic import Dahl as Dahl
from .dynamic import DynamicLaw as DynamicLaw
from .dynamic import GeneralisedMaxwellSlip as GeneralisedMaxwellSlip
from .dynamic import LuGre as LuGre
from .law import Friction as Friction
from .law import FrictionLaw as FrictionLaw
from .law import Sum as Sum
from .laws import Asymmetric as Asymmetric
from .laws import Coulomb as Coulomb
from .laws import LoadDependent as LoadDependent
from .laws import Offset as Offset
from .laws import Polynomial as Polynomial
from .laws import Ripple as Ripple
from .laws import Sigmoid as Sigmoid
from .laws import SmoothStribeck as SmoothStribeck
from .laws import Stribeck as Stribeck
from .laws import Tanh as Tanh
from .laws import TemperatureDependent as TemperatureDependent
from .laws import Viscous as Viscous
from .passivity import dissipation as dissipation
from .terms import TERMS as TERMS
from .terms import JointTerm as JointTerm
from .terms import register as register
from .text import law_of as law_of
from .text import law_to_c as law_to_c
from .text import law_to_latex as law_to_latex

__all__ = [
    "TERMS",
    "Asymmetric",
    "Coulomb",
    "Dahl",
    "DynamicLaw",
    "Friction",
    "FrictionLaw",
    "GeneralisedMaxwellSlip",
    "JointTerm",
    "LoadDependent",
    "LuGre",
    "Offset",
    "Polynomial",
    "Ripple",
    "Sigmoid",
    "SmoothStribeck",
    "Stribeck",
    "Sum",
    "Tanh",
    "TemperatureDependent",
    "Viscous",
    "dissipation",
    "law_of",
    "law_to_c",
    "law_to_latex",
    "register",
]
