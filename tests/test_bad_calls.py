"""Public Python functions given wrong sizes, NaN, wrong types or unknown names: a DynidentError with one sentence, only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.identify.metrics import evaluate
from dynident.mechanics import (
    Motion,
    coriolis_matrix,
    energy_regressor,
    forward_dynamics,
    forward_kinematics,
    frame_motion,
    gravity,
    inverse_dynamics,
    jacobian,
    mass_matrix,
    momentum_regressor,
    regressor,
    regressor_rows,
)
from dynident.mechanism import Body, Joint, Loop, Mechanism
from dynident.validate import cross_validate, hold_out, judge, split, time_blocks
from random_mechanisms import build, every_kind, random_motion
from refusals import refused

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
        "from_motion: narrow efforts": lambda: di.Regression.from_motion(ROBOT, MOTION, Q[:, :1]),
        "from_motion: NaN efforts": lambda: di.Regression.from_motion(ROBOT, MOTION, with_nan(Q)),
        "from_motion: short efforts": lambda: di.Regression.from_motion(ROBOT, MOTION, Q[:9]),
        "from_motion: text as efforts": lambda: di.Regression.from_motion(ROBOT, MOTION, "v"),
        "from_motion: text as a robot": lambda: di.Regression.from_motion("x", MOTION, TAU),
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


CALLS = {**robots(), **logs(), **fits()}


@pytest.mark.filterwarnings("ignore::dynident.errors.DynidentWarning")
@pytest.mark.parametrize("name", CALLS)
def test_a_bad_call_gives_one_sentence(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(CALLS[name])


def test_there_are_many() -> None:
    assert len(CALLS) >= 120


# ---- mechanics -------------------------------------------------------------------------------------------------------

ARM = build([("revolute", -1, False), ("prismatic", 0, False), ("revolute", 1, False)], 1, ("ia", "fv"))
SHORT = random_motion(ARM, 5)
WIDE = random_motion(every_kind(), 5)
POSITIONS: dict[str, Callable[[Mechanism, object], object]] = {
    "mass_matrix": mass_matrix,
    "coriolis_matrix": lambda r, q: coriolis_matrix(r, q, SHORT.v),
    "coriolis_matrix v": lambda r, v: coriolis_matrix(r, SHORT.q, v),
    "gravity": gravity,
    "forward_kinematics": lambda r, q: forward_kinematics(r, q, "L1"),
    "forward_kinematics of the base": lambda r, q: forward_kinematics(r, q, "base"),
    "jacobian": lambda r, q: jacobian(r, q, "L1"),
    "jacobian of the base": lambda r, q: jacobian(r, q, "base"),
    "forward_dynamics q": lambda r, q: forward_dynamics(r, q, SHORT.v, SHORT.a),
    "forward_dynamics v": lambda r, v: forward_dynamics(r, SHORT.q, v, SHORT.a),
    "forward_dynamics tau": lambda r, tau: forward_dynamics(r, SHORT.q, SHORT.v, tau),
}
MOTIONS: dict[str, Callable[[Mechanism, Motion], object]] = {
    "inverse_dynamics": inverse_dynamics,
    "regressor": regressor,
    "regressor_rows": regressor_rows,
    "energy_regressor": energy_regressor,
    "momentum_regressor": momentum_regressor,
    "frame_motion": lambda r, m: frame_motion(r, m, "L1"),
    "frame_motion of the base": lambda r, m: frame_motion(r, m, "base"),
}


@pytest.mark.parametrize(
    ("t", "q", "v", "a", "word"),
    [
        (SHORT.t, SHORT.q[:4], SHORT.v, SHORT.a, "(4, 3)"),
        (SHORT.t, SHORT.q, SHORT.v[:, :2], SHORT.a, "v has shape"),
        (SHORT.t, SHORT.q, SHORT.v, SHORT.a[None], "a has shape"),
        (SHORT.t[:3], SHORT.q, SHORT.v, SHORT.a, "3 samples"),
        (SHORT.t[:, None], SHORT.q, SHORT.v, SHORT.a, "one-dimensional"),
        (SHORT.t, SHORT.q[None], SHORT.v[None], SHORT.a[None], "(1, 5, 3)"),
        (SHORT.t[::-1], SHORT.q, SHORT.v, SHORT.a, "does not increase"),
        (np.zeros(5), SHORT.q, SHORT.v, SHORT.a, "does not increase"),
        ([0.0, 1.0, 1.0, 2.0, 3.0], SHORT.q, SHORT.v, SHORT.a, "sample 2"),
        ([0.0, np.nan, 2.0, 3.0, 4.0], SHORT.q, SHORT.v, SHORT.a, "t is not finite"),
        (SHORT.t, with_nan(SHORT.q), SHORT.v, SHORT.a, "q is not finite at sample 2"),
        (SHORT.t, SHORT.q, with_nan(SHORT.v), SHORT.a, "v is not finite"),
        (SHORT.t, SHORT.q, SHORT.v, with_nan(SHORT.a), "a is not finite"),
        (SHORT.t, SHORT.q, SHORT.v, np.where(np.isnan(with_nan(SHORT.a)), np.inf, SHORT.a), "a is not finite"),
        (["a"] * 5, SHORT.q, SHORT.v, SHORT.a, "t is not"),
        (SHORT.t, [["x"] * 3] * 5, SHORT.v, SHORT.a, "q is not"),
        (SHORT.t, SHORT.q, [[1.0], [1.0, 2.0]], SHORT.a, "v is not"),
        (SHORT.t, SHORT.q, SHORT.v, SHORT.a * 1j, "a is not"),
        (SHORT.t, None, SHORT.v, SHORT.a, "q"),
        (None, SHORT.q, SHORT.v, SHORT.a, "t"),
        (0.0, 1.0, 1.0, 1.0, "q has shape"),
    ],
)
def test_a_motion_that_is_not_one(t: object, q: object, v: object, a: object, word: str) -> None:
    refused(lambda: Motion(t, q, v, a), "motion", word)


def test_a_motion_is_sliced_by_slices_only() -> None:
    refused(lambda: SHORT[2], "slice")
    assert len(SHORT[1:3]) == 2


@pytest.mark.parametrize("name", MOTIONS)
def test_a_motion_of_another_robot(name: str) -> None:
    refused(lambda: MOTIONS[name](ARM, WIDE), "(5, 17)", "3 coordinates")


@pytest.mark.parametrize("name", MOTIONS)
def test_something_else_than_a_motion_or_a_robot(name: str) -> None:
    for value in ((SHORT.t, SHORT.q, SHORT.v, SHORT.a), None, 3.0, "motion", SHORT.q, LOG):
        refused(lambda x=value: MOTIONS[name](ARM, x), "Motion")
    for value in (None, "robot", SHORT):
        refused(lambda x=value: MOTIONS[name](x, SHORT), "Mechanism")


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize(
    "values",
    [
        SHORT.q[:, :2],
        SHORT.q[0, :2],
        SHORT.q[None],
        np.array(1.0),
        with_nan(SHORT.q),
        SHORT.q + np.inf,
        "abc",
        [["a", "b", "c"]],
        SHORT.q * 1j,
        None,
        [[1], [1, 2]],
    ],
    ids=["narrow", "short", "3d", "scalar", "nan", "inf", "text", "texts", "complex", "none", "ragged"],
)
def test_positions_that_are_not_positions(name: str, values: object) -> None:
    refused(lambda: POSITIONS[name](ARM, values))


def test_arrays_of_different_lengths() -> None:
    refused(lambda: coriolis_matrix(ARM, SHORT.q, SHORT.v[:2]), "2 samples", "5")
    refused(lambda: forward_dynamics(ARM, SHORT.q, SHORT.v[:2], SHORT.a), "5, 2 and 5")


def test_unknown_frames_and_references() -> None:
    for call in (
        lambda: forward_kinematics(ARM, SHORT.q, "hand"),
        lambda: frame_motion(ARM, SHORT, "hand"),
        lambda: jacobian(ARM, SHORT.q, "hand"),
        lambda: inverse_dynamics(ARM, SHORT, wrenches={"hand": np.zeros(6)}),
        lambda: forward_dynamics(ARM, SHORT.q, SHORT.v, SHORT.a, wrenches={"hand": np.zeros(6)}),
    ):
        refused(call, "no link 'hand'", "L1")
    refused(lambda: jacobian(ARM, SHORT.q, "L1", "body"), "'body'", "world")


@pytest.mark.parametrize(
    "wrenches",
    [{"L1": np.zeros(3)}, {"L1": np.zeros((4, 6))}, {"L1": [np.nan] * 6}, {"L1": "push"}, {"L1": None}, [np.ones(6)]],
)
def test_wrenches_that_are_not_wrenches(wrenches: object) -> None:
    refused(lambda: inverse_dynamics(ARM, SHORT, wrenches=wrenches), "wrench")
    refused(lambda: forward_dynamics(ARM, SHORT.q, SHORT.v, SHORT.a, wrenches=wrenches), "wrench")


@pytest.mark.parametrize(
    "parameters",
    [
        np.zeros(3),
        np.zeros((36, 1)),
        1.0,
        "mass",
        np.full(36, np.nan),
        [None] * 36,
        every_kind().parameters,
        ARM.with_terms(("ia",)).parameters,
        ARM.parameters.replace({"m_L1": np.inf}),
    ],
    ids=["short", "column", "scalar", "text", "nan", "none", "other robot", "other terms", "inf"],
)
def test_parameters_that_do_not_belong_to_the_robot(parameters: object) -> None:
    assert len(ARM.parameters) == 36
    for call in (
        lambda: inverse_dynamics(ARM, SHORT, parameters),
        lambda: mass_matrix(ARM, SHORT.q, parameters),
        lambda: coriolis_matrix(ARM, SHORT.q, SHORT.v, parameters),
        lambda: gravity(ARM, SHORT.q, parameters),
        lambda: forward_dynamics(ARM, SHORT.q, SHORT.v, SHORT.a, parameters),
    ):
        refused(call, "parameter")


def test_parameters_for_a_robot_that_has_none() -> None:
    robot = Mechanism("ghost", (Body("base"), Body("link")), (Joint("j", "revolute", "base", "link"),), terms=())
    motion = Motion(0.0, [0.1], [0.2], [0.3])
    refused(lambda: inverse_dynamics(robot, motion, [1.0]), "parameters have shape (1,)")
    assert not inverse_dynamics(robot, motion).any()
    assert regressor(robot, motion).shape == (1, 1, 0)


def test_loops_that_cannot_close_are_named() -> None:
    robot = replace(ARM, loops=(Loop("cut", "revolute", "L2", "base"),))
    for name, f in POSITIONS.items():
        if "base" not in name:
            refused(lambda f=f: f(robot, SHORT.q), "loop 'cut'", "home")
    for f in MOTIONS.values():
        refused(lambda f=f: f(robot, SHORT), "loop 'cut'")
