"""RTDE: the virtual UR5e, our client on it, and `ur_rtde`, a client that nobody here wrote."""

from __future__ import annotations

import importlib.util
import json
import socket
import struct
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.errors import LinkError
from dynident.excitation import Plan, Stage
from dynident.trajectory import Moves
from dynident_lab.campaigns import read_journal
from dynident_lab.campaigns.log import drive_gains
from dynident_lab.link import Campaign, Emulator, RtdeClient, RtdeServer, Settings, open_controller, simulate_campaign, ur5e
from dynident_lab.link import rtde_messages as x
from dynident_lab.link.rtde_server import RtdeProgram

HOME = np.array([0.1, -1.2, 1.2, -0.5, 0.2, 0.0])
WAY = np.array([0.5, -0.7, 0.6, -0.5, 0.4, 0.8])
PERIOD = 0.008
PATIENT = 60.0  # a busy computer is no lost connection [s]


@pytest.fixture(scope="module")
def machine():
    return ur5e.machine()


@pytest.fixture
def server(machine):
    made = RtdeServer(Emulator(machine, period=PERIOD, speed=5.0), port=0, script_port=0, silence=PATIENT).start()
    yield made
    made.close()


def plan(cycles: int = 1) -> Plan:
    stage = Stage("move", "training", Moves([HOME, HOME + WAY, HOME], [0.8, 0.8]))
    return Plan("UR5e", ur5e.JOINTS, [stage], cycles, 1.0 / PERIOD, 3.0, 20.0, HOME)


def client_of(server) -> RtdeClient:
    return open_controller(f"rtde://127.0.0.1:{server.port}?script={server.script_port}")


