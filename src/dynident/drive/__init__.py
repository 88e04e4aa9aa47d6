"""What turns a joint: motor, transmission, encoder and current sensor, their transfer functions, and fits of their numbers."""

from dynident.arguments import guard
from dynident.drive.actuator_fit import ActuatorFit, fit_actuator
from dynident.drive.bode import Bode, plot_bode
from dynident.drive.chain import Chain
from dynident.drive.chain_analysis import TwoMass
from dynident.drive.drive import Drive
from dynident.drive.encoder import (
    CurrentSensor,
    Encoder,
    adaptive_difference,
    difference,
    low_pass,
    quantise,
    tracking_observer,
)
from dynident.drive.linear import StateSpace, TransferFunction
from dynident.drive.modal_fit import ModalFit, fit_modal
from dynident.drive.modes import Modes
from dynident.drive.motor import Motor
from dynident.drive.transmission import Transmission, reflected_inertia

__all__ = [
    "ActuatorFit",
    "Bode",
    "Chain",
    "CurrentSensor",
    "Drive",
    "Encoder",
    "ModalFit",
    "Modes",
    "Motor",
    "StateSpace",
    "TransferFunction",
    "Transmission",
    "TwoMass",
    "adaptive_difference",
    "difference",
    "fit_actuator",
    "fit_modal",
    "low_pass",
    "plot_bode",
    "quantise",
    "reflected_inertia",
    "tracking_observer",
]

guard(globals())
