from .base import BaseParameters as BaseParameters
from .base import base_parameters as base_parameters
from .base import recover_standard as recover_standard
from .estimators.bias import diagnose_bias as diagnose_bias
from .estimators.direct import DIDIM as DIDIM
from .estimators.direct import simulated_instruments as simulated_instruments
from .estimators.entropic import Entropic as Entropic
from .estimators.essential import contributing_parameters as contributing_parameters
from .estimators.essential import essential_parameters as essential_parameters
from .estimators.gls import GLS as GLS
from .estimators.instrumental import IV as IV
from .estimators.kalman import Kalman as Kalman
from .estimators.least_squares import OLS as OLS
from .estimators.least_squares import WLS as WLS
from .estimators.likelihood import ML as ML
from .estimators.map import MAP as MAP
from .estimators.output_error import OutputError as OutputError
from .estimators.recursive import RLS as RLS
from .estimators.robust import IRLS as IRLS
from .estimators.total import TLS as TLS
from .fit import Fit as Fit
from .friction.axis import fit_axis as fit_axis
from .friction.choice import choose as choose
from .friction.choice import choose_law as choose_law
from .friction.robot import fit_log as fit_log
from .partitions import rank_partitions as rank_partitions
from .payload.efforts import payload_of as payload_of
from .payload.efforts import payload_on_arm as payload_on_arm
from .payload.efforts import payload_regression as payload_regression
from .payload.gains import DriveGains as DriveGains
from .payload.gains import estimate_gains as estimate_gains
from .payload.gains import with_gain_uncertainty as with_gain_uncertainty
from .payload.load import Payload as Payload
from .payload.wrist import payload_from_wrench as payload_from_wrench
from .payload.wrist import read_wrench as read_wrench
from .posterior.prior import Knowledge as Knowledge
from .posterior.prior import Population as Population
from .prediction import Prediction as Prediction
from .regression.regression import Regression as Regression
from .score import Metrics as Metrics
from .score import Score as Score
from .score import evaluate as evaluate
from .tables import Observability as Observability

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
    "Score",
    "base_parameters",
    "choose",
    "choose_law",
    "contributing_parameters",
    "diagnose_bias",
    "essential_parameters",
    "estimate_gains",
    "evaluate",
    "fit_axis",
    "fit_log",
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
