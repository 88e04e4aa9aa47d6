"""The xacro language, evaluated without running code: `expand` returns the robot that a .xacro file describes."""

from dynident.mechanism.xacro.expand import expand

__all__ = ["expand"]
