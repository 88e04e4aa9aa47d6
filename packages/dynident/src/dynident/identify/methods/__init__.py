"""The estimators of the field beside OLS and WLS, one idea a file, all with the protocol of `dynident.identify.estimators`."""

from dynident.identify.methods.diagnosis import BiasDiagnosis, diagnose_bias
from dynident.identify.methods.direct import DIDIM, simulated_instruments
from dynident.identify.methods.entropic import Entropic
from dynident.identify.methods.generalised import GLS
from dynident.identify.methods.instrumental import IV
from dynident.identify.methods.kalman import Kalman
from dynident.identify.methods.likelihood import ML
from dynident.identify.methods.output_error import OutputError, Visible
from dynident.identify.methods.recursive import RLS
from dynident.identify.methods.robust import IRLS
from dynident.identify.methods.sampled import SampledRegression, Stretch
from dynident.identify.methods.total import TLS
from dynident_papers.identify import PerJoint, joint_estimates

__all__ = [
    "DIDIM",
    "GLS",
    "IRLS",
    "IV",
    "ML",
    "RLS",
    "TLS",
    "BiasDiagnosis",
    "Entropic",
    "Kalman",
    "OutputError",
    "PerJoint",
    "SampledRegression",
    "Stretch",
    "Visible",
    "diagnose_bias",
    "joint_estimates",
    "simulated_instruments",
]
