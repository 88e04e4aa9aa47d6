"""Measure the table "From the virtual robot's log back to its truth" of docs/simulate.md.

    python docs/virtual_logs.py

Every robot runs a random Fourier motion; it is identified from its own log, without noise beyond its own sensors and with white
noise (1 % of the RMS effort, 1e-5 rad or m), and judged on the log of another motion. z is (found - true) / std.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

import dynident as di
from dynident.control import ComputedTorque, gains_for
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import Coulomb, FrictionLaw, Polynomial, Tanh, Viscous
from dynident.identify import fit_friction
from dynident.mechanism import from_com
from dynident.simulate import VirtualRobot, with_noise
from dynident.trajectory import random_motion
from dynident_papers.robots import dualv, er3a_c60, five_bar, mast

MOVING = {"standstill": 0.1}


def seven_axes() -> VirtualRobot:
    """Return an arm of seven axes with geared motors, Coulomb friction, 4096 lines and computed torque."""
    twist = (0.0, 1, -1, -1, 1, 1, -1)
    reach = (0.3, 0.0, 0.4, 0.0, 0.35, 0.0, 0.0)
    table = [
        {"a": 0.0, "alpha": k * np.pi / 2, "d": d, "joint": f"j{i}"}
        for i, (k, d) in enumerate(zip(twist, reach, strict=True), 1)
    ]
    robot = di.Mechanism.from_dh(table, "modified", "seven axes").with_terms(())
    masses = (6.0, 5.0, 4.0, 3.0, 2.0, 1.5, 0.8)
    bodies = [
        from_com(m, (0.02, -0.03, 0.08), np.diag([0.01, 0.012, 0.006]) * m)
        for m in masses
    ]
    robot = robot.with_parameters(robot.parameters.replace(np.concatenate(bodies)))
    friction = (Coulomb() + Viscous()).using(fc=0.01, fv=1e-4)
    motor, gear = Motor(0.1, inertia=1e-5), Transmission.gear(100.0)
    drives = [
        Drive(name, motor, gear, friction, Encoder.lines(4096))
        for name in robot.joint_names
    ]
    loops = ComputedTorque(robot, *gains_for(8.0, 0.7), cycle=1e-3)
    model = VirtualRobot(robot, drives, loops).model
    loops = ComputedTorque(
        model, *gains_for(8.0, 0.7), cycle=1e-3, derivative_filter=100.0
    )
    return VirtualRobot(robot, drives, loops, step=2.5e-4)


def linear(
    robot: VirtualRobot, log: di.Log, other: di.Log, options: Mapping[str, Any]
) -> str:
    """Identify with joint terms (WLS); return held-out error and largest z."""
    fit = di.WLS().fit(di.Regression.from_log(robot.model, log, **options)).result_
    z = (fit.values - fit.base.values(robot.model.parameters.values)) / fit.std
    return f"{100 * fit.score(other).metrics.relative:.3g} % | {np.abs(z).max():.1f}"


def by_law(
    robot: VirtualRobot,
    log: di.Log,
    other: di.Log,
    law: FrictionLaw,
    options: Mapping[str, Any],
) -> str:
    """Identify bodies and a friction law together; return held-out error and the largest z of the bodies."""
    fit = fit_friction(robot.model, log, law, options)
    known = dict(
        zip(robot.model.parameters.names, robot.model.parameters.values, strict=True)
    )
    truth = fit.base.values(
        [known.get(name, fit.standard[name]) for name in fit.mechanism.parameters.names]
    )
    bodies = [i for i, name in enumerate(fit.base.leaders) if name in known]
    z = ((fit.values - truth) / fit.std)[bodies]
    return f"{100 * fit.score(other).metrics.relative:.3g} % | {np.abs(z).max():.1f}"


def lines(
    title: str,
    robot: VirtualRobot,
    box: list[float],
    law: FrictionLaw | None = None,
    cutoff: float | str = "auto",
    **motion: Any,
) -> None:
    """Print the lines of one robot; `cutoff` is that of the noisy log where near standstill is left out."""
    names = robot.mechanism.coordinate_names
    home = [
        robot.mechanism.home.get(name, 0.1 if robot.name == "" else 0.0)
        for name in names
    ]
    train, test = (random_motion(home, box, seed=seed, **motion) for seed in (1, 2))
    logs = [
        robot.simulate(train, seed=0).log,
        with_noise(robot, train, 0.01).simulate(train, seed=0).log,
    ]
    other = robot.simulate(test, seed=77).log
    motors = [drive.actuator for drive in robot.drives]
    own = (
        {"projection": motors}
        if robot.mechanism.loops and len(motors) == len(names)
        else {}
    )
    moving = list(zip(logs, (MOVING, {**MOVING, "cutoff": cutoff}), strict=True))
    ways = {"defaults": [linear(robot, log, other, {}) for log in logs]}
    if robot.mechanism.loops or law is not None:
        ways["`standstill=0.1`"] = [
            linear(robot, log, other, {**options, **own}) for log, options in moving
        ]
    if law is not None:
        label = " + ".join(
            type(member).__name__ for member in getattr(law, "members", (law,))
        )
        ways[f"`fit_friction`, {label}"] = [
            by_law(robot, log, other, law, {}) for log in logs
        ]
        ways[f"`fit_friction`, {label}, `standstill=0.1`"] = [
            by_law(robot, log, other, law, options) for log, options in moving
        ]
    about = f"{title} | {', '.join(f'{x:g}' for x in dict.fromkeys(box))}; {motion['duration']:g} s"
    for way, cells in ways.items():
        print(f"| {about} | {way} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the table as Markdown."""
    warnings.simplefilter("ignore")
    print(
        "| robot | box, period | how | held out | largest z | held out, 1 % noise | largest z, 1 % noise |"
    )
    print("|---|---|---|---|---|---|---|")
    lines("seven axes", seven_axes(), [0.9] * 7, Viscous() + Tanh(), duration=8.0)
    lines("DualV", dualv.machine(), list(dualv.BOX), duration=1.0, periods=4)
    lines("5R", five_bar.machine(), [0.15, 0.15], Viscous() + Tanh(), duration=8.0)
    lines("MAST", mast.machine(), [0.04, 0.2, 0.2], duration=8.0, periods=2)
    lines(
        "MAST, 1 ms position loop",
        mast.machine(position_cycle=1e-3),
        [0.04, 0.2, 0.2],
        duration=8.0,
        periods=2,
    )
    lines(
        "ER3A-C60, cold, exact sensors",
        er3a_c60.machine(noise=False, warm=False),
        [0.9] * 6,
        Polynomial(3),
        50.0,
        duration=4.0,
        periods=2,
    )
    lines(
        "ER3A-C60",
        er3a_c60.machine(),
        [0.9] * 6,
        Polynomial(3),
        50.0,
        duration=4.0,
        periods=2,
    )


if __name__ == "__main__":
    main()
