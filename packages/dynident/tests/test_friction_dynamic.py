"""Friction with memory: against implicit solvers on fine steps, steady states, hysteresis, passivity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynident.errors import DescriptionError, LogError
from dynident.friction import DynamicLaw, LuGre

LUGRE = LuGre(sigma0=1e5, sigma1=300.0, fc=1.0, fs=1.5, vs=0.01, fv=0.4)
LAWS = pytest.mark.parametrize("law", [LUGRE, LuGre(sigma0=1e4, sigma1=0.0, fc=1.0, fs=1.0, vs=0.05, exponent=1.0)])


def sweep(t: np.ndarray) -> np.ndarray:
    return 0.1 * np.sin(2 * np.pi * 1.3 * t) + 0.02 * np.sin(2 * np.pi * 4.0 * t)


@pytest.mark.parametrize(("sigma0", "limit"), [(1e5, 1.5e-3), (1e6, 1.5e-3)])
def test_lugre_at_one_millisecond_agrees_with_an_implicit_solver(sigma0: float, limit: float) -> None:
    law = LuGre(sigma0=sigma0, sigma1=np.sqrt(sigma0), fc=1.0, fs=1.5, vs=0.01, fv=0.4)
    t = np.arange(0.0, 0.5, 1e-3)
    options = {"method": "Radau", "rtol": 1e-8, "atol": 1e-15, "max_step": 1e-3}
    oracle = solve_ivp(lambda s, z: law.rate(z, sweep(np.asarray(s))), (0.0, t[-1]), [0.0], t_eval=t, **options).y[0]
    ours = law.simulate(t, sweep(t))
    assert np.abs(sigma0 * (ours.state[:, 0] - oracle)).max() < limit * law.fs
    expected = sigma0 * oracle + law.sigma1 * law.rate(oracle, sweep(t)) + law.fv * sweep(t)
    assert np.sqrt(np.mean((ours.force - expected) ** 2)) < 1e-3 * law.fs


def test_lugre_is_of_second_order_in_the_step() -> None:
    def coarse(step: float) -> np.ndarray:
        t = np.arange(0.0, 0.4 + step / 2, step)
        return LUGRE.simulate(t, sweep(t)).state[:: round(2e-3 / step), 0]

    exact = coarse(1e-5)
    errors = [np.sqrt(np.mean((coarse(step) - exact) ** 2)) for step in (1e-3, 5e-4, 2.5e-4)]
    assert errors[0] / errors[1] > 3.0
    assert errors[1] / errors[2] > 3.0


@LAWS
@pytest.mark.parametrize("speed", [-0.2, -0.004, 0.001, 0.012, 0.5])
def test_constant_speed_settles_on_the_static_law(law: DynamicLaw, speed: float) -> None:
    t = np.linspace(0.0, 400.0 / abs(speed) * 1e-3, 4001)
    assert law.simulate(t, speed).force[-1] == pytest.approx(float(law.steady(speed)), rel=1e-4)


@LAWS
def test_stiff_bristles_and_wild_signals_stay_within_bounds(law: DynamicLaw) -> None:
    rng = np.random.default_rng(3)
    t = np.cumsum(rng.uniform(1e-4, 0.5, 400))
    v = rng.normal(size=400) * 10.0 ** rng.uniform(-8, 2, 400)
    response = law.simulate(t, v)
    assert np.isfinite(response.force).all()
    stiffness = np.atleast_1d(getattr(law, "stiffness", getattr(law, "sigma0", 0.0)))
    assert np.abs(response.state[:, : stiffness.size] @ stiffness).max() <= getattr(law, "fs", 1.0) * (1.0 + 1e-12)


@LAWS
def test_small_motions_are_elastic(law: DynamicLaw) -> None:
    """Pre-sliding: a displacement far below breakaway is a spring, and what is stored is given back."""
    stiffness = np.sum(getattr(law, "stiffness", getattr(law, "sigma0", 0.0)))
    t = np.linspace(0.0, 100.0, 2001)  # so slow that the damping of the bristles does not count
    reach, w = 1e-9, 2 * np.pi / 100.0
    x, v = reach * (1.0 - np.cos(w * t)), reach * w * np.sin(w * t)
    response = law.simulate(t, v)
    np.testing.assert_allclose(response.force, stiffness * x, atol=3e-3 * stiffness * reach)


@LAWS
def test_no_motion_no_change(law: DynamicLaw) -> None:
    moving = law.simulate([0.0, 0.01], [0.0, 2e-3])
    still = law.simulate([0.0, 1.0, 5.0], 0.0, start=moving.state[-1])
    np.testing.assert_array_equal(still.state[:, 0], moving.state[-1, 0])


@LAWS
def test_a_simulation_can_be_cut_anywhere(law: DynamicLaw) -> None:
    t = np.linspace(0.0, 1.0, 501)
    whole = law.simulate(t, sweep(t))
    first = law.simulate(t[:251], sweep(t[:251]))
    second = law.simulate(t[250:], sweep(t[250:]), start=first.state[-1])
    np.testing.assert_array_equal(second.force[1:], whole.force[251:])
    force, state = law.advance(whole.state[100], sweep(t[100]), sweep(t[101]), t[101] - t[100])
    assert force == pytest.approx(whole.force[101], rel=1e-9)
    np.testing.assert_allclose(state, whole.state[101], rtol=1e-9)


def test_a_closed_loop_of_presliding_takes_energy(law: DynamicLaw = LUGRE) -> None:
    t = np.linspace(0.0, 3.0, 6001)
    v = 3e-5 * 2 * np.pi * np.cos(2 * np.pi * t)
    response = law.simulate(t, v)
    last = t >= 2.0
    loop = np.trapezoid((response.force * v)[last], t[last])
    assert loop > 0.0
    assert np.ptp(response.force[last]) > 0.1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_passive_lugre_law_gives_back_no_more_than_it_stored(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fc, over = rng.uniform(0.5, 2.0), rng.uniform(0.0, 1.0)
    sigma0 = 10.0 ** rng.uniform(4, 6)
    sigma1 = rng.uniform(0.1, 2.0) * np.sqrt(sigma0)
    law = LuGre(sigma0, sigma1, fc=fc, fs=fc * (1.0 + over), vs=rng.uniform(0.005, 0.05), fv=1.001 * sigma1 * over)
    assert law.passive()
    knots = np.linspace(0.0, 1.0, 15)
    t = np.linspace(0.0, 1.0, 20001)
    v = np.interp(t, knots, rng.normal(size=15) * 10.0 ** rng.uniform(-5, 0, 15))
    response = law.simulate(t, v)
    supplied = np.concatenate(
        [[0.0], np.cumsum(0.5 * np.diff(t) * (response.force * v)[1:] + 0.5 * np.diff(t) * (response.force * v)[:-1])]
    )
    stored = 0.5 * sigma0 * response.state[:, 0] ** 2
    assert (supplied - stored).min() > -1e-6 * supplied.max()


def test_passivity_is_told_per_speed() -> None:
    law = LuGre(sigma0=1e5, sigma1=300.0, fc=1.0, fs=1.5, vs=0.01)
    assert not law.passive()
    assert law.passive(speed=0.012)
    assert not law.passive(speed=1.0)
    assert LuGre(1e5, 0.0, 1.0, 1.5, 0.01).passive()


def test_bad_input_gets_one_sentence(subtests: pytest.Subtests) -> None:
    for call, error, words in [
        (lambda: LuGre(-1.0, 0.0, 1.0, 1.0, 0.1), DescriptionError, "sigma0 = -1.0"),
        (lambda: LuGre(1.0, -0.1, 1.0, 1.0, 0.1), DescriptionError, "sigma1 = -0.1"),
        (lambda: LUGRE.simulate([0.0, 0.0], [1.0, 1.0]), LogError, r"time does not increase at sample 1 \(0.0 s then 0.0 s"),
        (lambda: LUGRE.simulate([0.0, 1.0], [1.0, 1.0, 1.0]), LogError, r"v has the shape \(3,\)"),
        (lambda: LUGRE.simulate([0.0, 1.0], [1.0, np.nan]), LogError, r"v\[1\]"),
        (lambda: LUGRE.simulate([], []), LogError, "at least one time"),
        (lambda: LUGRE.simulate([0.0, np.inf], 0.0), LogError, "time at sample 1 is inf"),
        (lambda: LUGRE.simulate([0.0, 1.0], 0.0, start=[0.0, 0.0]), LogError, "1 finite numbers"),
        (lambda: LUGRE.advance([0.0], 0.0, 1.0, -1e-3), LogError, "dt = -0.001"),
    ]:
        with subtests.test(str(words)):
            with pytest.raises(error, match=words) as caught:
                call()
            assert "\n" not in str(caught.value)
