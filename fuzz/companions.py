"""Good files that others lead to: included parts, drives, data sets, campaigns to go on with, the store of a fleet, results."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import dynident as di
from dynident.excitation import Plan
from dynident_lab.campaigns import seal_segment
from dynident_lab.fleet import FleetResult, identify, read_fleet
from dynident_papers.properties import check
from dynident_papers.workspace import workspace_map

DRIVES = """[[drive]]
actuator = "joint1"
motor = { torque_constant = 0.1, inertia = 2e-4, current_limit = 20.0, speed_limit = 400.0 }
gear = { ratio = 60.0, efficiency = 0.9 }
encoder = { counts = 8192, side = "motor", filter = 300.0 }
friction = { law = "coulomb + viscous", values = { fc = 0.01, fv = 1e-4 } }
[[drive]]
motor = { torque_constant = 0.05, inertia = 1e-4 }
gear = { ratio = 50.0, inertias = [1e-5], stiffness = [20.0], damping = [0.02] }
"""
WHOLE = """<mujoco model="arm"><include file="part.xml"/>
  <worldbody><body name="link1" childclass="arm"><joint name="joint1" axis="0 0 1"/>
    <inertial pos="0.2 0 0" mass="3" diaginertia="0.02 0.05 0.05"/><include file="arm_part.xml"/></body></worldbody></mujoco>
"""
PART = """<mujoco><compiler angle="radian" autolimits="true"/>
  <default><default class="arm"><joint damping="0.1" range="-2 2"/><geom density="800"/></default></default>
  <asset><material name="grey" rgba="0.5 0.5 0.5 1"/></asset></mujoco>
"""
ARM_PART = """<mujocoinclude><body name="link2" pos="0.4 0 0" quat="1 0 0 0"><joint name="joint2" axis="0 1 0"/>
  <geom type="box" size="0.1 0.02 0.02" pos="0.1 0 0"/></body></mujocoinclude>
"""
XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:include filename="part.xacro"/>
  <xacro:property name="of" value="${xacro.load_yaml('numbers.yaml')}"/>
  <link name="base"/><xacro:arm name="link1" mass="${of['mass']}" size="${of['sizes'][0]}"/>
</robot>
"""
XACRO_PART = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:property name="pi2" value="${pi / 2}"/>
  <xacro:macro name="arm" params="name mass size:=${0.1 * 2}">
    <link name="${name}"><inertial><origin xyz="${size} 0 0" rpy="0 0 ${-pi2}"/><mass value="${mass}"/>
      <inertia ixx="${mass * size**2}" iyy="${max(0.1, size)}" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j_${name}" type="continuous"><parent link="base"/><child link="${name}"/><axis xyz="0 1 0"/></joint>
  </xacro:macro></robot>
"""
YAML = """mass: 2.5
sizes: [0.3, !degrees 30]
named: &a {x: 1, y: [1, 2]}
again: *a
"""
KNOWN = """[known]
total_mass = 4.5
without = []
[known.masses]
link1 = [3.0, 0.1]
[known.centres]
link2 = [0.1, 0.02, 0.0]
"""
TEXTS = {
    "drives.toml": DRIVES,
    "whole.xml": WHOLE,
    "part.xml": PART,
    "arm_part.xml": ARM_PART,
    "whole.xacro": XACRO,
    "part.xacro": XACRO_PART,
    "numbers.yaml": YAML,
    "known.toml": KNOWN,
}
#: Kinds of results whose files are mutated, beside the fit, the score, the verdict and the robot.
RESULTS = ("base", "check", "comparison", "workspace", "plan_result", "store/fleet")


def companion_files(folder: Path, robot: di.Mechanism, log: di.Log, other: di.Log) -> None:
    """Write one good file of every kind into the folder of the other samples."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    _lerobot(folder / "lerobot.parquet", other)
    _matlab73(folder / "log73.mat", other)
    _matlab5(folder / "plain.mat", other)
    _recording(folder)
    _results(folder, robot, log, other)


def _lerobot(path: Path, log: di.Log) -> None:
    """Write a part of a LeRobot data set: lists of numbers in a column."""
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    names = {"observation.state": log.position, "action": log.position, "observation.effort": log.effort}
    columns = {"timestamp": log.t, "frame_index": np.arange(len(log.t))}
    lists = {name: pa.array(list(values), pa.list_(pa.float64(), 2)) for name, values in names.items()}
    pq.write_table(pa.table({**columns, **lists}), path)


def _matlab73(path: Path, log: di.Log) -> None:
    """Write what MATLAB 7.3 writes: HDF5 behind a text of 512 bytes, columns as rows."""
    import h5py  # noqa: PLC0415 - an extra

    with h5py.File(path, "w", userblock_size=512, libver="earliest") as file:
        for name, values in (("t", log.t[:, None]), ("q", log.position), ("tau", log.effort)):
            file.create_dataset(name, data=values.T, track_times=False).attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def _matlab5(path: Path, log: di.Log) -> None:
    """Write a structure, cells, texts and an array of structures, not packed: mutations of packed ones end at the checksum."""
    from scipy.io import savemat  # noqa: PLC0415 - slow

    several = np.array([(1.0, "a"), (2.0, "b")], dtype=[("x", object), ("y", object)])
    run = {"t": log.t, "q": log.position, "tau": log.effort, "about": {"robot": "arm2", "rate": 100.0}}
    savemat(path, {"run": run, "cells": np.array([log.t[:3], "text"], dtype=object), "several": several}, do_compression=False)


def _recording(folder: Path) -> None:
    """Make the campaign one that can go on, and a second one whose segment is sealed."""
    made, sealed = folder / "campaign", folder / "sealed"
    plan = Plan.load(folder / "plan.json")
    plan.save(made / "plan.json")
    about = json.loads((made / "campaign.json").read_text(encoding="utf-8"))
    about["plan"], about["settings"] = plan.identity, {"cycles": 2}
    about["controller"] |= {"identity": "arm2", "robot": "arm2"}
    (made / "campaign.json").write_text(json.dumps(about), encoding="utf-8")
    sealed.mkdir()
    for name in ("campaign.json", "plan.json", "journal.jsonl", "cycle_0001_1.seg"):
        (sealed / name).write_bytes((made / name).read_bytes())
    seal_segment(sealed / "cycle_0001_1.seg")


def identify_fleet() -> FleetResult:
    """Identify the fleet of the samples in this process, as far as its store does not know it yet."""
    plan = read_fleet("fleet.toml")
    with ThreadPoolExecutor(1) as client:
        return identify(plan.robots, plan.entries, "store", client=client, reading=plan.reading)


def _results(folder: Path, robot: di.Mechanism, log: di.Log, other: di.Log) -> None:
    """Write results of many kinds."""
    with contextlib.chdir(folder):
        identify_fleet()
    evidence = di.Regression.from_log(robot, log)
    made = {
        "base": evidence.base,
        "check": check(robot, samples=5),
        "comparison": di.validate.compare(robot, log, other, estimators={"OLS": di.OLS(), "WLS": di.WLS()}),
        "workspace": workspace_map(robot, "link2", size=5),
        "plan_result": Plan.load(folder / "plan.json"),
    }
    for name, result in made.items():
        result.save(folder / f"{name}.json")
