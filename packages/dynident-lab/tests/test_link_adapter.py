"""Another protocol is one file: the adapter that the documentation shows runs a campaign on a stand-in of ros2_control."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.errors import LinkError
from dynident.excitation import Plan, Stage
from dynident.trajectory import Moves
from dynident_lab.campaigns import read_journal
from dynident_lab.link import Campaign, Settings, addresses, campaign, open_controller

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


def test_a_protocol_of_another_package_has_an_address(monkeypatch) -> None:
    made = []

    class Entry:
        def load(self):
            return lambda *args, **options: made.append((args, options))

    monkeypatch.setattr(addresses, "entry_points", lambda group, name: [Entry()] if name == "third" else [])
    open_controller("third://robot:99?colour=red")
    open_controller("third://robot")
    assert made == [(("robot", 99), {"colour": "red"}), (("robot", None), {})]
    with pytest.raises(LinkError, match="is no address"):
        open_controller("fourth://robot")


def test_connections_that_are_always_lost_end_a_campaign(tmp_path, monkeypatch) -> None:
    controller = adapter(Node())

    def cut() -> None:
        raise ConnectionError("the cable is loose")

    monkeypatch.setattr(controller, "run", cut)
    monkeypatch.setattr(campaign, "MOST_LOST", 2)
    with pytest.raises(LinkError, match=r"3 connections were lost .*the cable is loose; look at the controller"):
        Campaign.create(tmp_path / "c", plan(), Settings(), controller, yes=True).run()
    assert [e["event"] for e in read_journal(tmp_path / "c")][-2:] == ["connection lost", "stopped"]
