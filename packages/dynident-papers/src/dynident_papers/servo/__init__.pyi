from .actuator_fit import ActuatorFit as ActuatorFit
from .actuator_fit import fit_actuator as fit_actuator
from .modal_fit import ModalFit as ModalFit
from .modal_fit import fit_modal as fit_modal
from .zone import Gains as Gains
from .zone import Trial as Trial
from .zone import ZoneTuning as ZoneTuning
from .zone import zone_tune_cascade as zone_tune_cascade
from .zone import zone_tuning as zone_tuning

__all__ = [
    "ActuatorFit",
    "Gains",
    "ModalFit",
    "Trial",
    "ZoneTuning",
    "fit_actuator",
    "fit_modal",
    "zone_tune_cascade",
    "zone_tuning",
]
