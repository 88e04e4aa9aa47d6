"""A machine as a simulation block: amplifier voltages in, Cartesian coordinates and a status out.

command = gain u,    x_c = h(q),    status = 1 (a limit cuts a current or voltage) + 2 (a coordinate or joint is outside its
limits)                                                                          [Rodriguez2002, section 5, figures 9 and 10]

The report has a status among the outputs and does not define it: these two bits are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.control import OpenLoop
from dynident.errors import SimulationError
from dynident.graph import Function
from dynident.graph.algebra import maximum
from dynident.graph.expression import Node
from dynident.mechanics.dynamics import end_frame
from dynident.mechanics.equations import Equations
from dynident.mechanics.newton_euler import positions_of
from dynident.simulate import VirtualRobot


@dataclass(frozen=True, eq=False)
class Block:
    """A machine without control law, with voltages as inputs and Cartesian coordinates as outputs."""

    robot: VirtualRobot  #: Its controller is an `OpenLoop`
    names: tuple[str, ...]  #: Variable names of the m Cartesian coordinates
    place: Callable[[Equations], Sequence[Node]]  #: Returns these coordinates as expressions
    gain: ArrayLike = 1.0  #: (k,), command of the open loop per volt: gain of the amplifiers [A/V]
    limits: ArrayLike | None = None  #: (m, 2), lowest and highest Cartesian coordinates

    def __post_init__(self) -> None:
        if not isinstance(self.robot.controller, OpenLoop):
            law = type(self.robot.controller).__name__
            raise SimulationError(f"block: the controller is a {law}; voltages are the inputs of a machine with OpenLoop")

    @property
    def gains(self) -> Array:
        """Command per volt of every actuator, (k,)."""
        return np.broadcast_to(np.asarray(self.gain, dtype=np.float64), (len(self.robot.drives),))

    def function(self) -> Function:
        """Return the function from positions q to Cartesian coordinates x and the largest violation of a limit."""
        robot = self.robot.mechanism
        equations = Equations(robot)
        x = [equations.graph.node(value) for value in self.place(equations)]
        own = {joint.name: (joint.limits.lower, joint.limits.upper) for joint in robot.joints}
        joints = robot.tree.coordinates if robot.loops else robot.coordinate_names
        bounds = [(q, *own[name]) for name, q in zip(joints, equations.x, strict=True) if name in own]
        if self.limits is not None:
            bounds += [(value, *pair) for value, pair in zip(x, np.asarray(self.limits).tolist(), strict=True)]
        beyond = equations.graph.const(-1.0)
        for value, low, high in bounds:
            for excess, limit in ((low - value, low), (value - high, high)):
                beyond = maximum(beyond, excess) if np.isfinite(limit) else beyond
        return Function("whereabouts", {"q": positions_of(robot)}, {"x": x, "beyond": [beyond]})


def tool_block(machine: VirtualRobot, frame: str | None = None, gain: ArrayLike | None = None) -> Block:
    """Return a machine with voltages as inputs, and the position of a link (the only end link when omitted) as output.

    The voltages are those of the motors, or with a `gain` [A/V] those at the inputs of current amplifiers.
    """
    link, still = end_frame(machine.mechanism, frame), np.zeros(len(machine.drives))
    law = OpenLoop(voltage=still) if gain is None else OpenLoop(current=still)
    held = replace(machine, controller=law)
    return Block(held, ("xc_x", "xc_y", "xc_z"), lambda equations: equations.pose(link)[1], 1.0 if gain is None else gain)
