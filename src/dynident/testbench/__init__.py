"""Experiments on one robot or many: plateaus, friction curves, warm-up, thermal fits, repeatability, maintenance, tracking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.arguments import guard

if TYPE_CHECKING:
    from dynident.testbench.checkup import Checkup, check_robot
    from dynident.testbench.compensated import FrictionCompensation
    from dynident.testbench.compensation import Compensation, MeasuredTemperature, NoCompensation, ThermalPrediction, WarmupTime
    from dynident.testbench.curve import CurveFit, FrictionCurve
    from dynident.testbench.curves import FrictionCurves, friction_curves
    from dynident.testbench.cycles import CycleFits, identify_cycles
    from dynident.testbench.gravity import Gravity, SingleAxis, plateau_gravity, single_axis
    from dynident.testbench.heating import (
        CampaignStudy,
        JointHeating,
        campaign_study,
        normalised_friction,
    )
    from dynident.testbench.history import FrictionHistory
    from dynident.testbench.lugre import LuGreFit, fit_lugre, fit_static
    from dynident.testbench.maintenance import FaultDetector, Maintenance
    from dynident.testbench.moments import SpeedMoments, friction_power
    from dynident.testbench.plateaus import Plateaus, SpeedPlateau, find_plateaus
    from dynident.testbench.plots import plot_sweeps
    from dynident.testbench.repeatability_study import (
        Estimate,
        ParameterRepeatability,
        Repeatability,
        estimates_of,
        repeatability,
    )
    from dynident.testbench.report import write_friction_report
    from dynident.testbench.study import FrictionStudy, JointStudy, friction_study
    from dynident.testbench.temperature import TemperatureComparison, compare_temperature
    from dynident.testbench.thermal import choose_thermal, fit_thermal
    from dynident.testbench.thermal_data import ThermalFit, ThermalTest
    from dynident.testbench.tracking import (
        Known,
        catalogue_model,
        feedback_alone,
        identify_friction,
        identify_machine,
        led_reference,
        tracking_proof,
        with_model,
    )
    from dynident.testbench.tracking_case import own_case
    from dynident.testbench.tracking_result import TrackingProof, TrackingTrial
    from dynident.testbench.variance import Spread, nested_spread
    from dynident.testbench.warmup import Warmup, fit_warmup

# Each experiment is imported on first use: the closed loop brings the simulation with it, friction does not.
_LATER = {
    "plots": "plot_sweeps",
    "compensated": "FrictionCompensation",
    "cycles": "CycleFits identify_cycles",
    "checkup": "Checkup check_robot",
    "compensation": "Compensation MeasuredTemperature NoCompensation ThermalPrediction WarmupTime",
    "curve": "CurveFit FrictionCurve",
    "curves": "FrictionCurves friction_curves",
    "gravity": "Gravity SingleAxis plateau_gravity single_axis",
    "heating": "CampaignStudy JointHeating campaign_study normalised_friction",
    "moments": "SpeedMoments friction_power",
    "history": "FrictionHistory",
    "lugre": "LuGreFit fit_lugre fit_static",
    "maintenance": "FaultDetector Maintenance",
    "plateaus": "SpeedPlateau Plateaus find_plateaus",
    "repeatability_study": "Estimate ParameterRepeatability Repeatability estimates_of repeatability",
    "report": "write_friction_report",
    "study": "FrictionStudy JointStudy friction_study",
    "temperature": "TemperatureComparison compare_temperature",
    "thermal": "choose_thermal fit_thermal",
    "thermal_data": "ThermalFit ThermalTest",
    "tracking": (
        "Known catalogue_model feedback_alone identify_friction identify_machine led_reference tracking_proof with_model"
    ),
    "tracking_case": "own_case",
    "tracking_result": "TrackingProof TrackingTrial",
    "variance": "Spread nested_spread",
    "warmup": "Warmup fit_warmup",
}

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
    "FrictionHistory",
    "FrictionStudy",
    "Gravity",
    "JointHeating",
    "JointStudy",
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

guard(globals(), later=_LATER)
