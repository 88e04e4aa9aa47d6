"""What resists: static, dynamic and thermal laws of joint friction, and the joint terms that are linear columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.arguments import guard
from dynident.friction.sides import directed
from dynident.friction.terms import ASYMMETRIC, SYMMETRIC, TERMS, JointTerm, check_terms, register, term_of

if TYPE_CHECKING:
    from dynident.friction.bristles import Dahl, GeneralisedMaxwellSlip, LuGre
    from dynident.friction.dynamic import DynamicLaw, Response
    from dynident.friction.forms import Point
    from dynident.friction.friction import Friction
    from dynident.friction.law import FrictionLaw, Sum
    from dynident.friction.laws import Coulomb, Offset, Polynomial, Sigmoid, SmoothStribeck, Stribeck, Tanh, Viscous
    from dynident.friction.modifiers import Asymmetric, LoadDependent, Ripple, TemperatureDependent
    from dynident.friction.names import law_of, law_text, reference_temperature
    from dynident.friction.passivity import Dissipation, dissipation
    from dynident.friction.printed import law_to_c, law_to_latex
    from dynident.friction.state import State
    from dynident.friction.thermal import (
        AdvancedSecondOrder,
        FirstOrder,
        Fractional,
        Recurrence,
        SecondOrder,
        Thermal,
        ThermalModel,
        TwoPole,
        WarmFriction,
        Warming,
        copper_losses,
        duty_cycle,
        iron_losses,
        mean_power,
        mittag_leffler,
        mittag_leffler_derivatives,
        rms_power,
        winding_resistance,
    )

# Laws are imported on first use: most robots are identified with the linear joint terms alone.
_LATER = {
    "bristles": "Dahl GeneralisedMaxwellSlip LuGre",
    "dynamic": "DynamicLaw Response",
    "forms": "Point",
    "friction": "Friction",
    "law": "FrictionLaw Sum",
    "laws": "Coulomb Offset Polynomial Sigmoid SmoothStribeck Stribeck Tanh Viscous",
    "modifiers": "Asymmetric LoadDependent Ripple TemperatureDependent",
    "names": "law_of law_text reference_temperature",
    "passivity": "Dissipation dissipation",
    "printed": "law_to_c law_to_latex",
    "state": "State",
    "thermal": (
        "AdvancedSecondOrder FirstOrder Fractional Recurrence SecondOrder Thermal ThermalModel TwoPole WarmFriction "
        "Warming copper_losses duty_cycle iron_losses mean_power mittag_leffler mittag_leffler_derivatives rms_power "
        "winding_resistance"
    ),
}

__all__ = [
    "ASYMMETRIC",
    "SYMMETRIC",
    "TERMS",
    "AdvancedSecondOrder",
    "Asymmetric",
    "Coulomb",
    "Dahl",
    "Dissipation",
    "DynamicLaw",
    "FirstOrder",
    "Fractional",
    "Friction",
    "FrictionLaw",
    "GeneralisedMaxwellSlip",
    "JointTerm",
    "LoadDependent",
    "LuGre",
    "Offset",
    "Point",
    "Polynomial",
    "Recurrence",
    "Response",
    "Ripple",
    "SecondOrder",
    "Sigmoid",
    "SmoothStribeck",
    "State",
    "Stribeck",
    "Sum",
    "Tanh",
    "TemperatureDependent",
    "Thermal",
    "ThermalModel",
    "TwoPole",
    "Viscous",
    "WarmFriction",
    "Warming",
    "check_terms",
    "copper_losses",
    "directed",
    "dissipation",
    "duty_cycle",
    "iron_losses",
    "law_of",
    "law_text",
    "law_to_c",
    "law_to_latex",
    "mean_power",
    "mittag_leffler",
    "mittag_leffler_derivatives",
    "reference_temperature",
    "register",
    "rms_power",
    "term_of",
    "winding_resistance",
]

guard(globals(), later=_LATER)
