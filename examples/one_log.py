"""One log: both friction terms of every joint and all inertias of a robot with a pantograph, from currents and encoders."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import dynident as di
from dynident.figures import BLUE, ORANGE, new_figure, plain_axes
from dynident_papers.robots import cft, proof_case


def main() -> Figure:
    """Run the motion of the report [Rodriguez2002, Table 3], fit everything at once, and draw the friction of the joints."""
    machine, t = cft.machine(added_inertia=0.2), np.linspace(0.0, 10.0, 2001)
    wanted = cft.cartesian_reference(t, *cft.excitation(t))
    log = machine.simulate(wanted).log
    laws = dict.fromkeys(cft.JOINTS, "viscous + tanh + tanh")  # the report needed single-joint runs, a Kalman filter and LS
    fit = di.fit_friction(machine.model, log, laws, starts=4)
    other = machine.simulate(next(iter(proof_case("cft").motions.values()))).log
    error = fit.score(other).metrics.relative
    print(f"{fit.base.rank} parameters from {log.duration:.0f} s; error on another motion {100 * error:.2f} %")
    print(cft.table_four(fit).summary())
    assert error < 0.01

    figure = new_figure(9.6, 3.4)
    top = np.abs(wanted.v).max(axis=0)
    for i, (joint, unit) in enumerate(zip(cft.JOINTS, ("N", "N m", "N m", "N m"), strict=True)):
        axes = figure.add_subplot(1, 4, i + 1)
        plain_axes(axes)
        v = np.linspace(-top[i], top[i], 401)
        axes.plot(v, cft.friction(np.eye(4)[i] * v[:, None])[:, i], color=ORANGE, lw=2.4, label="Table 4")
        axes.plot(v, fit.friction[joint](v), color=BLUE, lw=1.0, label="from one log")
        axes.set_title(f"{joint}: friction [{unit}]", fontsize=9)
        axes.set_xlabel("m/s" if i == 0 else "rad/s", fontsize=8)
    axes.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    main().savefig("one_log.png", dpi=80)
