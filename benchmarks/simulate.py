"""The virtual robot: a 6-axis arm and DualV in closed loop, against loops over Pinocchio and MuJoCo in Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter, process_time
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks.arms import URDF, arm
from benchmarks.cases import Result, agree
from benchmarks.timing import interleaved
from dynident.control import Cascade, ComputedTorque, OpenLoop, gains_for
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import Coulomb, Viscous
from dynident.parallel import cores
from dynident.simulate import VirtualRobot
from dynident.simulate.layout import FINE
from dynident.simulate.machine import Machine
from dynident.simulate.reference import table_of
from dynident_lab.servo import monte_carlo
from dynident_papers.robots import dualv

Array = NDArray[np.float64]

STEP = 1.25e-4  # 8 kHz
START = np.array([0.1, -0.5, 0.4, 0.2, 0.3, 0.1])


def sine(x: Array, duration: float, size: float, hertz: float = 0.5) -> di.Motion:
    """Return a motion that starts at rest at x, at 1 kHz."""
    t = np.arange(round(duration * 1000.0) + 1) * 1e-3
    w, one = 2.0 * np.pi * hertz, np.ones(x.size)
    q = x + size * (1.0 - np.cos(w * t))[:, None] * one
    return di.Motion(t, q, size * w * np.sin(w * t)[:, None] * one, size * w * w * np.cos(w * t)[:, None] * one)


def geared_arm() -> VirtualRobot:
    """Return the arm with geared drives, friction, encoders and a cascade at 1 kHz."""
    robot = arm()
    friction = (Coulomb() + Viscous()).using(fc=0.03, fv=2e-4)
    drives = [
        Drive(a.name, Motor(0.1, inertia=1e-4), Transmission(100.0), friction, Encoder(2.0 * np.pi / 4096))
        for a in robot.actuators
    ]
    return VirtualRobot(robot, drives, Cascade(20.0, 0.3, 3.0, position_cycle=1e-3, velocity_cycle=1e-3), step=STEP)


def fastest(work: Callable[[], object], repeats: int, clock: Callable[[], float] = perf_counter) -> float:
    """Return the best time of some calls after an unmeasured one."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def closed_loops(duration: float, repeats: int) -> list[Result]:
    """10 s of the arm and of DualV, from the reference to log and truth."""
    share = 10.0 / duration
    machine, motion = geared_arm(), sine(START, duration, 0.3)
    results = [
        Result(
            "arm, cascade 1 kHz, RK4 8 kHz: 10 s",
            share * fastest(lambda: machine.simulate(motion), repeats),
            "s",
            0.3,
            f"6 geared axes with friction and encoders, log and truth at 1 kHz; {duration:g} s simulated",
        )
    ]
    robot = dualv.mechanism()
    home = robot.closure.home[robot.closure.independent]
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(2.0 * np.pi / 20000)) for a in robot.actuators]
    parallel = VirtualRobot(robot, drives, ComputedTorque(robot, *gains_for(15.0, 0.7), cycle=1e-3), step=STEP)
    path = sine(home, duration, 0.02)
    seconds = share * fastest(lambda: parallel.simulate(path), repeats)
    detail = f"4 motors, 3 freedoms, 15 tree coordinates; {duration:g} s simulated"
    return [*results, Result("DualV, computed torque 1 kHz, RK4 8 kHz: 10 s", seconds, "s", 0.5, detail)]


Stepper = Callable[[int], Array]


def free_arm(q: Array, v: Array, tau: Array) -> Stepper:
    """Return a function that makes RK4 steps of the arm under constant torques and returns its state."""
    robot = arm()
    law = OpenLoop(torque=tau)
    drives = [Drive(a.name, Motor(1.0)) for a in robot.actuators]
    machine = Machine(VirtualRobot(robot, drives, law, step=STEP), q, v)
    machine.read(tau[None].copy(), np.zeros((1, 12)), np.zeros((1, 6)))
    first = machine.state.copy()
    nothing = np.zeros((0, machine.layout.record.size))

    def go(steps: int) -> Array:
        machine.state[:] = first
        if machine.run(steps, nothing)[0] != FINE:
            raise AssertionError("the free arm became unstable")
        return np.concatenate([machine.of(machine.layout.state.q), machine.of(machine.layout.state.v)])

    return go


def with_pinocchio(q: Array, v: Array, tau: Array) -> Stepper:
    """Return the same by a loop over pin.aba."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(URDF))
    data, h = model.createData(), STEP

    def go(steps: int) -> Array:
        x, w = q, v
        for _ in range(steps):
            k1 = pin.aba(model, data, x, w, tau)
            w2 = w + 0.5 * h * k1
            k2 = pin.aba(model, data, x + 0.5 * h * w, w2, tau)
            w3 = w + 0.5 * h * k2
            k3 = pin.aba(model, data, x + 0.5 * h * w2, w3, tau)
            w4 = w + h * k3
            k4 = pin.aba(model, data, x + h * w3, w4, tau)
            x, w = x + h / 6.0 * (w + 2.0 * (w2 + w3) + w4), w + h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
        return np.concatenate([x, w])

    return go


def free_mujoco() -> Any:
    """Return MuJoCo's model of the arm with its own RK4, without contacts and limits."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(URDF))
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    return model


