"""Friction laws against a known truth: one band, dead efforts, bodies that a joint alone does not show, shapes that wander."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dynident as di
from dynident.errors import DynidentWarning
from dynident.friction.text import law_text
from dynident.identify import Axis, fit_friction
from dynident.identify.friction.choice import choose_recorded, compare_models
from dynident.identify.friction.fitting import friction_data


def waves(t, seed, size, speed):
    """Return q, v, a (N, joints) of sums of three sines."""
    rng = np.random.default_rng(seed)
    w = speed * rng.uniform(0.6, 2.4, (3, size))
    phase, high = rng.uniform(0.0, 6.0, (3, size)), rng.uniform(0.2, 0.5, (3, size))
    x = t[:, None, None] * w + phase
    return (np.sin(x) * high).sum(1), (np.cos(x) * high * w).sum(1), (-np.sin(x) * high * w**2).sum(1)


# ---- several logs ---------------------------------------------------------------------------------------------------------


def arm() -> di.Mechanism:
    bare = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.25, 0, 0, 0)], gravity=(0, -9.81, 0), name="two")
    return bare.with_payload(1.5, (0.1, 0.02, 0.0)).with_terms(("ia", "fv", "fc"))


FRICTION = np.array([0.8, 0.5]), np.array([0.3, 0.2])  # Coulomb, viscous


def record(robot, seed, seconds, speed, dead=()):
    t = np.arange(0.0, seconds, 0.01)
    q, v, a = waves(t, seed, 2, speed)
    tau = di.inverse_dynamics(robot, (q, v, a)) + FRICTION[0] * np.sign(v) + FRICTION[1] * v
    tau += 0.02 * np.random.default_rng(seed).normal(size=tau.shape)
    tau[:, list(dead)] = 0.0
    return di.Log(t=t, joints=robot.joint_names, position=q, effort=tau, effort_kind="joint_torque", name=f"run {seed}")


@pytest.fixture(scope="module")
def runs():
    """Three runs, a slow one among them; each joint's effort is missing in one."""
    robot = arm()
    return robot, [record(robot, 1, 8.0, 3.0, [0]), record(robot, 2, 16.0, 1.0, [1]), record(robot, 3, 8.0, 3.0)]


def test_logs_of_a_fit_with_laws_share_one_band_and_dead_efforts_cost_only_their_own_log(runs) -> None:
    robot, logs = runs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)  # dead channels
        plain = di.MAP().fit(di.Regression.from_logs(robot, logs)).result_
        fit = di.fit_friction(robot, logs[:2], "coulomb + viscous", None, None, di.MAP())  # no run has both efforts
        whole = di.fit_friction(robot, logs, "coulomb + viscous", None, None, di.MAP())
    bands = {(source["cutoff"], round(source["bandwidth"], 6)) for source in whole.sources}
    assert bands == {(source["cutoff"], round(source["bandwidth"], 6)) for source in plain.sources}
    assert len({cutoff for cutoff, _ in bands}) == 1
    assert set(fit.friction) == {"joint_1", "joint_2"}
    for found in (fit, whole):
        for i, joint in enumerate(robot.joint_names):
            numbers = found.friction[joint].parameters
            assert numbers["coulomb.fc"] == pytest.approx(FRICTION[0][i], abs=0.05)
            assert numbers["viscous.fv"] == pytest.approx(FRICTION[1][i], abs=0.05)


def test_the_laws_of_the_terms_are_the_default_fit(runs) -> None:
    """Coulomb and viscous friction as laws: same columns, same belief, same signs, and so the same model."""
    robot, (_, _, log) = runs
    plain = di.MAP().fit(di.Regression.from_logs(robot, [log])).result_
    laws = di.fit_friction(robot, log, "coulomb + viscous", None, None, di.MAP())
    t = np.arange(0.0, 5.0, 0.01)
    other = di.Motion(t, *waves(t, 9, 2, 2.0))
    np.testing.assert_allclose(laws.predict(other).effort, plain.predict(other).effort, atol=1e-6)


def test_a_robot_with_laws_that_hangs_on_a_wall_is_suspected_of_it() -> None:
    """Looking for another gravity left the Stribeck speed at zero, where no law is, and ended the fit."""
    law = di.friction.law_of("stribeck + viscous").using(fc=0.8, fs=1.0, vs=0.1, fv=0.3)
    robot = arm().with_friction({"joint_1": law})
    log = record(arm().with_gravity((9.81, 0.0, 0.0)), 3, 12.0, 2.0)
    assert any(finding.kind == "mounting" for finding in di.inspect(log, robot).findings)


# ---- one joint ------------------------------------------------------------------------------------------------------------


def slide() -> di.Mechanism:
    body = di.Body("cart", np.array([2.0, 0, 0, 0, 1, 0, 0, 1, 0, 1]))
    rail = di.Joint("rail", "prismatic", "base", "cart", axis=(1, 0, 0))
    return di.Mechanism("slide", (di.Body("base"), body), (rail,), terms=("ia", "fv", "fc"))


