"""How a robot moves: kinematics, dynamics and regressors, batched over samples, for any tree."""

from dynident.mechanics.dynamics import coriolis_matrix, forward_dynamics, gravity, inverse_dynamics, mass_matrix
from dynident.mechanics.generated import Kernel, use_kernel
from dynident.mechanics.kinematics import forward_kinematics, frame_motion, jacobian
from dynident.mechanics.motion import Motion
from dynident.mechanics.regressor import energy_regressor, momentum_regressor, regressor, regressor_rows

__all__ = [
    "Kernel",
    "Motion",
    "coriolis_matrix",
    "energy_regressor",
    "forward_dynamics",
    "forward_kinematics",
    "frame_motion",
    "gravity",
    "inverse_dynamics",
    "jacobian",
    "mass_matrix",
    "momentum_regressor",
    "regressor",
    "regressor_rows",
    "use_kernel",
]
