"""Inverse kinematics of controller code: Newton steps from the last pose to a target of one link; loops are closed too.

    J dq = e,    e = (R^T (p* - p), L vee(R^T R*))      in the axes of the link; L, the robot's size, converts angles to lengths

The step is the shortest one with more coordinates than equations, and the least-squares one with fewer.
"""

from __future__ import annotations

import numpy as np

from dynident.errors import DescriptionError
from dynident.graph.algebra import absolute, back, dot, matrix, maximum, minimum, product, transposed, vector, where
from dynident.graph.expression import Function, Node
from dynident.mechanics.actuation import least_norm, least_squares
from dynident.mechanics.dynamics import jacobian
from dynident.mechanics.inverse_kinematics_damped import robot_size
from dynident.mechanics.newton_euler import MovingTree, position_rates
from dynident.mechanism.mechanism import Mechanism

STEPS = 30  # at most
FIXED = 8  # steps of CasADi, which cannot stop early
LONGEST = 0.2  # step [rad or m]: short ones keep to the branch
REACHED = 1e-8  # error [m, rad] before the last step, which squares the error
POSES = 20  # for the rank of the Jacobian


def pose_entries(x: MovingTree, link: str) -> list[Node]:
    """Return the upper three rows of the homogeneous matrix of a link, row by row."""
    return [entry for row in x.pose_matrix(link)[:3] for entry in row]


def reachable_targets(robot: Mechanism, link: str) -> list[str]:
    """Return the targets that determine the coordinates, or can be reached by all of them: "pose", "position" or both."""
    home = robot.closure.home[robot.closure.independent] if robot.loops else np.zeros(robot.dof)
    way = 0.01 if robot.loops else 1.0
    q = home + np.random.default_rng(0).uniform(-way, way, (POSES, robot.dof))
    J = jacobian(robot, q, link)
    found = []
    for name, size in (("pose", 6), ("position", 3)):
        rank = int(np.max(np.linalg.matrix_rank(J[:, :size], tol=1e-6 * robot_size(robot))))
        if rank == min(size, robot.dof):
            found.append(name)
    if not found:
        raise DescriptionError(
            f"no position or pose of link '{link}' determines the coordinates of robot '{robot.name}'; name another link"
        )
    return found


def target_step(x: MovingTree, link: str, target: str, name: str) -> Function:
    """Return the Newton step from positions ``q`` towards a target of a link.

    The target is ``T`` of `pose_entries`, or the position ``p``. The ``report`` is a number above zero where the step
    exists, its size, and the error before it.
    """
    graph, (R, p) = x.graph, x.pose(link)
    T = graph.symbols("T", 12)
    wanted = vector(graph, T[3::4] if target == "pose" else graph.symbols("p", 3))
    error = list(back(R, vector(graph, (a - b for a, b in zip(wanted, p, strict=True)))))
    J, size = x.tree_jacobian(link)[:3], graph.zero
    for entry in error:
        size = maximum(size, absolute(entry))
    if target == "pose":
        D = product(transposed(R), matrix(graph, (T[4 * i : 4 * i + 3] for i in range(3))))
        turn = [0.5 * (D[j][i] - D[i][j]) for i, j in ((1, 2), (2, 0), (0, 1))]
        for entry in turn:
            size = maximum(size, absolute(entry))
        size = maximum(size, where(D[0][0] + D[1][1] + D[2][2] < 1.0, graph.one, graph.zero))  # half a turn has zero error
        length = robot_size(x.mechanism)
        error += [length * entry for entry in turn]
        J = [*J, *([length * entry for entry in row] for row in x.tree_jacobian(link)[3:])]
    if x.mechanism.loops:
        error = [e - dot(row, x.correction) for e, row in zip(error, J, strict=True)]
    rows = [x.project(row) for row in J]
    if len(rows) >= x.mechanism.dof:
        step, ok = least_squares(rows, error)
    else:
        step, ok = least_norm([list(column) for column in zip(*rows, strict=True)], error)
    moves = step
    if x.mechanism.loops:
        ok = minimum(ok, x.pivot)
        moves = [gap + dot(row, step) for gap, row in zip(x.correction, x.G or [], strict=True)]
    way = graph.zero
    for move in moves:
        way = maximum(way, absolute(move))
    share = LONGEST / maximum(way, LONGEST)
    following = [q + share * move for q, move in zip(x.x, position_rates(x.mechanism, x.x, moves), strict=True)]
    inputs = {"q": len(x.x), **({"T": 12} if target == "pose" else {"p": 3})}
    return Function(name, inputs, {"next": following, "report": [ok, way, size]})


def c_body(name: str, prototype: str, step: Function, wide: int, loops: bool, independent: list[int], way: str) -> str:
    """Return the definition of the function of one kind of target."""
    target = list(step.inputs)[1]
    begin = "state->pose[i]" if loops else "q[i]"
    check = ""
    if loops:
        check = f"""    {name}_newton(pose, next, branch);
    if (!({way}branch[0] > 0.0))
    {{
        return {name.upper()}_NOT_CLOSED;
    }}
    for (i = 0; i < {wide}; i++)
    {{
        state->pose[i] = pose[i];
    }}
"""
    results = "\n".join(f"    q[{k}] = pose[{i}];" for k, i in enumerate(independent))
    return f"""{prototype}
{{
    const double small = (sizeof(double) < 8U) ? 1.0e-4 : {REACHED!r};
    double pose[{wide}];
    double next[{wide}];
    double report[3] = {{0.0, 1.0, 1.0}};
{f"    double branch[2] = {{0.0, 0.0}};{chr(10)}" if loops else ""}    int step;
    int i;
    for (i = 0; i < {wide}; i++)
    {{
        pose[i] = {begin};
    }}
    for (step = 0; (step < {STEPS}) && !((report[1] <= small) && (report[2] <= small)); step++)
    {{
        {step.name}(pose, {target}, next, report);
        if (!(report[0] > 0.0))
        {{
            return {name.upper()}_SINGULAR;
        }}
        for (i = 0; i < {wide}; i++)
        {{
            pose[i] = next[i];
        }}
    }}
    if (!((report[1] <= small) && (report[2] <= small)))
    {{
        return {name.upper()}_NOT_REACHED;
    }}
{check}{results}
    return {name.upper()}_OK;
}}
"""


NUMPY = '''

def inverse_kinematics{suffix}({target}, start={start}):
    """Return coordinates (of robots with loops also the closed pose of all joints) at a target of link {link}."""
    q = np.array(start, dtype=float)
    for _ in range({steps}):
        q, report = inverse_kinematics{suffix}_step(q, {target})
        if not report[0] > 0.0:
            raise ValueError("singular pose on the way to the target")
        if max(report[1], report[2]) <= {reached!r}:
            return {result}
    raise ValueError("the target is not reached from the start")
'''

CASADI = '''

def inverse_kinematics{suffix}({target}, start={start}, steps={fixed}):
    """Return coordinates at a target of link {link} after a number of steps, and the error that was left before the last."""
    q = ca.vertcat(*start) if isinstance(start, (list, tuple)) else start
    for _ in range(steps):
        q, report = inverse_kinematics{suffix}_step(q, {target})
    return {result}, report[2]
'''
