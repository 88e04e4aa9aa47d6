from .base import BaseParameters as BaseParameters
from .base import recover_standard as recover_standard
from .bayes import MAP as MAP
from .essential import contributing_parameters as contributing_parameters
from .essential import essential_parameters as essential_parameters
from .estimators import OLS as OLS
from .estimators import WLS as WLS
from .fit import Fit as Fit
from .friction.axis import fit_axis as fit_axis
from .friction.choice import choose as choose
from .friction.laws import choose_friction as choose_friction
from .friction.laws import choose_law as choose_law
from .friction.robot import fit_log as fit_log
from .friction.robot import fit_robot as fit_robot
from .gains import DriveGains as DriveGains
from .gains import estimate_gains as estimate_gains
from .gains import with_gain_uncertainty as with_gain_uncertainty
from .load import Payload as Payload
from .methods.diagnosis import diagnose_bias as diagnose_bias
from .methods.direct import DIDIM as DIDIM
from .methods.direct import simulated_instruments as simulated_instruments
from .methods.entropic import Entropic as Entropic
from .methods.generalised import GLS as GLS
from .methods.instrumental import IV as IV
from .methods.kalman import Kalman as Kalman
from .methods.likelihood import ML as ML
from .methods.output_error import OutputError as OutputError
from .methods.recursive import RLS as RLS
from .methods.robust import IRLS as IRLS
from .methods.sampled import SampledRegression as SampledRegression
from .methods.total import TLS as TLS
from .metrics import Metrics as Metrics
from .metrics import evaluate as evaluate
from .partitions import rank_partitions as rank_partitions
from .payload import payload_of as payload_of
from .payload import payload_on_arm as payload_on_arm
from .payload import payload_regression as payload_regression
from .population import Population as Population
from .prediction import Prediction as Prediction
from .prior import Knowledge as Knowledge
from .regression import Regression as Regression
from .regrouping import base_parameters as base_parameters
from .score import Score as Score
from .tables import Observability as Observability
from .wrist import payload_from_wrench as payload_from_wrench
from .wrist import read_wrench as read_wrench

__all__ = [
    "DIDIM",
    "GLS",
    "IRLS",
    "IV",
    "MAP",
    "ML",
    "OLS",
    "RLS",
    "TLS",
    "WLS",
    "BaseParameters",
    "DriveGains",
    "Entropic",
    "Fit",
    "Kalman",
    "Knowledge",
    "Metrics",
    "Observability",
    "OutputError",
    "Payload",
    "Population",
    "Prediction",
    "Regression",
    "SampledRegression",
    "Score",
    "base_parameters",
    "choose",
    "choose_friction",
    "choose_law",
    "contributing_parameters",
    "diagnose_bias",
    "essential_parameters",
    "estimate_gains",
    "evaluate",
    "fit_axis",
    "fit_log",
    "fit_robot",
    "payload_from_wrench",
    "payload_of",
    "payload_on_arm",
    "payload_regression",
    "rank_partitions",
    "read_wrench",
    "recover_standard",
    "simulated_instruments",
    "with_gain_uncertainty",
]
