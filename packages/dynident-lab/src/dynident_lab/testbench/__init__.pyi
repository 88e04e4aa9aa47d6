from .checkup import Checkup as Checkup
from .checkup import check_robot as check_robot
from .compensation import Compensation as Compensation
from .compensation import MeasuredTemperature as MeasuredTemperature
from .compensation import NoCompensation as NoCompensation
from .compensation import ThermalPrediction as ThermalPrediction
from .compensation import WarmupTime as WarmupTime
from .curve import CurveFit as CurveFit
from .curve import FrictionCurve as FrictionCurve
from .curves import FrictionCurves as FrictionCurves
from .curves import friction_curves as friction_curves
from .cycles import CycleFits as CycleFits
from .cycles import identify_cycles as identify_cycles
from .friction_compensation import FrictionCompensation as FrictionCompensation
from .friction_filter import FrictionFilter as FrictionFilter
from .friction_filter import KalmanResult as KalmanResult
from .gravity import Gravity as Gravity
from .gravity import SingleAxis as SingleAxis
from .gravity import plateau_gravity as plateau_gravity
from .gravity import single_axis as single_axis
from .heating import CampaignStudy as CampaignStudy
from .heating import JointHeating as JointHeating
from .heating import campaign_study as campaign_study
from .heating import normalised_friction as normalised_friction
from .history import FrictionHistory as FrictionHistory
from .lugre import LuGreFit as LuGreFit
from .lugre import fit_lugre as fit_lugre
from .lugre import fit_static as fit_static
from .maintenance import FaultDetector as FaultDetector
from .maintenance import Maintenance as Maintenance
from .moments import SpeedMoments as SpeedMoments
from .moments import friction_power as friction_power
from .plateaus import Plateaus as Plateaus
from .plateaus import SpeedPlateau as SpeedPlateau
from .plateaus import find_plateaus as find_plateaus
from .plots import plot_sweeps as plot_sweeps
from .repeatability_study import Estimate as Estimate
from .repeatability_study import ParameterRepeatability as ParameterRepeatability
from .repeatability_study import Repeatability as Repeatability
from .repeatability_study import estimates_of as estimates_of
from .repeatability_study import repeatability as repeatability
from .report import write_friction_report as write_friction_report
from .study import FrictionStudy as FrictionStudy
from .study import JointStudy as JointStudy
from .study import friction_study as friction_study
from .temperature import TemperatureComparison as TemperatureComparison
from .temperature import compare_temperature as compare_temperature
from .thermal import choose_thermal as choose_thermal
from .thermal import fit_thermal as fit_thermal
from .thermal_data import ThermalFit as ThermalFit
from .thermal_data import ThermalTest as ThermalTest
from .tracking import Known as Known
from .tracking import catalogue_model as catalogue_model
from .tracking import feedback_alone as feedback_alone
from .tracking import identify_friction as identify_friction
from .tracking import identify_machine as identify_machine
from .tracking import led_reference as led_reference
from .tracking import tracking_proof as tracking_proof
from .tracking import with_model as with_model
from .tracking_case import own_case as own_case
from .tracking_result import TrackingProof as TrackingProof
from .tracking_result import TrackingTrial as TrackingTrial
from .variance import Spread as Spread
from .variance import nested_spread as nested_spread
from .warmup import Warmup as Warmup
from .warmup import fit_warmup as fit_warmup

__all__ = [
    "CampaignStudy",
    "Checkup",
    "Compensation",
    "CurveFit",
    "CycleFits",
    "Estimate",
    "FaultDetector",
    "FrictionCompensation",
    "FrictionCurve",
    "FrictionCurves",
    "FrictionFilter",
    "FrictionHistory",
    "FrictionStudy",
    "Gravity",
    "JointHeating",
    "JointStudy",
    "KalmanResult",
    "Known",
    "LuGreFit",
    "Maintenance",
    "MeasuredTemperature",
    "NoCompensation",
    "ParameterRepeatability",
    "Plateaus",
    "Repeatability",
    "SingleAxis",
    "SpeedMoments",
    "SpeedPlateau",
    "Spread",
    "TemperatureComparison",
    "ThermalFit",
    "ThermalPrediction",
    "ThermalTest",
    "TrackingProof",
    "TrackingTrial",
    "Warmup",
    "WarmupTime",
    "campaign_study",
    "catalogue_model",
    "check_robot",
    "choose_thermal",
    "compare_temperature",
    "estimates_of",
    "feedback_alone",
    "find_plateaus",
    "fit_lugre",
    "fit_static",
    "fit_thermal",
    "fit_warmup",
    "friction_curves",
    "friction_power",
    "friction_study",
    "identify_cycles",
    "identify_friction",
    "identify_machine",
    "led_reference",
    "nested_spread",
    "normalised_friction",
    "own_case",
    "plateau_gravity",
    "plot_sweeps",
    "repeatability",
    "single_axis",
    "tracking_proof",
    "with_model",
    "write_friction_report",
]
