"""What a machine in C needs beside its step: the row of the reference that its law reads, and the state at a start.

`table_of` makes the rows of a whole motion; here the motion becomes known sample after sample, so both are routines. Loops are
closed from the last sample to the next, by the same walk along the branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.control import PID, ComputedTorque, OpenLoop, TaskCascade
from dynident.control.feedforward import coupling_rows, friction_laws
from dynident.friction.law import Point
from dynident.graph import Function, Graph, where
from dynident.graph.expression import Node
from dynident.graph.routine import Place, Routine
from dynident.mechanics.actuation import least_norm
from dynident.mechanics.branch import branch_routine
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import at_rest, geometry_key, tree_motion
from dynident.mechanics.moving_tree import positions_of
from dynident.mechanism import Mechanism
from dynident.simulate.drives import along
from dynident.simulate.dynamics import Dynamics
from dynident.simulate.laws import loops_of
from dynident.simulate.machine import Machine
from dynident.simulate.shape import LOST_CLOSURE, MachineRoutine, parts_of
from dynident.simulate.tick_model import reference_function, task_table

Array = NDArray[np.float64]


class Poses:
    """Closed positions of the robots whose loops must be followed, side by side in one array; none without loops."""

    def __init__(self, *robots: Mechanism) -> None:
        self.size = 0
        self._places: dict[Any, tuple[int, Mechanism]] = {}
        for robot in robots:
            if robot.loops and geometry_key(robot) not in self._places:
                self._places[geometry_key(robot)] = self.size, robot
                self.size += len(robot.tree.coordinates)

    def start(self, x: Array) -> Array:
        """Return the closed positions at x."""
        return np.concatenate(
            [np.zeros(0), *(tree_motion(robot, at_rest(robot, x)).q[0] for _, robot in self._places.values())]
        )

    def follow(self, r: Routine, array: str, given: Place, status: Place) -> None:
        """Bring all positions to given coordinates, or set the status."""
        for i, (first, robot) in enumerate(self._places.values()):
            walk, width = branch_routine(robot, f"_{i}" if i else ""), len(robot.tree.coordinates)
            head, work, out = r.local(f"head{i}", 2), r.local(f"work{i}", 3 * width + 8), r.local(f"out{i}", width)
            r.store_all(head, 0, [1.0, -1.0])
            r.call(walk, head=head, given=given, start=(array, first), work=work, out=out)
            lost = r.load(head, 1) >= 0.0
            with r.when(lost):
                r.store(*status, LOST_CLOSURE)
            with r.otherwise():
                r.store_all(array, first, r.load_all(out, 0, width))

    def place(self, robot: Mechanism, array: str, given: Place) -> Place:
        """Return where the positions of a robot are that its equations take."""
        return (array, self._places[geometry_key(robot)][0]) if robot.loops else given


class Setpoint:
    """The routine ``setpoint(pose, wanted, p, table, status)``: q, v, a of the coordinates become a row of the law's table."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.law, self.mechanism = machine, machine.law, machine.mechanism
        self.n, self.k = self.mechanism.dof, len(machine.drives)
        self.shape = machine.shape.law
        loops = loops_of(self.law)
        self.model: Mechanism | None = getattr(self.law, "feedforward", None) if loops is None else loops.torque_feedforward
        robots = [self.mechanism, *([self.model] if self.model is not None else [])]
        if self.shape.space is not None:
            robots.append(self.shape.model)
        self.poses = Poses(*([] if isinstance(self.law, OpenLoop | ComputedTorque) else robots))

    def routine(self) -> Routine:
        """Return it."""
        r = Routine(Graph(), "setpoint", ("pose", "wanted", "p", "table", "status"))
        n, k = self.n, self.k
        self.poses.follow(r, "pose", ("wanted", 0), ("status", 0))
        if isinstance(self.law, ComputedTorque):
            r.store_all("table", 0, r.load_all("wanted", 0, 3 * n))
        elif self.shape.space is not None:
            fields, model = task_table(self.shape, k), self.shape.model
            for i, name in enumerate(("q", "v", "a")):
                r.store_all("table", fields.at(name), r.load_all("wanted", i * n, n))
            numbers = self.machine.memory.numbers
            here = {name: ("table", fields.at(name)) for name in ("place", "rate", "curve")}
            r.call(reference_function(self.shape), **self._moving(model), phi=("p", numbers.at("phi")), **here)
            self._feed(r, fields.at("feed"), shared=isinstance(self.law, TaskCascade))
        else:
            moving = self._moving(self.mechanism)
            places = {"q": moving["q"], "v": moving["v"], "rho": ("table", 0), "rate": ("table", k)}
            r.call(self._actuators(), **places)
            self._feed(r, 2 * k, shared=True)
        return r

    def _moving(self, robot: Mechanism) -> dict[str, Place]:
        given: Place = ("wanted", 0)
        return {"q": self.poses.place(robot, "pose", given), "v": ("wanted", self.n), "a": ("wanted", 2 * self.n)}

    def _actuators(self) -> Function:
        """Return positions and speeds of the actuators behind the gears."""
        eq, rows = Equations(self.mechanism), coupling_rows(self.mechanism)
        outputs = {"rho": [along(row, eq.tree_q) for row in rows], "rate": [along(row, eq.tree_v) for row in rows]}
        return Function("wanted_actuators", {"q": positions_of(self.mechanism), "v": self.n}, outputs)

    def _feed(self, r: Routine, first: int, shared: bool) -> None:
        if self.model is None:
            r.store_all("table", first, [0.0] * (self.k if shared else self.n))
        else:
            r.call(self._torques(self.model, shared), **self._moving(self.model), feed=("table", first))

    def _torques(self, model: Mechanism, shared: bool) -> Function:
        """Return what a model needs on the reference: torques of the actuators, or of the coordinates."""
        graph = Graph()
        eq = Equations(model, graph, phi=[graph.const(float(x)) for x in model.parameters.values])
        feed = eq.torques()
        if shared:
            feed = self._shared(eq, feed)
        return Function("wanted_torques", {"q": positions_of(model), "v": self.n, "a": self.n}, {"feed": feed})

    def _shared(self, eq: Equations, f: list[Node]) -> list[Node]:
        """Return A (A^T A)^-1 f with the friction laws that a PID knows, as `feedforward_torques` does."""
        graph, rows = eq.graph, coupling_rows(eq.mechanism)
        motors, names = [a.name for a in eq.mechanism.actuators], eq.mechanism.coordinate_names
        laws = friction_laws(self.law.friction if isinstance(self.law, PID) else None, (*motors, *names))
        own = [eq.tree_q[eq.mechanism.tree.coordinates.index(name)] for name in names]
        for i, name in enumerate(names):
            if name in laws and name not in motors:
                f[i] = f[i] + _friction(graph, laws[name], eq.v[i], own[i], f[i])
        A = [eq.times_G(row) for row in rows]
        tau, _ = least_norm(A, f)
        return [
            x + _friction(graph, laws[name], along(row, eq.tree_v), along(row, eq.tree_q), x) if name in laws else x
            for name, x, row in zip(motors, tau, rows, strict=True)
        ]


