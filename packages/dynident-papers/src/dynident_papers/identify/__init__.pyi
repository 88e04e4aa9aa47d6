from .individual import Individual as Individual
from .individual import Statistics as Statistics
from .joints import PerJoint as PerJoint
from .joints import joint_estimates as joint_estimates
from .reduction import JointReduction as JointReduction
from .reduction import Reduction as Reduction
from .reduction import reduction as reduction
from .subsets import enumerate_subsets as enumerate_subsets
from .subsets import individual_parameters as individual_parameters

__all__ = [
    "Individual",
    "JointReduction",
    "PerJoint",
    "Reduction",
    "Statistics",
    "enumerate_subsets",
    "individual_parameters",
    "joint_estimates",
    "reduction",
]
