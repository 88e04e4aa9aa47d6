"""Thermal models and losses of [Pagani2022]: two-pole form, fractional order, duty cycles, copper and iron."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from dynident.errors import DescriptionError, IdentificationError, LogError
from dynident.friction import Coulomb, Viscous
from dynident_lab.testbench import ThermalTest, fit_thermal
from dynident_lab.testbench.thermal import _Curves
from dynident_lab.thermal import AdvancedSecondOrder, FirstOrder, SecondOrder, Thermal
from dynident_papers.thermal import (
    Fractional,
    TwoPole,
    copper_losses,
    duty_cycle,
    iron_losses,
    mean_power,
    rms_power,
    winding_resistance,
)

FULL = 97.65  # W, cold friction power of axis 4 at full duty
AXIS4 = SecondOrder(alpha=-0.0141, beta=0.9971, K1=4.41, K2=4.57, C1=737.61, C2=9163.45)  # [Pagani2022, eq. 130]
ADVANCED = AdvancedSecondOrder(alpha=-0.0141, beta=0.99, K12=4.4, K13=0.8, K23=0.5, K2e=4.0, C1=740.0, C2=9200.0, We=6.0)


def from_zones(model: SecondOrder) -> TwoPole:
    """Transfer form of a second-order model, from its friction power to the temperature of zone 1."""
    slow, fast = -1.0 / model.time_constants(0.0)
    zero = -(model.K1 + model.K2) / model.C2
    c1, c2 = (slow - zero) / (slow - fast) / model.C1, (fast - zero) / (fast - slow) / model.C1
    poles = {"c1": float(c1), "c2": float(c2), "tau1": float(-1.0 / slow), "tau2": float(-1.0 / fast)}
    return TwoPole(alpha=model.alpha, beta=model.beta, reference=model.reference, **poles)


POLES = from_zones(AXIS4)


def test_the_two_pole_form_is_the_second_order_model() -> None:
    t = np.linspace(0.0, 7200.0, 60)
    np.testing.assert_allclose(POLES.simulate(t, FULL).temperature, AXIS4.simulate(t, FULL).temperature, rtol=1e-10)
    np.testing.assert_allclose(POLES.time_constants(FULL), AXIS4.time_constants(FULL))


def test_steps_of_the_two_pole_form_are_exact() -> None:
    for dt in (0.5, 60.0, 3000.0):
        settled = POLES.steady_state(FULL, 23.0, losses=2.0)
        expected = settled + expm(POLES.matrix(FULL) * dt) @ (np.array([3.0, 1.0]) - settled)
        np.testing.assert_allclose(POLES.advance([3.0, 1.0], FULL, dt, 23.0, losses=2.0), expected, rtol=1e-9)


def test_sensitivities_of_the_two_pole_form_are_exact() -> None:
    t = np.linspace(0.0, 5400.0, 40)
    power = np.where(t < 3000.0, FULL, 10.0)
    exact = POLES.sensitivity(t, power, ambient=22.0)
    base = {name: getattr(POLES, name) for name in (*POLES.names, "reference")}
    for i, name in enumerate(POLES.names):
        h = 1e-5 * max(abs(base[name]), 1e-2 if name in ("alpha", "beta") else 0.0)
        up, down = (TwoPole(**{**base, name: base[name] + s * h}).simulate(t, power, ambient=22.0).ratio for s in (1, -1))
        np.testing.assert_allclose(exact[:, i], (up - down) / (2 * h), rtol=1e-5, atol=1e-6 * np.abs(exact[:, i]).max())


def test_two_pole_form_of_axis_4() -> None:
    """Computed separately; the slow pole is first here."""
    np.testing.assert_allclose([POLES.tau2, POLES.tau1], [153.846, 2179.947], atol=5.1e-4)
    np.testing.assert_allclose([POLES.c2, POLES.c1], [1.238755e-3, 1.169747e-4], rtol=1e-6)
    gain = POLES.c1 * POLES.tau1 + POLES.c2 * POLES.tau2
    assert gain == pytest.approx(0.445576, abs=5e-7) == pytest.approx(1 / AXIS4.K1 + 1 / AXIS4.K2)
    step = POLES.recurrence(1.0)
    np.testing.assert_allclose([step.a1, -step.a2], [1.9930624351, 0.9930654065], atol=5.1e-11)
    np.testing.assert_allclose([step.b1, -step.b2], [1.351685907e-3, 1.350361931e-3], atol=5.1e-13)


def test_the_recurrence_is_the_step_response() -> None:
    step, power = POLES.recurrence(1.0), 60.0
    x = [0.0, POLES.step_response([1.0], power)[0]]
    for _ in range(2, 7201):
        x.append(step.next(x[-1], x[-2], power, power))
    np.testing.assert_allclose(x, POLES.step_response(np.arange(7201.0), power), atol=1e-7)
    assert POLES.step_response([1e9], FULL)[0] == pytest.approx(43.5, abs=0.05)  # without feedback


def test_algorithm_1_follows_the_exact_feedback() -> None:
    t = np.arange(0.0, 1801.0)
    error = np.abs(POLES.algorithm1(t, FULL).temperature - AXIS4.simulate(t, FULL).temperature)
    assert error[60] <= 0.014
    assert error[1800] <= 0.002


def test_duty_cycles_heat_like_their_mean() -> None:
    t = np.arange(0.0, 3600.0, 1.0)
    power = duty_cycle(t, FULL, duty=0.4, period=10.0)
    assert power.mean() == pytest.approx(0.4 * FULL)
    pulsed = AXIS4.simulate(t, power).temperature[::10]
    assert np.abs(pulsed - AXIS4.simulate(t[::10], 0.4 * FULL).temperature).max() < 0.35
    assert duty_cycle(t, FULL, 1.0, 10.0).min() == FULL
    assert duty_cycle(t, FULL, 0.0, 10.0).max() == 0.0


def test_mean_power_of_a_cycle() -> None:
    t = np.linspace(0.0, 2.0, 2001)
    v = np.sin(np.pi * t)
    assert mean_power(t, 3.0 * v, v) == pytest.approx(1.5, rel=1e-6)


def test_losses_of_the_motor() -> None:
    np.testing.assert_allclose(copper_losses(0.5, [0.0, 2.0]), [0.0, 6.0])
    np.testing.assert_allclose(iron_losses(0.1, 0.2, 1.5, [0.0, 50.0]), [0.0, 0.1 * 1.5**2 * 2500 + 0.2 * 1.5**2 * 50])
    t = np.linspace(0.0, 36000.0, 20)
    still = ADVANCED.simulate(t, 0.0)
    assert still.temperature[-1] > 20.5  # a powered motor warms even when still [Pagani2022, Fig. 33]
    np.testing.assert_allclose(still.state[-1], ADVANCED.steady_state(0.0), atol=1e-4)


def test_fractional_model() -> None:
    model = Fractional(alpha=-0.0141, K=2.2, C=40.0, nu=0.6121)
    t = np.linspace(0.0, 7200.0, 721)
    heating = model.heating(t, FULL)
    loss = model.K - FULL * model.alpha
    assert heating.ratio[0] == 1.0
    assert model.heating([1e30], FULL).ratio[0] == pytest.approx(model.K / loss)  # eq. 142
    numeric = model.simulate(t, FULL)
    assert np.abs(numeric.temperature - heating.temperature)[72:].max() < 0.02
    cooling = model.cooling(t, 45.0)
    assert cooling.temperature[0] == 45.0
    assert np.abs(model.simulate(t, 0.0, start=45.0).temperature - cooling.temperature)[72:].max() < 0.02
    unit = (model.C / loss) ** (1.0 / model.nu)  # where the argument of the Mittag-Leffler function is -1
    assert model.heating([unit], FULL).temperature[0] - 20.0 == pytest.approx(FULL / loss * (1.0 - 0.4116308400), abs=1e-8)
    warm = Thermal((Coulomb() + Viscous()).using(fc=10.0, fv=1.0), model)
    assert warm.simulate(t, np.full(721, 3.0)).torque[-1] < 0.9 * 13.0


def test_fractional_model_of_order_one_is_the_first_order_model() -> None:
    t = np.linspace(0.0, 9000.0, 91)
    one = Fractional(alpha=-0.0141, K=2.3, C=3000.0, nu=1.0)
    first = FirstOrder(alpha=-0.0141, beta=1.0, K=2.3, C=3000.0)
    np.testing.assert_allclose(one.heating(t, FULL).ratio, first.simulate(t, FULL).ratio, rtol=1e-12)
    np.testing.assert_allclose(one.cooling(t, 50.0).ratio, first.simulate(t, 0.0, start=[50.0]).ratio, rtol=1e-12)


def test_fractional_sensitivities_are_exact() -> None:
    base = {"alpha": -0.0141, "K": 2.2, "C": 40.0, "nu": 0.6121}
    t = np.concatenate([[0.0], np.geomspace(1.0, 1e4, 30)])
    exact = Fractional(**base).sensitivity(t, FULL)
    for i, name in enumerate(Fractional.names):
        h = 1e-5 * abs(base[name])
        up, down = (Fractional(**{**base, name: base[name] + s * h}).heating(t, FULL).ratio for s in (1, -1))
        np.testing.assert_allclose(exact[:, i], (up - down) / (2 * h), rtol=1e-5, atol=1e-7)


def test_copper_resists_39_percent_more_per_100_kelvin():
    assert winding_resistance(2.0, [20.0, 120.0]).tolist() == pytest.approx([2.0, 2.0 * 1.39])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: TwoPole(alpha=-0.01, c1=1.0, c2=1.0, tau1=0.0, tau2=1.0), DescriptionError, "tau1 = 0.0"),
        (lambda: Fractional(alpha=-0.01, K=1.0, C=1.0, nu=1.5), DescriptionError, "nu = 1.5"),
        (lambda: Fractional(alpha=0.1, K=1.0, C=1.0, nu=0.5).heating([0.0], 50.0), DescriptionError, "no steady state"),
        (lambda: Fractional(alpha=-0.1, K=1.0, C=1.0, nu=0.5).heating([-1.0], 50.0), LogError, "before the start"),
        (lambda: POLES.recurrence(-1.0), LogError, "dt = -1.0"),
        (lambda: duty_cycle([0.0, 1.0], FULL, 40.0, 10.0), DescriptionError, "duty = 40.0"),
        (lambda: duty_cycle([0.0, 1.0], FULL, 0.4, 0.0), DescriptionError, "period = 0.0"),
        (lambda: mean_power([0.0], [1.0], [1.0]), LogError, "two samples"),
        (lambda: copper_losses(-1.0, 1.0), DescriptionError, "resistance = -1.0"),
    ],
)
def test_bad_input_gets_one_sentence(call, error, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


# ---- fits by the test bench ---------------------------------------------------------------------------------------------
def heated(minutes: float, duty: float = 1.0, noise: float = 0.002) -> ThermalTest:
    t = np.arange(0.0, minutes * 60 + 1, 120.0)
    scatter = 1.0 + noise * np.random.default_rng(0).normal(size=t.size)
    return ThermalTest(t, AXIS4.simulate(t, FULL * duty).ratio * scatter, FULL * duty)


def test_other_models_are_fitted_as_those_of_lab() -> None:
    fits = {kind: fit_thermal(heated(80.0), kind) for kind in (FirstOrder, SecondOrder, TwoPole, Fractional)}
    assert fits[TwoPole].rss == pytest.approx(fits[SecondOrder].rss, rel=1e-6)  # the same transfer function
    assert fits[SecondOrder].mean_error < fits[Fractional].mean_error < fits[FirstOrder].mean_error
    poles = fit_thermal([heated(100.0, duty, 0.0) for duty in (1.0, 0.4)], TwoPole, alpha=-0.0141).model
    np.testing.assert_allclose(poles.values, from_zones(AXIS4).values, rtol=1e-3)
    t = np.arange(0.0, 3600.0, 120.0)
    with pytest.raises(IdentificationError, match="constant power"):
        fit_thermal(ThermalTest(t, np.ones(t.size), np.where(t < 1000, 5.0, 0.0)), Fractional)


def test_derivatives_of_a_fractional_fit_are_those_of_differences() -> None:
    test = heated(30.0)
    curves = _Curves(Fractional, [test], -1.0, [np.ones(test.t.size, dtype=bool)])
    u = np.log([110.0, 6000.0, 0.5])
    J = curves.jacobian(u)
    for i, d in enumerate(np.eye(u.size)):
        finite = (curves.residual(u + 1e-6 * d) - curves.residual(u - 1e-6 * d)) / 2e-6
        np.testing.assert_allclose(J[:, i], finite, atol=2e-7)


def test_mean_powers_of_a_sine_and_of_constants() -> None:
    t = np.arange(0.0, 60.0, 0.004)
    v = 2.0 * np.cos(2.0 * np.pi * t)
    power = np.abs(v) * np.polynomial.polynomial.polyval(np.abs(v), (3.0, 2.0, -0.5, 0.1))
    assert rms_power(t, power / v, v) == pytest.approx(np.sqrt(np.mean(power**2)), rel=1e-4)  # trapezoids leave half a sample
    assert rms_power([0.0, 1.0], [2.0, 2.0], [3.0, 3.0]) == mean_power([0.0, 1.0], [2.0, 2.0], [3.0, 3.0]) == 6.0