def with_mujoco(q: Array, v: Array, tau: Array) -> Stepper:
    """Return the same by stepping MuJoCo from Python."""
    import mujoco

    model = free_mujoco()
    data = mujoco.MjData(model)

    def go(steps: int) -> Array:
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
        for _ in range(steps):
            mujoco.mj_step(model, data)
        return np.concatenate([data.qpos, data.qvel])

    return go


def with_rollout(q: Array, v: Array, tau: Array) -> Stepper:
    """Return the same by one call of MuJoCo's rollout."""
    import mujoco
    from mujoco import rollout

    model = free_mujoco()
    data, start = mujoco.MjData(model), np.concatenate([[0.0], q, v])[None]
    spec = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)

    def go(steps: int) -> Array:
        control = np.broadcast_to(tau, (1, steps, 6))
        state, _ = rollout.rollout(model, [data], start, control, control_spec=spec)
        return np.asarray(state[0, -1, 1:13])

    return go


def with_batch(q: Array, v: Array, tau: Array) -> Stepper:
    """Return the same by a batch of MuJoCo with one simulation on one thread."""
    from mujoco import batch

    arms = batch.Batch(free_mujoco(), 1, nthread=1, persistent=True)
    position, velocity, force = (arms.bind(name) for name in ("qpos", "qvel", "qfrc_applied"))

    def go(steps: int) -> Array:
        arms.reset()
        position[:], velocity[:], force[:] = q, v, tau
        arms.step(nstep=steps)
        return np.concatenate([position[0], velocity[0]])

    return go


def peers(steps: int, repeats: int) -> list[Result]:
    """The same RK4 steps of the same free arm."""
    rng = np.random.default_rng(0)
    state = (START, rng.normal(size=6) * 0.2, rng.normal(size=6))
    ours, results = free_arm(*state), []
    others = {
        "Pinocchio from Python": (with_pinocchio, None),
        "MuJoCo from Python": (with_mujoco, 12.0),
        "MuJoCo's rollout": (with_rollout, None),
        "MuJoCo's batch": (with_batch, None),
    }
    for name, (make, target) in others.items():
        try:
            peer = make(*state)
        except ImportError:
            results.append(Result(f"RK4 steps against {name}", None, "x", target, "not installed"))
            continue
        agree(ours(200), peer(200), 1e-6, f"RK4 with {name}")
        slow, fast = interleaved(lambda peer=peer: peer(steps), lambda: ours(steps), repeats)  # type: ignore[misc]
        detail = f"{name} {1e6 * slow / steps:.1f} us, ours {1e6 * fast / steps:.1f} us per step"
        results.append(Result(f"RK4 steps against {name}", slow / fast, "x", target, detail))
    return results


RUBBING, ROTOR = 3.0, 1.0  # Coulomb friction [N m] and rotor inertia [kg m^2] of every axis of the next comparison
GAINS = (20.0, 30.0, 300.0)  # kv [1/s], kP [N m s/rad], kI [N m/rad]


