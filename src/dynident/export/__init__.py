"""The identified robot for other programs: Pinocchio, MuJoCo, Gazebo, Drake and FMI, compared with dynident after writing."""

from dynident.arguments import guard
from dynident.export.remarks import remark
from dynident.export.robot import TARGETS, Exported, export_robot

__all__ = ["TARGETS", "Exported", "export_robot", "remark"]

guard(globals())
