from .bristles import Dahl as Dahl
from .bristles import GeneralisedMaxwellSlip as GeneralisedMaxwellSlip
from .bristles import LuGre as LuGre
from .dynamic import DynamicLaw as DynamicLaw
from .friction import Friction as Friction
from .law import FrictionLaw as FrictionLaw
from .law import Sum as Sum
from .laws import Coulomb as Coulomb
from .laws import Offset as Offset
from .laws import Polynomial as Polynomial
from .laws import Sigmoid as Sigmoid
from .laws import SmoothStribeck as SmoothStribeck
from .laws import Stribeck as Stribeck
from .laws import Tanh as Tanh
from .laws import Viscous as Viscous
from .modifiers import Asymmetric as Asymmetric
from .modifiers import LoadDependent as LoadDependent
from .modifiers import Ripple as Ripple
from .modifiers import TemperatureDependent as TemperatureDependent
from .names import law_of as law_of
from .passivity import dissipation as dissipation
from .printed import law_to_c as law_to_c
from .printed import law_to_latex as law_to_latex
from .terms import TERMS as TERMS
from .terms import JointTerm as JointTerm
from .terms import register as register

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