def controlled_arm(motion: di.Motion) -> Stepper:
    """Return a function that runs the arm with dry friction and a cascade at 1 kHz, and returns its positions at 1 kHz."""
    robot = arm()
    terms = {f"{symbol}_{name}": value for name in robot.coordinate_names for symbol, value in (("fc", RUBBING), ("ia", ROTOR))}
    robot = robot.with_parameters(robot.parameters.replace(terms))
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(velocity="exact")) for a in robot.actuators]
    law = Cascade(*GAINS, position_cycle=1e-3, velocity_cycle=1e-3)
    machine = Machine(VirtualRobot(robot, drives, law, step=STEP), motion.q[0])
    machine.read(table_of(robot, law, motion), np.zeros((1, 12)), np.zeros((1, 6)))
    first = machine.state.copy()

    def go(steps: int) -> Array:
        machine.state[:] = first
        record = np.zeros((steps // 8, machine.layout.record.size))
        if machine.run(steps, record, 0, 8)[0] != FINE:
            raise AssertionError("the controlled arm became unstable")
        return machine.layout.signals(record).q

    return go


def controlled_mujoco(motion: di.Motion, stiff: bool = False) -> Stepper:
    """Return the same with MuJoCo: the cascade in NumPy, eight RK4 steps per tick.

    Its dry friction is a soft constraint that creeps; `stiff` makes it hold, to compare results.
    """
    import mujoco

    model = free_mujoco()
    model.dof_frictionloss[:], model.dof_armature[:] = RUBBING, ROTOR
    if stiff:
        model.dof_solimp[:, :2], model.dof_solref[:, 0] = 0.9999, 2.0 * STEP
    data = mujoco.MjData(model)
    kv, kp, ki = GAINS

    def go(steps: int) -> Array:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = motion.q[0]
        integral, out = np.zeros(6), np.zeros((steps // 8, 6))
        for row in range(steps // 8):
            out[row] = data.qpos
            error = kv * (motion.q[row] - data.qpos) - data.qvel
            integral += ki * error * 1e-3
            data.qfrc_applied[:] = kp * error + integral
            for _ in range(8):
                mujoco.mj_step(model, data)
        return out

    return go


def controlled(steps: int, repeats: int) -> list[Result]:
    """The arm with dry friction in closed loop, against MuJoCo."""
    what, motion = "controlled arm with dry friction against MuJoCo", sine(START, steps * STEP, 0.3)
    try:
        peer = controlled_mujoco(motion)
    except ImportError:
        return [Result(what, None, "x", 12.0, "MuJoCo is not installed")]
    ours = controlled_arm(motion)
    agree(ours(steps), controlled_mujoco(motion, stiff=True)(steps), 1e-4, what)
    slow, fast = interleaved(lambda: peer(steps), lambda: ours(steps), repeats)
    detail = f"MuJoCo {1e6 * slow / steps:.1f} us, ours {1e6 * fast / steps:.1f} us per step, cascade at 1 kHz (NumPy there)"
    return [Result(what, slow / fast, "x", 12.0, detail)]


def batches(duration: float, repeats: int) -> list[Result]:
    """Monte-Carlo runs on all cores against one."""
    machine, motion, runs = geared_arm(), sine(START, duration, 0.3), 4 * cores()
    slow, fast = interleaved(
        lambda: monte_carlo(machine, motion, runs, workers=1), lambda: monte_carlo(machine, motion, runs), max(2, repeats // 2)
    )
    detail = f"{runs} runs of {duration:g} s: {slow:.2f} s on one core, {fast:.2f} s on {cores()}"
    return [Result("Monte-Carlo on all cores against one", slow / fast, "x", 0.9 * cores(), detail)]


def changed(machine: VirtualRobot, i: int) -> dict[str, VirtualRobot]:
    """Return machines with one changed number, by the name of the change; `i` makes the number a new one."""
    drives = [replace(d, friction=(Coulomb() + Viscous()).using(fc=0.03 + 1e-5 * i, fv=2e-4)) for d in machine.drives]
    gains = replace(machine.controller, position_gain=20.0 + 1e-3 * i)
    return {
        "ambient temperature": replace(machine, ambient=20.0 + i),
        "gain": replace(machine, controller=gains),
        "payload": replace(machine, mechanism=machine.mechanism.with_payload(1.0 + 0.01 * i)),
        "friction": replace(machine, drives=drives),
    }


def files_used(work: Callable[[], object]) -> set[str]:
    """Return the files of the package with called functions."""
    found: set[str] = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "dynident" in frame.f_code.co_filename:
            found.add(frame.f_code.co_filename)

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def preparation(repeats: int) -> list[Result]:
    """Cost of a new machine, and of one changed number, before the first step; compiled code is in memory."""
    motion = sine(START, 0.1, 0.05)
    known = geared_arm()
    known.simulate(motion)
    new: list[float] = []
    for _ in range(repeats):
        machine = geared_arm()
        start = process_time()
        machine.simulate(motion)
        new.append(process_time() - start)
    again = fastest(lambda: known.simulate(motion), repeats, process_time)
    costs: dict[str, float] = {}
    for i in range(1, repeats + 1):
        for what, machine in changed(known, i).items():
            start = process_time()
            machine.simulate(motion)
            costs[what] = min(costs.get(what, float("inf")), process_time() - start - again)
    usual = files_used(lambda: known.simulate(motion))
    files = {what: len(files_used(lambda m=m: m.simulate(motion)) - usual) for what, m in changed(known, repeats + 1).items()}
    spent = ", ".join(f"{what} {1e3 * seconds:.2f} ms" for what, seconds in costs.items())
    touched = ", ".join(f"{what} {count}" for what, count in files.items())
    detail = f"0.1 s simulated; again {1e3 * again:.2f} ms"
    return [
        Result("first simulate() of a new 6-axis machine", 1e3 * min(new), "ms", 60.0, detail),
        Result("Monte-Carlo: changing one number", 1e3 * max(costs.values()), "ms", 2.0, f"more than a repeated run: {spent}"),
        Result("Monte-Carlo: files for one number", max(files.values()), "files", 8.0, f"more than a repeated run: {touched}"),
    ]


def cases(samples: int, repeats: int) -> list[Result]:
    """All benchmarks of this file; `samples` sets the length of the runs.

    Parameters
    ----------
    samples : int
        100000 for the full figures.
    repeats : int
        Runs of each.

    Returns
    -------
    list of Result
        Times and ratios.
    """
    duration, steps = (10.0, 8000) if samples >= 100_000 else (1.0, 1000)
    loops = [*closed_loops(duration, repeats), *peers(steps, repeats), *controlled(steps, repeats)]
    return [*loops, *preparation(max(3, repeats)), *batches(duration / 2.0, repeats)]