@pytest.mark.parametrize("seed", [7, 10, 22])
def test_a_law_that_noise_does_not_show_stays_possible_and_is_scored_as_exported(seed: int) -> None:
    """Plain friction below its noise: the fit had fs = -2e7, fv < 0, or shapes that went on wandering away from the score."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 6.0, 0.01)
    w, size = np.array([1.0, 2.3, 3.1]), np.array([0.4, 0.15, 0.06])
    x = w * t[:, None] + rng.uniform(0.0, 6.0, 3)
    q, v, a = np.sin(x) @ size, np.cos(x) @ (size * w), -np.sin(x) @ (size * w**2)
    effort = 2.0 * a + 0.3 * np.sign(v) + 0.2 * v + 0.3 * rng.normal(size=t.size)
    log = di.Log(t, ["rail"], q[:, None], effort[:, None], "joint_force")
    fit = di.fit_friction(slide(), log, "stribeck + viscous", None, None, di.MAP())
    numbers = fit.friction["rail"].parameters
    assert numbers["viscous.fv"] >= 0.0
    assert 0.0 <= numbers["stribeck.fs"] < 3.0
    assert numbers["stribeck.vs"] > np.quantile(np.abs(v), 0.005)
    motion = di.Motion(t, q[:, None], v[:, None], a[:, None])
    np.testing.assert_allclose(di.inverse_dynamics(fit.model, motion), fit.predict(motion).effort, atol=1e-3)


def test_a_hump_below_the_speeds_that_were_seen_is_not_fitted() -> None:
    """Four outliers at reversals, as late samples make them, are no breakaway friction of their own height."""
    k = np.arange(2000)
    v = np.sin(0.01 * k + 0.003)
    tau = 0.5 * np.sign(v) + 0.2 * v + 0.02 * np.random.default_rng(0).normal(size=v.size)
    tau[np.argsort(np.abs(v))[:4]] += 5.0 * np.sign(v[np.argsort(np.abs(v))[:4]])
    fit = fit_friction(None, Axis(tau, v), "stribeck + viscous")
    assert abs(fit.parameters["stribeck.fs"]) < 3.0


# ---- choosing -------------------------------------------------------------------------------------------------------------


def test_laws_are_chosen_by_friction_not_by_bodies_that_a_joint_alone_invents() -> None:
    """Three joints, 12 s: errors of held-out blocks are those of the noise, and each joint has its true law."""
    rows = [(0.0, np.pi / 2, 0.2, 0.0), (0.4, 0.0, 0.0, 0.0), (0.3, np.pi / 2, 0.1, 0.0)]
    described = di.Mechanism.from_dh(rows, gravity=(0, 0, -9.81), name="three").with_payload(2.0, (0.05, 0.02, 0.1))
    true = described.with_payload(0.4, (0.0, 0.08, 0.05), name="more")
    t = np.arange(0.0, 12.0, 0.01)
    q, v, a = waves(t, 5, 3, 1.5)
    size = np.array([1.0, 2.0, 1.0])
    hump = 1.0 + np.array([0.0, 0.8, 0.0]) * np.exp(-((v / 0.25) ** 2))  # of the second joint
    tau = di.inverse_dynamics(true, (q, v, a)) + size * hump * np.sign(v) + 0.3 * v
    tau += 0.03 * np.random.default_rng(1).normal(size=tau.shape)
    log = di.Log(t=t, joints=described.joint_names, position=q, effort=tau, effort_kind="joint_torque")
    choice = choose_recorded(friction_data(described, log, None), ["coulomb + viscous", "stribeck + viscous"])
    assert [law_text(law).split()[0] for law in choice.laws.values()] == ["coulomb", "stribeck", "coulomb"]
    for own in choice.choices.values():
        best = own[own.best]
        assert best.held_out < 2.0 * best.training
        assert max(best.extrapolated, best.slower) < 3.0 * best.training


def made_up(errors, slow=1.0, fast=1.0, parameters=2):
    """Return a model with the same error everywhere, but for slow (first) and fast (last) rows where they were held out."""

    def fit(rows):
        found = np.full(rows.size, errors)
        found[:20] *= 1.0 if rows[:20].any() else slow
        found[-20:] *= 1.0 if rows[-20:].any() else fast
        return found, parameters

    return fit


@pytest.mark.parametrize("worse", ["slow", "fast"])
def test_a_law_that_is_worse_on_slower_or_faster_motion_than_the_simplest_is_out(worse: str) -> None:
    speed = np.linspace(0.1, 1.0, 100)
    rich = made_up(0.5, **{worse: 2.5}, parameters=4)
    assert compare_models({"plain": made_up(1.0), "rich": made_up(0.5, parameters=4)}, 100, 5, speed).best == "rich"
    found = compare_models({"plain": made_up(1.0), "rich": rich}, 100, 5, speed)
    assert found.best == "plain"
    assert found["rich"].held_out < found["plain"].held_out
    assert max(found["rich"].slower, found["rich"].extrapolated) == pytest.approx(1.25)


def test_what_rests_or_does_not_count_is_neither_fast_nor_slow() -> None:
    """The slowest rows are those that move: at rest friction is anything, and dead efforts show none."""
    speed = np.concatenate([np.zeros(40), np.linspace(0.1, 1.0, 100), np.full(60, np.nan)])
    seen = []

    def fit(rows):
        seen.append(~rows)
        return np.ones(rows.size), 2

    compare_models({"one": fit}, 200, 5, speed)
    fast, slow = seen[5], seen[6]
    assert not slow[:40].any()
    assert not (fast | slow)[140:].any()
    assert np.mean(speed[slow]) < np.mean(speed[fast])
