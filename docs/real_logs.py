"""Measure the table "Measured on real logs" of the README.

    python docs/real_logs.py ../shared/data

The folder holds public recordings (emps, kuka_lwr4_flobaroid, ur10_petrone2025, staubli_tx40_figaroh), which are not part of
this repository. Every robot is treated by the same defaults; only names, units, gears and drive gains are given.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import dynident as di

Pair = tuple[di.Mechanism, di.Log, di.Log]


def emps(data: Path) -> Pair:
    """One prismatic axis, voltage; fitted on the first run, judged on the run with force pulses."""
    row = {"a": 0, "alpha": 0, "d": 0, "theta": 0, "kind": "prismatic", "joint": "slide"}
    robot = di.Mechanism.from_dh([row], name="emps", gravity=(0, 0, 0))
    schema = {
        "time": "t",
        "position": ["qm"],
        "effort": ["vir"],
        "joints": ["slide"],
        "effort_kind": "voltage",
        "gain": 35.1507,
    }
    runs = [di.Log.read(data / "emps" / f"DATA_EMPS{run}.mat", schema=schema, gain=35.1507) for run in ("", "_PULSES")]
    return robot, runs[0], runs[1]


def lwr4(data: Path) -> Pair:
    """KUKA LWR4+, joint torque sensors; fitted on run 1, judged on run 2."""
    folder = data / "kuka_lwr4_flobaroid"
    robot = di.Mechanism.from_urdf(folder / "kuka_lwr4.urdf")
    runs = [di.Log.read(folder / f"measurements_{i}.npz", "joint_torque", joints=robot.joint_names) for i in (1, 2)]
    return robot, runs[0], runs[1]


def ur10(data: Path) -> Pair:
    """UR10, one run of a ROS driver; fitted on the first two thirds, judged on the last."""
    folder = data / "ur10_petrone2025"
    robot = di.Mechanism.from_urdf(folder / "ur10_robot.urdf")
    log = di.Log.read(folder / "ur10_exciting_trajectory.csv.gz", "joint_torque")
    cut = 2 * len(log) // 3
    return robot, log.rows(0, cut), log.rows(cut, len(log))


def tx40(data: Path) -> Pair:
    """Staubli TX40, motor positions and torques with a coupled wrist; rows 0:24750 and 29250:45000."""
    folder = data / "staubli_tx40_figaroh"
    robot = di.Mechanism.from_urdf(folder / "tx40_mdh_modified.urdf")
    ratio = dict(zip(robot.joint_names, (32, 32, 45, -48, 45, 32), strict=True))
    shift = {"joint_2": np.pi / 2, "joint_3": -np.pi / 2}
    motors = [di.Actuator(f"motor{j[-1]}", {j: 1.0}, r, r * shift.get(j, 0.0)) for j, r in ratio.items()]
    motors[5] = di.Actuator("motor6", {"joint_5": 1.0, "joint_6": 1.0}, 32)
    columns = [f"Joint_{i}" for i in range(1, 7)]
    schema = {
        "position": columns,
        "effort": columns,
        "joints": [motor.name for motor in motors],
        "rate": 5000,
        "effort_kind": "motor_torque",
        "position_side": "motor",
    }
    files = {"position": folder / "pos_read_data.csv.gz", "effort": folder / "curr_data.csv.gz"}
    log = di.Log.read(files, schema=schema, name="tx40")
    return replace(robot, actuators=tuple(motors)), log.rows(0, 24750), log.rows(29250, 45000)


def main(data: Path) -> None:
    """Print one line per robot, as Markdown."""
    print("| robot | base parameters | training | held out | held out, all samples | band Hz | held-out RMSE, all samples |")
    print("|---|---|---|---|---|---|---|")
    for make in (emps, lwr4, ur10, tx40):
        robot, train, test = make(data)
        fit = di.WLS().fit(di.Regression.from_log(robot, train)).result_
        score = fit.score(test)
        errors = (fit.training_relative, score.metrics.relative, score.all_samples.relative)
        percent = " | ".join(f"{100 * x:.2f} %" for x in errors)
        rmse = " ".join(f"{x:.3g}" for x in score.all_samples.rmse)
        print(f"| {robot.name} | {fit.base.rank} | {percent} | {fit.sources[0]['bandwidth']:.3g} | {rmse} |")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data"))
