"""Public Python functions given wrong sizes, NaN, wrong types or unknown names: a DynidentError with one sentence, only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.errors import DynidentError
from dynident.identify.metrics import evaluate
from dynident.validate import cross_validate, hold_out, judge, split, time_blocks

NAN = float("nan")
ROBOT = di.Mechanism.from_dh([(0.3, 0.0, 0.0, 0.0), (0.2, 0.0, 0.0, 0.0)], gravity=(0.0, -9.81, 0.0), name="planar")
T = np.arange(0.0, 6.0, 0.01)
Q = np.column_stack([np.sin(2.0 * T) + 0.3 * np.cos(5.0 * T), np.cos(3.0 * T) + 0.2 * np.sin(7.0 * T)])
V, A = np.gradient(Q, 0.01, axis=0), np.gradient(np.gradient(Q, 0.01, axis=0), 0.01, axis=0)
MOTION = di.Motion(T, Q, V, A)
TAU = di.inverse_dynamics(ROBOT, MOTION, ROBOT.parameters.replace(np.full(len(ROBOT.parameters), 0.5)))
TAU = TAU + np.random.default_rng(0).normal(0.0, 0.05, TAU.shape)
LOG = di.Log(T, ROBOT.joint_names, Q, TAU, "joint_torque")
NAMES = ROBOT.joint_names


def with_nan(x: np.ndarray) -> np.ndarray:
    y = np.array(x)
    y.flat[7] = NAN
    return y


def evidence() -> di.Regression:
    return di.Regression.from_log(ROBOT, LOG)


def fit() -> di.Fit:
    return di.WLS().fit(evidence()).result_


def log(**changes: object) -> Callable[[], object]:
    fields = {"t": T, "joints": NAMES, "position": Q, "effort": TAU, "effort_kind": "joint_torque"}
    return lambda: di.Log(**{**fields, **changes})


def motions() -> dict[str, Callable[[], object]]:
    """Return calls that take a robot and a motion, given something else."""
    calls: dict[str, Callable[[], object]] = {}
    narrow = di.Motion(T, Q[:, :1], V[:, :1], A[:, :1])
    functions = ("inverse_dynamics", "regressor", "energy_regressor", "momentum_regressor")
    for name in functions:
        function = getattr(di, name)
        calls[f"{name}: a motion of another width"] = lambda f=function: f(ROBOT, narrow)
        for label, value in (("nothing", None), ("a number", 3.0), ("text", "motion"), ("an array", Q), ("a log", LOG)):
            calls[f"{name}: {label} instead of a motion"] = lambda f=function, x=value: f(ROBOT, x)
        for label, value in (("nothing", None), ("text", "robot"), ("a motion", MOTION)):
            calls[f"{name}: {label} instead of a robot"] = lambda f=function, x=value: f(x, MOTION)
    calls["forward_kinematics: unknown frame"] = lambda: di.forward_kinematics(ROBOT, Q, "ghost")
    calls["forward_kinematics: narrow"] = lambda: di.forward_kinematics(ROBOT, Q[:, :1], ROBOT.tree.bodies[-1])
    for name in ("mass_matrix", "gravity"):
        function = getattr(di, name)
        for label, value in (("narrow", Q[:, :1]), ("NaN", with_nan(Q)), ("text", "q"), ("nothing", None), ("cube", Q[None])):
            calls[f"{name}: {label} positions"] = lambda f=function, x=value: f(ROBOT, x)
    for label, value in (("narrow", Q[:, :1]), ("NaN", with_nan(Q)), ("short", Q[:9]), ("text", "v")):
        calls[f"coriolis_matrix: {label} velocities"] = lambda x=value: di.coriolis_matrix(ROBOT, Q, x)
        calls[f"forward_dynamics: {label} efforts"] = lambda x=value: di.forward_dynamics(ROBOT, Q, V, x)
        calls[f"Regression.from_motion: {label} efforts"] = lambda x=value: di.Regression.from_motion(ROBOT, MOTION, x)
    for label, value in (("short", np.ones(3)), ("NaN", np.full(len(ROBOT.parameters), NAN)), ("text", "phi"), ("a dict", {})):
        calls[f"inverse_dynamics: {label} parameters"] = lambda x=value: di.inverse_dynamics(ROBOT, MOTION, x)
    calls["frame_motion: unknown frame"] = lambda: di.frame_motion(ROBOT, MOTION, "ghost")
    calls["jacobian: unknown frame"] = lambda: di.jacobian(ROBOT, Q, "ghost")
    calls["motion: ragged"] = lambda: di.Motion(T, [[1.0], [1.0, 2.0]], V, A)
    calls["motion: complex"] = lambda: di.Motion(T, Q + 1j, V, A)
    calls["motion: time falls"] = lambda: di.Motion(-T, Q, V, A)
    return calls


def robots() -> dict[str, Callable[[], object]]:
    """Return calls that make or change robots and parameters."""
    P = ROBOT.parameters
    return {
        "from_dh: text": lambda: di.Mechanism.from_dh("rows"),
        "from_dh: empty": lambda: di.Mechanism.from_dh([]),
        "from_dh: short row": lambda: di.Mechanism.from_dh([(0.1, 0.2)]),
        "from_dh: NaN": lambda: di.Mechanism.from_dh([(NAN, 0.0, 0.0, 0.0)]),
        "from_dh: convention": lambda: di.Mechanism.from_dh([(0.1, 0.0, 0.0, 0.0)], convention="khalil"),
        "from_dh: gravity": lambda: di.Mechanism.from_dh([(0.1, 0.0, 0.0, 0.0)], gravity=(0.0, 1.0)),
        "from_dh: number": lambda: di.Mechanism.from_dh(5),
        "from_urdf: missing": lambda: di.Mechanism.from_urdf("ghost.urdf"),
        "from_mjcf: missing": lambda: di.Mechanism.from_mjcf("ghost.xml"),
        "with_terms: unknown": lambda: ROBOT.with_terms(["xyz"]),
        "with_terms: number": lambda: ROBOT.with_terms([3]),
        "with_parameters: other": lambda: ROBOT.with_parameters(di.Parameters(("a",), np.ones(1))),
        "with_parameters: array": lambda: ROBOT.with_parameters(np.ones(3)),
        "with_payload: body": lambda: ROBOT.with_payload(1.0, body="ghost"),
        "with_payload: mass": lambda: ROBOT.with_payload(-1.0),
        "with_payload: text": lambda: ROBOT.with_payload("heavy"),
        "with_payload: com": lambda: ROBOT.with_payload(1.0, com=(0.0, 0.0)),
        "with_payload: NaN": lambda: ROBOT.with_payload(NAN),
        "keep: unknown": lambda: ROBOT.keep(["ghost"]),
        "joint: unknown": lambda: ROBOT.joint("ghost"),
        "frame: unknown": lambda: ROBOT.frame("ghost"),
        "base_parameters: order": lambda: di.base_parameters(ROBOT, order=["ghost"]),
        "base_parameters: nothing": lambda: di.base_parameters(None),
        "base_parameters: text": lambda: di.base_parameters("robot"),
        "parameters: unknown": lambda: P["ghost"],
        "parameters: number": lambda: P[3],
        "parameters: list": lambda: P[["a"]],
        "parameters: replace unknown": lambda: P.replace({"ghost": 1.0}),
        "parameters: replace short": lambda: P.replace(np.ones(3)),
        "parameters: replace text": lambda: P.replace({P.names[0]: "big"}),
        "parameters: replace words": lambda: P.replace("abc"),
        "parameters: twice": lambda: di.Parameters(("a", "a"), np.ones(2)),
        "parameters: values": lambda: di.Parameters(("a",), "abc"),
        "parameters: json": lambda: di.Parameters.from_json("{"),
        "parameters: json list": lambda: di.Parameters.from_json("[1]"),
        "parameters: json values": lambda: di.Parameters.from_json(
            '{"names":["a"],"values":["x"],"units":[],"owners":[],"provenance":""}'
        ),
        "body: NaN": lambda: di.Body("b", [NAN] * 10),
        "body: short": lambda: di.Body("b", [1.0]),
        "joint: kind": lambda: di.Joint("j", "wobbly", "a", "b"),
        "coupling: NaN": lambda: di.Coupling("a", {"b": NAN}),
        "actuator: zero": lambda: di.Actuator("m", {"a": 1.0}, ratio=0.0),
    }


def logs() -> dict[str, Callable[[], object]]:
    """Return calls that make, cut and prepare logs."""
    calls = {
        "short": log(position=Q[:9]),
        "narrow": log(effort=TAU[:, :1]),
        "text": log(position="q"),
        "ragged": log(position=[[1.0], [1.0, 2.0]]),
        "nothing": log(effort=None),
        "three samples": log(t=T[:3], position=Q[:3], effort=TAU[:3]),
        "time NaN": log(t=with_nan(T)),
        "time falls": log(t=-T),
        "time text": log(t="t"),
        "time of text": log(t=["a"] * len(T)),
        "kind": log(effort_kind="horsepower"),
        "no kind": log(effort_kind=None),
        "names twice": log(joints=("a", "a")),
        "names text": log(joints="ab"),
        "names numbers": log(joints=(1, 2)),
        "names number": log(joints=7),
        "no names": log(joints=()),
        "side": log(position_side="left"),
        "gain zero": log(gain=0.0),
        "gain NaN": log(gain=[1.0, NAN]),
        "gain many": log(gain=[1.0] * 3),
        "gain text": log(gain="big"),
        "absurd": log(effort=TAU * 1e200),
        "velocity narrow": log(velocity=V[:, :1]),
        "current without gain": lambda: log(effort_kind="motor_current")().torque(),
        "select": lambda: LOG.select(["ghost"]),
        "rows": lambda: LOG.rows(5, 2),
        "rows beyond": lambda: LOG.rows(0, 10**9),
        "between": lambda: LOG.between(100.0, 200.0),
        "read missing": lambda: di.Log.read("ghost.csv", effort="joint_torque"),
        "read nothing": lambda: di.Log.read([], effort="joint_torque"),
        "prepare method": lambda: di.prepare(LOG, method="magic"),
        "prepare cutoff": lambda: di.prepare(LOG, cutoff="low"),
        "prepare cutoff above Nyquist": lambda: di.prepare(LOG, cutoff=80.0),
        "prepare cutoff NaN": lambda: di.prepare(LOG, cutoff=NAN),
        "prepare cutoff list": lambda: di.prepare(LOG, cutoff=[1.0]),
        "prepare decimation": lambda: di.prepare(LOG, decimation=0),
        "prepare decimation fraction": lambda: di.prepare(LOG, decimation=2.5),
        "prepare decimation text": lambda: di.prepare(LOG, decimation="much"),
        "prepare resample": lambda: di.prepare(LOG, resample=-5.0),
        "prepare fourier": lambda: di.prepare(LOG, method="fourier"),
        "prepare fourier period": lambda: di.prepare(LOG, method="fourier", period=NAN),
        "prepare nothing": lambda: di.prepare(None),
        "diagnose nothing": lambda: di.diagnose(None),
    }
    return {f"log: {name}": call for name, call in calls.items()}


def fits() -> dict[str, Callable[[], object]]:
    """Return calls that estimate, score and validate."""
    other = di.Mechanism.from_dh([(0.5, 0.0, 0.0, 0.0), (0.2, 0.0, 0.0, 0.0)], gravity=(0.0, -9.81, 0.0), name="other")
    renamed = di.Log(T, ("a", "b"), Q, TAU, "joint_torque")
    return {
        "from_log: unknown joints": lambda: di.Regression.from_log(ROBOT, renamed),
        "from_log: nothing": lambda: di.Regression.from_log(ROBOT, None),
        "from_log: no robot": lambda: di.Regression.from_log(None, LOG),
        "from_log: dead": lambda: di.Regression.from_log(ROBOT, di.Log(T, NAMES, Q, TAU * 0.0, "joint_torque")),
        "from_motion: nothing": lambda: di.Regression.from_motion(ROBOT, None, TAU),
        "merge other robot": lambda: evidence() + di.Regression.from_log(other, LOG),
        "merge nothing": lambda: evidence() + None,
        "load missing": lambda: di.Regression.load("ghost.npz", ROBOT),
        "fit nothing": lambda: di.WLS().fit(None),
        "fit active": lambda: di.OLS().fit(evidence(), active=np.ones(3, dtype=bool)),
        "fit active text": lambda: di.OLS().fit(evidence(), active="all"),
        "fit none active": lambda: di.OLS().fit(evidence(), active=np.zeros(evidence().base.rank, dtype=bool)),
        "recovery": lambda: di.WLS(recovery="magic").fit(evidence()),
        "iterations": lambda: di.WLS(iterations=0).fit(evidence()),
        "set_params": lambda: di.WLS().set_params(colour="red"),
        "essential ratio": lambda: di.essential_parameters(evidence(), ratio=0.5),
        "essential NaN": lambda: di.essential_parameters(evidence(), ratio=NAN),
        "score training": lambda: fit().score(LOG),
        "score nothing": lambda: fit().score(None),
        "score renamed": lambda: fit().score(renamed),
        "predict narrow": lambda: fit().predict(di.Motion(T, Q[:, :1], V[:, :1], A[:, :1])),
        "predict nothing": lambda: fit().predict(None),
        "from_dict number": lambda: di.Fit.from_dict(5, ROBOT),
        "from_dict other robot": lambda: di.Fit.from_dict(fit().to_dict(), other),
        "split": lambda: split(LOG, 1.5),
        "split gap": lambda: split(LOG, gap=1e6),
        "hold_out": lambda: hold_out(ROBOT, LOG, fraction=NAN),
        "time_blocks": lambda: time_blocks(ROBOT, LOG, 1),
        "cross_validate nothing": lambda: cross_validate([]),
        "judge nothing": lambda: judge(None),
        "metrics shapes": lambda: evaluate(Q, Q[:5], NAMES),
        "metrics NaN": lambda: evaluate(Q, with_nan(Q), NAMES),
    }


CALLS = {**motions(), **robots(), **logs(), **fits()}


@pytest.mark.filterwarnings("ignore::dynident.errors.DynidentWarning")
@pytest.mark.parametrize("name", CALLS)
def test_a_bad_call_gives_one_sentence(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DynidentError) as error:
        CALLS[name]()
    sentence = str(error.value)
    assert len(sentence) > 20
    assert "\n" not in sentence


def test_there_are_many() -> None:
    assert len(CALLS) >= 150
