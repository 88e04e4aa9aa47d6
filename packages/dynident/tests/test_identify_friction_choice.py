"""Choosing a law: held-out blocks, never the training error."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.errors import IdentificationError
from dynident.friction import Coulomb, Polynomial, Sigmoid, Tanh, TemperatureDependent, Viscous
from dynident.friction.text import law_text
from dynident.identify import Axis, fit_friction
from dynident.identify.friction.choice import choose_recorded, compare_models
from dynident.identify.friction.fitting import friction_data
from dynident.signals.dependence import effective_samples

LAWS = (Viscous(), Coulomb() + Viscous(), Tanh() + Viscous(), Polynomial(3), Sigmoid(2))


def test_the_true_law_wins_although_a_richer_one_trains_better() -> None:
    k = np.arange(3000)
    v = np.sin(0.009 * k) + 0.5 * np.sin(0.0213 * k)
    tau = 0.1 * v**2 + 2 * v + 1.5 * np.tanh(12 * v) + 0.1 * np.random.default_rng(0).normal(size=v.size)
    fit = fit_friction(None, Axis(tau, v, {"m": v**2}), LAWS)
    choice = fit.choice
    assert choice.best == "tanh + viscous"
    viscous, coulomb, tanh, _, sigmoid = (choice[law_text(law)] for law in LAWS)
    assert sigmoid.training <= tanh.training
    assert tanh.held_out < coulomb.held_out < viscous.held_out
    assert tanh.parameters == 4
    assert fit.parameters["tanh.beta"] == pytest.approx(12.0, rel=0.1)
    assert "<- chosen" in choice.summary()


def test_training_error_would_choose_wrongly() -> None:
    rng = np.random.default_rng(1)
    x = np.linspace(-1, 1, 60)
    y = x + 0.3 * rng.normal(size=60)

    def polynomial(degree):
        def fit(rows):
            c = np.polynomial.polynomial.polyfit(x[rows], y[rows], degree)
            return y - np.polynomial.polynomial.polyval(x, c), degree + 1

        return fit

    choice = compare_models({f"degree {d}": polynomial(d) for d in (0, 1, 3, 9)}, 60, 6)
    assert choice.best == "degree 1"
    assert min(choice.contenders, key=lambda c: c.training).name == "degree 9"


def test_effective_samples_of_an_autoregressive_series() -> None:
    rng = np.random.default_rng(0)
    e, rho = np.zeros(20000), 0.9
    noise = rng.normal(size=e.size)
    for k in range(1, e.size):
        e[k] = rho * e[k - 1] + noise[k]
    assert effective_samples(e) == pytest.approx(e.size * (1 - rho) / (1 + rho), rel=0.15)
    assert effective_samples(noise) > 0.8 * noise.size
    assert effective_samples(np.zeros(7)) == 7.0


def test_a_law_that_cannot_be_fitted_is_reported_and_the_rest_compared() -> None:
    found = compare_models({"good": lambda rows: (np.ones(40), 1), "bad": _fails}, 40, 4)
    assert found.best == "good"
    assert "too hard" in found["bad"].failed
    assert "too hard" in found.summary()


def _fails(rows):
    raise IdentificationError("too hard")


def test_bad_input() -> None:
    with pytest.raises(IdentificationError, match="at least one"):
        compare_models({}, 100)
    with pytest.raises(IdentificationError, match="fewer blocks"):
        compare_models({"a": lambda rows: (np.ones(10), 1)}, 10, 5)
    with pytest.raises(IdentificationError, match="no model could be fitted"):
        compare_models({"a": _fails}, 100)


def test_a_warming_is_asked_before_the_curve() -> None:
    """Stribeck friction that falls by 1.2 % per kelvin while the joint warms: blocks at other temperatures drown the curve."""
    body = di.Body("cart", np.array([2.0, 0, 0, 0, 1, 0, 0, 1, 0, 1]))
    rail = di.Joint("rail", "prismatic", "base", "cart", axis=(1, 0, 0))
    robot = di.Mechanism("slide", (di.Body("base"), body), (rail,), terms=())
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 60.0, 0.005)
    w, size, phase = np.array([0.5, 1.1, 1.9]), np.array([0.4, 0.15, 0.06]), rng.uniform(0.0, 6.0, 3)
    x = w * t[:, None] + phase
    q, v, a = np.sin(x) @ size, np.cos(x) @ (size * w), -np.sin(x) @ (size * w**2)
    T = 20.0 + 40.0 * (1.0 - np.exp(-t / 20.0))
    friction = (np.sign(v) * (4.0 + 2.0 * np.exp(-((v / 0.05) ** 2))) + 3.0 * v) * (1.0 - 0.012 * (T - 20.0))
    effort = 2.0 * a + friction + 0.1 * rng.normal(size=t.size)
    log = di.Log(t, ["rail"], q[:, None], effort[:, None], "joint_force", temperature=T[:, None])
    chosen = choose_recorded(friction_data(robot, log, None), "auto").laws["rail"]
    assert isinstance(chosen, TemperatureDependent)
    assert "stribeck" in law_text(chosen)
