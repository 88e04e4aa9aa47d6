"""Velocity profiles and paths: their derivatives are exact, they start and end where and how they should."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.trajectory import Arc, Cycloid, Line, Quintic, Spline, Trapezoid
from dynident.trajectory.task import Hop

PROFILES = [
    Quintic(0.7, 1.3),
    Cycloid(0.7, 1.3),
    Trapezoid(0.7, 0.8, 3.0),
    Trapezoid(0.1, 0.8, 3.0),
    Quintic.within(0.7, 0.5, 2.0),
    Cycloid.within(0.7, 5.0, 2.0),
]
KNOTS = [[0, 0, 0], [0.1, 0.2, 0.05], [0.3, 0.1, 0.2], [0.2, -0.1, 0.1]]
PATHS = {
    "line": Line((0.1, 0.2, 0.3), (0.4, -0.2, 0.5)),
    "arc": Arc((0.5, 0, 0.1), (0.3, 0, 0.1), (0, 1, 0), -2.0),
    "circle": Arc((0.5, 0, 0.1), (0.3, 0, 0.1), (0, 0, 1)),
    "spline": Spline(KNOTS),
    "closed spline": Spline([*KNOTS, KNOTS[0]]),
    "hop": Hop((0, 0, 0), (0.1, 0.2, 0), (0, 0, 1), 0.03),
}


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


@pytest.mark.parametrize("name", PATHS)
def test_paths_have_exact_derivatives(name: str) -> None:
    path = PATHS[name]
    s = np.linspace(0, path.length, 203)[1:-1]
    if "spline" in name:  # third derivatives jump at the knots, so differences across them are not exact
        ways = [Spline(KNOTS[:2]).length, path.length]
        s = s[np.abs(s[:, None] - ways).min(axis=1) > 1e-4]
    x, d, e = path(s)
    assert np.abs(_derivative(lambda y: path(y)[0], s) - d).max() < 1e-7
    assert np.quantile(np.abs(_derivative(lambda y: path(y)[1], s) - e), 0.95) < 1e-5
    if name != "hop":  # its parameter is not the way
        assert np.abs(np.linalg.norm(d, axis=1) - 1).max() < 1e-12
    length = np.linalg.norm(np.diff(path(np.linspace(0, path.length, 20001))[0], axis=0), axis=1).sum()
    assert name == "hop" or length == pytest.approx(path.length, rel=1e-6)
    assert x.shape == d.shape == e.shape == (len(s), 3)


def test_circle_and_spline_go_through_their_points() -> None:
    circle = PATHS["circle"]
    assert circle(circle.length)[0][0] == pytest.approx([0.5, 0, 0.1], abs=1e-15)
    x = PATHS["spline"](np.linspace(0, PATHS["spline"].length, 20001))[0]
    assert all(np.linalg.norm(x - knot, axis=1).min() < 1e-4 for knot in KNOTS)
    closed = PATHS["closed spline"]
    (a, b), (da, db), (ea, eb) = (y for y in closed([0.0, closed.length]))
    assert np.abs(a - b).max() < 1e-12 and np.abs(da - db).max() < 1e-9 and np.abs(ea - eb).max() < 1e-7
    hop = PATHS["hop"]
    x, d, _ = hop([0.0, 0.5 * hop.length, hop.length])
    assert x[1, 2] == pytest.approx(0.03) and np.abs(d[[0, 2]]).max() == 0.0


def test_bad_input() -> None:
    cases = [
        (lambda: Quintic(-1, 1), "distance is -1"),
        (lambda: Quintic(1, 0), "duration is 0"),
        (lambda: Cycloid.within(1, np.inf, 1), "speed is inf"),
        (lambda: Trapezoid(1, 1, np.nan), "acceleration is nan"),
        (lambda: Line((0, 0), (1, 1, 1)), r"start is \[0, 0\]; give three finite numbers"),
        (lambda: Arc((1, 0, 0), (0, 0, 0), (1, 0, 0)), "must be across the radius"),
        (lambda: Arc((1, 0, 0), (0, 0, 0), (0, 0, 0)), "give a direction that is not zero"),
        (lambda: Arc((1, 0, 0), (0, 0, 0), (0, 0, 1), 0.0), "angle is 0.0"),
        (lambda: Spline([[0, 0, 0]]), r"points have shape \(1, 3\)"),
        (lambda: Spline([[0, 0, 0], [0, 0, 0], [1, 0, 0]]), "point 1 equals the one before"),
        (lambda: Hop((0, 0, 0), (1, 0, 0), (0, 0, 1), 0.0), "height is 0.0"),
    ]
    for call, message in cases:
        with pytest.raises(di.DynidentError, match=message):
            call()
