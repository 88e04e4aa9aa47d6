from .actuation import actuator_jacobian as actuator_jacobian
from .actuation import actuator_torques as actuator_torques
from .actuation import preload as preload
from .closure import close_motion as close_motion
from .closure import close_positions as close_positions
from .closure import coordinates_from_actuators as coordinates_from_actuators
from .dynamics import coriolis_matrix as coriolis_matrix
from .dynamics import forward_dynamics as forward_dynamics
from .dynamics import gravity as gravity
from .dynamics import inverse_dynamics as inverse_dynamics
from .dynamics import mass_matrix as mass_matrix
from .inverse_kinematics_closed import arm_structure as arm_structure
from .inverse_kinematics_closed import choose_posture as choose_posture
from .inverse_kinematics_closed import inverse_kinematics as inverse_kinematics
from .inverse_kinematics_closed import reach as reach
from .inverse_kinematics_closed import singularities as singularities
from .inverse_kinematics_damped import inverse_kinematics_numeric as inverse_kinematics_numeric
from .kinematics import forward_kinematics as forward_kinematics
from .kinematics import frame_motion as frame_motion
from .kinematics import jacobian as jacobian
from .motion import Motion as Motion
from .motion import MotionLike as MotionLike
from .regressors import energy_regressor as energy_regressor
from .regressors import momentum_regressor as momentum_regressor
from .regressors import regressor as regressor

__all__ = [
    "Motion",
    "MotionLike",
    "actuator_jacobian",
    "actuator_torques",
    "arm_structure",
    "choose_posture",
    "close_motion",
    "close_positions",
    "coordinates_from_actuators",
    "coriolis_matrix",
    "energy_regressor",
    "forward_dynamics",
    "forward_kinematics",
    "frame_motion",
    "gravity",
    "inverse_dynamics",
    "inverse_kinematics",
    "inverse_kinematics_numeric",
    "jacobian",
    "mass_matrix",
    "momentum_regressor",
    "preload",
    "reach",
    "regressor",
    "singularities",
]
