"""A payload: mass and centre of mass of a load, from a run without it and the same run with it."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from two_links import arm, machine

import dynident as di
from dynident.figures import BLUE, INK, new_figure, plain_axes
from dynident.identify import payload_of, payload_regression
from dynident.simulate import Sensors
from dynident.trajectory import random_motion

MASSES = (0.2, 0.5, 1.0, 1.5)


def main() -> Figure:
    """Weigh four loads and draw what was found against what is true, with three standard deviations."""
    wanted = random_motion([0.3, -0.8], [0.8, 0.7], seed=3, duration=5.0)
    noisy = {"sensors": Sensors(effort_noise=0.02)}
    robot = di.VirtualRobot(arm(), machine().drives, machine().controller, step=2.5e-4, **noisy)
    empty = robot.simulate(wanted, seed=1).log
    found = []
    for seed, mass in enumerate(MASSES, 2):
        loaded = arm().with_payload(mass, com=(0.25, 0.0, 0.0))
        run = di.VirtualRobot(loaded, robot.drives, robot.controller, step=2.5e-4, **noisy).simulate(wanted, seed=seed)
        evidence = payload_regression(robot.model, [empty], [run.log], standstill=0.1)
        found.append(payload_of(di.WLS().fit(evidence).result_))
        print(f"{mass:.1f} kg: {found[-1].mass:.3f} +- {found[-1].mass_std:.3f} kg")

    weighed, spread = np.array([p.mass for p in found]), np.array([p.mass_std for p in found])
    figure = new_figure(9.0, 3.6)
    left, right = figure.subplots(1, 2)
    for axes in (left, right):
        plain_axes(axes)
        axes.set_xlabel("true mass [kg]", fontsize=8)
    left.plot([0, 1.6], [0, 1.6], color=INK, lw=0.8)
    left.errorbar(MASSES, weighed, 3 * spread, fmt="o", color=BLUE, capsize=3)
    left.set_title("mass found [kg]", fontsize=9)
    right.axhline(0.0, color=INK, lw=0.8)
    right.errorbar(MASSES, 1e3 * (weighed - MASSES), 3e3 * spread, fmt="o", color=BLUE, capsize=3)
    right.set_title("error [g], bars are three standard deviations", fontsize=9)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    main().savefig("payload.png", dpi=80)
