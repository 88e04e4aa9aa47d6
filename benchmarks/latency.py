"""Single calls from Python: compiled functions against Pinocchio and dynibo, plain functions, and filters on line."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from timeit import repeat

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks.arms import URDF, arm
from benchmarks.cases import Result, agree
from benchmarks.timing import one_core
from dynident.monitor import Monitor
from dynident_lab.testbench.friction_filter import FrictionFilter

Array = NDArray[np.float64]
CALLS = 200  # calls between two readings of the clock


def microseconds(call: Callable[[], object], repeats: int) -> float:
    """Return the time of one call, the best mean of many short series, which excludes interruptions."""
    return 1e6 * min(repeat(call, number=CALLS, repeat=max(20, 25 * repeats))) / CALLS


def latency(repeats: int) -> list[Result]:
    """Compiled functions, plain functions and filters, one sample at a time on one core."""
    with one_core():
        return [*against_pinocchio(repeats), *against_dynibo(repeats), *plain(repeats), *on_line(repeats)]


def state(n: int) -> tuple[Array, Array, Array]:
    """Return positions, velocities and accelerations of one sample."""
    q, v, a = np.random.default_rng(3).normal(size=(3, n))
    return q, v, a


def against_pinocchio(repeats: int) -> list[Result]:
    """``f(q, v, a, out=tau)`` against Pinocchio's functions, which write to their own data too."""
    import pinocchio as pin

    robot, model = arm().with_terms(()), pin.buildModelFromUrdf(str(URDF))
    data, (q, v, a) = model.createData(), state(arm().dof)
    peers = {
        "inverse_dynamics": (lambda: pin.rnea(model, data, q, v, a), 1.5),
        "forward_dynamics": (lambda: pin.aba(model, data, q, v, a), 1.0),
        "regressor": (lambda: pin.computeJointTorqueRegressor(model, data, q, v, a), 0.6),
    }
    found = []
    for name, (peer, target) in peers.items():
        f = robot.compiled(name)
        out = np.empty(f.shape)
        f(q, v, a, out=out)
        if name != "regressor":  # whose columns have another order
            agree(out, peer(), 1e-10, name)
        theirs, ours = microseconds(peer, repeats), microseconds(lambda f=f, out=out: f(q, v, a, out=out), repeats)
        detail = f"Pinocchio {theirs:.2f} us, ours {ours:.2f} us"
        found.append(Result(f"single call with out=: {name} over Pinocchio's", ours / theirs, "of", target, detail))
    return found


def against_dynibo(repeats: int) -> list[Result]:
    """The same against dynibo, if it is installed."""
    if importlib.util.find_spec("dynibo") is None:
        return [Result("single call with out=: inverse_dynamics over dynibo's", None, "of", None, "dynibo is not installed")]
    import dynibo

    robot, (q, v, a) = arm().with_terms(()).with_gravity((0.0, 0.0, -9.80665)), state(arm().dof)
    model, tau, theirs_out = dynibo.Robot.from_urdf(str(URDF)), np.empty(robot.dof), np.empty(robot.dof)
    f = robot.compiled("inverse_dynamics")
    model.inverse_dynamics(q, v, a, out=theirs_out)
    agree(f(q, v, a), theirs_out, 1e-10, "dynibo")
    theirs = microseconds(lambda: model.inverse_dynamics(q, v, a, out=theirs_out), repeats)
    ours = microseconds(lambda: f(q, v, a, out=tau), repeats)
    detail = f"dynibo {theirs:.2f} us, ours {ours:.2f} us"
    return [Result("single call with out=: inverse_dynamics over dynibo's", ours / theirs, "of", None, detail)]


def plain(repeats: int) -> list[Result]:
    """Plain functions, which check their arguments and return new arrays."""
    robot, (q, v, a) = arm(), state(arm().dof)
    motion = di.Motion([0.0], q, v, a)
    calls: dict[str, Callable[[], object]] = {
        "inverse_dynamics": lambda: di.inverse_dynamics(robot, motion),
        "mass_matrix": lambda: di.mass_matrix(robot, q),
        "forward_dynamics": lambda: di.forward_dynamics(robot, q, v, a),
    }
    return [Result(f"plain {name}, one sample", microseconds(f, repeats), "us", 15.0, "6 axes") for name, f in calls.items()]


def on_line(repeats: int) -> list[Result]:
    """One step of the momentum observer of a 7-axis arm and of the friction filter of one axis."""
    table = [(0.0, np.pi / 2 * (-1) ** i, 0.3 * (i % 2), 0.0) for i in range(7)]
    robot = di.Mechanism.from_dh(table, convention="standard").with_payload(1.0)
    rng, t = np.random.default_rng(4), 1e-3 * np.arange(4000)[:, None]
    rate, phase = rng.uniform(1.0, 6.0, 7), rng.uniform(0.0, 6.0, 7)
    angle = rate * t + phase
    motion = di.Motion(t[:, 0], np.sin(angle), rate * np.cos(angle), -(rate**2) * np.sin(angle))
    effort = di.inverse_dynamics(robot, motion) + rng.normal(0.0, 0.1, angle.shape)
    monitor = Monitor(di.MAP().fit(di.Regression.from_motion(robot, motion, effort)).result_)
    count = [0]

    def observe() -> None:
        count[0] += 1
        k = count[0] % 4000
        monitor.update(1e-3 * count[0], motion.q[k], effort[k])

    filter_ = FrictionFilter(1.3, 30.0, 1.7, 2, 5e-6)

    def step() -> None:
        count[0] += 1
        now = 1e-3 * count[0]
        filter_.step(now, 20.0 * np.cos(now), np.sin(now))

    return [
        Result("momentum observer, one step", microseconds(observe, repeats), "us", 20.0, "7 axes"),
        Result("friction filter, one step", microseconds(step, repeats), "us", 10.0, "one axis, two sigmoids"),
    ]
