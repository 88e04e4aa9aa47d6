"""Another protocol is one file: the adapters of the documentation run campaigns, over TCP and on a stand-in of ROS 2."""

from __future__ import annotations

import contextlib
import json
import queue
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from test_cli_plugins import install

import dynident as di
from dynident import plugins
from dynident.errors import LinkError, LogError
from dynident.excitation import Plan, Stage
from dynident.trajectory import Moves
from dynident_lab.campaigns import read_journal
from dynident_lab.link import Campaign, LynxClient, Settings, SimpleClient, campaign, open_controller

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "adapter.md"
NAMES = ("shoulder", "elbow")


class Node:
    """What the adapter asks of rclpy: a robot that does exactly what its goal says."""

    period = 0.01

    def __init__(self) -> None:
        self.goal_accepted: float | None = None
        self.q, self.v = np.zeros(2), np.zeros(2)
        self._goal: tuple = ()
        self._over = threading.Event()

    def get_parameter(self, name: str) -> tuple[str, ...]:
        assert name == "joints"
        return NAMES

    def subscribe(self, topic: str, function) -> None:
        assert topic == "/joint_states"
        self._over = threading.Event()
        threading.Thread(target=self._publish, args=(function, self._over), daemon=True).start()

    def unsubscribe(self) -> None:
        self._over.set()

    def send_goal(self, t, q, v, a) -> None:
        assert t.shape == (len(q),) == (len(v),) == (len(a),)
        self._goal, self.goal_accepted = (t, q, v), self._stamp

    def cancel_goal(self) -> None:
        self.goal_accepted = None

    def _publish(self, function, over: threading.Event) -> None:
        self._stamp = 0.0
        while not over.wait(0.001):  # ten times as fast as it says
            self._stamp += self.period
            began = self.goal_accepted
            if began is not None:
                t, q, v = self._goal
                now = min(self._stamp - began, t[-1])
                self.q, self.v = (np.array([np.interp(now, t, x[:, j]) for j in range(2)]) for x in (q, v))
            function(self._stamp, self.q, self.v, 2.0 * self.v)
            if began is not None and self._stamp - began >= self._goal[0][-1]:
                self.goal_accepted = None


def source(name: str) -> str:
    """Return the code of a class that the page shows."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return next(block for block in blocks if f"class {name}" in block)


def adapter(node: Node):
    """Return the controller of ROS 2 that the page shows."""
    namespace: dict = {}
    exec(source("Ros2Control"), namespace)
    return namespace["Ros2Control"](node)


class LineServer:
    """The other side of the page's adapter: a robot of lines of JSON that does exactly what it is sent."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock = self.listener.accept()[0]
                with contextlib.suppress(OSError), sock:
                    self._talk(sock)

    def _talk(self, sock: socket.socket) -> None:
        got: queue.SimpleQueue[dict] = queue.SimpleQueue()
        threading.Thread(target=self._hear, args=(sock, got), daemon=True).start()
        sock.sendall(b'{"robot": "my arm", "joints": ["shoulder", "elbow"], "period": 0.01}\n')
        q, v, points, began, index = np.zeros(2), np.zeros(2), None, None, 0
        while True:
            while not got.empty():
                message = got.get()
                points = np.array(message["points"]) if "points" in message else points
                began = index if "run" in message else None if "stop" in message else began
            now = None if began is None else (index - began) * 0.01
            if now is not None:
                state = np.array([np.interp(now, points[:, 0], x) for x in points[:, 1:].T])
                q, v = state[:2], state[2:]
                began = None if now >= points[-1, 0] else began
            row = {"index": index, "t": 0.01 * index, "motion": now, "q": list(q), "v": list(v), "effort": list(3.0 * v)}
            sock.sendall(json.dumps(row).encode() + b"\n")
            index += 1
            time.sleep(0.001)  # ten times as fast as it says

    def _hear(self, sock: socket.socket, got: queue.SimpleQueue[dict]) -> None:
        with contextlib.suppress(OSError, ValueError), sock.makefile("r") as lines:
            for line in lines:
                got.put(json.loads(line))


def plan() -> Plan:
    there = np.array([0.3, -0.2])
    stage = Stage("move", "training", Moves([0 * there, there, 0 * there], [0.8, 0.8]))
    return Plan("my arm", NAMES, [stage], 2, 100.0, 3.0, 10.0, 0 * there)


