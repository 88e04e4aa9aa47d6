"""The virtual robot: a machine with motors, gears, friction and encoders, identified from its own log."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from two_links import machine

import dynident as di
from dynident.figures import BLUE, INK, ORANGE, SKY, new_figure, plain_axes
from dynident.trajectory import random_motion


def main() -> Figure:
    """Draw the currents of a run as its parts, and the identified parameters in units of their uncertainty."""
    robot = machine()
    train, test = (random_motion([0.3, -0.8], [0.8, 0.7], seed=s, duration=6.0) for s in (1, 2))
    run, other = robot.simulate(train, seed=1), robot.simulate(test, seed=2)
    fit = di.WLS().fit(di.Regression.from_log(robot.model, run.log, standstill=0.1)).result_
    score = fit.score(other.log)
    truth = fit.base.values(robot.model.parameters.values)
    print(f"held-out error {100 * score.metrics.relative:.2f} %")
    assert score.metrics.relative < 0.02
    shown = np.abs(truth) > 1e-9

    figure = new_figure(9.6, 3.8)
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1.0))
    plain_axes(left)
    for i, (joint, colour) in enumerate(zip(score.joints, (BLUE, ORANGE), strict=True)):
        left.plot(score.t, score.measured[:, i], lw=4.0, color=SKY)
        left.plot(score.t, score.predicted[:, i], lw=0.9, color=colour, label=joint)
    left.set_title("held-out torque [N m]: measured (broad), predicted", fontsize=9)
    left.set_xlabel("t [s]", fontsize=8)
    left.legend(fontsize=8, frameon=False)
    plain_axes(right)
    places, found, std = np.arange(shown.sum()), (fit.values / np.where(shown, truth, 1.0))[shown], fit.std[shown]
    right.axvline(0.0, color=INK, lw=0.8)
    right.errorbar(100 * (found - 1.0), places, xerr=300 * std / np.abs(truth[shown]), fmt="o", color=BLUE, ms=4, capsize=2)
    right.set_yticks(places, [name for name, there in zip(fit.base.names, shown, strict=True) if there], fontsize=7)
    right.set_title("error of parameters [%], three standard deviations", fontsize=9)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    main().savefig("virtual_robot.png", dpi=80)
