"""What a monitor may not know: lost samples, slow logs, uncertain small joints, motions beyond the training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_monitor import slide

import dynident as di
from dynident.errors import LogError
from dynident.friction import Coulomb, TemperatureDependent, Viscous
from dynident.monitor import Monitor


def pushed_rail() -> tuple[di.Fit, di.Log]:
    """Return a fit of the slide, and a log in which it is pushed from 3 s on."""
    robot, _ = slide()
    rng = np.random.default_rng(5)
    t = np.arange(6000) / 1000.0
    q, a = (x[:, None] for x in (np.sin(4.0 * t), -16.0 * np.sin(4.0 * t)))
    log = di.Log(t, ["rail"], q, 2.0 * a + 0.5 * rng.normal(size=q.shape), "joint_force")
    fit = di.WLS().fit(di.Regression.from_log(robot, log)).result_
    return fit, replace(log, effort=log.effort - 3.0 * (t > 3.0)[:, None])


def test_samples_that_are_lost_now_and_then_do_not_blind_it() -> None:
    """It was blind for good when every twentieth sample was not a number, and said 'no event'."""
    fit, log = pushed_rail()
    effort = log.effort.copy()
    effort[::20] = np.nan
    monitor = Monitor(fit, bandwidth=10.0)
    record = monitor.run(replace(log, effort=effort))
    (event,) = record.events
    assert 3.0 < event.start < 3.05
    assert record.blind == pytest.approx(0.05 * 6.0 + monitor.settling, abs=0.01)
    assert f"no result for {record.blind:.3g} s" in record.summary()
    assert np.isfinite(record.coverage).all()
    gone = np.where(np.arange(6000) % 40 < 35, np.nan, 1.0)[:, None] * log.effort
    with pytest.raises(LogError, match=r"cannot be monitored: the low-pass needs .* at most 0\.01 s apart"):
        monitor.run(replace(log, effort=gone))


def test_logs_that_are_sampled_too_slowly_are_refused() -> None:
    """With about one sample per period of the low-pass healthy runs raised the flag; beyond `gap` nothing did."""
    fit, log = pushed_rail()
    slow = di.Log(log.t[::40], log.joints, log.position[::40], log.effort[::40], log.effort_kind)
    with pytest.raises(LogError, match=r"has 25 samples per second, but the low-pass of 100 Hz needs 240; give cutoff= of"):
        Monitor(fit, bandwidth=10.0).run(slow)
    assert Monitor(fit, bandwidth=0.6).run(slow).events[0].start == pytest.approx(3.2, abs=0.2)


def test_a_temperature_that_is_not_a_number_does_not_stay_in_the_observer() -> None:
    """One of them made the torque of its joint NaN for ever, and no flag was raised any more."""
    _, fit = slide(fc=4.0, noise=0.02)
    law = TemperatureDependent(Coulomb() + Viscous(), 20.0).using(fc=4.0, fv=0.0, alpha=-0.0125)
    monitor = Monitor(fit, friction={"rail": law}, bandwidth=20.0)
    for k in range(1000):
        heat = np.nan if k == 500 else 20.0
        reading = monitor.update(0.001 * k, [0.001 * k], [4.0 - 3.0 * (k > 700)], [heat])
        assert np.isnan(reading.torque[0]) == (k == 500) or 0.001 * k < 1.2 * monitor.settling
    assert reading.flag
    assert reading.torque[0] == pytest.approx(3.0, abs=0.02)


def arm_of_many_sizes() -> tuple[di.Mechanism, di.Log]:
    """Return a shoulder that carries 20 kg and a wrist of 0.1 kg, and a log with noise in proportion."""
    robot = di.Mechanism.from_dh([(0.5, np.pi / 2, 0, 0), (0.5, 0, 0, 0), (0.1, 0, 0, 0)])
    bodies = zip(robot.tree.bodies, (20.0, 20.0, 0.1), strict=True)
    robot = robot.with_parameters(robot.parameters.replace({f"{p}_{b}": m for b, m in bodies for p in ("m", "Izz")}))
    return robot, swing(robot, 0, 1.0)


def swing(robot: di.Mechanism, seed: int, speed: float) -> di.Log:
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 10.0, 0.004)
    w, phase = speed * rng.uniform(1.0, 4.0, (2, 3)), rng.uniform(0.0, 6.0, (2, 3))
    x = w * t[:, None, None] + phase
    motion = di.Motion(t, np.sin(x).sum(1), (w * np.cos(x)).sum(1), (-(w**2) * np.sin(x)).sum(1))
    noise = rng.normal(size=motion.q.shape) * [5.0, 5.0, 0.01]
    return di.Log(t, robot.joint_names, motion.q, di.inverse_dynamics(robot, motion) + noise, "joint_torque")


def test_uncertainty_of_small_joints_is_in_their_thresholds() -> None:
    """Directions were ranked by N m of all joints alike: those of a wrist were lost beside a shoulder."""
    robot, log = arm_of_many_sizes()
    fit = di.WLS().fit(di.Regression.from_log(robot, log)).result_
    monitor = Monitor(fit, bandwidth=20.0, cutoff=25.0)
    other, spread = swing(robot, 1, 1.0), []
    for k in range(1500):
        monitor.update(other.t[k], other.position[k], other.effort[k])
        spread.append(np.sum(monitor.state["spread"] ** 2, axis=0))
    v = np.gradient(other.position, 0.004, axis=0)
    a = np.gradient(v, 0.004, axis=0)
    *_, stated = fit.evaluate((other.position[100:1500], v[100:1500], a[100:1500]), fit.values[None])
    ratio = np.sqrt(np.mean(spread[100:], axis=0) / np.mean(stated**2, axis=0))
    assert np.all((ratio > 0.6) & (ratio < 1.5)), ratio


def test_errors_of_the_model_grow_with_its_terms() -> None:
    """Friction that the model does not have: twice as fast, thresholds grow as `Fit.predict` states, and slow ones stay."""
    robot, log = arm_of_many_sizes()
    robot = robot.with_terms(("fv",))

    def bent(one: di.Log) -> di.Log:
        v = np.gradient(one.position, 0.004, axis=0)
        return replace(one, effort=one.effort + np.array([20.0, 20.0, 0.05]) * np.sign(v) * np.abs(v) ** 1.6)

    fit = di.MAP().fit(di.Regression.from_log(robot, bent(log))).result_
    monitor = Monitor(fit)
    plain = Monitor(fit.altered(training_columns=None))  # without a belief there is no such term
    for speed, grown in ((0.5, False), (2.0, True)):
        other = bent(swing(robot, 2, speed))
        own, less = (np.nanmedian(m.run(other).threshold, axis=0) for m in (monitor, plain))
        assert np.all(own >= less)
        assert np.all(own > 1.2 * less) == grown, (own, less)
