"""Thermal fits: axis 4 of [Pagani2022], what torque cannot tell, anchors, choice of model."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.errors import IdentificationError, LogError, SignalWarning
from dynident_lab.testbench import ThermalTest, choose_thermal, fit_thermal
from dynident_lab.thermal import FirstOrder, SecondOrder

AXIS4 = SecondOrder(alpha=-0.0141, beta=0.9971, K1=4.41, K2=4.57, C1=737.61, C2=9163.45)  # [Pagani2022, eq. 130]
POWER = 97.65


def heating(minutes: float, duty: float = 1.0, noise: float = 0.002, seed: int = 0, step: float = 120.0) -> ThermalTest:
    """A test trajectory every two minutes; the mean over a plateau scatters by 0.2 %."""
    t = np.arange(0.0, minutes * 60 + 1, step)
    scatter = 1.0 + noise * np.random.default_rng(seed).normal(size=t.size)
    return ThermalTest(t, AXIS4.simulate(t, POWER * duty).ratio * scatter, POWER * duty, name=f"duty {duty}")


@pytest.fixture(scope="module")
def fits():
    test = heating(80.0)
    return {kind: fit_thermal(test, kind) for kind in (FirstOrder, SecondOrder)}


def test_table_6_second_order_fits_and_first_order_cannot(fits) -> None:
    """Heating to regime (60-80 min): 0.16 % / 0.72 % against 2.09 % / 6.5 %; the document has 0.3 / 1.1 and 2.1 / 10.1.

    The first-order figure depends on the window: 2.13 % at 60 min, 2.09 % at 80, 1.94 % at 100.
    """
    second, first = fits[SecondOrder], fits[FirstOrder]
    assert second.mean_error <= 0.003
    assert second.max_error <= 0.011
    assert first.mean_error >= 0.02
    steady = AXIS4.simulate(np.array([0.0, 80 * 60.0]), POWER).ratio[-1]
    assert abs(second.predicted[0][-1] / steady - 1.0) < 0.002 < abs(first.predicted[0][-1] / steady - 1.0)
    assert second.mean_error < first.mean_error


def test_table_7_cooling_fits_both_models() -> None:
    """Every 5 min from 5 min after the stop, 4 h: measured 0.16 % (first order) and 0.07 % (second order)."""
    hot = AXIS4.steady_state(POWER)
    t = np.arange(300.0, 240 * 60.0, 300.0)
    noise = 1.0 + 0.001 * np.random.default_rng(0).normal(size=t.size)
    test = ThermalTest(t, AXIS4.simulate(np.concatenate([[0.0], t]), 0.0, hot).ratio[1:] * noise, 0.0, rested=False)
    for kind in (FirstOrder, SecondOrder):
        fit = fit_thermal(test, kind)
        assert fit.mean_error <= 0.002
        assert not any("/|alpha|" in name for name in fit.identifiable)  # cooling shows rates alone
    assert fit.identifiable["tau_slow"] == pytest.approx(AXIS4.time_constants(0.0)[0], rel=4 * fit.relative_std["tau_slow"])


def test_noise_free_data_give_the_scale_free_parameters_and_an_anchor_the_rest() -> None:
    tests = [heating(100.0, duty, 0.0) for duty in (1.0, 0.4)]
    fit = fit_thermal(tests)
    expected = AXIS4.scale_free()
    assert fit.identifiable.keys() == expected.keys()
    for name, value in expected.items():
        assert fit.identifiable[name] == pytest.approx(value, rel=1e-4)
    assert not fit.anchored
    assert any("torque alone" in note for note in fit.notes)
    assert abs(fit.model.alpha) == 1.0
    np.testing.assert_allclose(fit.model.time_constants(POWER), AXIS4.time_constants(POWER), rtol=1e-4)
    hot = float(AXIS4.simulate(tests[0].t, POWER).temperature[-1])
    for anchored in (fit_thermal(tests, alpha=-0.0141), fit_thermal(tests, hot=hot)):
        assert anchored.anchored
        np.testing.assert_allclose(anchored.model.values, AXIS4.values, rtol=1e-4)


def test_errors_stay_within_the_stated_uncertainty() -> None:
    tests = [heating(100.0, duty, 0.002, seed) for seed, duty in enumerate((0.2, 0.4, 0.6, 1.0))]
    fit = fit_thermal(tests)
    for name, value in AXIS4.scale_free().items():
        assert fit.identifiable[name] == pytest.approx(value, rel=4 * fit.relative_std[name])
        assert fit.relative_std[name] < 0.05
    assert "%" in fit.summary()


def test_heating_and_cooling_in_one_record() -> None:
    t = np.arange(0.0, 200 * 60.0, 120.0)
    power = np.where(t < 100 * 60.0, POWER, 0.0)
    fit = fit_thermal(ThermalTest(t, AXIS4.simulate(t, power).ratio, power), alpha=-0.0141)
    np.testing.assert_allclose(fit.model.values, AXIS4.values, rtol=1e-4)


def test_jacobian_is_exact() -> None:
    from dynident_lab.testbench.thermal import _Curves

    hot = AXIS4.steady_state(POWER)
    t = np.arange(0.0, 3600.0, 300.0)
    cooling = ThermalTest(t, AXIS4.simulate(t, 0.0, hot).ratio, 0.0, rested=False)
    tests = [heating(30.0), cooling]
    curves = _Curves(SecondOrder, tests, -1.0, [np.ones(test.t.size, dtype=bool) for test in tests])
    u = np.concatenate([np.log([0.98, 300.0, 320.0, 5e4, 6e5]), [0.3, 0.2]])
    J = curves.jacobian(u)
    for i, d in enumerate(np.eye(u.size)):
        finite = (curves.residual(u + 1e-6 * d) - curves.residual(u - 1e-6 * d)) / 2e-6
        np.testing.assert_allclose(J[:, i], finite, atol=2e-7)


def test_choice_by_blocks_that_were_not_seen() -> None:
    choice = choose_thermal([heating(80.0, 1.0), heating(80.0, 0.5, seed=1)], (FirstOrder, SecondOrder), blocks=3)
    assert choice.best == "SecondOrder"
    assert choice["SecondOrder"].held_out < choice["FirstOrder"].held_out
    assert choice["FirstOrder"].held_out > choice["FirstOrder"].training


def test_bad_tests() -> None:
    t = np.arange(0.0, 3600.0, 120.0)
    with pytest.raises(LogError, match="does not increase"):
        ThermalTest(t[::-1], np.ones(t.size), 1.0)
    with pytest.raises(IdentificationError, match="zero or below"):
        ThermalTest(t, np.zeros(t.size), 1.0)
    with pytest.raises(IdentificationError, match="negative"):
        ThermalTest(t, np.ones(t.size), -1.0)
    with pytest.raises(IdentificationError, match="both given"):
        fit_thermal(heating(60.0), alpha=-0.01, hot=40.0)
    with pytest.raises(IdentificationError, match="contradicts the direction"):
        fit_thermal(heating(60.0), FirstOrder, alpha=0.01)
    with pytest.raises(IdentificationError, match="must end warmer"):
        fit_thermal(heating(60.0), FirstOrder, hot=10.0)
    with pytest.raises(IdentificationError, match="measure more often"):
        fit_thermal(heating(6.0))
    with pytest.raises(IdentificationError, match="stays cold"):
        fit_thermal(ThermalTest(t, np.ones(t.size), 0.0))
    with pytest.raises(IdentificationError, match="at least one"):
        fit_thermal([])
    # A pause in the middle of a test that claims constant power: the temperature was not monotonic.
    power = np.where((t > 1200) & (t < 2400), 0.0, POWER)
    test = ThermalTest(t, AXIS4.simulate(t, power).ratio, POWER)
    with pytest.warns(SignalWarning, match="at constant power"):
        fit_thermal(test, FirstOrder)