def test_the_adapter_of_the_documentation_runs_a_campaign(tmp_path) -> None:
    assert Campaign.create(tmp_path / "c", plan(), Settings(), adapter(Node()), yes=True).run() == 2
    logs = di.Log.read(tmp_path / "c").stages()["move"]
    assert len(logs) == 2
    np.testing.assert_allclose(logs[1].position.max(axis=0), [0.3, 0.0], atol=1e-3)
    np.testing.assert_allclose(logs[1].effort, 2.0 * logs[1].velocity)


def test_the_tcp_adapter_of_the_documentation_is_a_protocol_of_its_package(tmp_path, monkeypatch) -> None:
    (tmp_path / "my_package.py").write_text(source("LineController"), encoding="utf-8")
    install(tmp_path, "my-package", "1.0", "[dynident.controllers]\nlines = my_package:LineController\n")
    code = [line for line in source("LineController").splitlines() if line.strip() and not line.startswith(("import", "from"))]
    assert len(code) <= 45
    server = LineServer()
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        plugins.forget()
        controller = open_controller(f"lines://127.0.0.1:{server.port}")
        assert Campaign.create(tmp_path / "c", plan(), Settings(), controller, yes=True).run() == 2
    server.listener.close()
    sys.modules.pop("my_package")
    plugins.forget()
    logs = di.Log.read(tmp_path / "c").stages()["move"]
    np.testing.assert_allclose(logs[1].position.max(axis=0), [0.3, 0.0], atol=1e-3)
    np.testing.assert_allclose(logs[1].effort, 3.0 * logs[1].velocity)


@pytest.fixture
def package(tmp_path, monkeypatch) -> Iterator[ModuleType]:
    """Install a package that registers a protocol."""
    (tmp_path / "thirdparty_protocol.py").write_text(
        "made = []\ndef Controller(host, port=99, **options):\n    made.append((host, port, options))\n"
    )
    install(tmp_path, "thirdparty-protocol", "1.0", "[dynident.controllers]\nthird = thirdparty_protocol:Controller\n")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        plugins.forget()
        yield import_module("thirdparty_protocol")
    sys.modules.pop("thirdparty_protocol")
    plugins.forget()


def test_a_protocol_of_another_package_has_an_address(package) -> None:
    open_controller("third://robot:7?colour=red")
    open_controller("third://robot")
    assert package.made == [("robot", 7, {"colour": "red"}), ("robot", 99, {})]
    with pytest.raises(LinkError, match=r"not an address of a known protocol \(lynx, rtde, simple_message, third\)"):
        open_controller("fourth://robot")


def test_our_protocols_are_registered_like_those_of_others() -> None:
    assert isinstance(open_controller("simple_message://robot"), SimpleClient)
    assert isinstance(open_controller("lynx://robot"), LynxClient)
    assert open_controller("lynx://robot").port == 12000


def test_one_recording_of_a_campaign_is_refused_with_the_folder_as_remedy(tmp_path) -> None:
    folder = tmp_path / "c"
    Campaign.create(folder, plan(), Settings(), adapter(Node()), yes=True).run()
    recordings = [file for file in folder.iterdir() if file.suffix in (".seg", ".parquet")]
    assert recordings
    for file in recordings:
        with pytest.raises(LogError, match="is one recording of a campaign; give the campaign folder"):
            di.Log.read(file, effort="joint_torque")
    kind = di.Log.read(folder).effort_kind
    assert di.Log.read(folder, effort=kind).effort_kind == kind
    with pytest.raises(LogError, match="gain cannot be given"):
        di.Log.read(folder, gain=2.0)
    with pytest.raises(LogError, match="effort 'voltage' cannot be given"):
        di.Log.read(folder, effort="voltage")


def test_connections_that_are_always_lost_end_a_campaign(tmp_path, monkeypatch) -> None:
    controller = adapter(Node())

    def cut() -> None:
        raise ConnectionError("the cable is loose")

    monkeypatch.setattr(controller, "run", cut)
    monkeypatch.setattr(campaign, "MOST_LOST", 2)
    with pytest.raises(LinkError, match=r"3 connections were lost .*the cable is loose; check the controller"):
        Campaign.create(tmp_path / "c", plan(), Settings(), controller, yes=True).run()
    assert [e["event"] for e in read_journal(tmp_path / "c")][-2:] == ["connection lost", "stopped"]
