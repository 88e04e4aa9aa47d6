"""Another protocol is one file: the adapter that the documentation shows runs a campaign on a stand-in of ros2_control."""

from __future__ import annotations

import re
import sys
import threading
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

PAGE = Path(__file__).parents[3] / "docs" / "link.md"
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


def adapter(node: Node):
    """Return the controller that the page shows."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    namespace: dict = {}
    exec(next(block for block in blocks if "class Ros2Control" in block), namespace)
    return namespace["Ros2Control"](node)


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
    with pytest.raises(LinkError, match=r"no address of a known protocol \(lynx, rtde, simple_message, third\)"):
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
        with pytest.raises(LogError, match="is one recording of a campaign; give its folder"):
            di.Log.read(file, effort="joint_torque")
    kind = di.Log.read(folder).effort_kind
    assert di.Log.read(folder, effort=kind).effort_kind == kind
    with pytest.raises(LogError, match="gain was given, but"):
        di.Log.read(folder, gain=2.0)
    with pytest.raises(LogError, match="effort 'voltage' was given, but"):
        di.Log.read(folder, effort="voltage")


def test_connections_that_are_always_lost_end_a_campaign(tmp_path, monkeypatch) -> None:
    controller = adapter(Node())

    def cut() -> None:
        raise ConnectionError("the cable is loose")

    monkeypatch.setattr(controller, "run", cut)
    monkeypatch.setattr(campaign, "MOST_LOST", 2)
    with pytest.raises(LinkError, match=r"3 connections were lost .*the cable is loose; look at the controller"):
        Campaign.create(tmp_path / "c", plan(), Settings(), controller, yes=True).run()
    assert [e["event"] for e in read_journal(tmp_path / "c")][-2:] == ["connection lost", "stopped"]
