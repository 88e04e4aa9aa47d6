"""Public recordings to measure the accuracy of the defaults, and their readers; no options of a fit are given."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import dynident as di


@dataclass(frozen=True, eq=False)
class Shared:
    """A robot with logs to fit and logs for validation.

    Parameters
    ----------
    robot : Mechanism
        As described.
    train, test : list of Log
        Disjoint.
    """

    robot: di.Mechanism
    train: list[di.Log]
    test: list[di.Log]


def emps(data: Path) -> Shared:
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
    runs = [di.Log.read(data / "emps" / f"DATA_EMPS{run}.mat", schema=schema) for run in ("", "_PULSES")]
    return Shared(robot, runs[:1], runs[1:])


def lwr4(data: Path) -> Shared:
    """KUKA LWR4+, joint torque sensors; fitted on run 1, judged on run 2."""
    folder = data / "kuka_lwr4_flobaroid"
    robot = di.Mechanism.from_urdf(folder / "kuka_lwr4.urdf")
    runs = [di.Log.read(folder / f"measurements_{i}.npz", "joint_torque", joints=robot.joint_names) for i in (1, 2)]
    return Shared(robot, runs[:1], runs[1:])


def ur10(data: Path) -> Shared:
    """UR10, one run of a ROS driver; fitted on the first two thirds, judged on the last."""
    folder = data / "ur10_petrone2025"
    robot = di.Mechanism.from_urdf(folder / "ur10_robot.urdf")
    log = di.Log.read(folder / "ur10_exciting_trajectory.csv.gz", "joint_torque")
    return thirds(robot, log)


def tx40(data: Path) -> Shared:
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
    return Shared(replace(robot, actuators=tuple(motors)), [log.rows(0, 24750)], [log.rows(29250, 45000)])


def lbr_med7(data: Path) -> Shared:
    """KUKA LBR Med 7, joint torque sensors, slow; fitted on the first two thirds, judged on the last."""
    folder = data / "lbr_med7"
    robot = di.Mechanism.from_urdf(folder / "med7dock.urdf")
    schema = {
        "position": [f"q_{i}" for i in range(7)],
        "effort": [f"tau_{i}" for i in range(7)],
        "joints": list(robot.joint_names),
        "rate": 100,
    }
    return thirds(robot, di.Log.read(folder / "measurements_with_ext_tau_1_dgr.csv.gz", "joint_torque", schema=schema))


def double_pendulum(data: Path) -> Shared:
    """Two links of a quasi-direct drive, commanded torque; fitted on the first seven runs, judged on the last three."""
    robot = di.Mechanism.from_dh([(0.2, 0, 0, 0), (0.3, 0, 0, 0)], gravity=(9.81, 0, 0), name="double_pendulum")
    schema = {
        "time": "time",
        "position": ["pos_meas1", "pos_meas2"],
        "effort": ["tau_con1", "tau_con2"],
        "joints": list(robot.joint_names),
    }
    files = sorted((data / "double_pendulum_dfki").glob("run_*.csv.gz"))
    runs = [di.Log.read(file, "joint_torque", schema=schema) for file in files]
    return Shared(robot, runs[:7], runs[7:])


def tiago(data: Path) -> Shared:
    """PAL TIAGo, delayed and dead channels; the verdict must refuse it."""
    folder = data / "tiago_figaroh"
    log = di.Log.read([folder / f"tiago_{kind}.csv.gz" for kind in ("position", "velocity", "effort")], "joint_torque")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = di.Mechanism.from_urdf(folder / "tiago_48_schunk.urdf")
    return Shared(robot, [log.rows(921, 4149)], [log.rows(4736, 6791)])


def gen3(data: Path) -> Shared:
    """Kinova Gen3, currents declared as torques by its driver; fitted on two runs, judged on a third."""
    folder = data / "kinova_gen3_dynamapp"
    schema = {"effort": "TorqueCur{index}", "rate": 1000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # impossible bodies in the URDF
        robot = di.Mechanism.from_urdf(folder / "gen3.urdf")
    runs = [
        di.Log.read(folder / "identification_data" / f"{name}.csv.gz", "joint_torque", schema=schema, joints=robot.joint_names)
        for name in ("RunTrajectory1", "Trajectory1", "RecordTrajectory_quadratic")
    ]
    return Shared(robot, runs[:2], runs[2:])


def thirds(robot: di.Mechanism, log: di.Log) -> Shared:
    """Return the first two thirds and the last third of a log."""
    cut = 2 * len(log) // 3
    return Shared(robot, [log.rows(0, cut)], [log.rows(cut, len(log))])


ROBOTS: dict[str, Callable[[Path], Shared]] = {
    "EMPS": emps,
    "LWR4+": lwr4,
    "UR10": ur10,
    "TX40": tx40,
    "LBR Med 7": lbr_med7,
    "double pendulum": double_pendulum,
    "TIAGo": tiago,
    "Gen3": gen3,
}
