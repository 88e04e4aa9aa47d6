"""`di.excite`: a plan from a robot in one call, as the command does it."""

from __future__ import annotations

import json

import pytest

import dynident as di
from dynident.excitation import Experiment, Plan
from dynident.trajectory import Fourier

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
