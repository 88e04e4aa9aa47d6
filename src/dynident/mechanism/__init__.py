"""What a robot is: bodies, joints, loops, couplings, actuators and parameters, with readers and writers."""

from dynident.mechanism.elements import Actuator, Body, Coupling, Joint, Limits, Loop, Placement
from dynident.mechanism.inertia import Consistency, check_consistency
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters

__all__ = [
    "Actuator",
    "Body",
    "Consistency",
    "Coupling",
    "Joint",
    "Limits",
    "Loop",
    "Mechanism",
    "Parameters",
    "Placement",
    "check_consistency",
]
