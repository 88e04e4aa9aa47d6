"""Which motion to choose: criteria with exact gradients, limits, optimisers, and the plan of the experiment."""

from dynident.arguments import guard
from dynident.excitation.assumptions import Assumed, assume_limits, capsules_of, collision_of
from dynident.excitation.campaigns import (
    check_plan,
    complete_shares,
    complete_test,
    payload_plan,
    plan_within,
    validation_motion,
)
from dynident.excitation.criteria import Criterion
from dynident.excitation.designs import Design, check_motion, design, relative_sizes
from dynident.excitation.equations import ExcitationEquations, FunctionEquations, RobotEquations
from dynident.excitation.limits import Box, Effort, Limit, Loops, Polygon, TaskBox, ToolBox
from dynident.excitation.limits_file import MotionLimits, limits_of, limits_settings, read_limits
from dynident.excitation.objective import Objective, expected_deviations, prior_factor
from dynident.excitation.obstacles import Capsule, Collision, Floor
from dynident.excitation.optimise import Optimum, optimise
from dynident.excitation.plan import Piece, Plan, Stage
from dynident.excitation.problem import Problem, feasible_start
from dynident.excitation.records import average_log, average_periods, refer, stage_logs
from dynident.excitation.thermal_tests import cooling_test, heating_test

__all__ = [
    "Assumed",
    "Box",
    "Capsule",
    "Collision",
    "Criterion",
    "Design",
    "Effort",
    "ExcitationEquations",
    "Floor",
    "FunctionEquations",
    "Limit",
    "Loops",
    "MotionLimits",
    "Objective",
    "Optimum",
    "Piece",
    "Plan",
    "Polygon",
    "Problem",
    "RobotEquations",
    "Stage",
    "TaskBox",
    "ToolBox",
    "assume_limits",
    "average_log",
    "average_periods",
    "capsules_of",
    "check_motion",
    "check_plan",
    "collision_of",
    "complete_shares",
    "complete_test",
    "cooling_test",
    "design",
    "expected_deviations",
    "feasible_start",
    "heating_test",
    "limits_of",
    "limits_settings",
    "optimise",
    "payload_plan",
    "plan_within",
    "prior_factor",
    "read_limits",
    "refer",
    "relative_sizes",
    "stage_logs",
    "validation_motion",
]

guard(globals())
