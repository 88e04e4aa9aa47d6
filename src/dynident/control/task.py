"""What task controllers share: the robot at its measured and at its wanted place, and the limits of its drives."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dynident.control.controller import Machine, Measurement, Reference
from dynident.control.evaluate import Evaluator
from dynident.control.workspace import Bound, Spot, Workspace
from dynident.drive import Drive
from dynident.errors import DynidentError
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


def drives_of(robot: Machine) -> list[Drive]:
    """Return the drives of a robot in the order of its actuators."""
    given = robot.drives.values() if isinstance(robot.drives, Mapping) else robot.drives
    found = {drive.actuator: drive for drive in given}
    names = [actuator.name for actuator in robot.mechanism.actuators]
    missing = [name for name in names if name not in found]
    if missing:
        raise DynidentError(f"actuator '{missing[0]}' of robot '{robot.mechanism.name}' has no drive; give one for each")
    return [found[name] for name in names]


def torque_limits(drives: list[Drive]) -> Array:
    """Return the largest torque of every drive behind its gear."""
    return np.array([abs(d.transmission.ratio) * d.motor.torque_constant * d.motor.current_limit for d in drives])


def check_coordinates(owner: str, model: Mechanism, robot: Mechanism) -> None:
    """Refuse a model whose coordinates or actuators are not those of the robot."""
    if model.coordinate_names != robot.coordinate_names or len(model.actuators) != len(robot.actuators):
        raise DynidentError(
            f"{owner}: the model has coordinates {', '.join(model.coordinate_names)} and {len(model.actuators)} actuators, but "
            f"robot '{robot.name}' has {', '.join(robot.coordinate_names)} and {len(robot.actuators)}; start from its mechanism"
        )


class Eyes:
    """Measured and wanted place of a robot in a work space.

    Parameters
    ----------
    space : Workspace
        The work space.
    mechanism : Mechanism
        What the controller believes the robot to be.
    """

    def __init__(self, space: Workspace, mechanism: Mechanism) -> None:
        self.space: Bound = space.bind(mechanism)
        self.here, self.there = Evaluator(mechanism), Evaluator(mechanism)

    def look(self, reference: Reference, measurement: Measurement) -> tuple[Spot, Spot, Array]:
        """Return the wanted spot, the actual spot and the error between them."""
        if self.space.placed:
            self.there.place(reference.q, reference.v)
        self.here.place(measurement.x, measurement.v)
        wanted = self.space.spot(self.there, reference.q, reference.v)
        actual = self.space.spot(self.here, measurement.x, measurement.v)
        return wanted, actual, self.space.error(wanted, actual)


def enough(owner: str, space: Bound, mechanism: Mechanism) -> bool:
    """Refuse a work space of more rows than coordinates, and tell whether it leaves freedoms to the posture."""
    if space.rows > mechanism.dof:
        raise DynidentError(
            f"{owner}: the work space has {space.rows} rows but robot '{mechanism.name}' has {mechanism.dof} coordinates; "
            "choose at most as many rows as coordinates, as in ToolSpace(rows=('x', 'y'))"
        )
    return space.rows < mechanism.dof
