"""The band of a fit: logs of any length, and cut-offs whose parameters agree with those of lower ones."""

import warnings
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from identify_cases import arm, simulated_log

import dynident as di
from dynident.errors import DynidentWarning

SLIDE = {"a": 0, "alpha": 0, "d": 0, "theta": 0, "kind": "prismatic", "joint": "slide"}
MASS, FRICTION = 20.0, 6.0


def slider():
    return di.Mechanism.from_dh([SLIDE], name="slider", gravity=(0, 0, 0))


def slides(q, v, a, t, name, ripple=0.0, seen=1.0):
    """Return the log of one mass; of the force for `ripple` [m] at 200 Hz the drive shows the share `seen`."""
    w = 2 * np.pi * 200.0
    shaken = ripple * np.sin(w * t)
    noise = 0.2 * np.random.default_rng(len(t)).normal(size=t.size)
    speed = v + ripple * w * np.cos(w * t)
    effort = MASS * (a - seen * w**2 * shaken) + FRICTION * np.sign(speed) + noise
    return di.Log(
        t=t, joints=("slide",), position=(q + shaken)[:, None], effort=effort[:, None], effort_kind="joint_torque", name=name
    )


def sines(seconds, **beside):
    t = np.arange(int(seconds * 1000)) / 1000
    w, size = 2 * np.pi * np.array([0.5, 1.3, 2.1]), np.array([0.1, 0.03, 0.01])
    angle = np.outer(t, w)
    q, v, a = np.sin(angle) @ size, np.cos(angle) @ (w * size), -np.sin(angle) @ (w**2 * size)
    return slides(q, v, a, t, "sines", **beside)


def mass(fit):
    (at,) = [i for i, name in enumerate(fit.base.leaders) if name.startswith(("m_", "ia_"))]
    return fit.values[at], fit.std[at]


@pytest.mark.parametrize(("seen", "lower"), [(1.0, False), (0.3, True)])
def test_a_cut_off_is_lowered_only_if_its_parameters_contradict_those_of_lower_ones(seen, lower):
    """Drives that step shake the machine at a frequency at which their current tells only a part of the force."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)
        data = di.Regression.from_logs(slider(), [sines(20.0, ripple=3e-6, seen=seen)])
    said = [note for note in data.notes if note.kind == "band_inconsistent"]
    assert bool(said) is lower
    assert (data.sources[0]["cutoff"] < 200.0) is lower
    value, std = mass(di.MAP().fit(data).result_)
    assert value == pytest.approx(MASS, abs=3 * std, rel=1e-3)  # central differences are exact to 0.1 %
    assert std < 0.02 * MASS


def test_linearised_shapes_of_a_law_do_not_decide_about_the_band():
    """The slope is a guess there: the error of its first order, and so all columns of the law, differ from band to band."""
    law = di.friction.Friction(di.friction.law_of("viscous + tanh"), (3.0, 6.0, 20.0))
    data = di.Regression.from_logs(replace(slider(), friction={"slide": law}), [sines(20.0)])
    names, zero, one = data.base.names, np.zeros(data.base.rank), np.ones(data.base.rank)
    difference = import_module("dynident.identify.regression.logs")._difference  # `dynident.identify` is a function
    apart = {name: difference((10.0 * (np.array(names) == name), one), (zero, one), data)[0] for name in names}
    assert {name for name, z in apart.items() if z == 0.0} == {"viscous.fv_slide", "tanh.fc_slide", "tanh.beta_slide"}
    assert any(z > 5.0 for z in apart.values())


def test_sets_of_short_logs_are_fitted():
    """Moves of half a second, one of them even shorter: cut-offs that it is too short for are not tried."""
    logs = []
    for k, seconds in enumerate([0.6] * 7 + [0.35]):
        t = np.arange(int(seconds * 1000)) / 1000
        s, way = t / t[-1], 0.1 * (-1) ** k
        q = way * (10 * s**3 - 15 * s**4 + 6 * s**5)
        v = way * (30 * s**2 - 60 * s**3 + 30 * s**4) / t[-1]
        a = way * (60 * s - 180 * s**2 + 120 * s**3) / t[-1] ** 2
        logs.append(slides(q, v, a, t, f"move {k}"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)
        fit = di.MAP().fit(di.Regression.from_logs(slider(), logs)).result_
    value, std = mass(fit)
    assert value == pytest.approx(MASS, abs=3 * std)
    assert std < 0.05 * MASS


def test_more_logs_of_a_motion_do_not_narrow_its_band():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)
        one, four = (
            di.Regression.from_logs(slider(), [sines(s) for s in lengths]) for lengths in ((8.0,), (8.0, 7.5, 7.0, 6.5))
        )
    assert four.sources[0]["bandwidth"] >= 0.9 * one.sources[0]["bandwidth"]


def sticking(share: float) -> di.Log:
    """A mass that sticks at its reversals for some samples, where friction is anything, and is shaken by its drive."""
    t = np.arange(20_000) / 1000
    w, size = 2 * np.pi * np.array([0.5, 1.3, 2.1]), np.array([0.1, 0.03, 0.01])
    angle = np.outer(t, w)
    q, v, a = np.sin(angle) @ size, np.cos(angle) @ (w * size), -np.sin(angle) @ (w**2 * size)
    held = np.abs(share * v) < 0.015 * np.sqrt(np.mean(v**2))
    log = slides(share * q, share * v, share * a, t, f"sticking {share}", ripple=3e-6)
    effort = np.where(held, log.effort[:, 0] - 0.8 * FRICTION * np.sign(a), log.effort[:, 0])
    return replace(log, effort=effort[:, None])


def test_rows_near_standstill_are_left_out_where_drives_step_and_joints_stick():
    log = sticking(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)
        data, every = (di.Regression.from_logs(slider(), [log], **given) for given in ({}, {"standstill": 0.0}))
    assert any(note.kind == "standstill" for note in data.notes)
    assert data.options["standstill"] > 0.0  # rows that were not fitted are not scored either
    deviations = [di.MAP().fit(each).result_.std[0] for each in (data, every)]
    assert deviations[0] < 0.7 * deviations[1]
    assert data.rows < every.rows


def test_speeds_at_which_the_training_log_sticks_are_not_scored_in_a_slower_log(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)
        fit = di.MAP().fit(di.Regression.from_logs(slider(), [sticking(1.0)])).result_
        found = [each.score(sticking(0.1)).metrics for each in (fit, di.Fit.load(fit.save(tmp_path / "fit.json")))]
    noise = np.sqrt(np.mean(fit.sigma**2))
    assert [each.rmse[0] for each in found] == pytest.approx([noise, noise], rel=0.5)


@pytest.mark.parametrize(("count", "each"), [(4, 3), (8, 2)])
def test_every_log_of_a_fit_has_its_share_of_twelve_stretches_and_two_at_least(count, each):
    robot = arm()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)
        data = di.Regression.from_logs(robot, [simulated_log(robot, 6.0, seed, noise=0.05) for seed in range(count)])
    assert [len(group.counts) for group in data.groups] == 3 * [count * each]
