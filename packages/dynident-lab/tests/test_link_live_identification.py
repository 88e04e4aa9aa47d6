"""Live identification: pieces on the simulated UR5e, without a clock; and once through RTDE."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dynident.cli import run as command
from dynident.errors import DynidentError, LinkError
from dynident.excitation.experiment import PAYLOAD, motion_limits
from dynident_lab.campaigns.log import read_campaign
from dynident_lab.link import Campaign, Emulator, Goal, RtdeClient, RtdeServer, Settings, identify_live, open_controller, ur5e
from dynident_lab.link.live_identification import live_logs
from dynident_lab.link.virtual import simulate_campaign

MASS, COM, INERTIA = 2.0, (0.02, -0.01, 0.06), np.diag([0.004, 0.004, 0.003])
LARGEST = 3.0  # mass that the payload may have [kg]
PERIOD = 0.008
SEARCH = {"iterations": 8, "starts": 1, "workers": 1}


class Robot:
    """A simulated robot that waits where its last piece ended."""

    def __init__(self, machine, folder, seed: int = 0) -> None:
        self.machine, self.folder, self.seed = machine, folder, seed
        self.waits, self.plans, self.logs = None, [], []

    def __call__(self, number, plan):
        where = self.folder / f"{self.seed}_{number}"
        simulate_campaign(where, plan, self.machine, period=PERIOD, seed=100 * self.seed + number, start=self.waits)
        self.waits, log = plan.home, read_campaign(where)
        self.plans.append(plan)
        self.logs.append(log.stages()["excitation"][0])
        return log


@pytest.fixture(scope="module")
def limits():
    return motion_limits(ur5e.mechanism().with_payload(LARGEST, name=PAYLOAD, separate=True), None, 0.0, True)[1]


@pytest.fixture(scope="module")
def machine():
    """A UR5e that is lighter and has more friction than its description."""
    made = ur5e.machine()
    arm = made.mechanism
    bodies = tuple(b if b.inertia is None else replace(b, inertia=0.9 * b.inertia) for b in arm.bodies)
    joints = tuple(replace(j, terms={name: 1.2 * value for name, value in j.terms.items()}) for j in arm.joints)
    return replace(made, mechanism=replace(arm, bodies=bodies, joints=joints))


@pytest.fixture(scope="module")
def bare(machine, limits, tmp_path_factory):
    robot = Robot(machine, tmp_path_factory.mktemp("bare"))
    return robot, identify_live(ur5e.mechanism(), limits, robot, Goal(band=0.02), **SEARCH)


@pytest.fixture(scope="module")
def loaded(machine):
    return replace(machine, mechanism=machine.mechanism.with_payload(MASS, COM, INERTIA))


def test_a_payload_is_found_within_one_per_cent_and_two_deviations(bare, loaded, limits, tmp_path):
    good = 0
    for seed in range(1, 6):
        goal, robot = Goal(payload=0.01, time=60.0), Robot(loaded, tmp_path, seed)
        found = identify_live(ur5e.mechanism(), limits, robot, goal, unloaded=bare[0].logs, payload=LARGEST, **SEARCH)
        assert found.reached == "payload"
        assert found.updates[-1].time <= 60.0
        load = found.updates[-1].payload
        good += abs(load.mass - MASS) <= min(0.01 * MASS, 2.0 * load.mass_std)
    assert good >= 4


def test_bands_shrink_and_later_pieces_are_designed_anew_near_the_first(bare, machine, limits, tmp_path):
    assert bare[1].reached == "band"
    assert bare[1].updates[-1].worst_band <= 0.02
    robot = Robot(machine, tmp_path, 7)
    found = identify_live(ur5e.mechanism(), limits, robot, Goal(band=1e-4, time=22.0), **SEARCH)
    assert found.reached == "time"
    bands = [update.worst_band for update in found.updates]
    assert len(bands) >= 2
    assert all(later < earlier for earlier, later in pairwise(bands))
    first, second = robot.plans[:2]
    assert first.identity != second.identity
    np.testing.assert_array_equal(first.home, second.home)


def test_a_fixed_plan_repeats_its_piece(bare, limits):
    robot, plans = bare[0], []

    def run(number, plan):
        plans.append(plan.identity)
        return read_campaign(robot.folder / "0_1")

    identify_live(ur5e.mechanism(), limits, run, Goal(time=25.0), adapt=False, **SEARCH)
    assert plans == [robot.plans[0].identity] * len(plans)
    assert len(plans) > 1


@pytest.mark.parametrize(
    ("texts", "goal"),
    [
        (["payload=1%"], Goal(payload=0.01)),
        (["band=2.5 %", "time=2min"], Goal(band=0.025, time=120.0)),
    ],
)
def test_goals_are_read(texts, goal):
    assert Goal.parse(texts) == goal


@pytest.mark.parametrize("text", ["payload", "payload=1", "band=0%", "band=200%", "mass=1%", "time=soon", "time=0"])
def test_wrong_goals_are_one_sentence(text):
    with pytest.raises(LinkError, match="give"):
        Goal.parse([text])


def test_a_payload_needs_recordings_without_it(limits):
    with pytest.raises(LinkError, match="recordings without the payload"):
        identify_live(ur5e.mechanism(), limits, None, Goal(payload=0.01), payload=LARGEST)


def test_the_robot_waits_at_rest_without_a_client_while_a_piece_is_evaluated(limits, tmp_path):
    server = RtdeServer(Emulator(ur5e.machine(), period=PERIOD, speed=10.0), port=0, script_port=0, silence=60.0).start()
    seen = []

    def run(number, plan):
        wire = open_controller(f"rtde://127.0.0.1:{server.port}?script={server.script_port}")
        Campaign.create(tmp_path / str(number), plan, Settings(), wire).run()
        return read_campaign(tmp_path / str(number))

    def observe(update) -> None:
        seen.append((wire_is_closed(server), bool(server.emulator.status[4])))

    try:
        identify_live(ur5e.mechanism(), limits, run, Goal(time=1.0), duration=1.0, observe=observe, **SEARCH)
    finally:
        server.close()
    assert seen == [(True, False)]


def wire_is_closed(server) -> bool:
    """Wait until the server has noticed that its client has left."""
    for _ in range(6000):
        if not server.emulator.client:
            return True
        server._done.wait(0.01)
    return False


def test_a_real_robot_is_asked_for_before_anything_is_designed(monkeypatch, tmp_path):
    server = RtdeServer(Emulator(ur5e.machine(), period=PERIOD), port=0, script_port=0).start()
    agree = RtdeClient._agree
    monkeypatch.setattr(RtdeClient, "_agree", lambda self, where: replace(agree(self, where), virtual=False))
    words = ["live", "ur5e", "--controller", f"rtde://127.0.0.1:{server.port}?script={server.script_port}"]
    with closing(server), pytest.raises(DynidentError, match=r"real robot.*--yes"):
        command([*words, "-o", str(tmp_path / "live")])
    assert not (tmp_path / "live").exists()


def test_the_command_writes_what_the_next_one_needs(tmp_path, capsys):
    server = RtdeServer(Emulator(ur5e.machine(), period=PERIOD, speed=10.0), port=0, script_port=0, silence=60.0).start()
    address, folder = f"rtde://127.0.0.1:{server.port}?script={server.script_port}", tmp_path / "bare"
    words = ["live", "ur5e", "--controller", address, "--until", "time=1s", "--piece", "2", "--speed", "0.5"]
    try:
        assert command([*words, "--iterations", "3", "--starts", "1", "--floor", "0", "-o", str(folder)]) == 0
    finally:
        server.close()
    assert "band" in capsys.readouterr().out
    assert (folder / "fit.json").is_file()
    (log,) = live_logs(folder)
    assert np.abs(log.velocity).max() <= 0.5 * ur5e.SPEED * 1.05
