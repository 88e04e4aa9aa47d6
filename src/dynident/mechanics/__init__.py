"""How a robot moves: kinematics, dynamics and regressors, batched over samples, for trees and robots with loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.arguments import guard
from dynident.mechanics.closure import (
    close_motion,
    close_positions,
    close_rates,
    closure_starts,
    coordinates_from_actuators,
    motion_from_actuators,
)
from dynident.mechanics.equations import Equations, opaque_columns
from dynident.mechanics.functions import (
    Outputs,
    TreeMotion,
    at_rest,
    cached,
    compiled,
    coordinates,
    entering,
    function_of,
    geometry_key,
    node_values,
    project,
    tree_motion,
    values_of,
)
from dynident.mechanics.geometry import Geometry, Pose, compose
from dynident.mechanics.matrices import energies
from dynident.mechanics.motion import Motion, MotionLike, as_motion
from dynident.mechanics.moving_tree import positions_of
from dynident.mechanics.regressors import energy_regressor, momentum_regressor, regressor, regressor_rows, weighted_regressor
from dynident.mechanics.solving import NodeRows, eliminate, factor_symmetric, solve_factored, solve_general, solve_symmetric
from dynident.mechanics.vectors import Vector, cross, dot, matrix, plus, scale, snapped, times, vector

if TYPE_CHECKING:
    from dynident.mechanics.actuation import (
        actuator_jacobian,
        actuator_torques,
        generalised_efforts,
        least_torques,
        preload,
        prices,
    )
    from dynident.mechanics.branch import branch_routine
    from dynident.mechanics.dynamics import coriolis_matrix, forward_dynamics, gravity, inverse_dynamics, mass_matrix
    from dynident.mechanics.flexures import FlexureRequirements, flexure_requirements
    from dynident.mechanics.hinges import FlexureHinge
    from dynident.mechanics.inverse_kinematics_arms import distance_to_curve
    from dynident.mechanics.inverse_kinematics_closed import (
        arm_structure,
        choose_posture,
        inverse_kinematics,
        reach,
        singularities,
    )
    from dynident.mechanics.inverse_kinematics_damped import (
        inverse_kinematics_numeric,
        pose_error,
        pose_targets,
        position_limits,
        robot_size,
    )
    from dynident.mechanics.joint_forces import Conditioning, closure_conditioning, joint_reactions, reactions
    from dynident.mechanics.kinematics import body_motions, end_frame, forward_kinematics, frame_motion, jacobian
    from dynident.mechanics.workspace import Singularity, WorkspaceMap, singularity_indices, workspace_map

# Imported on first use: identification needs the equations, not the kinematics of people.
_LATER = {
    "actuation": "actuator_jacobian actuator_torques generalised_efforts least_torques preload prices",
    "branch": "branch_routine",
    "dynamics": "coriolis_matrix forward_dynamics gravity inverse_dynamics mass_matrix",
    "flexures": "FlexureRequirements flexure_requirements",
    "hinges": "FlexureHinge",
    "inverse_kinematics_arms": "distance_to_curve",
    "inverse_kinematics_closed": "arm_structure choose_posture inverse_kinematics reach singularities",
    "inverse_kinematics_damped": "inverse_kinematics_numeric pose_error pose_targets position_limits robot_size",
    "kinematics": "body_motions end_frame forward_kinematics frame_motion jacobian",
    "joint_forces": "Conditioning closure_conditioning joint_reactions reactions",
    "workspace": "Singularity WorkspaceMap singularity_indices workspace_map",
}

__all__ = [
    "Conditioning",
    "Equations",
    "FlexureHinge",
    "FlexureRequirements",
    "Geometry",
    "Motion",
    "MotionLike",
    "NodeRows",
    "Outputs",
    "Pose",
    "Singularity",
    "TreeMotion",
    "Vector",
    "WorkspaceMap",
    "actuator_jacobian",
    "actuator_torques",
    "arm_structure",
    "as_motion",
    "at_rest",
    "body_motions",
    "branch_routine",
    "cached",
    "choose_posture",
    "close_motion",
    "close_positions",
    "close_rates",
    "closure_conditioning",
    "closure_starts",
    "compiled",
    "compose",
    "coordinates",
    "coordinates_from_actuators",
    "coriolis_matrix",
    "cross",
    "distance_to_curve",
    "dot",
    "eliminate",
    "end_frame",
    "energies",
    "energy_regressor",
    "entering",
    "factor_symmetric",
    "flexure_requirements",
    "forward_dynamics",
    "forward_kinematics",
    "frame_motion",
    "function_of",
    "generalised_efforts",
    "geometry_key",
    "gravity",
    "inverse_dynamics",
    "inverse_kinematics",
    "inverse_kinematics_numeric",
    "jacobian",
    "joint_reactions",
    "least_torques",
    "mass_matrix",
    "matrix",
    "momentum_regressor",
    "motion_from_actuators",
    "node_values",
    "opaque_columns",
    "plus",
    "pose_error",
    "pose_targets",
    "position_limits",
    "positions_of",
    "preload",
    "prices",
    "project",
    "reach",
    "reactions",
    "regressor",
    "regressor_rows",
    "robot_size",
    "scale",
    "singularities",
    "singularity_indices",
    "snapped",
    "solve_factored",
    "solve_general",
    "solve_symmetric",
    "times",
    "tree_motion",
    "values_of",
    "vector",
    "weighted_regressor",
    "workspace_map",
]

guard(globals(), later=_LATER)
