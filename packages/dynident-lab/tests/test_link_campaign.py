"""Campaigns: what a plan says is recorded by stage and cycle, and goes on after a crash, a pause or a full disk."""

from __future__ import annotations

import errno
import os
import random
import struct
import subprocess
import sys
import threading
import time
from contextlib import closing
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from link_peers import PrintedController, StyleServer
from link_process import JOINTS, plan
from warm_robots import balanced_arm6, warm_arm6

import dynident as di
from dynident.errors import LinkError
from dynident.excitation import Plan, Stage, stage_logs
from dynident.trajectory import Moves
from dynident_lab.campaigns import CampaignLog, read_journal
from dynident_lab.link import (
    AbortedError,
    Campaign,
    Emulator,
    Identity,
    RemoteController,
    Samples,
    Settings,
    SimpleClient,
    SimpleServer,
    Status,
    describe,
    seconds,
    simulate_campaign,
)
from dynident_lab.link.schedule import steps_of

PROCESS = Path(__file__).with_name("link_process.py")


@pytest.fixture(scope="module")
def server():
    made = SimpleServer(Emulator(warm_arm6(), speed=20.0), motion_port=0, state_port=0).start()
    yield made
    made.close()


def client_of(server) -> SimpleClient:
    return SimpleClient("127.0.0.1", server.motion_port, server.state_port)


def campaign_of(server, folder, wanted=None, settings=None, **options) -> Campaign:
    return Campaign.create(folder, wanted or plan(1), settings or Settings(), client_of(server), **options)


def events(folder) -> list[str]:
    return [e["event"] for e in read_journal(folder)]


def check(folder, wanted: Plan, cycles: int) -> CampaignLog:
    """Every cycle is complete and whole: each sample of its motion once."""
    log = di.Log.read(folder)
    assert isinstance(log, CampaignLog)
    found = log.cycles()
    assert sorted(found) == list(range(cycles))
    period = 0.004
    for one in found.values():
        np.testing.assert_allclose(np.diff(one.t), period, atol=1e-6)
        assert abs(one.duration - wanted.curve.duration) < 2.0 * period
        assert one.provenance["gaps"] == 0
        assert one.provenance["plan"] == wanted.identity
    return log


def test_a_campaign_gives_the_logs_by_stage_and_cycle(server, tmp_path) -> None:
    wanted = plan(2)
    mechanism = balanced_arm6()
    seen = []
    campaign = campaign_of(
        server,
        tmp_path / "c",
        wanted,
        predict=lambda motion: di.inverse_dynamics(mechanism, motion, mechanism.parameters),
        observe=seen.append,
    )
    assert campaign.run() == 2
    log = check(tmp_path / "c", wanted, 2)
    stages = log.stages()
    assert {name: len(logs) for name, logs in stages.items()} == {"excitation": 2, "warming": 4}
    again = stage_logs(log.cycles()[0], wanted)  # the plan itself finds the same stretches
    assert abs(again["excitation"][0].t[0] - stages["excitation"][0].t[0]) < 0.009
    assert len(stages["excitation"][0]) == 600
    assert np.isfinite(log.effort).all()
    assert log.temperature is not None
    assert {p.what for p in seen} >= {"cycle"}
    assert not list((tmp_path / "c").glob("*.seg"))
    reference = wanted.motion(250.0)
    one = log.cycles()[1]
    assert np.abs(one.position - reference.q).max() < 0.02


