"""A closed loop: a four-bar crank: its motion, its motor torque and the force in the cut pin."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import dynident as di
from dynident.figures import BLUE, MUTED, ORANGE, new_figure, plain_axes
from dynident.mechanics import actuator_torques, close_positions
from dynident_lab.joint_reactions import reactions


def four_bar(crank: float = 0.1, coupler: float = 0.3, rocker: float = 0.25, base: float = 0.3) -> di.Mechanism:
    """Crank, coupler and rocker of 2 kg/m; coupler and rocker meet in a cut joint."""
    rods = {"crank": crank, "coupler": coupler, "rocker": rocker}
    inertias = [di.mechanism.from_com(2 * x, (x / 2, 0, 0), np.diag([0.0, 1.0, 1.0]) * x**3 / 6) for x in rods.values()]
    at = {x: di.Placement(np.eye(3), (x, 0, 0)) for x in (crank, coupler, rocker, base)}
    bodies = [di.Body("ground"), *(di.Body(name, inertia) for name, inertia in zip(rods, inertias, strict=True))]
    places = {
        "q1": ("ground", "crank", di.Placement()),
        "q2": ("crank", "coupler", at[crank]),
        "q3": ("ground", "rocker", at[base]),
    }
    joints = [di.Joint(name, "revolute", *where) for name, where in places.items()]
    loop = di.Loop("pin", "revolute", "coupler", "rocker", at[coupler], at[rocker])
    options = {"home": {"q1": 1.0, "q2": -0.4, "q3": 1.9}, "gravity": (0, -9.81, 0), "terms": ()}
    return di.Mechanism("four_bar", bodies, joints, (loop,), (), (di.Actuator("motor", {"q1": 1.0}),), **options)


def main() -> Figure:
    """Turn the crank twice a second and draw what happens."""
    robot, t = four_bar(), np.linspace(0.0, 0.5, 201)
    motion = di.Motion(t, 4 * np.pi * t[:, None] + 1.0, np.full((201, 1), 4 * np.pi), np.zeros((201, 1)))
    torque = actuator_torques(robot, motion.q, di.inverse_dynamics(robot, motion))
    pin = np.linalg.norm(reactions(robot, motion, torque)["pin"][:, :3], axis=1)
    q1, q2, _ = close_positions(robot, motion.q).T
    A = 0.1 * np.stack([np.cos(q1), np.sin(q1)])
    B = A + 0.3 * np.stack([np.cos(q1 + q2), np.sin(q1 + q2)])
    assert np.abs(np.hypot(B[0] - 0.3, B[1]) - 0.25).max() < 1e-9  # the rocker's end is there too

    figure = new_figure(9.6, 3.8)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1.3))
    for i in range(0, 200, 25):
        x, y = [0.0, A[0, i], B[0, i], 0.3], [0.0, A[1, i], B[1, i], 0.0]
        left.plot(x, y, "o-", color=BLUE, alpha=0.3 + i / 400, ms=3, lw=1.2)
    left.plot(*(0.5 * (A + B)), color=ORANGE, lw=1.2)
    left.set_title("eight poses, and the path of the coupler's middle", fontsize=9)
    left.set(aspect="equal", frame_on=False, xticks=[], yticks=[])
    plain_axes(right)
    right.plot(t, torque, color=BLUE, label="motor torque [N m]")
    right.plot(t, 0.1 * pin, color=MUTED, label="force in the pin [10 N]")
    right.set_xlabel("t [s]", fontsize=8)
    right.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    main().savefig("closed_loop.png", dpi=80)
