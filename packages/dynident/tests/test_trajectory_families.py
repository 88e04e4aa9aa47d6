"""Families of trajectories: derivatives, parameters, rest at the ends, joins, export."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynident.errors import DynidentError
from dynident.mechanics import Motion
from dynident.trajectory import (
    BSpline,
    Fourier,
    Multisine,
    Trajectory,
    from_spec,
    join,
    sample,
    to_csv,
    to_ros,
    to_ros_json,
)
from dynident.trajectory.profiles import Plateau, Strokes

FAMILIES = [
    Fourier(0.2, 5),
    Fourier(0.2, 5, convention="position"),
    Fourier(0.2, 3, rest=False),
    Multisine((0.5, 1.0, 1.5, 2.0), (0.3, 5.1, 2.2, 4.0), 6.0, 1.0),
    Multisine((0.25, 0.5, 1.0), (0.0, 0.0, 0.0), 8.0, 2.0),
    BSpline(4.0, 9),
    BSpline(4.0, 3),
    BSpline(4.0, 7, degree=3),
]
RESTING = [family for family in FAMILIES if not (isinstance(family, Fourier) and not family.rest)]


def trajectory(family, n=2, seed=0):
    return Trajectory(family, np.random.default_rng(seed).normal(size=(n, family.size)))


def derivative_error(curve, t, h=1e-5):
    """Largest difference between v, a and central differences of q, v."""
    q0, v0, _ = curve(t - h)
    q1, v1, _ = curve(t + h)
    _, v, a = curve(t)
    return max(np.abs((q1 - q0) / (2 * h) - v).max() / np.abs(v).max(), np.abs((v1 - v0) / (2 * h) - a).max() / np.abs(a).max())


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.spec()["kind"])
def test_derivatives_in_time_and_parameters(family):
    curve = trajectory(family)
    t = np.random.default_rng(1).uniform(0.01, 0.99, 60) * family.duration
    assert derivative_error(curve, t) < 1e-7
    h = 1e-5
    jerk = (curve.derivative(t + h, 2) - curve.derivative(t - h, 2)) / (2 * h)
    assert np.abs(jerk - curve.derivative(t, 3)).max() < 1e-5 * np.abs(jerk).max() + 1e-6
    for order in range(3):
        J = curve.jacobian(t, order)
        x = curve.vector + np.random.default_rng(2).normal(size=curve.vector.size)
        change = Trajectory.from_vector(family, x).derivative(t, order) - curve.derivative(t, order)
        assert np.abs(J @ (x - curve.vector) - change).max() < 1e-9 * np.abs(change).max()
    ones = Trajectory(family, np.tile(family.constant(), (2, 1)))
    assert np.abs(ones.derivative(t, 0) - 1).max() < 1e-12 and np.abs(ones.derivative(t, 1)).max() < 1e-12


@pytest.mark.parametrize("family", RESTING, ids=lambda f: f.spec()["kind"])
def test_rest_at_both_ends(family):
    curve = trajectory(family)
    _, v, a = curve([0.0, family.duration])
    size = np.abs(curve(np.linspace(0, family.duration, 99))[2]).max()
    assert np.abs(v).max() < 1e-10 * size and np.abs(a).max() < 1e-9 * size


def test_fourier_is_the_documents_equation():
    rng = np.random.default_rng(0)
    a, b, q0 = rng.normal(size=(2, 4)), rng.normal(size=(2, 4)), rng.normal(size=2)
    t, w = np.linspace(0, 5, 50), 2 * np.pi * 0.3 * np.arange(1, 5)
    family = Fourier(0.3, 4, rest=False)
    q = q0 + np.sin(np.outer(t, w)) @ (a / w).T - np.cos(np.outer(t, w)) @ (b / w).T
    full = np.zeros((2, 9))
    full[:, 0], full[:, 1::2], full[:, 2::2] = q0, a, b
    curve = Trajectory(family, full @ family._free)
    assert np.abs(curve(t)[0] - q).max() < 1e-13
    for mine, given in zip(family.amplitudes(curve.coefficients), (q0, a, b), strict=True):
        assert np.abs(mine - given).max() < 1e-14
    rest = Fourier(0.3, 4)
    _, a1, b1 = rest.amplitudes(full @ rest._free)
    assert np.abs(a1.sum(axis=1)).max() < 1e-14 and np.abs(b1 @ np.arange(1, 5)).max() < 1e-13


def test_plateau_and_strokes():
    p = Plateau(-2.0, 0.5, 0.3)
    t = np.linspace(0, p.duration, 4001)
    s, v, a = p(t)
    assert s[0] == 0 and s[-1] == pytest.approx(-2.0, abs=1e-12) and v[-1] == 0 and a[0] == a[-1] == 0
    assert np.abs(np.gradient(s, t, edge_order=2) - v).max() < 2e-5 and np.abs(np.gradient(v, t, edge_order=2) - a).max() < 1e-2
    assert np.abs(np.diff(a)).max() < 0.04  # no jump of the acceleration
    with pytest.raises(DynidentError, match="cannot reach"):
        Plateau(0.01, 1.0, 1.0)
    with pytest.raises(DynidentError, match="overlap"):
        Strokes(np.zeros(1), [(0, 0.0, 1.0, 1.0, 0.1), (0, 0.5, 1.0, 1.0, 0.1)])


def test_join_never_jumps():
    periodic = trajectory(Fourier(0.5, 3, rest=False), seed=5)
    spline = trajectory(BSpline(2.0, 5), seed=6)
    whole = join([periodic, spline], [5.0, 5.0], [40.0, 40.0], rest=[0.0, 0.1])
    q, v, a = whole([0.0, whole.duration])
    assert np.abs(q - [0.0, 0.1]).max() < 1e-9 and np.abs(v).max() < 1e-9 and np.abs(a).max() < 1e-7
    for t in whole.starts[1:-1]:
        before, after = whole([t - 1e-9]), whole([t + 1e-9])
        assert all(np.abs(x - y).max() < 1e-4 for x, y in zip(before, after, strict=True))


def test_export_and_back(tmp_path):
    curves = [trajectory(f) for f in FAMILIES]
    curves += [Strokes(np.zeros(2), [(0, 0.0, 1.0, 1.0, 0.4), (1, 1.5, -1.0, 1.0, 0.0)])]
    curves.append(join(curves[:2], 9.0, 90.0, rest=[0, 0]))
    t = np.linspace(0, 3, 40)
    for curve in curves:
        again = from_spec(json.loads(json.dumps(curve.spec())))
        assert all(np.array_equal(x, y) for x, y in zip(curve(t), again(t), strict=True))
    path = to_csv(tmp_path / "m.csv", curves[0], ["one", "two"], 100.0)
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    m = sample(curves[0], 100.0)
    assert path.read_text().startswith("t,q_one,q_two,v_one") and np.array_equal(table[:, 1:3], m.q)
    message = json.loads(to_ros_json(tmp_path / "m.json", m, ["one", "two"]).read_text())
    assert message == to_ros(m, ["one", "two"]) and message["joint_names"] == ["one", "two"]
    assert message["points"][150]["time_from_start"] == {"sec": 1, "nanosec": 500000000}
    assert message["points"][150]["positions"] == m.q[150].tolist() and isinstance(m, Motion)


def test_bad_input_is_answered_in_a_sentence(subtests):
    for make, words in [
        (lambda: Fourier(0.0, 3), "frequency is 0.0"),
        (lambda: Fourier(0.1, 1), "harmonics is 1"),
        (lambda: Fourier(0.1, 3, convention="x"), "convention"),
        (lambda: Multisine((1.0,), (), 1.0, 0.1), "phase"),
        (lambda: Multisine((1.0,), (0.0,), 1.0, 0.9), "fade"),
        (lambda: BSpline(1.0, 2), "points is 2"),
        (lambda: BSpline(1.0, 5, 2), "degree is 2"),
        (lambda: Trajectory(BSpline(1.0, 5), np.zeros((2, 4))), "coefficients have shape"),
        (lambda: from_spec({"kind": "x"}), "motion kind"),
        (lambda: from_spec({"kind": "strokes"}), "'strokes'.start' is missing"),
        (lambda: to_ros(trajectory(BSpline(1.0, 5)), ["a", "b"]), "rate is missing"),
        (lambda: to_ros(trajectory(BSpline(1.0, 5)), ["a"], 10.0), "give one each"),
        (lambda: join([], 1.0, 1.0), "no curve"),
    ]:
        with subtests.test(str(words)), pytest.raises(DynidentError, match=words):
            make()