def test_the_log_is_that_of_the_simulator_itself(tmp_path) -> None:
    """Points, buffer, chunks, wire and disk change nothing that a sensor could see."""
    noise = np.array(warm_arm6().sensors.effort_noise)
    machine, wanted = warm_arm6(noise=False), plan(1)
    motion = wanted.motion(250.0)
    still = di.Motion([0.0, 1.0], *(np.tile(x, (2, 1)) for x in (motion.q[0], 0 * motion.q[0], 0 * motion.q[0])))
    settled = machine.simulate(still, start={"q": motion.q[0]}, log_cycle=0.004).end
    both = di.Motion(np.r_[0.0, 1.0 + motion.t], *(np.vstack([x[:1], x]) for x in (motion.q, motion.v, motion.a)))
    own = machine.simulate(both, start=settled, duration=float(motion.t[-1]), log_cycle=0.004).log
    made = SimpleServer(Emulator(machine, motion.q[0], speed=20.0), motion_port=0, state_port=0).start()
    try:
        assert campaign_of(made, tmp_path / "c", wanted).run() == 1
    finally:
        made.close()
    log = di.Log.read(tmp_path / "c").cycles()[0]
    assert len(log) == len(own) > 1300
    resolution = [drive.encoder.resolution / drive.transmission.ratio for drive in machine.drives]
    assert np.all(np.abs(log.position - own.position) < 2.5 * np.abs(resolution))
    assert np.all(np.sqrt(np.mean((log.effort - own.effort)[:-1] ** 2, axis=0)) < 0.01 * noise)
    assert np.abs(log.temperature - own.temperature).max() < 0.02


