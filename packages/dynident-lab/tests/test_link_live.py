"""What listens to the stream: a recursive fit equals the batch, a monitor stops a robot that is not that of its model."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from link_process import plan
from small_robots import arm6_machine
from warm_robots import thermal_models

import dynident as di
from dynident.errors import LinkError
from dynident.friction import Coulomb, TemperatureDependent, Viscous
from dynident.monitor import Monitor, Reading
from dynident.simulate import VirtualRobot
from dynident_lab.link import (
    RLS,
    Campaign,
    Emulator,
    Identity,
    Listener,
    LiveFit,
    LiveMonitor,
    Samples,
    Settings,
    SimpleClient,
    SimpleServer,
)

WHEEL = di.Mechanism.from_dh([(0.3, 0.0, 0.0, 0.0)], name="wheel")  # turns about the vertical: J a + fv v + fc sign(v) + off
TRUTH = {"fv_joint_1": 2.0, "fc_joint_1": 3.0, "off_joint_1": 0.5}
INERTIA = 0.4


def turning(begin: float, seconds: float, scale: float = 1.0) -> Samples:
    """What a controller would send of a wheel, from its closed form."""
    t = begin + 0.004 * np.arange(int(seconds / 0.004))
    q, v, a = (
        np.sin(2 * t) + 0.3 * np.sin(7 * t),
        2 * np.cos(2 * t) + 2.1 * np.cos(7 * t),
        -4 * np.sin(2 * t) - 14.7 * np.sin(7 * t),
    )
    effort = scale * (INERTIA * a + 2.0 * v + 3.0 * np.sign(v) + 0.5) + 0.01 * np.random.default_rng(0).normal(size=t.size)
    return Samples(np.arange(t.size), t, t, q[:, None], v[:, None], effort[:, None], np.full((t.size, 1), np.nan))


def live_fit(memory: float, **options: float) -> LiveFit:
    channels = Identity(robot="wheel", channels=("joint_1",), effort_kind="joint_torque")
    return LiveFit(RLS(memory=memory).start(di.base_parameters(WHEEL), sigma=0.01), channels, **options)


def values(live: LiveFit) -> dict[str, float]:
    return dict(zip(live.estimator.base_.names, live.estimator.coef_, strict=True))


def test_the_stream_identifies_the_robot_however_it_is_cut() -> None:
    rows, whole, pieces = turning(0.0, 8.0), live_fit(np.inf), live_fit(np.inf)
    whole.feed(0.0, rows)
    for first in range(0, len(rows), 37):
        pieces.feed(0.0, Samples.from_table(rows.table[first : first + 37]))
    np.testing.assert_allclose(pieces.estimator.coef_, whole.estimator.coef_, rtol=1e-6)
    assert pieces.count == whole.count == len(rows) - 24  # half a window of twelve samples is lost at either end
    found = values(whole)
    for name, wanted in TRUTH.items():
        assert found.pop(name) == pytest.approx(wanted, rel=0.01)
    assert list(found.values()) == pytest.approx([INERTIA], rel=0.01)


def test_with_forgetting_it_follows_a_change_across_a_gap() -> None:
    live = live_fit(memory=0.5)
    live.feed(0.0, turning(0.0, 6.0))
    live.feed(0.0, turning(9.0, 6.0, scale=1.5))
    for name, wanted in TRUTH.items():
        assert values(live)[name] == pytest.approx(1.5 * wanted, rel=0.03)
    with pytest.raises(LinkError, match="not started"):
        LiveFit(RLS(), Identity(robot="wheel", channels=("joint_1",)))
    with pytest.raises(LinkError, match="window is -1"):
        live_fit(1.0, window=-1.0)


# ---- monitor -------------------------------------------------------------------------------------------------------------


def test_the_stream_drives_the_monitor_and_a_changed_robot_stops_the_campaign(tmp_path) -> None:
    """One stream drives monitor and estimators; its log calibrates; then comes a load that the model does not have."""
    machine, wanted = arm6_machine(thermal=thermal_models()), plan(1)  # with all of its weight
    robot = machine.model
    rng = np.random.default_rng(0)
    motion = di.Motion(np.arange(600.0), *(rng.uniform(-x, x, (600, 6)) for x in (3.0, 2.0, 8.0)))
    effort = di.inverse_dynamics(robot, motion) + rng.normal(size=(600, 6))
    fit = di.WLS().fit(di.Regression.from_motion(robot, motion, effort)).result_

    rls, count = RLS(memory=60.0).start(di.base_parameters(robot)), list[int]()
    counter = SimpleNamespace(feed=lambda host, samples: count.append(len(samples)))  # any object with feed may listen

    def campaign(
        virtual: VirtualRobot, folder: str, monitor: Monitor, others: tuple[Listener, ...] = (), **options
    ) -> tuple[LiveMonitor, Campaign, SimpleServer]:
        server = SimpleServer(Emulator(virtual, speed=20.0), motion_port=0, state_port=0).start()
        client = SimpleClient("127.0.0.1", server.motion_port, server.state_port)
        identity = Identity.of(server.emulator.identity)
        live = LiveMonitor(monitor, identity, **options)
        others = (*others, LiveFit(rls, identity))
        return live, Campaign.create(tmp_path / folder, wanted, Settings(), client, listeners=(live, *others)), server

    live, first, server = campaign(machine, "first", Monitor(fit), (counter,), stop=False)
    with closing(server):
        assert first.run() == 1
        identity = Identity.of(server.emulator.identity)
    assert live.reading is not None
    log = di.Log.read(tmp_path / "first").cycles()[0]
    k = rls.base_.names.index("fc_joint1")
    assert rls.coef_[k] > 6.0 * np.sqrt(rls.covariance_[k, k])  # there is Coulomb friction
    assert sum(count) >= len(log)
    monitor = Monitor(fit).calibrated(log)
    assert not monitor.run(log).events
    loaded = replace(machine, mechanism=machine.mechanism.with_payload(20.0))
    seen: list[Reading] = []
    live, second, server = campaign(loaded, "second", monitor, alarm=seen.append)
    with closing(server), pytest.raises(LinkError, match="possible collision: external torque of 'joint"):
        second.run()
    assert len(seen) == len(live.events) == 1
    with pytest.raises(LinkError, match="does not measure joint6"):
        LiveMonitor(monitor, replace(identity, channels=identity.channels[:5]))


def test_a_temperature_that_is_not_measured_is_not_zero() -> None:
    """Friction of 4 N at 20 degrees is 5 N at 0: a lost temperature was a push of 1 N."""
    body = di.Body("cart", np.array([2.0, 0, 0, 0, 1, 0, 0, 1, 0, 1]))
    rail = di.Joint("rail", "prismatic", "base", "cart", axis=(1, 0, 0))
    robot = di.Mechanism("slide", (di.Body("base"), body), (rail,), terms=("fc",))
    t = np.arange(2000) / 1000.0
    motion = di.Motion(t, np.sin(t)[:, None], np.cos(t)[:, None], -np.sin(t)[:, None])
    effort = -2.0 * motion.q + 4.0 * np.sign(motion.v) + 0.01 * np.random.default_rng(0).normal(size=(2000, 1))
    fit = di.WLS().fit(di.Regression.from_motion(robot, motion, effort)).result_
    law = TemperatureDependent(Coulomb() + Viscous(), 20.0).using(fc=4.0, fv=0.0, alpha=-0.0125)
    monitor = Monitor(fit, friction={"rail": law})
    live = LiveMonitor(monitor, Identity(channels=("rail",), effort_kind="joint_force"), stop=False)
    heat = np.where((t > 0.5) & (t < 0.55), np.nan, 20.0)[:, None]
    live.feed(0.0, Samples(np.arange(1000), t[:1000], t[:1000], motion.q[:1000], motion.v[:1000], effort[:1000], heat[:1000]))
    assert not live.events
    assert live.reading is not None
    assert abs(live.reading.torque[0]) < 0.1


def test_a_gap_in_the_counter_starts_the_monitor_anew() -> None:
    body = di.Body("cart", np.array([2.0, 0, 0, 0, 1, 0, 0, 1, 0, 1]))
    rail = di.Joint("rail", "prismatic", "base", "cart", axis=(1, 0, 0))
    robot = di.Mechanism("slide", (di.Body("base"), body), (rail,), terms=())
    t = np.arange(400) / 100.0
    motion = di.Motion(t, np.sin(t)[:, None], np.cos(t)[:, None], -np.sin(t)[:, None])
    noise = 0.01 * np.random.default_rng(0).normal(size=(400, 1))
    fit = di.WLS().fit(di.Regression.from_motion(robot, motion, -2.0 * motion.q + noise)).result_
    live = LiveMonitor(Monitor(fit), Identity(channels=("rail",), effort_kind="joint_force"), stop=False)
    push = 5.0 * np.ones((400, 1))
    rows = Samples(np.arange(400), t, t, motion.q, motion.v, -2.0 * motion.q - push, np.full((400, 1), np.nan))
    table = rows.table
    live.feed(0.0, Samples.from_table(table[:200]))
    assert len(live.events) == 1
    assert live.reading is not None
    assert live.reading.torque[0] == pytest.approx(5.0, abs=0.2)
    live.feed(0.0, Samples.from_table(table[205:206]))
    assert np.isnan(live.reading.torque[0])
