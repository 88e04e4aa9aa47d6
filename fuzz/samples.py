"""Good files, one or more of every format that dynident reads: what the mutations start from."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import numpy as np

import dynident as di
from dynident.excitation import Stage, limits_of
from dynident.excitation.designs import plan_within
from dynident.trajectory import Fourier, Trajectory
from dynident_lab.campaigns import campaign_columns, segment_frame, segment_start
from dynident_lab.link import Message, encode
from fuzz.companions import companion_files
from fuzz.texts import FLEET, LIMITS, LINKAGE, LOOPS, MJCF, MOVEIT, SCHEMA, SDF, SIDECAR, TABLE_OF_LOGS, URDF, XACRO


def motion(seed: int, seconds: float = 6.0, rate: float = 50.0) -> di.Motion:
    """Return sums of three sines for two joints, with exact derivatives."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 1.0 / rate)
    w = 2.0 * np.pi * np.array([0.25, 0.5, 0.75])
    size, phase = rng.uniform(0.2, 0.5, (2, 3)), rng.uniform(0.0, 6.0, (2, 3))
    angle = t[:, None, None] * w + phase
    q, v, a = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    return di.Motion(t, q.sum(axis=2), v.sum(axis=2), a.sum(axis=2))


def log_of(robot: di.Mechanism, seed: int) -> di.Log:
    """Return a simulated run with a little noise and friction."""
    run = motion(seed)
    terms = {"fv_joint1": 2.0, "fc_joint1": 1.0, "fv_joint2": 0.7, "fc_joint2": 0.5, "ia_joint1": 0.3, "ia_joint2": 0.1}
    effort = di.inverse_dynamics(robot, run, robot.parameters.replace(terms))
    effort = effort + np.random.default_rng(seed).normal(0.0, 0.02, effort.shape)
    return di.Log(run.t, robot.joint_names, run.q, effort, "joint_torque", name=f"run{seed}")


