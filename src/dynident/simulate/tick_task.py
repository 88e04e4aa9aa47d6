"""Control laws in a work space as expressions: errors, and what follows from what a PID or a P loop makes of them.

    J dx = u                      square,      dx = dp + M^-1 J^T (J M^-1 J^T)^-1 (u - J dp)      with a posture dp

The reference is known beforehand: its place, velocity and acceleration in the work space are columns of the law's table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynident.control import Bound, bound_space, own_coordinates
from dynident.graph import Compiled, Function, Node, minimum, total
from dynident.mechanics import (
    Equations,
    Motion,
    NodeRows,
    cached,
    dot,
    node_values,
    positions_of,
    solve_general,
    solve_symmetric,
    tree_motion,
)
from dynident.simulate.dynamics import Dynamics
from dynident.simulate.shape import Fields, LawShape
from dynident.simulate.tick_model import Model

Array = NDArray[np.float64]

SINGULAR = 1e-9  # share of a row of the work space that the robot must be able to make on its own


def task_table(law: LawShape, actuators: int) -> Fields:
    """Return the columns of the reference of a law in a work space."""
    n, space = law.model.dof, bound_space("task", law.space, law.model)
    return Fields("t", q=n, v=n, a=n, place=space.size, rate=space.rows, curve=space.rows, feed=max(n, actuators))


def reference_in(law: LawShape, motion: Motion) -> dict[str, Array]:
    """Return place, velocity and acceleration of a motion in the work space of a law."""
    model, space = law.model, bound_space("task", law.space, law.model)
    sizes = {"q": positions_of(model), "v": model.dof, "a": model.dof}

    def build() -> Compiled:
        eq = Equations(model)
        a, eq.a = eq.a, [eq.graph.zero] * model.dof
        spot = space.look(eq)
        rate = [dot(row, eq.v) for row in spot.jacobian]
        curve = [dot(row, a) + b for row, b in zip(spot.jacobian, spot.bias, strict=True)]
        outputs = {"place": spot.place, "rate": rate, "curve": curve}
        return Compiled(Function("task_reference", sizes, outputs, {"phi": len(model.parameters)}))

    code = cached(model, ("task_reference", law.space), build)
    q = tree_motion(model, motion).q if model.loops else motion.q
    out = {name: np.zeros((len(motion), len(nodes or ()))) for name, nodes in code.function.outputs.items()}
    given = {"q": np.ascontiguousarray(q), "v": motion.v, "a": motion.a, "phi": node_values(model, model.parameters.values)}
    code(len(motion), {**given, **out})
    return out


class TaskModel(Model):
    """The model of a law in a work space of m rows: functions of the pose ``q`` and a row ``t`` of the reference."""

    def __init__(self, dynamics: Dynamics) -> None:
        super().__init__(dynamics)
        law = self.shape.law
        self.space: Bound = bound_space("task", law.space, self.mechanism)
        self.table = task_table(law, self.k)
        self.still = Equations(self.mechanism, self.graph)
        self.still.phi, self.still.a = self.eq.phi, [self.graph.zero] * self.n
        self.spot = self.space.look(self.still)
        self.left = self.space.rows < self.n

    def _t(self, name: str) -> list[Node]:
        return self.table.symbols(self.graph, name)

    def _given(self, **more: int) -> dict[str, int]:
        return self._inputs(v=self.n, t=self.table.size, **more)

    @cached_property
    def seen(self) -> Function:
        """The error (m,) and its rate (m,)."""
        error = self.space.error(self._t("place"), self.spot.place)
        now = [dot(row, self.still.v) for row in self.spot.jacobian]
        rate = [x - y for x, y in zip(self._t("rate"), now, strict=True)]
        return Function("task_seen", self._given(), {"e": error, "d": rate})

    @cached_property
    def _mass(self) -> NodeRows:
        """Inertia that weighs the freedoms; without a model of its own a law knows that of the drives."""
        M = [list(row) for row in self.still.mass_matrix()]
        if self.shape.law.kind != "task computed":
            for a, row in enumerate(self.A):
                for i in range(self.n):
                    for j in range(self.n):
                        M[i][j] = M[i][j] + self.p("task_inertia")[a] * (row[i] * row[j])
        return M

    def _pull(self) -> list[Node]:
        """Return kp (q_ref - q) + kd (v_ref - v)."""
        kp, kd = self.p("posture")
        pairs = zip(self._t("q"), own_coordinates(self.still), self._t("v"), self.still.v, strict=True)
        return [kp * (wanted - x) + kd * (fast - v) for wanted, x, fast, v in pairs]

    def _weighted(self, right: Sequence[Node]) -> tuple[list[Node], NodeRows, Node]:
        """Return (J M^-1 J^T)^-1 of some rows, M^-1 J^T, and whether the robot can move along all rows."""
        J, zero = self.spot.jacobian, self.graph.zero
        X, _ = solve_symmetric(self._mass, [[row[i] for row in J] for i in range(self.n)])
        gram = [[total([zero, *(row[i] * X[i][c] for i in range(self.n))]) for c in range(len(J))] for row in J]
        found, pivots = solve_symmetric(gram, [[x] for x in right])
        ok = self.graph.one
        for i, pivot in enumerate(pivots):
            ok = minimum(ok, pivot - SINGULAR**2 * gram[i][i])
        return [x[0] for x in found], X, ok

    def _moved(self, u: Sequence[Node], posture: Sequence[Node]) -> tuple[list[Node], Node]:
        """Return dx with J dx = u, as near to the posture as that allows, and whether there is one."""
        J = self.spot.jacobian
        if not self.left:
            found, ratio = solve_general(J, [[x] for x in u])
            return [x[0] for x in found], ratio - SINGULAR
        part, X, ok = self._weighted([x - dot(row, posture) for x, row in zip(u, J, strict=True)])
        return [x + dot(row, part) for x, row in zip(posture, X, strict=True)], ok

    def accelerations(self) -> Function:
        """Return the accelerations that give u in the work space."""
        u = [
            x + y - b
            for x, y, b in zip(self.graph.symbols("u", self.space.rows), self._t("curve"), self.spot.bias, strict=True)
        ]
        posture = [x + y for x, y in zip(self._t("a"), self._pull(), strict=True)] if self.left else []
        a, ok = self._moved(u, posture)
        return Function("task_accelerations", self._given(u=self.space.rows), {"a": a, "ok": [ok]})

    def forces(self) -> Function:
        """Return the motor torques that put the forces u on the work space."""
        u, J, n = self.graph.symbols("u", self.space.rows), self.spot.jacobian, range(self.n)
        f = [total([x, *(row[i] * y for row, y in zip(J, u, strict=True))]) for i, x in enumerate(self._t("feed")[: self.n])]
        ok = self.graph.one
        if self.left:  # N^T M a = M a - J^T (J M^-1 J^T)^-1 J a
            pull = self._pull()
            part, _, ok = self._weighted([dot(row, pull) for row in J])
            f = [f[i] + dot(self._mass[i], pull) - dot([row[i] for row in J], part) for i in n]
        torque, held = self.shared(f)
        return Function("task_forces", self._given(u=self.space.rows), {"torque": torque, "ok": [minimum(ok, held)]})

    def speeds(self) -> Function:
        """Return the speeds of the actuators that give u in the work space."""
        follow = self.p("posture_share")[0]
        posture = [x + follow * v for x, v in zip(self._pull(), self._t("v"), strict=True)] if self.left else []
        dx, ok = self._moved(self.graph.symbols("u", self.space.rows), posture)
        outputs = {"rate": [dot(row, dx) for row in self.A], "ok": [ok]}
        return Function("task_speeds", self._given(u=self.space.rows), outputs)


def task_jacobian(law: LawShape, x: Array) -> Array:
    """Return J (m, n) of a work space at a pose."""
    n = law.model.dof
    at = Motion(np.arange(n, dtype=np.float64), np.tile(x, (n, 1)), np.eye(n), np.zeros((n, n)))
    return reference_in(law, at)["rate"].T
