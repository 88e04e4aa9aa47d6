"""Thermal models of friction: numbers of [Pagani2022], closed forms, exact steps, derivatives, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from dynident.errors import DescriptionError, LogError
from dynident.friction import Coulomb, Polynomial
from dynident.friction.law import State
from dynident_lab.thermal import AdvancedSecondOrder, FirstOrder, SecondOrder, Thermal, ThermalModel

MINUTE = 60.0
FULL = 97.65  # W, cold friction power of axis 4 at full duty

# [Pagani2022, eq. 130]: the identified second-order model of axis 4.
AXIS4 = SecondOrder(alpha=-0.0141, beta=0.9971, K1=4.41, K2=4.57, C1=737.61, C2=9163.45)
FIRST = FirstOrder(alpha=-0.0141, beta=0.98, K=2.3, C=3000.0)
ADVANCED = AdvancedSecondOrder(alpha=-0.0141, beta=0.99, K12=4.4, K13=0.8, K23=0.5, K2e=4.0, C1=740.0, C2=9200.0, We=6.0)
MODELS = pytest.mark.parametrize("model", [FIRST, AXIS4, ADVANCED], ids=["first", "second", "advanced"])


@pytest.mark.parametrize(
    ("power", "slow", "fast", "ratio", "rise1", "rise2"),
    [  # computed separately from [Pagani2022, eq. 130]
        (0.0, 36.3324, 2.5641, 0.9971, 0.0, 0.0),
        (19.53, 34.0686, 2.4356, 0.88813, 7.7286, 3.7954),
        (39.06, 32.2650, 2.3184, 0.80063, 13.9343, 6.8430),
        (58.59, 30.7959, 2.2112, 0.72882, 19.0268, 9.3439),
        (97.65, 28.5513, 2.0222, 0.61797, 26.8884, 13.2046),
    ],
)
def test_axis_4_at_every_duty_cycle(power: float, slow: float, fast: float, ratio: float, rise1: float, rise2: float) -> None:
    np.testing.assert_allclose(AXIS4.time_constants(power) / MINUTE, [slow, fast], atol=5.1e-5)
    assert AXIS4.steady_ratio(power) == pytest.approx(ratio, abs=5.1e-6)
    np.testing.assert_allclose(AXIS4.steady_state(power) - 20.0, [rise1, rise2], atol=5.1e-5)
    np.testing.assert_allclose(np.sort(-1.0 / np.linalg.eigvals(AXIS4.matrix(power)))[::-1], AXIS4.time_constants(power))


def test_time_constants_of_many_powers_at_once() -> None:
    powers = np.array([[0.0, 20.0], [50.0, FULL]])
    batch = AXIS4.time_constants(powers)
    assert batch.shape == (2, 2, 2)
    np.testing.assert_array_equal(batch[1, 1], AXIS4.time_constants(FULL))
    assert (np.diff(AXIS4.time_constants(np.linspace(0, 100, 11)), axis=0) < 0.0).all()


HEATING = np.array(  # computed separately: t [min], T1, T2, ratio at full duty from 20 degrees
    [
        (0, 20, 20, 0.9971),
        (1, 26.3279, 20.0964, 0.90788),
        (2, 30.3303, 20.3292, 0.85144),
        (5, 35.7860, 21.3613, 0.77452),
        (10, 38.5370, 23.1998, 0.73573),
        (20, 41.0801, 26.1511, 0.69987),
        (30, 42.7969, 28.2353, 0.67566),
        (60, 45.4577, 31.4670, 0.63815),
        (80, 46.1782, 32.3422, 0.62799),
        (120, 46.7134, 32.9922, 0.62044),
    ]
)


def test_axis_4_heats() -> None:
    warming = AXIS4.simulate(HEATING[:, 0] * MINUTE, FULL)
    np.testing.assert_allclose(warming.state, HEATING[:, 1:3], atol=5.1e-5)
    np.testing.assert_allclose(warming.ratio, HEATING[:, 3], atol=5.1e-6)
    np.testing.assert_allclose(warming.power, FULL * warming.ratio)
    assert warming.power[-1] == pytest.approx(60.5, abs=0.3)  # hot power 60.3 W in the limit


def test_axis_4_cools() -> None:
    t = np.array([0, 5, 10, 20, 30, 60, 120]) * MINUTE
    cooling = AXIS4.simulate(t, 0.0, start=AXIS4.steady_state(FULL))
    expected = [0.61797, 0.78496, 0.82905, 0.87191, 0.90208, 0.95549, 0.98912]
    np.testing.assert_allclose(cooling.ratio, expected, atol=5.1e-6)
    modes = 11.500 * np.exp(-t / MINUTE / 2.564) + 15.388 * np.exp(-t / MINUTE / 36.33)
    np.testing.assert_allclose(cooling.temperature - 20.0, modes, atol=2e-3)
    assert cooling.power.max() == 0.0


def test_the_twin_of_table_6() -> None:
    """27.2 N m cold, 16.858 + 4.500 exp(-t/28.551) + 5.842 exp(-t/2.022) N m while heating."""
    t = np.arange(0.0, 120.1, 2.5)
    torque = 27.2 / AXIS4.beta * AXIS4.simulate(t * MINUTE, FULL).ratio
    np.testing.assert_allclose(torque, 16.858 + 4.500 * np.exp(-t / 28.551) + 5.842 * np.exp(-t / 2.022), atol=1.5e-3)


def test_time_constants_of_table_8() -> None:
    """Table 8 gives 27.6 and 2.3 min for axis 4 from a direct fit: within 4 % and 13 % of the state matrix."""
    np.testing.assert_allclose(AXIS4.time_constants(FULL) / MINUTE, [27.6, 2.3], rtol=0.13)
    assert AXIS4.time_constants(FULL)[0] / MINUTE == pytest.approx(27.6, rel=0.04)


def test_what_torque_alone_can_tell() -> None:
    expected = {"K1/|alpha|": 312.77, "K2/|alpha|": 324.11, "C1/|alpha|": 52312.8, "C2/|alpha|": 649890.0, "beta": 0.9971}
    assert AXIS4.scale_free() == pytest.approx(expected, rel=2e-5)
    twin = SecondOrder(alpha=-0.0282, beta=0.9971, K1=8.82, K2=9.14, C1=1475.22, C2=18326.9)
    t = np.linspace(0.0, 7200.0, 50)
    np.testing.assert_allclose(twin.simulate(t, FULL).ratio, AXIS4.simulate(t, FULL).ratio, rtol=1e-12)


@MODELS
def test_steps_are_exact_for_held_inputs(model: ThermalModel) -> None:
    rng = np.random.default_rng(5)
    t = np.cumsum(rng.uniform(1.0, 900.0, 30))
    power, ambient, zone, losses = (
        rng.uniform(0, 120, 30),
        rng.uniform(15, 25, 30),
        rng.uniform(20, 30, 30),
        rng.uniform(0, 5, 30),
    )
    warming = model.simulate(t, power, ambient=ambient, zone=zone, losses=losses)
    state = warming.state[0]
    for k in range(29):
        A = model.matrix(power[k])
        settled = model.steady_state(power[k], ambient[k], zone[k], losses[k])
        state = settled + expm(A * (t[k + 1] - t[k])) @ (state - settled)
        np.testing.assert_allclose(warming.state[k + 1], state, rtol=1e-9)
        one = model.advance(warming.state[k], power[k], t[k + 1] - t[k], ambient[k], zone[k], losses[k])
        np.testing.assert_allclose(one, warming.state[k + 1], rtol=1e-9)


def test_the_advanced_model_against_an_ode_solver() -> None:
    m, T0 = ADVANCED, ADVANCED.reference

    def rate(t: float, y: np.ndarray) -> list[float]:
        heat = FULL * (m.alpha * (y[0] - T0) + m.beta) + m.We
        first = (heat - m.K12 * (y[0] - y[1]) - m.K13 * (y[0] - 31.0)) / m.C1
        return [first, (m.K12 * (y[0] - y[1]) - m.K23 * (y[1] - 31.0) - m.K2e * (y[1] - 18.0)) / m.C2]

    t = np.linspace(0.0, 7200.0, 25)
    oracle = solve_ivp(rate, (0.0, 7200.0), [18.0, 18.0], t_eval=t, rtol=1e-10, atol=1e-10, method="Radau").y.T
    np.testing.assert_allclose(m.simulate(t, FULL, ambient=18.0, zone=31.0).state, oracle, atol=1e-6)


def test_time_constants_of_the_advanced_model() -> None:
    """[Pagani2022, eq. 153] with a = W alpha in place of the printed alpha."""
    m, a = ADVANCED, FULL * ADVANCED.alpha
    p = (m.K12 + m.K13 - a) / m.C1 + (m.K12 + m.K2e + m.K23) / m.C2
    q = ((m.K13 - a) * (m.K2e + m.K23) + m.K12 * (m.K2e + m.K13 + m.K23 - a)) / (m.C1 * m.C2)
    np.testing.assert_allclose(m.time_constants(FULL), np.sort(-1.0 / np.roots([1.0, p, q]))[::-1])


@MODELS
def test_sensitivities_are_exact(model: ThermalModel) -> None:
    t = np.linspace(0.0, 5400.0, 40)
    power = np.where(t < 3000.0, FULL, 10.0)
    exact = model.sensitivity(t, power, ambient=22.0, zone=28.0)
    base = {name: getattr(model, name) for name in (*model.names, "reference")}
    for i, name in enumerate(model.names):
        h = 1e-5 * max(abs(base[name]), 1e-2)
        up, down = (
            type(model)(**{**base, name: base[name] + s * h}).simulate(t, power, ambient=22.0, zone=28.0).ratio for s in (1, -1)
        )
        np.testing.assert_allclose(exact[:, i], (up - down) / (2 * h), rtol=1e-5, atol=1e-6 * np.abs(exact[:, i]).max())


def test_first_order_in_closed_form() -> None:
    m, t = FIRST, np.linspace(0.0, 9000.0, 50)
    settled = (m.K * 20.0 + FULL * (m.beta - m.alpha * 20.0)) / (m.K - FULL * m.alpha)  # eq. 111
    tau = m.C / (m.K - FULL * m.alpha)  # eq. 112
    warming = m.simulate(t, FULL)
    np.testing.assert_allclose(warming.temperature, settled + (20.0 - settled) * np.exp(-t / tau))
    np.testing.assert_allclose(m.time_constants(FULL), [tau])
    np.testing.assert_allclose(m.time_constants(), [m.C / m.K])
    assert m.time_constants(0.0) > m.time_constants(FULL)
    assert m.steady_ratio(FULL) == pytest.approx(m.beta * m.K / (m.K - FULL * m.alpha))


def test_models_contain_each_other() -> None:
    t = np.linspace(0.0, 7200.0, 60)
    tight = SecondOrder(alpha=-0.0141, beta=0.98, K1=1e7, K2=2.3, C1=1000.0, C2=2000.0)
    np.testing.assert_allclose(tight.simulate(t, FULL).temperature, FIRST.simulate(t, FULL).temperature, atol=1e-3)
    plain = AdvancedSecondOrder(alpha=-0.0141, beta=0.9971, K12=4.41, K13=0.0, K23=0.0, K2e=4.57, C1=737.61, C2=9163.45)
    np.testing.assert_allclose(plain.simulate(t, FULL, zone=50.0).state, AXIS4.simulate(t, FULL).state, rtol=1e-12)


def test_temperature_scales_any_law() -> None:
    friction = Polynomial().using(a0=5.0, a1=3.0, a2=0.4, a3=-0.05)
    warm = Thermal(friction, AXIS4)
    v = np.array([-3.0, -1.0, 0.0, 2.0])
    np.testing.assert_allclose(warm(State(v, T=np.full(4, 45.0))), friction(v) * AXIS4.ratio(45.0))
    t = np.arange(0.0, 7200.0, 2.0)
    speed = 3.351 * np.sign(np.sin(2 * np.pi * t / 8.0 + 0.1))
    result = warm.simulate(t, speed)
    cold = float(friction(3.351) * 3.351)
    np.testing.assert_allclose(result.warming.ratio, AXIS4.simulate(t, cold).ratio, rtol=1e-9)
    np.testing.assert_allclose(result.torque, result.cold * result.warming.ratio)
    hot = warm.simulate([0.0, 1.0], [1.0, 1.0], start=result.warming.state[-1])
    assert hot.torque[0] < 0.8 * hot.cold[0]
    cooled = warm.simulate([0.0, 1.0], [0.0, 0.0], ambient=5.0)
    assert cooled.warming.ratio[0] > 1.1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_temperatures_stay_between_rest_and_steady_state(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K1, K2, C1, C2 = 10.0 ** rng.uniform([-1, -1, 1, 2], [2, 2, 4, 5])
    model = SecondOrder(alpha=-rng.uniform(0.001, 0.05), beta=rng.uniform(0.8, 1.2), K1=K1, K2=K2, C1=C1, C2=C2)
    power = rng.uniform(0.0, 300.0)
    t = np.concatenate([[0.0], np.geomspace(1e-3, 1e7, 60)])
    warming = model.simulate(t, power)
    top = model.steady_state(power)
    assert (np.diff(warming.state, axis=0) >= -1e-9 * top).all()
    assert (warming.state <= top * (1 + 1e-9)).all()
    np.testing.assert_allclose(warming.state[-1], top, rtol=1e-6)
    slow, fast = model.time_constants(power)
    assert slow >= fast > 0.0
    assert (model.time_constants(0.0) >= model.time_constants(power)).all()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: FirstOrder(alpha=-0.01, beta=1.0, K=1.0, C=-5.0), DescriptionError, "C = -5.0"),
        (lambda: SecondOrder(alpha=-0.01, beta=1.0, K1=1.0, K2=1.0, C1=-1.0, C2=1.0), DescriptionError, "C1 = -1.0"),
        (lambda: SecondOrder(alpha=np.nan, beta=1.0, K1=1.0, K2=1.0, C1=1.0, C2=1.0), DescriptionError, "alpha = nan"),
        (
            lambda: AdvancedSecondOrder(alpha=0, beta=1, K12=1, K13=0, K23=0, K2e=0, C1=1, C2=1),
            DescriptionError,
            "cannot flow",
        ),
        (
            lambda: FirstOrder(alpha=0.1, beta=1.0, K=1.0, C=5.0).time_constants(50.0),
            DescriptionError,
            "a steady state",
        ),
        (lambda: FirstOrder(alpha=0.1, beta=1.0, K=1.0, C=5.0).steady_state(50.0), DescriptionError, "a steady state"),
        (lambda: AXIS4.time_constants(np.nan), LogError, "power"),
        (lambda: AXIS4.simulate([0.0, 2.0, 1.0], FULL), LogError, r"time does not increase at sample 2 \(2.0 s then 1.0 s"),
        (lambda: AXIS4.simulate([0.0, 2.0], [1.0, 2.0, 3.0]), LogError, r"power has the shape \(3,\)"),
        (lambda: AXIS4.simulate([0.0, 2.0], FULL, start=[20.0]), LogError, "2 finite numbers"),
        (lambda: AXIS4.simulate([0.0, 2.0], FULL, ambient=[20.0, np.nan]), LogError, r"ambient\[1\]"),
        (lambda: AXIS4.advance([20.0, 20.0], FULL, 0.0), LogError, "dt = 0.0"),
        (lambda: Thermal(Coulomb().using(fc=1.0), AXIS4)([1.0]), DescriptionError, "State"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_gets_one_sentence(call, error, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
