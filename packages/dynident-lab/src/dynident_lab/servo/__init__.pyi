from .axis import Axis as Axis
from .bandwidth import SineResponse as SineResponse
from .bandwidth import actuators_alone as actuators_alone
from .bandwidth import bandwidth as bandwidth
from .bode import Bode as Bode
from .bode import Margins as Margins
from .bode import cutoff_frequency as cutoff_frequency
from .bode import delayed_integrator as delayed_integrator
from .bode import margins as margins
from .bode import plot_bode as plot_bode
from .chain import Modes as Modes
from .chain import TwoMass as TwoMass
from .linear import StateSpace as StateSpace
from .linear import TransferFunction as TransferFunction
from .machine_fit import MachineFit as MachineFit
from .machine_fit import fit_machine as fit_machine
from .sizing import MotorLoad as MotorLoad
from .sizing import Sizing as Sizing
from .sizing import size_motors as size_motors
from .steps import StepMetrics as StepMetrics
from .steps import path_deviation as path_deviation
from .steps import plot_step as plot_step
from .steps import radial_deviation as radial_deviation
from .steps import step_metrics as step_metrics
from .steps import time_lag as time_lag
from .tuning import ControlWarning as ControlWarning
from .tuning import pi_poles as pi_poles
from .tuning import tune_cascade as tune_cascade

__all__ = [
    "Axis",
    "Bode",
    "ControlWarning",
    "MachineFit",
    "Margins",
    "Modes",
    "MotorLoad",
    "SineResponse",
    "Sizing",
    "StateSpace",
    "StepMetrics",
    "TransferFunction",
    "TwoMass",
    "actuators_alone",
    "bandwidth",
    "cutoff_frequency",
    "delayed_integrator",
    "fit_machine",
    "margins",
    "path_deviation",
    "pi_poles",
    "plot_bode",
    "plot_step",
    "radial_deviation",
    "size_motors",
    "step_metrics",
    "time_lag",
    "tune_cascade",
]
