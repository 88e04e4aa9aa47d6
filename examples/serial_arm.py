"""A serial arm: from URDF and one log to the torques of a motion that was not fitted."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

import dynident as di
from dynident.figures import BLUE, SKY, new_figure, plain_axes

DEMO = Path(__file__).parent / "demo"


def main() -> Figure:
    """Identify six axes and draw measured and predicted torques of a log that was held out."""
    robot = di.Mechanism.from_urdf(DEMO / "robot.urdf")
    evidence = di.Regression.from_log(robot, di.Log.read(DEMO / "train.csv.gz"))
    fit = di.WLS().fit(evidence).result_
    score = fit.score(di.Log.read(DEMO / "validate.csv.gz"))
    print(f"{fit.base.rank} base parameters, held-out error {100 * score.metrics.relative:.1f} %")
    assert score.metrics.relative < 0.05

    figure = new_figure(10.0, 4.4)
    t = score.t - score.t[0]
    shown = t < 6.0
    for i, joint in enumerate(score.joints):
        axes = figure.add_subplot(2, 3, i + 1)
        plain_axes(axes)
        axes.plot(t[shown], score.measured[shown, i], color=SKY, linewidth=4.0, label="measured")
        axes.plot(t[shown], score.predicted[shown, i], color=BLUE, linewidth=1.0, label="predicted")
        axes.set_title(f"{joint}: {100 * score.metrics.relative_per_joint[i]:.1f} %", fontsize=9)
        if i % 3 == 0:
            axes.set_ylabel("torque [N m]", fontsize=8)
        if i >= 3:
            axes.set_xlabel("t [s]", fontsize=8)
    figure.axes[0].legend(fontsize=7, loc="lower center", frameon=False)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    main().savefig("serial_arm.png", dpi=80)
