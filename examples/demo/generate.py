"""Make the demo data: a 6-axis arm, its wrong CAD description, and two simulated logs with the truth beside them.

Run ``python examples/demo/generate.py``; the files beside this one are what it writes (seeded, so always the same).
The robot is true to life where it matters: CAD masses are off by up to a quarter, friction and rotor inertias are not in the
CAD at all, positions carry encoder noise and quantisation, torques carry noise and a ripple that no model explains.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import dynident as di

HERE = Path(__file__).parent
RATE, DURATION = 250.0, 20.0
LINKS = (  # mass [kg], centre of mass [m], principal moments about it [kg m^2]
    (18.0, (0.02, -0.01, -0.08), (0.25, 0.24, 0.16)),
    (12.5, (0.21, 0.00, 0.12), (0.06, 0.42, 0.42)),
    (9.0, (0.05, 0.02, 0.03), (0.09, 0.07, 0.08)),
    (5.0, (0.00, -0.02, -0.12), (0.06, 0.06, 0.015)),
    (2.2, (0.00, 0.01, 0.02), (0.006, 0.005, 0.006)),
    (1.1, (0.01, 0.00, 0.05), (0.003, 0.003, 0.001)),
)
JOINTS = (  # xyz [m], rpy [rad], lower, upper [rad], velocity [rad/s], effort [N m]
    ((0.0, 0.0, 0.38), (0.0, 0.0, 0.0), -3.0, 3.0, 2.6, 350.0),
    ((0.15, 0.0, 0.0), (-np.pi / 2, 0.0, 0.0), -2.2, 1.2, 2.6, 350.0),
    ((0.44, 0.0, 0.0), (0.0, 0.0, 0.0), -2.0, 2.4, 2.9, 200.0),
    ((0.09, 0.0, 0.0), (np.pi / 2, 0.0, 0.0), -3.0, 3.0, 5.0, 60.0),
    ((0.0, 0.0, 0.43), (-np.pi / 2, 0.0, 0.0), -1.9, 1.9, 5.0, 60.0),
    ((0.0, 0.0, 0.0), (np.pi / 2, 0.0, 0.0), -5.0, 5.0, 6.0, 40.0),
)
ROTOR = (3.5, 3.2, 1.4, 0.35, 0.30, 0.15)  # seen at the joint [kg m^2]
VISCOUS = (18.0, 20.0, 9.0, 2.6, 2.2, 1.1)
COULOMB = (9.0, 10.0, 6.0, 3.0, 2.5, 1.4)
OFFSET = (0.6, -1.1, 0.5, 0.2, -0.15, 0.05)
NOISE = (2.0, 2.2, 1.2, 0.5, 0.4, 0.25)  # [N m]


def urdf(scale: np.ndarray) -> str:
    """Return the description with every mass and inertia multiplied by `scale` (6,): 1 is the truth without joint terms."""
    lines = ['<?xml version="1.0"?>', "<!-- A 6-axis arm made up for the demo of dynident. -->", '<robot name="arm6">']
    lines.append('  <link name="base"/>')
    for i, ((mass, com, moments), (xyz, rpy, lower, upper, velocity, effort)) in enumerate(zip(LINKS, JOINTS, strict=True)):
        parent = "base" if i == 0 else f"link{i}"
        inertia = " ".join(f'{k}="{v:.6g}"' for k, v in zip(("ixx", "iyy", "izz"), np.multiply(moments, scale[i]), strict=True))
        lines += [
            f'  <link name="link{i + 1}">',
            "    <inertial>",
            f'      <origin xyz="{com[0]} {com[1]} {com[2]}" rpy="0 0 0"/>',
            f'      <mass value="{mass * scale[i]:.6g}"/>',
            f'      <inertia {inertia} ixy="0" ixz="0" iyz="0"/>',
            "    </inertial>",
            "  </link>",
            f'  <joint name="joint{i + 1}" type="revolute">',
            f'    <parent link="{parent}"/>',
            f'    <child link="link{i + 1}"/>',
            f'    <origin xyz="{xyz[0]} {xyz[1]} {xyz[2]}" rpy="{rpy[0]!r} {rpy[1]!r} {rpy[2]!r}"/>',
            '    <axis xyz="0 0 1"/>',
            f'    <limit lower="{lower}" upper="{upper}" velocity="{velocity}" effort="{effort}"/>',
            "  </joint>",
        ]
    return "\n".join([*lines, "</robot>", ""])


def motion(rng: np.random.Generator) -> di.Motion:
    """Return sums of five sines per joint under an envelope that starts and ends at rest, inside the joint limits."""
    t = np.arange(0.0, DURATION, 1.0 / RATE)
    columns = []
    for *_, lower, upper, velocity, _ in JOINTS:
        harmonic = np.arange(1, 6)[:, None]
        phase = rng.uniform(0.0, 2.0 * np.pi, (5, 1))
        amplitude = rng.uniform(0.3, 1.0, (5, 1)) / harmonic
        w = 2.0 * np.pi * 0.1 * harmonic * 1.3
        x = amplitude * np.array([np.sin(w * t + phase), w * np.cos(w * t + phase), -(w**2) * np.sin(w * t + phase)])
        x, v, a = x.sum(axis=1)
        s = np.clip(np.minimum(t, t[-1] - t) / 1.5, 0.0, 1.0)
        side = np.where(t < DURATION / 2, 1.0, -1.0) / 1.5 * (s < 1.0)
        e, e1, e2 = 10 * s**3 - 15 * s**4 + 6 * s**5, 30 * s**2 * (1 - s) ** 2 * side, 60 * s * (1 - s) * (1 - 2 * s) * side**2
        q, v, a = e * x, e * v + e1 * x, e * a + 2 * e1 * v + e2 * x
        size = 0.85 * min((upper - lower) / 2 / np.abs(q).max(), velocity / np.abs(v).max())
        columns.append(np.stack([(upper + lower) / 2 + size * q, size * v, size * a]))
    q, v, a = np.stack(columns, axis=-1)
    return di.Motion(t, q, v, a)


def record(truth: di.Mechanism, name: str, rng: np.random.Generator) -> di.Log:
    """Return what the controller would have logged along a random motion."""
    run = motion(rng)
    effort = di.inverse_dynamics(truth, run)
    ripple = 0.15 * np.array(NOISE) * np.sin(50.0 * run.q + rng.uniform(0, 6, 6))
    counts = 2.0 * np.pi / 2**19
    position = np.round((run.q + rng.normal(0.0, 2e-6, run.q.shape)) / counts) * counts
    noisy = np.round(effort + ripple + rng.normal(0.0, NOISE, effort.shape), 3)
    return di.Log(run.t.round(6), truth.joint_names, position.round(9), noisy, "joint_torque", name=name)


def main() -> None:
    """Write robot.urdf, truth.json, train.csv.gz and validate.csv.gz."""
    rng = np.random.default_rng(20260215)
    cad_error = rng.uniform(0.75, 1.25, 6)
    robot = HERE / "robot.urdf"
    robot.write_text(urdf(np.ones(6)), encoding="utf-8")
    truth = di.Mechanism.from_urdf(robot)
    values = {}
    for j in range(6):
        terms = {"ia": ROTOR[j], "fv": VISCOUS[j], "fc": COULOMB[j], "off": OFFSET[j]}
        values |= {f"{symbol}_joint{j + 1}": value for symbol, value in terms.items()}
    parameters = truth.parameters.replace(values, provenance="truth of the simulated demo robot")
    truth = truth.with_parameters(parameters)
    (HERE / "truth.json").write_text(json.dumps(parameters.to_dict(), indent=1) + "\n", encoding="utf-8")
    for name in ("train", "validate"):
        record(truth, name, rng).save(HERE / f"{name}.csv.gz")
    robot.write_text(urdf(cad_error), encoding="utf-8")


if __name__ == "__main__":
    main()
