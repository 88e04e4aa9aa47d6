"""A robot from the literature: the validation of a 2-PRR mechanism on its virtual machine [Roldan2017, section 6.1]."""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.figure import Figure
from scipy.signal import butter, sosfiltfilt

import dynident as di
from dynident.errors import SimulationWarning
from dynident.figures import BLUE, MUTED, ORANGE, new_figure, plain_axes
from dynident_papers.robots import prr2


def main() -> Figure:
    """Draw what slider 1 was asked for and did, and the forces of both beside those that were measured."""
    frequency, amplitude, cycles = (prr2.VALIDATION[key] for key in ("frequency", "amplitude", "cycles"))
    w, t = 2.0 * np.pi * frequency, np.arange(0.0, cycles / frequency, 1e-3)
    sine, cosine = (np.column_stack([y, y]) for y in (np.sin(w * t), np.cos(w * t)))
    wanted = di.Motion(t, prr2.START + amplitude * sine, amplitude * w * cosine, -amplitude * w**2 * sine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # currents touch their limit at every step of the position loop
        run = prr2.machine().simulate(wanted)
    per_ampere = prr2.TORQUE_CONSTANT * prr2.MOTOR_RATIO  # 37.95 N/A
    force = per_ampere * sosfiltfilt(butter(3, prr2.CUTOFF, fs=1000.0, output="sos"), run.log.effort, axis=0)

    figure = new_figure(9.6, 3.6)
    left, right = figure.subplots(1, 2)
    left.plot(t, 1e3 * wanted.q[:, 0], color=MUTED, label="asked")
    left.plot(run.truth.t, 1e3 * run.truth.motion.q[:, 0], color=BLUE, label="done")
    left.set(title="slider 1 [mm], near the bandwidth of its loops", ylim=(185, 220))
    for i, (colour, measured) in enumerate(((BLUE, 156.0), (ORANGE, 190.0))):
        right.plot(run.log.t, force[:, i], color=colour, lw=1.0, label=f"actuator {i + 1}")
        right.hlines([-measured, measured], 0.0, 2.0, color=colour, ls=":", lw=1.0)
    right.set(title="force [N]; dotted: the largest that the thesis measured", ylim=(-220, 260))
    for axes in (left, right):
        plain_axes(axes)
        axes.set_xlabel("t [s]", fontsize=8)
        axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper center")
        axes.title.set_fontsize(9)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    main().savefig("scissor.png", dpi=80)
