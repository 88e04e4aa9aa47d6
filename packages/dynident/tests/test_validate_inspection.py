"""What a person would suspect of a log: another mounting, delays, frozen and clipped channels, degrees."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.population import population
from identify_cases import LWR, RRR, UR10, arm, doubts_of, simulated_log, smooth

import dynident as di
from dynident.errors import LogError
from dynident.identify import MAP, Regression
from dynident.validate.diagnosis.description import other_gravities, turned_gravity
from dynident.validate.diagnosis.inspection import Inspection, inspect_fit, suspicions, with_findings
from dynident.validate.diagnosis.sample import fault

pytestmark = pytest.mark.filterwarnings("ignore::dynident.DynidentWarning")


def said(log, robot=None):
    return "; ".join(doubts_of(MAP().fit(Regression.from_logs(robot or arm(RRR), [log])).result_))


def log_of(robot=None, **change):
    return replace(simulated_log(robot or arm(RRR), noise=0.05), **change)


@pytest.mark.parametrize(
    ("down", "told"),
    [
        (
            (0.0, 0.0, 9.81),
            "gravity acts along 0,0,9.81 in the root frame, 180 degrees{} from a ceiling?)",
        ),
        (
            (0.0, 9.81, 0.0),
            "gravity acts along 0,9.81,0 in the root frame, 90 degrees{} on a wall?)",
        ),
        ((-3.36, 0.0, -9.22), "gravity acts along -3.3"),
    ],
)
def test_a_robot_that_is_mounted_otherwise_is_told_and_the_advice_mends_it(down, told):
    described = arm(RRR)
    log = log_of(described.with_gravity(down))
    assert told.format(" from the described 0,0,-9.81 (robot mounted") in said(log, described)
    assert said(log, described.with_gravity(down)) == ""


@pytest.mark.parametrize(("heavier", "found"), [(0.3, False), (0.5, True), (2.2, True), (3.0, False)])
def test_wrong_masses_do_not_hide_the_mounting_unless_they_are_absurd(heavier, found):
    """A slow motion shows little but gravity: half or twice the described masses are believed, a third or thrice are not."""
    described, motion = arm(RRR), smooth(3, 4000)
    slow = di.Motion(20.0 * motion.t, motion.q, motion.v / 20.0, motion.a / 400.0)
    bodies = np.arange(len(described.parameters)) < described.tree.inertias.size
    true = described.with_parameters(described.parameters.replace(described.parameters.values * np.where(bodies, heavier, 1.0)))
    other = other_gravities(described, slow, di.inverse_dynamics(true.with_gravity((0.0, 9.81, 0.0)), slow))
    assert bool(other) == found
    for direction in other:
        np.testing.assert_allclose(direction, [0.0, 9.81, 0.0], atol=0.02)


def test_turned_efforts_are_not_taken_for_a_turned_robot():
    log = log_of()
    assert said(replace(log, effort=-log.effort)).startswith("the efforts of all joints have the opposite sign")


@pytest.mark.parametrize("joints", [[0, 1, 2], [1]])
def test_late_efforts_are_told_and_the_advice_mends_them(joints):
    log = log_of()
    late = log.effort.copy()
    late[10:, joints] = log.effort[:-10, joints]  # 50 ms
    faulty = replace(log, effort=late)
    found = said(faulty)
    assert found.startswith(f"the efforts of {'all joints' if len(joints) == 3 else 'joint_2'} are ")
    assert float(found.partition("(delay=")[2].rstrip(")")) == pytest.approx(0.05, abs=0.005)
    table = {"t": faulty.t, "q": faulty.position, "tau": faulty.effort}
    mended = di.Log.read(table, "joint_torque", delay=[0.05 * (j in joints) for j in range(3)])
    assert said(mended) == ""
    assert len(mended) == len(log) - 10


def test_delays_beyond_the_log_are_refused():
    table = {"t": np.arange(100) / 100, "q": np.zeros((100, 1)), "tau": np.zeros((100, 1))}
    with pytest.raises(di.DynidentError, match="less than the log has"):
        di.Log.read(table, "joint_torque", delay=2.0)
    with pytest.raises(di.DynidentError, match="delay has shape"):
        di.Log.read(table, "joint_torque", delay=[0.1, 0.2])


def test_frozen_channels_and_clipped_efforts_are_no_healthy_data():
    log = log_of()
    frozen = log.effort.copy()
    frozen[1000:2000, 1] = frozen[1000, 1]
    assert said(replace(log, effort=frozen)).startswith("the effort of joint_2 is constant at ")
    limit = 0.6 * np.max(np.abs(log.effort[:, 1]))
    clipped = np.column_stack([log.effort[:, 0], np.clip(log.effort[:, 1], -limit, limit), log.effort[:, 2]])
    assert said(replace(log, effort=clipped)).startswith("the efforts of joint_2 saturate at")


def test_degrees_are_known_without_limits_of_the_joints():
    log = log_of()
    assert (
        said(replace(log, position=np.degrees(log.position))) == "positions look like degrees taken for radians (position=deg)"
    )


def test_one_wrong_gain_does_not_accuse_other_joints():
    log = di.examples.arm6().run
    found = said(replace(log, effort=log.effort * [100, 1, 1, 1, 1, 1]), di.examples.arm6().robot)
    assert "joint1 are 100 times" in found
    assert not any(f"joint{k} are" in found for k in range(2, 7))


def test_a_gain_of_two_in_a_short_log_of_small_motions_is_told_with_its_number():
    case = list(population(4, seed=1, only=("elbow 4",)))[3]
    assert said(case.train, case.described) == ""
    for factor in (2.0, 0.5):
        found = said(replace(case.train, effort=case.train.effort * [1, 1, factor, 1]), case.described)
        told = re.search(r"the efforts of joint_3 (?:are|look about) ([\d.]+) times", found)
        assert told is not None and float(told[1]) == pytest.approx(factor, rel=0.2)


def test_gravity_of_the_command_line(tmp_path):
    from dynident.cli import run

    di.examples.arm6(tmp_path)
    here = [str(tmp_path / "robot.urdf"), "--json"]
    assert run(["describe", *here, "--gravity=0,0,9.81"]) == 0
    assert run(["describe", *here, "--gravity", "-1,0,-9.7"]) == 0
    with pytest.raises(di.DynidentError, match="--gravity is 'up'"):
        run(["describe", *here, "--gravity", "up"])


def test_a_slow_robot_on_the_ceiling_is_told_by_its_description():
    """Its bodies could as well be lighter than nothing; its friction says that the efforts are not turned."""
    robot = arm(RRR)
    motion = simulated_log(robot, seconds=40.0)
    slow = di.Motion(
        4 * motion.t, motion.position, np.gradient(motion.position, 4 * motion.t, axis=0), np.zeros(motion.position.shape)
    )
    effort = di.inverse_dynamics(robot.with_gravity((0, 0, 9.81)), slow)
    effort = effort + np.random.default_rng(1).normal(size=effort.shape) * 0.05
    found = said(di.Log(t=slow.t, joints=robot.coordinate_names, position=slow.q, effort=effort, effort_kind="joint_torque"))
    assert found.startswith("gravity acts along 0,0,9.81")


def test_whole_joints_that_are_exchanged_are_told():
    log = log_of()
    order = [0, 2, 1]
    found = said(replace(log, position=log.position[:, order], effort=log.effort[:, order]))
    assert found.startswith("the positions and efforts of joint_2 and joint_3 look exchanged")


@pytest.mark.parametrize("degrees", [90, 25])
def test_a_wrong_zero_that_joints_contradict_is_told_whatever_the_description(degrees):
    """Axes beyond joint 3 are not parallel to it: no body can take up the angle."""
    robot = arm(UR10[:5], prior=2)
    log = simulated_log(robot, noise=0.005)
    silent = robot.with_parameters(robot.parameters.replace(np.zeros(len(robot.parameters))))
    assert said(log, silent) == ""
    found = said(replace(log, position=log.position + np.radians([0.0, 0.0, degrees, 0.0, 0.0])), silent)
    assert found.startswith(f"the zero of joint_3 looks {degrees} degrees off; add -{degrees} degrees to its positions")


def test_a_wrong_zero_that_bodies_could_take_up_is_told_by_the_description():
    robot = arm(RRR)
    log = log_of(robot)
    q = log.position + np.array([0.0, np.pi / 2, 0.0])
    assert "the zero of joint_2 looks 90 degrees off; add -90 degrees" in said(replace(log, position=q), robot)
    turned = said(replace(log, effort=-log.effort), robot)  # looks like 180 degrees, but for the friction
    assert turned.startswith("the efforts of all joints have the opposite sign")


def test_milliseconds_taken_for_seconds_are_told_before_all_else():
    log = log_of()
    slow = replace(log, t=1000.0 * log.t)
    sentence = "says 0.2 samples per second; are its stamps milliseconds taken for seconds (time=ms)?"
    assert di.inspect(slow, arm(RRR)).findings[0].sentence.endswith(sentence)
    with pytest.raises(LogError, match=re.escape(sentence)):
        Regression.from_log(arm(RRR), slow)


def test_columns_in_another_order_are_not_taken_for_a_wrong_gain():
    """Three joints change places: that is two exchanges, one after the other."""
    robot = arm(LWR, prior=2)
    motion = simulated_log(robot)
    q, t = motion.position, 5.0 * motion.t
    v = np.gradient(q, t, axis=0)
    effort = di.inverse_dynamics(robot, di.Motion(t, q, v, np.gradient(v, t, axis=0)))
    log = di.Log(
        t=t, joints=robot.coordinate_names, position=q[:, [0, 1, 3, 4, 2, 5, 6]], effort=effort, effort_kind="joint_torque"
    )
    found = said(log, robot)
    assert found.startswith(
        "the positions of joint_3 and joint_4 look exchanged; check the order of the columns; the positions of"
    )
    assert "gain" not in found


def test_bodies_that_are_described_too_light_accuse_no_joint():
    """A tool that the description does not have weighs most at the wrist; the fit mends it, and the summary tells it."""
    case = next(iter(population(1, seed=3, only=("elbow 4",))))
    names, values = case.true.parameters.names, case.true.parameters.values
    factor = np.array([0.25 if "link_4" in name else 0.6 for name in names])
    factor[case.true.tree.inertias.size :] = 0.0
    described = case.true.with_parameters(case.true.parameters.replace(factor * values))
    fit = MAP().fit(Regression.from_logs(described, [case.train])).result_
    assert doubts_of(fit) == ()
    (masses,) = (finding for finding in inspect_fit(fit)[0].findings if finding.kind == "masses")
    assert "times what the description needs (joint_1" in masses.sentence
    assert "its masses look too small (is a tool or payload missing?)" in masses.sentence
    assert masses in with_findings(fit).notes


def test_suspicions_of_several_logs_are_told_once_and_name_the_log():
    good, other = simulated_log(arm(RRR), noise=0.05), simulated_log(arm(RRR), seed=5, noise=0.05)
    logs = [replace(log, name=name) for log, name in ((good, "one"), (other, "two"))]
    turned = [replace(log, effort=log.effort * [1.0, -1.0, 1.0]) for log in logs]
    sentence = "the efforts of joint_2 have the opposite sign of what other joints or the description need; invert them"

    def doubts(*of):
        return doubts_of(MAP().fit(Regression.from_logs(arm(RRR), of)).result_)

    assert doubts(turned[0], logs[1]) == (f"{sentence} (gain=-1) (in one)",)
    assert doubts(*turned) == (f"{sentence} (gain=-1)",)
    strong = [replace(log, effort=log.effort * [1.0, k, 1.0]) for k, log in zip((5.0, 6.0), logs, strict=True)]
    assert len(doubts(*strong)) == 1  # the same but for the number


def test_a_short_log_is_believed_only_if_others_say_the_same():
    text = "the efforts of joint_2 have the opposite sign"
    lengths = {"a": 1.0, "b": 2.0, "c": 2.5}

    def told(*logs, long=()):
        turned = fault("sign", "effort:joint_2", text)
        found = suspicions(
            [Inspection(name, (turned,) if name in logs else (), s, name not in long) for name, s in lengths.items()]
        )
        assert all((each.kind, each.severity) == ("sign", "error") for each in found)
        return tuple(each.sentence for each in found)

    assert told("a") == ()
    assert told("b") == ()
    assert told("a", "b") == (f"{text} (in a, b)",)  # more than half of the time
    assert told("a", "b", "c") == (text,)
    assert told("a", long="a") == (f"{text} (in a)",)  # a log that shows the whole model contradicts itself for a reason


@pytest.mark.parametrize(
    ("down", "words"), [((0.0, 0.0, 9.81), "from a ceiling"), ((9.81, 0.0, 0.0), "on a wall"), ((4.9, 0.0, -8.5), "on a slope")]
)
def test_the_mounting_is_named(down, words):
    assert f"robot mounted {words}?" in turned_gravity(arm(RRR), np.array(down)).sentence
