"""`di.excite`: a plan from a robot in one call, as the command does it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dynident as di
from dynident.excitation import Design, Experiment, Plan
from dynident.trajectory import Fourier
from dynident.trajectory.curves import Curve

ARM = di.examples.arm6().robot
SEARCH = {"iterations": 2, "starts": 1, "seed": 3}


@pytest.fixture(scope="module")
def made() -> Experiment:
    return di.excite(ARM, floor=0.0, family=Fourier(0.2, 3), **SEARCH)


def test_the_motion_keeps_its_limits_and_says_what_was_assumed(made: Experiment) -> None:
    assert min(made.design.margins().values()) >= 0.0
    assert made.source == "those of the description" and any("kept apart as capsules" in text for text in made.notes)
    numbers = made.numbers()
    assert numbers["plans"]["plan"]["identity"] == made.plans["plan"].identity
    assert made.plans["plan"].identity in made.summary()
    assert made.improved == any(
        abs(numbers["after"][name] - before) > 1e-3 * abs(before) for name, before in numbers["before"].items()
    )


@pytest.mark.filterwarnings("ignore:no figures were written")  # matplotlib is an extra
def test_what_is_written_is_read_back(made: Experiment, tmp_path) -> None:
    files = {path.name for path in made.write(tmp_path)}
    assert {"plan.json", "design.json", "motion.csv", "motion_ros.json"} <= files
    assert Plan.load(tmp_path / "plan.json").identity == made.plans["plan"].identity
    assert json.loads((tmp_path / "design.json").read_text())["after"] == made.numbers()["after"]
    again = di.excite(ARM, floor=0.0, start=tmp_path / "plan.json", **SEARCH)
    assert again.design.trajectory.family == made.design.trajectory.family


def test_validation_starts_near_the_training_motion_if_nothing_else_can_be_reached(monkeypatch) -> None:
    """Every join but a short one breaks a limit: no plan was found."""
    made = di.excite(ARM, family=Fourier(0.2, 3), **SEARCH)
    plan, home = Design.plan, made.plans["plan"].home

    def short_joins_only(self: Design, validation: Curve, **options: object) -> Plan:
        if np.abs(validation([0.0])[0][0] - home).max() > 0.5:
            raise di.DynidentError("plan: a join between stages breaks a limit")
        return plan(self, validation, **options)

    monkeypatch.setattr(Design, "plan", short_joins_only)
    near = di.excite(ARM, family=Fourier(0.2, 3), **SEARCH).plans["plan"]
    assert [stage.purpose for stage in near.stages] == ["training", "validation"]
    moved = np.ptp(near.stages[1].curve(np.linspace(0.0, 5.0, 200))[0], axis=0)
    assert moved.max() > 0.1  # rad: it is still a motion


def test_a_payload_needs_two_plans() -> None:
    made = di.excite(ARM, payload=2.0, family=Fourier(0.2, 3), **SEARCH)
    assert list(made.plans) == ["plan_without", "plan_with"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"repetitions": 0}, "repetitions=0; give at least one"),
        ({"complete": True, "payload": 1.0}, "two different experiments"),
        ({"payload_link": "link6"}, "give its mass with payload= too"),
    ],
)
def test_what_does_not_go_together_is_refused(options, sentence) -> None:
    with pytest.raises(di.DynidentError, match=sentence):
        di.excite(ARM, **options)


GRIPPER = """<robot name="hand"><link name="base"/><link name="arm"><inertial><origin xyz="0 0 0.2"/><mass value="2"/>
<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/></inertial></link>
<link name="finger"><inertial><mass value="0.1"/>
<inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial></link>
<joint name="lift" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.5"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" velocity="2" effort="80"/></joint>
<joint name="finger_joint" type="prismatic"><parent link="arm"/><child link="finger"/><origin xyz="0 0 0.4"/><axis xyz="1 0 0"/>
<limit lower="0" upper="0.04" velocity="0.1" effort="20"/></joint></robot>"""


def test_half_speed_margin_floor_and_a_held_gripper_are_the_defaults(tmp_path):
    (tmp_path / "hand.urdf").write_text(GRIPPER, encoding="utf-8")
    made = di.excite(tmp_path / "hand.urdf", iterations=3, starts=1)
    (plan,) = made.plans.values()
    motion = plan.motion()
    assert plan.coordinates == ("lift",) and any("finger_joint held still" in text for text in made.notes)
    assert 0.3 < np.max(np.abs(motion.v)) <= 1.0 and np.max(np.abs(motion.q)) <= 0.9  # of 2 rad/s, and 5 % of 2 rad at each end
    assert any(name.startswith("floor under") for name in made.design.margins())
    fast = di.excite(tmp_path / "hand.urdf", iterations=3, starts=1, speed=1.0, grippers=True)
    assert set(next(iter(fast.plans.values())).coordinates) == {"lift", "finger_joint"}
    assert "one run makes" in made.summary().splitlines()[0] and 1 <= made.repetitions <= 10
    slow = plan.slowed(0.1)
    again = type(plan).from_dict(slow.to_dict())
    assert again.identity == slow.identity != plan.identity
    assert slow.curve.duration > 8.0 * plan.curve.duration
    (first, *_), (then, *_) = plan.schedule(), slow.schedule()
    fraction = np.linspace(0.0, 1.0, 50)
    one, two = ((p.curve(e["start"] + fraction * (e["end"] - e["start"]))) for p, e in ((plan, first), (slow, then)))
    np.testing.assert_allclose(one[0], two[0], atol=1e-9)  # the same positions ...
    np.testing.assert_allclose(0.1 * one[1], two[1], atol=1e-9)  # ... at a tenth of the speed


def test_the_plan_page_shows_robot_limits_and_deviations(tmp_path):
    (tmp_path / "hand.urdf").write_text(GRIPPER, encoding="utf-8")
    made = di.excite(tmp_path / "hand.urdf", iterations=3, starts=1)
    text = di.report.write_plan_page(tmp_path / "plan.html", made).read_text(encoding="utf-8")
    assert "one run makes" in text and "lift, position" in text and "Std, one run" in text
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert data["scene"]["capsules"] and data["scene"]["floor"] == 0.0
    assert [(s["low"], s["high"]) for s in data["logs"][0]["series"]] == [
        pytest.approx((-0.9, 0.9)),
        pytest.approx((-1.0, 1.0)),
    ]