def good_files(folder: Path, every: bool = True) -> None:
    """Write one good file of every format into a folder, or only those that most commands need."""
    texts = {"robot.urdf": URDF, "arm.xacro": XACRO, "arm.xml": MJCF, "schema.toml": SCHEMA, "sidecar.toml": SIDECAR}
    texts |= {
        "limits.toml": LIMITS,
        "arm.sdf": SDF,
        "joint_limits.yaml": MOVEIT,
        "fleet.toml": FLEET,
        "logs.csv": TABLE_OF_LOGS,
    }
    for name, text in (texts | {"linkage.urdf": LINKAGE, "loops.toml": LOOPS}).items():
        (folder / name).write_text(text, encoding="utf-8")
    robot = di.Mechanism.from_urdf(folder / "robot.urdf")
    log, other = log_of(robot, 1), log_of(robot, 2)
    for name, one in (("run", log), ("other", other)):
        rows = np.column_stack([one.t, one.position, one.effort])
        lines = ["t,q_joint1,q_joint2,tau_joint1,tau_joint2", *(",".join(f"{x:.9g}" for x in row) for row in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "log.csv.gz").write_bytes(gzip.compress((folder / "other.csv").read_bytes(), mtime=0))
    other.save(folder / "log.npz")
    other.save(folder / "log.mat")
    other.save(folder / "log.parquet")
    other.save(folder / "log.mcap")
    _hdf5(folder / "log.h5", other)
    _bag(folder / "log.bag", other)
    _bag(folder / "bag", other)
    (folder / "bag" / "bag.db3").rename(folder / "log.db3")
    evidence = di.Regression.from_log(robot, di.Log.read(folder / "run.csv", effort="joint_torque"))
    evidence.save(folder / "evidence.npz")
    fit = di.WLS().fit(evidence).result_
    fit.save(folder / "fit.json")
    fit.save(folder / "first.json")
    score = fit.score(other)
    score.save(folder / "score.json")
    di.judge(fit, [score]).save(folder / "verdict.json")
    robot.save(folder / "robot.json")
    series = Fourier(0.5, 2)
    curve = Trajectory(series, 0.1 * np.random.default_rng(0).standard_normal((2, series.size)))
    limits = {"default": {"acceleration": 100.0}}
    plan_within("arm2", limits_of(robot, limits), [Stage("a", "training", curve)], 100.0).save(folder / "plan.json")
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    del plan["identity"]  # with it every change is refused for the same reason
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    run = motion(3, 1.0)
    names = ["t", *(f"{kind}_joint{i}" for kind in "qva" for i in (1, 2))]
    table = np.column_stack([run.t, run.q, run.v, run.a])
    rows = [",".join(names), *(",".join(f"{x:.9g}" for x in row) for row in table)]
    (folder / "motion.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "packet.bin").write_bytes(encode(Message(11, 2, 0, sequence=1, q=(0.1, 0.2), velocity=0.5, duration=1.0)))
    (folder / "campaign").mkdir()
    _campaign(folder / "campaign", other)
    if every:
        companion_files(folder, robot, log, other)


def _hdf5(path: Path, log: di.Log) -> None:
    import h5py  # noqa: PLC0415 - an extra

    with h5py.File(path, "w", libver="earliest") as file:
        for name, values in (("t", log.t), ("q", log.position), ("tau", log.effort)):
            for i, column in enumerate(np.atleast_2d(values.T), 1):
                file.create_dataset(name if values.ndim == 1 else f"{name}_joint{i}", data=column, track_times=False)


def _bag(path: Path, log: di.Log) -> None:
    """Write a ROS 1 bag, or the folder of a rosbag2 when the path has no ending."""
    from rosbags import rosbag1, rosbag2  # noqa: PLC0415 - an extra
    from rosbags.typesys import Stores, get_typestore  # noqa: PLC0415

    old = path.suffix == ".bag"
    store = get_typestore(Stores.ROS1_NOETIC if old else Stores.ROS2_HUMBLE)
    kind = "sensor_msgs/msg/JointState"
    serialise = store.serialize_ros1 if old else store.serialize_cdr
    with rosbag1.Writer(path) if old else rosbag2.Writer(path, version=9) as bag:
        topic = bag.add_connection("/joint_states", kind, typestore=store)
        for k, t in enumerate(log.t):
            stamp = 10**18 + round(t * 1e9)
            time = store.types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
            header = store.types["std_msgs/msg/Header"](**({"seq": k} if old else {}), stamp=time, frame_id="")
            rows = {"position": log.position[k], "velocity": np.zeros(2), "effort": log.effort[k]}
            message = store.types[kind](header=header, name=list(log.joints), **rows)
            bag.write(topic, stamp, bytes(serialise(message, kind)))


def _campaign(folder: Path, log: di.Log) -> None:
    """Write a recorded campaign of one cycle."""
    channels = list(log.joints)
    known = {"coordinates": channels, "channels": channels, "period": 0.02, "effort_kind": "joint_torque", "gain": None}
    about = {"format": "dynident-campaign-1", "plan": "0" * 16, "robot": "arm2", "address": "simple://127.0.0.1:1"}
    about |= {"settings": {}, "schedule": [], "controller": {**known, "position_side": "joint"}, "created": 0.0}
    (folder / "campaign.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    columns = list(campaign_columns(tuple(channels)))
    table = np.zeros((len(log.t), len(columns)))
    values = {"host": log.t, "clock": log.t, "motion": log.t, "index": np.arange(len(log.t))}
    values |= {f"position_{name}": log.position[:, i] for i, name in enumerate(channels)}
    values |= {f"effort_{name}": log.effort[:, i] for i, name in enumerate(channels)}
    for i, name in enumerate(columns):
        table[:, i] = values.get(name, 0.0)
    header = {"columns": columns, "kind": "cycle", "cycle": 1, "attempt": 1, "session": "a"}
    (folder / "cycle_0001_1.seg").write_bytes(segment_start(header) + segment_frame(table[:150]) + segment_frame(table[150:]))
    event = json.dumps({"event": "cycle done", "cycle": 1, "attempt": 1}).encode()
    (folder / "journal.jsonl").write_bytes(event + b" %08x\n" % zlib.crc32(event))
