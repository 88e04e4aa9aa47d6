"""Two-stage LuGre protocol on simulated records."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.errors import IdentificationError
from dynident.friction import LuGre, Tanh
from dynident.identify import Axis, fit_friction
from dynident_lab.testbench import fit_lugre, fit_static

TRUE = LuGre(sigma0=1e5, sigma1=300.0, fc=1.0, fs=1.5, vs=0.01, fv=0.4)


@pytest.fixture(scope="module")
def static():
    speeds = np.concatenate([np.geomspace(1e-3, 0.2, 20), -np.geomspace(1e-3, 0.2, 20)]).repeat(10)
    noise = 0.01 * np.random.default_rng(0).normal(size=speeds.size)
    return fit_static(speeds, TRUE.steady(speeds) + noise)


def presliding(dt: float, size: float = 1e-4):
    t = np.arange(0.0, 2.0, dt)
    v = size * (np.sin(2 * np.pi * t) + 0.5 * np.sin(2 * np.pi * 3.3 * t))
    return t, v, TRUE.simulate(t, v).force + 0.005 * np.random.default_rng(1).normal(size=t.size)


def test_static_curve(static) -> None:
    for name, true in {"stribeck.fc": 1.0, "stribeck.fs": 1.5, "stribeck.vs": 0.01, "viscous.fv": 0.4}.items():
        assert static.parameters[name] == pytest.approx(true, abs=4 * static.std[name])


def test_bristles_from_presliding(static) -> None:
    t, v, force = presliding(1e-3)
    fit = fit_lugre(static, t, v, force)
    assert fit.law.sigma0 == pytest.approx(1e5, rel=0.01)
    assert fit.law.sigma1 == pytest.approx(300.0, rel=0.05)
    assert fit.relative < 0.01
    assert fit.resolution > 50
    assert "sigma0" in fit.summary()
    inertia = fit_lugre(static, t, v, force + 0.02 * np.gradient(v, t), inertia=0.02)
    assert inertia.law.sigma0 == pytest.approx(fit.law.sigma0, rel=1e-6)


def test_sampling_that_steps_over_the_deflection_is_refused(static) -> None:
    t, v, _ = presliding(1e-2, 0.05)
    fine, slow, _ = presliding(1e-4, 0.05)
    force = TRUE.simulate(fine, slow).force[::100]
    with pytest.raises(IdentificationError, match=r"needed for LuGre.*sample faster"):
        fit_lugre(static, t, v, force)


def test_bad_records(static) -> None:
    t, v, force = presliding(1e-2)
    with pytest.raises(IdentificationError, match="no velocity reversal"):
        fit_lugre(static, t, np.abs(v) + 1e-5, force)
    with pytest.raises(IdentificationError, match="at least 20"):
        fit_lugre(static, t[:5], v[:5], force[:5])
    with pytest.raises(IdentificationError, match="at least five"):
        fit_static([0.1, -0.1] * 10, [1.0, -1.0] * 10)
    with pytest.raises(IdentificationError, match="check the sign"):
        fit_static(np.linspace(-1, 1, 50), -np.sign(np.linspace(-1, 1, 50)))
    with pytest.raises(IdentificationError, match="fit_static"):
        fit_lugre(fit_friction(None, Axis(v, v), Tanh()), t, v, force)
