"""Velocity profiles: their derivatives are exact, they start and end where and how they should."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.trajectory import Cycloid, Quintic, Trapezoid

PROFILES = [
    Quintic(0.7, 1.3),
    Cycloid(0.7, 1.3),
    Trapezoid(0.7, 0.8, 3.0),
    Trapezoid(0.1, 0.8, 3.0),
    Quintic.within(0.7, 0.5, 2.0),
    Cycloid.within(0.7, 5.0, 2.0),
]


def _derivative(f, x: np.ndarray, h: float = 1e-5) -> np.ndarray:
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: f"{type(p).__name__} {p.distance}")
def test_profiles_rest_at_both_ends_with_exact_derivatives(profile) -> None:
    T, D = profile.duration, profile.distance
    for t, s in ((-1.0, 0.0), (0.0, 0.0), (T, D), (T + 5, D)):
        now = profile(np.array([t]))
        assert now[0][0] == pytest.approx(s, abs=1e-14) and abs(now[1][0]) < 1e-12
    t = np.linspace(0, T, 403)[1:-1]
    if isinstance(profile, Trapezoid):  # away from the corners of the speed
        ramp = profile.peak / profile.acceleration
        t = t[(np.abs(t - ramp) > 1e-3) & (np.abs(t - T + ramp) > 1e-3) & (t > 1e-3) & (t < T - 1e-3)]
    s, v, a = profile(t)
    assert np.abs(_derivative(lambda x: profile(x)[0], t) - v).max() < 1e-9
    assert np.abs(_derivative(lambda x: profile(x)[1], t) - a).max() < 1e-9
    assert np.all(np.diff(s) >= 0) and np.all(v >= 0)


@pytest.mark.parametrize("kind", [Quintic, Cycloid, Trapezoid])
@pytest.mark.parametrize(("speed", "acceleration"), [(0.5, 100.0), (50.0, 2.0)])
def test_profiles_within_limits_are_the_fastest(kind, speed: float, acceleration: float) -> None:
    profile = kind.within(0.7, speed, acceleration)
    _, v, a = profile(np.linspace(0, profile.duration, 100001))
    used = max(v.max() / speed, np.abs(a).max() / acceleration)
    assert v.max() <= speed * (1 + 1e-9) and np.abs(a).max() <= acceleration * (1 + 1e-9)
    assert used == pytest.approx(1.0, rel=1e-6)


def test_a_way_of_zero_takes_no_time_worth_mentioning() -> None:
    for kind in (Quintic, Cycloid, Trapezoid):
        profile = kind.within(0.0, 1.0, 1.0)
        assert profile.duration <= 1e-6 and profile(np.array([0.0, 1.0]))[0].tolist() == [0.0, 0.0]


def test_bad_input() -> None:
    cases = [
        (lambda: Quintic(-1, 1), "distance is -1"),
        (lambda: Quintic(1, 0), "duration is 0"),
        (lambda: Cycloid.within(1, np.inf, 1), "speed is inf"),
        (lambda: Trapezoid(1, 1, np.nan), "acceleration is nan"),
    ]
    for call, message in cases:
        with pytest.raises(di.DynidentError, match=message):
            call()
