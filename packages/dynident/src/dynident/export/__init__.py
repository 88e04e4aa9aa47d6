"""The identified robot for other programs: Pinocchio, MuJoCo, Gazebo, Drake and FMI, compared with dynident after writing."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
