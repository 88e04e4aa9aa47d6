"""A MuJoCo model: read an arm from MJCF and map the torque that holds it in every pose, without and with a tool."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import dynident as di
from dynident.figures import new_figure

ARM = """
<mujoco model="arm">
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="upper" pos="0 0 0.3">
      <joint name="shoulder" axis="0 1 0" damping="0.4" frictionloss="0.8" armature="0.1"/>
      <inertial pos="0.2 0 0" mass="3" diaginertia="0.01 0.05 0.05"/>
      <body name="lower" pos="0.4 0 0">
        <joint name="elbow" axis="0 1 0" damping="0.2" frictionloss="0.4" armature="0.05"/>
        <inertial pos="0.15 0 0" mass="2" diaginertia="0.005 0.02 0.02"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def main() -> Figure:
    """Draw the shoulder's holding torque over both joint angles."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arm.xml"
        file.write_text(ARM, encoding="utf-8")
        robot = di.Mechanism.from_mjcf(file)
    print({name: robot.parameters.to_dict()[name] for name in ("ia_shoulder", "fv_shoulder", "fc_shoulder")})
    angles = np.linspace(-np.pi, np.pi, 121)
    shoulder, elbow = np.meshgrid(angles, angles)
    q = np.column_stack([shoulder.ravel(), elbow.ravel()])

    arms = {"bare": robot, "with 2 kg at the tip": robot.with_payload(2.0, com=(0.3, 0, 0))}
    figure = new_figure(9.0, 3.8)
    for i, (title, arm) in enumerate(arms.items()):
        torque = di.gravity(arm, q)[:, 0].reshape(shoulder.shape)
        axes = figure.add_subplot(1, 2, i + 1)
        drawn = axes.contourf(shoulder, elbow, torque, levels=np.arange(-35.0, 36.0, 5.0), cmap="RdBu_r")
        axes.contour(shoulder, elbow, torque, levels=[0.0], colors="#333333", linewidths=0.8)
        axes.set_title(f"{title}: up to {np.abs(torque).max():.1f} N m", fontsize=9)
        axes.set_xlabel("shoulder [rad]", fontsize=8)
        axes.set_ylabel("elbow [rad]", fontsize=8)
    figure.tight_layout()
    figure.colorbar(drawn, ax=figure.axes, label="holding torque of the shoulder [N m]", ticks=np.arange(-30.0, 31.0, 10.0))
    return figure


if __name__ == "__main__":
    main().savefig("mjcf_model.png", dpi=80)