def _friction(graph: Graph, friction: Any, v: Node, q: Node, load: Node) -> Node:
    result: Node = friction.law.expression(graph, Point(v, q, load, 20.0), friction.parameters)
    return result


def placing(dynamics: Dynamics, machine: Machine) -> Routine:
    """Return ``placed(s, p, w, x, status)``: the state at the coordinates x[:n] and velocities x[n:]; s is that of a start.

    It does what `Machine` does at its start, by the functions of the step.
    """
    r = MachineRoutine(machine.memory, dynamics.graph, "placed", ("s", "p", "w", "x", "status"))
    mechanism, model, shape, n = machine.mechanism, machine.shape.law.model, machine.shape, machine.mechanism.dof
    if mechanism.loops:
        Poses(mechanism).follow(r, "s", ("x", 0), ("status", 0))
    else:
        r.put_all("s.q", r.load_all("x", 0, n))
    r.put_all("s.v", r.load_all("x", n, n))
    r.call(dynamics.senses, y="s", **{name: r.at(f"w.{name}") for name in dynamics.senses.outputs})
    for a, first in enumerate(shape.shafts[:-1]):
        ratio = r.get("p.ratio", a)
        for e in range(first, shape.shafts[a + 1]):
            r.put("s.theta", ratio * r.get("w.rho", a), e)
            r.put("s.omega", ratio * r.get("w.rho_v", a), e)
    jumping = len(shape.jumping)
    if shape.jumping or shape.remembering:
        r.call(dynamics.speeds, y="s", u=r.at("w.speed"))
        speed = r.get_all("w.speed")
        r.put_all("s.begin", speed[:jumping])
        r.put_all("s.side", [where(v > 0.0, 1.0, where(v < 0.0, -1.0, 0.0)) for v in speed[:jumping]])
        for i, part, _, at in parts_of(shape.owners):
            if part.states:
                r.put("s.memory", speed[jumping + shape.remembering.index(i)], at + part.states - 1)
    if not model.loops:
        r.put_all("s.pose", r.load_all("x", 0, n))
    elif geometry_key(model) == geometry_key(mechanism):
        r.put_all("s.pose", r.get_all("s.q"))
    return r
