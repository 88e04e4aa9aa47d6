"""The identified robot for other programs: Pinocchio, MuJoCo, Gazebo, Drake and FMI, compared with dynident after writing."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
