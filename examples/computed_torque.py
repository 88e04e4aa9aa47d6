"""Computed torque: tracking errors with an identified model, with the data sheet, and with feedback alone."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from two_links import machine

import dynident as di
from dynident.control import PID, ComputedTorque, gains_for
from dynident.figures import BLUE, INK, MUTED, ORANGE, new_figure, plain_axes
from dynident.trajectory import random_motion


def main() -> Figure:
    """Draw the path errors of three controllers on a fast motion."""
    robot = machine()
    log = robot.simulate(random_motion([0.3, -0.8], [0.8, 0.7], seed=1, duration=6.0), seed=1).log
    identified = di.WLS().fit(di.Regression.from_log(robot.model, log, standstill=0.1)).result_.model
    known = robot.model.parameters
    sheet = robot.model.with_parameters(
        known.replace({n: 0.0 if n[0] == "f" else 0.85 * x for n, x in known.to_dict().items()})
    )
    kp, kd = gains_for(6.0, 0.7)
    inertia = np.diag(di.mass_matrix(robot.model, [[0.3, -0.8]])[0])
    laws = {
        "feedback alone": PID(kp * inertia, kd * inertia, cycle=1e-3),
        "data sheet, 15 % off, no friction": ComputedTorque(sheet, kp, kd, cycle=1e-3),
        "identified model": ComputedTorque(identified, kp, kd, cycle=1e-3),
    }
    wanted = random_motion([0.3, -0.8], [0.7, 0.6], seed=5, duration=2.5)

    figure = new_figure(9.6, 3.7)
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
    worst = {}
    for (name, law), colour in zip(laws.items(), (MUTED, ORANGE, BLUE), strict=True):
        run = machine(controller=law).simulate(wanted, seed=2)
        error = np.linalg.norm(run.truth.motion.q - robot.reference(wanted).sample(run.truth.t).q, axis=1)
        worst[name] = 1e3 * error.max()
        left.plot(run.truth.t, 1e3 * error, color=colour, lw=1.0, label=name)
        print(f"{name}: {worst[name]:.2f} mrad")
    left.set(xlabel="t [s]", title="error of both joints [mrad]")
    left.set(yscale="log", ylim=(1e-3, 1e2))
    left.legend(fontsize=8, frameon=False, loc="lower center")
    right.barh(list(worst)[::-1], list(worst.values())[::-1], color=(BLUE, ORANGE, MUTED))
    right.set(title="largest error [mrad]", yticks=[])
    for y, value in enumerate(list(worst.values())[::-1]):
        right.text(value, y, f" {value:.1f}", va="center", fontsize=9, color=INK)
    for axes in (left, right):
        plain_axes(axes)
        axes.title.set_fontsize(9)
    assert worst["identified model"] < 0.5 * worst["data sheet, 15 % off, no friction"]
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    main().savefig("computed_torque.png", dpi=80)
