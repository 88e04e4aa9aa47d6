"""Campaigns on a virtual robot: killed and resumed they are the same to the last bit, faults begin when they should."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_robots import CUBIC
from warm_robots import JOINTS, balanced_arm6, warm_arm6

import dynident as di
from dynident.errors import DynidentError
from dynident.excitation import Plan, Stage
from dynident.trajectory import Moves
from dynident_lab import testbench
from dynident_lab.campaigns import read_cycles
from dynident_lab.link import Fault, Plant, Settings, simulate_campaign, virtual
from dynident_lab.thermal import friction_plateaus

FOLLOW = Plant.follow
THERE = np.array([0.8, 0.5, -0.4, 0.6, 0.5, 1.0])


class Killed(Exception):
    """What ends a run in the middle."""


def plan(cycles: int = 3) -> Plan:
    stages = [Stage("move", "training", Moves([0 * THERE, THERE, 0 * THERE], [0.8, 0.8]))]
    return Plan("arm6", JOINTS, stages, cycles, 100.0, 3.0 * np.ones(6), 10.0 * np.ones(6), 0 * THERE, 4.0)


@pytest.fixture(scope="module")
def machine():
    return warm_arm6()


def _killed_within_the_first_cycle(machine, tmp_path, whole, fault, monkeypatch):
    calls = []

    def follow(plant, motion):
        calls.append(len(motion))
        if len(calls) == 3:
            raise Killed
        return FOLLOW(plant, motion)

    with monkeypatch.context() as patched:
        patched.setattr(Plant, "follow", follow)
        patched.setattr(virtual, "PIECE", 0.3)
        with pytest.raises(Killed):
            simulate_campaign(tmp_path / "torn", plan(), machine, seed=3, faults=fault)
    assert list((tmp_path / "torn").glob("*_cycle_000_*"))  # half a cycle, in good order
    with pytest.raises(DynidentError, match="was started with seed 3, not 4; give the same"):
        simulate_campaign(tmp_path / "torn", plan(), machine, seed=4, faults=fault)
    assert simulate_campaign(tmp_path / "torn", plan(), machine, seed=3, faults=fault) == 3
    torn = di.Log.read(tmp_path / "torn")
    for signal in ("t", "position", "effort", "temperature"):
        assert np.array_equal(getattr(whole, signal), getattr(torn, signal))
    (tmp_path / "torn" / "campaign.json").unlink()
    with pytest.raises(DynidentError, match=r"recordings of a campaign but no campaign\.json"):
        di.Log.read(tmp_path / "torn")


def test_a_run_that_was_killed_goes_on_to_the_last_bit(machine, tmp_path, monkeypatch):
    fault = (Fault.parse("joint1=1.32@4s"),)
    assert simulate_campaign(tmp_path / "whole", plan(), machine, seed=3, faults=fault) == 3

    def kill(done: int, whole: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        simulate_campaign(tmp_path / "parts", plan(), machine, seed=3, faults=fault, progress=kill)
    (tmp_path / "parts" / "00001_cycle_001_0.seg").write_bytes(b"torn")  # what a kill may leave of the next cycle
    assert simulate_campaign(tmp_path / "parts", plan(), machine, seed=3, faults=fault) == 2
    whole, parts = (di.Log.read(tmp_path / name) for name in ("whole", "parts"))
    for signal in ("t", "position", "effort", "temperature"):
        assert np.array_equal(getattr(whole, signal), getattr(parts, signal))
    assert simulate_campaign(tmp_path / "parts", plan(), machine, seed=3, faults=fault) == 0
    _killed_within_the_first_cycle(machine, tmp_path, whole, fault, monkeypatch)
    # Warmth goes on from cycle to cycle.
    cycles = list(whole.cycles().values())
    assert cycles[2].temperature[0, 0] > cycles[1].temperature[0, 0] > 20.0
    # The fault lifts the friction of its joint by 32 % when it begins, with the second cycle.
    inside = {k: (log.t - log.t[0] > 0.5) & (log.t - log.t[0] < 0.7) for k, log in enumerate(cycles)}
    speed = np.gradient(cycles[0].position[:, 0], cycles[0].t)[inside[0]]
    lifted = [cycles[k].effort[inside[k], 0].mean() - cycles[0].effort[inside[0], 0].mean() for k in (1, 2)]
    assert lifted == pytest.approx([0.32 * machine.friction["joint1"](speed).mean()] * 2, rel=0.15)
    lazy = list(read_cycles(tmp_path / "whole"))
    assert [part.recordings[0].cycle for part in lazy] == [0, 1, 2]
    for one, log in zip(lazy, cycles, strict=True):
        assert np.array_equal(one.position, log.position) and np.array_equal(one.t, log.t)
        assert np.array_equal(one.stages()["move"][0].effort, whole.stages()["move"][one.recordings[0].cycle].effort)


def test_what_does_not_belong_together_is_refused(machine, tmp_path):
    folder = tmp_path / "run"
    simulate_campaign(folder, plan(1), machine)
    for change, words in (
        ({"plan": plan(2)}, "with plan .*, not "),
        ({"settings": Settings(cycles=2)}, "with cycles .*, not "),
        ({"seed": 5}, "was started with"),
        ({"faults": [Fault("joint1", 2.0)]}, "was started with"),
    ):
        given = {"plan": plan(1), "robot": machine, **change}
        with pytest.raises(DynidentError, match=words):
            simulate_campaign(folder, **given)
    with pytest.raises(DynidentError, match="joint 'elbow' has no friction law of its own; those with one are joint1"):
        simulate_campaign(tmp_path / "new", plan(1), machine, faults=[Fault("elbow", 2.0)])
    (folder / "state.json").write_text(json.dumps({"asked": {}, "done": 1, "clock": 0.0, "plant": None}))
    with pytest.raises(DynidentError, match="was started with"):
        simulate_campaign(folder, plan(1), machine)


@pytest.mark.parametrize("text", ["joint1", "joint1=x", "joint1=-2", "joint1=1.3@soon", "=2"])
def test_faults_are_read_or_explained(text):
    with pytest.raises(DynidentError):
        Fault.parse(text)


def test_a_fault_of_a_text():
    assert Fault.parse("joint1 = 1.32 @ 60min") == Fault("joint1", 1.32, 3600.0)
    assert Fault.parse("a=2") == Fault("a", 2.0, 0.0)


@pytest.mark.filterwarnings("ignore::dynident.errors.DynidentWarning")  # the motion is short and jerky
def test_a_campaign_is_studied_cycle_by_cycle(machine, tmp_path):
    """Cold friction, powers and the law of every cycle are those of the machine."""
    low, high = np.array([[-1.0], [1.0]]) * np.full(6, 0.9)
    plateaus = friction_plateaus(low, high, np.ones(6), np.full(6, 8.0), (0.25, 0.5, 0.75, 1.0), 0.5)
    moves = Moves([0 * THERE, THERE, -0.5 * THERE, 0 * THERE], [0.8, 1.2, 0.8])
    stages = [Stage("friction", "friction", plateaus), Stage("move", "training", moves)]
    wanted = Plan("arm6", JOINTS, stages, 2, 100.0, 3.0 * np.ones(6), 10.0 * np.ones(6), 0 * THERE)
    simulate_campaign(tmp_path / "c", wanted, machine, seed=1)
    robot = balanced_arm6()
    study = testbench.campaign_study(robot, tmp_path / "c", by="all")
    truth = CUBIC
    assert not study.heating and all("measure more often or longer" in note for note in study.notes)  # two cycles are few
    for k, joint in enumerate(study.study.joints):
        speed, friction = np.array([p.speed for p in joint.curves.plateaus]), np.array(joint.curves.friction)
        for level in joint.curves.levels:  # half the difference of the directions: gravity may keep a constant
            there, back = (friction[np.abs(side * speed - level) < 0.01].mean() for side in (1.0, -1.0))
            assert 0.5 * (there - back) == pytest.approx(np.polynomial.polynomial.polyval(level, truth[k]), rel=0.05)
    curves = study.study.joints[0].curves
    fits, last = testbench.identify_cycles(robot, tmp_path / "c")
    assert fits.cycles == (0, 1) and np.all(fits.training < 0.1)
    assert last.mechanism.name == robot.name
    half = float(fits.t[1])
    times, ratio, std = testbench.normalised_friction(curves, [(0.0, half), (half, 1e9)])
    assert ratio[0] == pytest.approx(1.0) and times[1] - times[0] == pytest.approx(half, rel=0.05)
    assert ratio[1] < 1.0 + 3.0 * std[1]  # it has warmed up
    assert testbench.plot_sweeps(curves).axes


def test_conditions_of_a_start_are_those_of_a_controller(machine, tmp_path, monkeypatch):
    """The rest begins the wait after the last motion; a robot whose surroundings are too warm never starts."""
    settings = Settings(repetitions=2, cycles=1, rest=30.0, idle=50.0)
    simulate_campaign(tmp_path / "c", plan(), machine, settings)
    log = di.Log.read(tmp_path / "c")
    first, second = (log.t[part.rows] for part in log.recordings if part.kind == "cycle")
    assert abs(second[0] - first[-1] - settings.idle) < 1e-6
    monkeypatch.setattr(virtual, "LONGEST_COOLING", 600.0)
    with pytest.raises(DynidentError, match="give a limit above the ambient temperature"):
        simulate_campaign(tmp_path / "warm", plan(), machine, Settings(below=-10.0))