def test_inverse_dynamics_of_the_ur5e_equals_a_sum_over_its_links():
    """Gravity torques from DH transforms multiplied here, with the maker's masses and centres of mass."""
    robot = ur5e.mechanism().with_terms(())
    q = np.array([0.3, -1.1, 0.9, -0.4, 0.7, 0.2])

    def energy(q):
        T, total = np.eye(4), 0.0
        for i in range(6):
            c, s, ca, sa = np.cos(q[i]), np.sin(q[i]), np.cos(ur5e.ALPHA[i]), np.sin(ur5e.ALPHA[i])
            a, d = ur5e.A[i], ur5e.D[i]
            T = T @ [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
            total += 9.80665 * ur5e.MASS[i] * (T @ [*ur5e.COM[i], 1.0])[2]
        return total

    step = 1e-5 * np.eye(6)
    expected = [(energy(q + h) - energy(q - h)) / 2e-5 for h in step]
    g = abs(robot.gravity[2])
    found = di.inverse_dynamics(robot, (q[None], np.zeros((1, 6)), np.zeros((1, 6))), robot.parameters)[0]
    np.testing.assert_allclose(found, np.array(expected) * g / 9.80665, atol=1e-6)


def test_record_equals_simulate_within_the_resolution_of_the_encoders(server, machine, tmp_path):
    wanted = plan(2)
    assert Campaign.create(tmp_path / "rtde", wanted, Settings(), client_of(server)).run() == 2
    log = di.Log.read(tmp_path / "rtde")
    simulate_campaign(tmp_path / "simulated", wanted, machine, period=PERIOD)
    simulated = di.Log.read(tmp_path / "simulated").cycles()
    for number, cycle in log.cycles().items():
        assert cycle.provenance["gaps"] == 0
        assert len(cycle) == len(simulated[number])
        assert np.abs(cycle.position - simulated[number].position).max() < 1.01 * ur5e.RESOLUTION
    assert log.effort_kind == "motor_current"
    np.testing.assert_allclose(log.gain, ur5e.CONSTANT, rtol=1e-9)
    assert log.provenance["gain"].startswith("target moments over target currents")
    assert log.provenance["controller"]["extras"][-4:] == ["payload", "payload_cog_1", "payload_cog_2", "payload_cog_3"]
    np.testing.assert_array_equal(log.temperature, machine.ambient)


def test_a_campaign_goes_on_after_a_lost_connection_which_has_stopped_the_robot(server, tmp_path):
    client, cut = client_of(server), []

    def cut_once(progress) -> None:
        if progress.what == "cycle" and progress.motion > 0.4 and not cut:
            cut.append(progress.motion)
            client._sock.shutdown(socket.SHUT_RDWR)

    campaign = Campaign.create(tmp_path / "c", plan(), Settings(), client)
    campaign._show = lambda progress, always=False: cut_once(progress)  # every batch, whatever the clock says
    assert campaign.run() == 1
    assert cut
    events = [e["event"] for e in read_journal(tmp_path / "c")]
    assert "connection lost" in events
    assert events[-2:] == ["cycle done", "campaign done"]


class Hand:
    """An emulator and its program without threads and sockets: time is what the test says."""

    def __init__(self, machine) -> None:
        self.now = 0.0
        self.emulator = Emulator(machine, HOME, period=PERIOD)
        self.program = RtdeProgram(self.emulator, 0.04, lambda: self.now)
        self.program.start()

    def send(self, first: int, last: int) -> None:
        for k in range(first, last):
            share = min(1.0, k * PERIOD)
            self.program.receive(k, HOME + (10 * share**3 - 15 * share**4 + 6 * share**5) * WAY, 1.0)

    def step(self, rows: int):
        """Let some periods pass; return the speeds of the setpoints."""
        motion, _ = self.emulator.setpoints.take(rows * PERIOD, self.emulator.tick)
        return motion.v


def test_a_silent_client_stops_the_robot_within_100_ms(machine):
    hand = Hand(machine)
    hand.send(0, 60)
    assert np.abs(hand.step(50)[-1]).max() > 0.5
    hand.now = 0.039
    hand.program.watch()
    assert hand.program.state == x.RUNNING
    hand.now = 0.041
    hand.program.watch()
    assert hand.program.state == x.SILENT
    braking = hand.step(10)
    at_rest = np.flatnonzero(np.abs(braking).max(axis=1) < 1e-9)[0] * hand.emulator.tick
    assert hand.now + at_rest < 0.1


def test_a_jump_of_the_setpoints_stops_the_program(machine):
    hand = Hand(machine)
    hand.send(0, 30)
    hand.program.receive(30, HOME + 0.5, 1.0)
    assert hand.program.state == x.JUMPED
    hand = Hand(machine)
    hand.send(0, 30)
    hand.send(31, 32)
    assert hand.program.state == x.JUMPED


def test_setpoints_get_their_velocity_and_acceleration_from_neighbours(machine):
    hand = Hand(machine)
    hand.send(0, 40)
    t = 20 * PERIOD
    _, v, a, _ = hand.program.targets(np.array([20]))[0].reshape(4, 6)
    np.testing.assert_allclose(v, (30 * t**2 - 60 * t**3 + 30 * t**4) * WAY, atol=1e-6)
    np.testing.assert_allclose(a, (60 * t - 180 * t**2 + 120 * t**3) * WAY, atol=1e-4)


def test_protective_stop_emergency_stop_and_local_mode_end_a_run_with_one_sentence(server, tmp_path):
    server.remote = False
    client = client_of(server)
    client.patience = 0.2
    with pytest.raises(LinkError, match="does not start the program; switch it to remote control on the teach pendant"):
        Campaign.create(tmp_path / "local", plan(), Settings(), client).run()
    server.remote = True
    server.emulator.alarm(4011)
    with pytest.raises(LinkError, match=r"alarm 4016 \(protective stop\)"):
        Campaign.create(tmp_path / "protective", plan(), Settings(), client_of(server)).run()
    server.emulator.reset()
    stopped = Campaign.create(tmp_path / "emergency", plan(), Settings(), client_of(server))
    stopped._show = lambda progress, always=False: progress.motion > 0.2 and server.emulator.emergency_stop()
    with pytest.raises(LinkError, match=r"alarm 4012 \(emergency stop\) in approach 0"):
        stopped.run()


def test_only_our_own_program_is_accepted(server):
    with socket.create_connection(("127.0.0.1", server.script_port)) as sender:
        sender.sendall(b"def other():\n  movej([0,0,0,0,0,0])\nend\n")
        sender.settimeout(10.0)
        assert sender.recv(1) == b""
    assert server.dropped == 1
    assert server.program.state == 0


def test_the_program_stops_within_100_ms_and_has_balanced_blocks():
    for step in (0.002, 0.008):  # e-Series and CB3: the last heartbeat may be read a cycle late, then whole cycles are counted
        cycles = int(x.SILENCE / step) + 1
        assert (1 + cycles) * step + x.BRAKE < 0.1
    words = [line.split()[0] for line in x.PROGRAM.splitlines()]
    assert sum(word in ("def", "while", "if") for word in words) == words.count("end")
    assert x.PROGRAM.isascii()


def test_streams_that_are_not_rtde_are_dropped(server):
    for data in (b"\0\0\0", b"GET / HTTP/1.1\r\n\r\n" * 5000, x.frame(x.OUTPUTS, b"\xff"), x.frame(x.VERSION, b"")):
        with socket.create_connection(("127.0.0.1", server.port)) as stranger, pytest.raises(ConnectionError):
            stranger.settimeout(10.0)
            stranger.sendall(data)
            if stranger.recv(100) == b"":
                raise ConnectionError
    with pytest.raises(LinkError, match=r"rtde://robot: rate is 9999 Hz"):
        open_controller("rtde://robot?rate=9999")


def test_idle_connections_do_not_keep_the_owner_out(server, tmp_path):
    idle = [socket.create_connection(("127.0.0.1", port), timeout=60.0) for port in (server.port, server.script_port) * 100]
    campaign = Campaign.create(tmp_path / "c", plan(), Settings(), client_of(server))
    idle += [socket.create_connection(("127.0.0.1", port), timeout=60.0) for port in (server.port, server.script_port) * 50]
    assert campaign.run() == 1
    assert server.ignored["too many clients: the longest idle client is disconnected"] >= 200
    for sock in idle:
        sock.close()


def test_unknown_fields_are_answered_with_not_found(server):
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.settimeout(10.0)
        client.sendall(x.frame(x.OUTPUTS, struct.pack(">d", 125.0) + b"timestamp,colour"))
        assert client.recv(100) == x.frame(x.OUTPUTS, b"\0DOUBLE,NOT_FOUND")


def test_gains_are_unknown_without_target_currents_or_proportionality():
    about = {"gain": None, "effort_kind": "motor_current", "channels": ["a"], "extras": ["target_current_1", "target_moment_1"]}
    current = np.linspace(-1.0, 1.0, 50)
    gain, source = drive_gains(np.column_stack([current, 9.0 * current]), about)
    assert gain == pytest.approx([9.0])
    assert source["gain"].startswith("target moments")
    gain, source = drive_gains(np.column_stack([current, np.cos(9.0 * current)]), about)
    assert gain is None
    assert "not proportional" in source["gain"]
    gain, source = drive_gains(current[:, None], {**about, "extras": ["target_current_1"]})
    assert gain is None
    assert source["gain"].startswith("unknown: the controller has not sent")


def test_other_robots_and_rates_are_refused(machine):
    with pytest.raises(LinkError, match="rate is 250 Hz"):
        RtdeServer(Emulator(machine, period=0.004), port=0, script_port=0)
    torques = replace(machine, sensors=replace(machine.sensors, effort="joint_torque"))
    with pytest.raises(LinkError, match="RTDE serves ur5e"):
        RtdeServer(Emulator(torques, period=0.008), port=0, script_port=0)


@pytest.mark.skipif(importlib.util.find_spec("rtde_receive") is None, reason="ur_rtde is not installed")
def test_ur_rtde_reads_the_virtual_robot_and_reconnects():
    """In two processes: ur_rtde holds the interpreter while it connects. Its port is fixed, so the address is ours alone."""
    host = "127.0.77.3"
    command = ["controller", "ur5e", "--protocol", "rtde", "--host", host, "--state-port", "0", "--json", "--quiet"]
    served = subprocess.Popen(
        [sys.executable, "-m", "dynident", *command, "--duration", "600"], stdout=subprocess.PIPE, text=True
    )
    try:
        text = ""
        while "}" not in text:
            text += served.stdout.readline()
        assert json.loads(text)["port"] == x.RTDE_PORT
        code = f"""
import json, time, rtde_receive
robot = rtde_receive.RTDEReceiveInterface("{host}", 500.0)
stamps = []
for _ in range(2):
    end = time.time() + 60.0
    begin = robot.getTimestamp()
    while robot.getTimestamp() < begin + 0.5 and time.time() < end:
        time.sleep(0.0005)
    stamps.append(robot.getTimestamp() - begin)
    robot.disconnect()
    assert robot.reconnect()
q = robot.getActualQ()
print(json.dumps([stamps, q, robot.getActualCurrent(), robot.getTargetMoment(), robot.getRobotMode(), robot.getSafetyMode()]))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
        stamps, q, current, moment, mode, safety = json.loads(done.stdout.splitlines()[-1])
        assert min(stamps) >= 0.5
        assert (mode, safety) == (7, 1)
        np.testing.assert_allclose(q, 0.0, atol=2 * ur5e.RESOLUTION)
        np.testing.assert_allclose(moment[1], -59.756, atol=0.01)
        np.testing.assert_allclose(np.array(current) * ur5e.CONSTANT, moment, atol=12 * 6 * ur5e.NOISE)
    finally:
        served.terminate()
        served.wait(timeout=60)
