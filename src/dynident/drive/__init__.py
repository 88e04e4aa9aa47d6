"""What turns a joint: motor, transmission, encoder and current sensor, their transfer functions, and fits of their numbers."""

from dynident.drive.actuator_fit import ActuatorFit, fit_actuator
from dynident.drive.chain import Chain
from dynident.drive.drive import Drive
from dynident.drive.encoder import CurrentSensor, Encoder, quantise
from dynident.drive.modal_fit import ModalFit, fit_modal
from dynident.drive.modes import Modes
from dynident.drive.motor import Motor
from dynident.drive.statespace import StateSpace
from dynident.drive.transfer import Bode, TransferFunction, plot_bode
from dynident.drive.transmission import Transmission, reflected_inertia
from dynident.drive.two_mass import TwoMass
from dynident.drive.velocity import adaptive_difference, difference, low_pass, tracking_observer

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