@pytest.mark.parametrize("settings", [Settings(), Settings(repetitions=2, cycles=1, rest=4.0, idle=9.0, below=30.0)])
def test_cycles_on_a_controller_are_those_of_a_simulated_campaign(tmp_path, settings) -> None:
    """Approach, pause, warmth and noise included: positions to the last bit, whatever the host did in between."""
    wanted = plan(2, period=9.0)
    made = SimpleServer(Emulator(warm_arm6(), speed=20.0, seed=1), motion_port=0, state_port=0).start()
    try:
        assert campaign_of(made, tmp_path / "c", wanted, settings).run() == 2
    finally:
        made.close()
    simulate_campaign(tmp_path / "s", wanted, warm_arm6(), settings, seed=1)
    recorded, simulated = (di.Log.read(tmp_path / name).cycles() for name in "cs")
    for k in (0, 1):
        np.testing.assert_array_equal(recorded[k].position, simulated[k].position)
        np.testing.assert_allclose(recorded[k].effort, simulated[k].effort, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(recorded[k].temperature, simulated[k].temperature, rtol=0.0, atol=0.01)


def test_a_campaign_is_readable_while_it_is_written(server, tmp_path) -> None:
    campaign = campaign_of(server, tmp_path / "c", plan(1))
    thread = threading.Thread(target=campaign.run)
    thread.start()
    counts = []
    while thread.is_alive():
        try:
            counts.append(len(di.Log.read(tmp_path / "c")))
        except di.DynidentError as error:
            assert "samples so far" in str(error)
        time.sleep(0.05)
    thread.join()
    assert counts == sorted(counts)
    check(tmp_path / "c", plan(1), 1)


def as_soon_as_it_moves(campaign: Campaign, server, *actions) -> None:
    """Do something in the thread of a campaign when a cycle has begun to move, one action per attempt, whatever the clock says.

    The robot moves in real time until then, so that no cycle is over before its first samples have been read.
    """
    left, acted = list(actions), []
    server.emulator.speed = 1.0

    def look(progress, always: bool = False) -> None:
        attempt = events(campaign.folder).count("cycle begun")
        if progress.what == "cycle" and progress.motion > 0.0 and left and attempt not in acted:
            acted.append(attempt)
            left.pop(0)()
            server.emulator.speed = 1.0 if left else 20.0

    campaign._show = look  # type: ignore[method-assign]


def continue_when_paused(campaign: Campaign, server) -> list[bool]:
    """Let a campaign go on once it has come to rest and waits; return whether the robot moved then."""
    samples, moved = campaign.controller.samples, []

    def look(timeout: float):
        if "paused" in events(campaign.folder) and not moved:
            moved.append(bool(np.any(server.emulator.setpoints.v)))
            campaign.pause(False)
        return samples(timeout)

    campaign.controller.samples = look  # type: ignore[method-assign]
    return moved


@pytest.fixture
def fast_again(server):
    yield
    server.emulator.speed = 20.0


def test_pause_continue_and_abort_bring_the_robot_to_rest(server, tmp_path, fast_again) -> None:
    campaign = campaign_of(server, tmp_path / "c", plan(1))
    paused = continue_when_paused(campaign, server)
    as_soon_as_it_moves(campaign, server, campaign.pause, (tmp_path / "c" / "abort").touch)
    with pytest.raises(AbortedError):
        campaign.run()
    assert paused == [False]
    assert events(tmp_path / "c").count("cycle begun") == 2
    assert not np.any(server.emulator.setpoints.v)
    assert Campaign(tmp_path / "c", client_of(server)).run() == 1
    check(tmp_path / "c", plan(1), 1)


def _until(condition, timeout: float = 60.0) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_a_collision_like_residual_stops_the_robot(server, tmp_path) -> None:
    heavy = balanced_arm6().with_payload(3.0, com=(0.0, 0.0, 0.06))
    campaign = campaign_of(
        server,
        tmp_path / "c",
        predict=lambda motion: di.inverse_dynamics(heavy, motion, heavy.parameters),
        settings=Settings(tolerance=0.1),
    )
    with pytest.raises(LinkError, match="collision"):
        campaign.run()
    _until(lambda: not server.emulator.status[4])
    assert not server.emulator.alarms


class ImmediateController(RemoteController):
    """A robot that does exactly what it is sent, ten samples per call: no thread, no socket and no clock of the host."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.began, self.here, self.goal = 0, None, np.zeros(6), None

    def connect(self) -> Identity:
        self.identity = Identity("arm6", JOINTS, JOINTS, effort_kind="joint_torque", period=0.004, virtual=True)
        return self.identity

    def samples(self, timeout: float) -> list[tuple[float, Samples]]:
        rows = np.array([self._row() for _ in range(10)])
        return [(time.time(), Samples.from_table(rows))]

    def _row(self) -> list[float]:
        now = np.nan if self.began is None else 0.004 * (self.count - self.began)
        v = np.zeros(6)
        if self.began is not None:
            t = self.goal.t - self.goal.t[0]
            self.here, v = (np.array([np.interp(now, t, x) for x in part.T]) for part in (self.goal.q, self.goal.v))
            self.began = None if now > t[-1] - 0.002 else self.began
        self.count += 1
        return [self.count - 1, 0.004 * self.count, now, *self.here, *v, *v, *np.full(6, 20.0)]

    def state(self) -> Status:
        return Status(moving=self.began is not None)

    def position(self) -> np.ndarray:
        return self.here

    def send(self, motion: di.Motion) -> None:
        self.goal = motion

    def run(self) -> None:
        self.began = self.count

    def stop(self) -> None:
        self.began = None

    def reset(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_full_disk_pauses_and_goes_on(tmp_path, monkeypatch) -> None:
    robot, write, said, full = ImmediateController(), os.write, [], []

    def limited(handle: int, data: bytes) -> int:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data)

    def look(progress, always: bool = False) -> None:
        if progress.what == "disk full":
            assert not robot.state().moving
            said.append(progress.text)
            full.clear()
        elif progress.what == "cycle" and progress.motion > 0.0 and not said:
            full.append(True)

    campaign = Campaign.create(tmp_path / "c", plan(1), Settings(), robot)
    monkeypatch.setattr(os, "write", limited)
    campaign._show = look
    assert campaign.run() == 1
    assert "free some space" in said[0]
    check(tmp_path / "c", plan(1), 1)
    assert events(tmp_path / "c").count("cycle begun") == 2
    assert "disk was full" in events(tmp_path / "c")


def test_pauses_rests_and_conditions(server, tmp_path) -> None:
    wanted = plan(1, notes={"campaign": {"repetitions": 2, "rest": 30.0}})
    settings = Settings.of(wanted, {"below": 100.0, "duty": None})
    assert (settings.repetitions, settings.rest, settings.below) == (2, 30.0, 100.0)
    campaign = campaign_of(server, tmp_path / "c", wanted, settings)
    assert campaign.run() == 2
    log = check(tmp_path / "c", wanted, 2)
    first, second = log.cycles().values()
    assert second.t[0] - first.t[-1] >= 30.0 - 1e-6  # in the robot's time, however late the host is
    rest = next(part for part in log.recordings if part.kind == "rest")
    assert rest.rows.stop - rest.rows.start < 60  # about one sample per second is kept


def test_an_interrupted_start_waits_for_its_conditions_again(server, tmp_path, fast_again) -> None:
    settings = Settings(idle=40.0)  # two seconds of the host
    campaign = campaign_of(server, tmp_path / "c", plan(1), settings)
    paused = continue_when_paused(campaign, server)
    as_soon_as_it_moves(campaign, server, campaign.pause)
    assert campaign.run() == 1
    assert paused == [False]
    check(tmp_path / "c", plan(1), 1)
    begun = [e for e in read_journal(tmp_path / "c") if e["event"] == "cycle begun"]
    assert len(begun) == 2
    assert begun[1]["time"] - begun[0]["time"] > settings.idle / 20.0


def test_the_schedule_adds_up() -> None:
    wanted = plan(3)
    T = wanted.curve.duration
    steps = steps_of(wanted, Settings(repetitions=2, rest=100.0, duty=0.5))
    assert [round(s.pause, 6) for s in steps] == [round(x, 6) for x in (T, T, 100.0, T, T, 0.0)]
    assert [s.first for s in steps] == [True, False, False] * 2
    assert steps_of(wanted, Settings(repetitions=2, rest=100.0, idle=300.0))[2].pause == 300.0  # it begins with the rest
    assert "rests 15 min 00 s" in describe(plan(1), Settings(repetitions=3, rest=100.0, idle=300.0))
    assert "6 cycles" in describe(wanted, Settings(repetitions=2))
    assert seconds("8h", "rest") == 8 * 3600.0
    assert seconds("1.5 min", "rest") == 90.0
    with pytest.raises(LinkError, match="such as 90s"):
        seconds("8 weeks", "rest")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"robot": "another"}, "the plan is for robot 'another'"),
        ({"coordinates": tuple("abcdef")}, "the plan moves a, b"),
        ({"home": [3.0, 0, 0, 0, 0, 0]}, "beyond the controller's limit"),
    ],
)
def test_a_wrong_robot_or_plan_is_one_sentence(server, tmp_path, change, sentence) -> None:
    from dataclasses import replace

    with pytest.raises(LinkError, match=sentence):
        campaign_of(server, tmp_path / "c", replace(plan(1), **change))
    assert not (tmp_path / "c").exists()


def test_a_controller_in_alarm_is_one_sentence(server, tmp_path) -> None:
    campaign = campaign_of(server, tmp_path / "c")
    server.emulator.emergency_stop()
    with pytest.raises(LinkError, match="in alarm 4012"):
        campaign.run()
    server.emulator.emergency_stop(False)
    server.emulator.reset()
    with pytest.raises(LinkError, match="contains a campaign"):
        campaign_of(server, tmp_path / "c")


def test_a_real_robot_moves_only_after_a_confirmation(server, tmp_path, monkeypatch) -> None:
    told = dict(server.emulator.identity)
    monkeypatch.setattr(Emulator, "identity", property(lambda _: {**told, "virtual": False}))
    with pytest.raises(LinkError, match=r"real robot.*--yes"):
        campaign_of(server, tmp_path / "c")
    campaign_of(server, tmp_path / "c", yes=True).controller.close()  # the refusal has left nothing
    with pytest.raises(LinkError, match=r"real robot.*--yes"):
        Campaign(tmp_path / "c", client_of(server)).run()
    assert "cycle begun" not in events(tmp_path / "c")
    assert Campaign(tmp_path / "c", client_of(server), yes=True).run() == 1


@pytest.mark.parametrize("points", ["full", "short"])
def test_a_campaign_runs_on_a_controller_that_knows_the_standard_alone(tmp_path, points) -> None:
    """A peer written from the specification: no names, no limits, no efforts; the plan gives the names."""
    foreign = StyleServer(echo=points == "full")
    with closing(foreign):
        client = SimpleClient("127.0.0.1", *foreign.ports, points=points)
        with pytest.raises(LinkError, match=r"real robot.*--yes"):
            Campaign.create(tmp_path / "c", plan(1), Settings(), client)
        assert Campaign.create(tmp_path / "c", plan(1), Settings(), client, yes=True).run() == 1
        wanted = plan(1).motion(250.0)
        sent = [struct.unpack_from("<10f", x, 20 if kind == 11 else 32)[:6] for kind, k, x in foreign.points if k >= 0]
        np.testing.assert_allclose(sent[-len(wanted) :], wanted.q, atol=1e-6)
    log = di.Log.read(tmp_path / "c").cycles()[0]
    assert log.joints == plan(1).coordinates
    np.testing.assert_allclose(log.position[-1], wanted.q[-1], atol=1e-6)


@pytest.mark.parametrize("interval", [0.001, 0.3])
def test_two_cycles_are_recorded_from_the_printed_controller_with_one_handshake(tmp_path, interval) -> None:
    printed = PrintedController(interval)
    there = np.array([0.2, -0.1, 0.1, 0.3])
    stage = Stage("move", "training", Moves([0 * there, there, 0 * there], [0.5, 0.5]))
    wanted = Plan("small", ("a", "b", "c", "d"), [stage], 2, 50.0, 3.0, 10.0, 0 * there)
    with closing(printed):
        client = SimpleClient("127.0.0.1", *printed.ports, "udp")
        assert Campaign.create(tmp_path / "c", wanted, Settings(), client, yes=True).run() == 2
    assert printed.handshakes == [1, 1]
    motion = wanted.motion(50.0)
    sent = [point for point, _ in groupby(printed.points)]  # one whose answer is late is repeated
    assert [k for k, _ in sent] == [*range(len(motion))] * 2
    np.testing.assert_allclose([joints[:4] for _, joints in sent], np.vstack([motion.q] * 2), atol=1e-6)
    log = di.Log.read(tmp_path / "c")
    assert log.joints == wanted.coordinates
    assert sorted(log.cycles()) == [0, 1]
    assert log.position.shape[1] == 4
    assert np.all((log.position > -0.1 - 1e-6) & (log.position < 0.3 + 1e-6))


def test_a_killed_campaign_loses_nothing_and_goes_on(server, tmp_path) -> None:
    """Kill -9 at random moments; benchmarks/link.py does it a hundred times."""
    rng, folder = random.Random(5), tmp_path / "c"
    ports = str(server.motion_port), str(server.state_port)
    command = [sys.executable, str(PROCESS), "record", str(folder), *ports, "2"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(di.__file__).parents[1]), str(PROCESS.parent)])}
    before = 0
    for attempt in range(4):
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            acknowledged, complete = 0, False
            stop = rng.uniform(0.1, 1.0) if attempt < 3 else None
            timer = None
            for line in process.stdout:
                if line.strip() == "complete":
                    complete = True
                elif line.strip().isdigit():
                    acknowledged = int(line)
                    if stop is not None and timer is None:
                        timer = threading.Timer(stop, process.kill)
                        timer.start()
            if timer is not None:
                timer.cancel()
            process.wait(timeout=60.0)
        samples = sum(len(part.motion) for part in di.Log.read(folder).recordings)
        assert samples >= before + acknowledged
        before = samples
    assert complete
    check(folder, plan(2), 2)
