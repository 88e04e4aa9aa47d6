"""Every kind of curve: derivatives are those of the positions, nothing jumps at starts, ends and joins, data come back."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynident.errors import DynidentError
from dynident.trajectory import (
    BSpline,
    Fourier,
    Interpolated,
    Moves,
    Multisine,
    Trajectory,
    cycle,
    from_spec,
    join,
    sample,
)
from dynident.trajectory.joins import Bridge, Joined, Lead, Room, Slowed, bridge, leads, resting_place
from dynident.trajectory.profiles import Strokes

RUNNING = Fourier(0.5, 3, rest=False)  # no rest at its ends


def trajectory(family, n=2, seed=0, size=0.3):
    return Trajectory(family, size * np.random.default_rng(seed).normal(size=(n, family.size)))


CURVES = {
    "fourier": trajectory(Fourier(0.25, 5)),
    "fourier, position amplitudes": trajectory(Fourier(0.25, 5, convention="position")),
    "harmonic sines": trajectory(Multisine((0.25, 0.5, 1.0), (0.0, 0.0, 0.0), 8.0, 2.0)),
    "multisine": trajectory(Multisine((0.5, 1.0, 1.5, 2.0), (0.3, 5.1, 2.2, 4.0), 4.0, 1.0)),
    "b-spline": trajectory(BSpline(4.0, 9)),
    "quintic moves": Moves.within([[0, 0], [1, -1], [0.5, 1]], [1.0, 2.0], [5.0, 9.0]),
    "cycloid moves": Moves.within([[0, 0], [1, -1], [0.5, 1]], [1.0, 2.0], [5.0, 9.0], "cycloid"),
    "trapezoid moves": Moves.within([[0, 0], [1, -1], [0.5, 1]], [1.0, 2.0], [5.0, 9.0], "trapezoid"),
    "strokes": Strokes(
        np.array([0.2, -0.1]), [(0, 0.0, 1.0, 1.0, 0.3), (0, 1.5, -0.7, 0.9, 0.0), (1, 0.5, -1.0, 2.0, 0.35)], 6.0
    ),
    "lead in": Lead(trajectory(RUNNING), 2),
    "lead out": Lead(trajectory(RUNNING), 2, True),
    "interpolated": Interpolated(sample(trajectory(Fourier(0.25, 5)), 50.0)),
}
CURVES["slowed"] = Slowed(CURVES["b-spline"], 0.4)
CURVES["joined"] = join([CURVES["fourier"], CURVES["b-spline"], CURVES["strokes"]], 2.0, 9.0, rest=[0.3, -0.2])
CURVES["cycle"] = cycle([(trajectory(RUNNING), 3), (CURVES["b-spline"], 1)], 9.0, [90.0, 90.0], [0.1, 0.0])
RESTING = sorted(set(CURVES) - {"lead in", "lead out"})


def slopes(curve, t, h=1e-4):
    """Derivatives of q and v by differences of fourth order."""
    near = [curve(t + k * h) for k in (-2, -1, 1, 2)]
    return [(near[0][i] - 8 * near[1][i] + 8 * near[2][i] - near[3][i]) / (12 * h) for i in (0, 1)]


@pytest.mark.parametrize("name", CURVES)
def test_velocity_and_acceleration_are_exact_derivatives(name):
    curve = CURVES[name]
    t = np.random.default_rng(0).uniform(0.001, 0.999, 300) * curve.duration
    _, v, a = curve(t)
    for ours, there in zip((v, a), slopes(curve, t), strict=True):
        off = np.abs(ours - there).max(axis=1) / np.abs(ours).max()
        # Differences across a kink of the jerk are not exact; there are few of them.
        assert np.quantile(off, 0.9) < 1e-7 and off.max() < 2e-3


@pytest.mark.parametrize("name", RESTING)
def test_motions_start_and_end_at_rest(name):
    curve = CURVES[name]
    q, v, a = curve([0.0, curve.duration])
    assert np.abs(v).max() < 1e-9 and np.abs(a).max() < 1e-9
    outside = curve([-1.0, curve.duration + 1.0])
    if not isinstance(curve, Trajectory):  # Fourier series repeat
        assert outside[0] == pytest.approx(q, abs=1e-9) and np.abs(outside[1:]).max() < 1e-9


@pytest.mark.parametrize("name", ["joined", "cycle"])
def test_nothing_jumps_where_pieces_meet(name):
    pieces = CURVES[name].pieces
    for left, right in pairwise(pieces):
        for x, y in zip(left([left.duration]), right([0.0]), strict=True):
            assert np.abs(x - y).max() < 1e-9


@pytest.mark.parametrize("name", CURVES)
def test_no_step_between_samples_is_larger_than_its_rate(name):
    curve = CURVES[name]
    t = np.linspace(0.0, curve.duration, 160001)
    q, v, a = curve(t)
    h = t[1]
    assert np.abs(np.diff(q, axis=0)).max() <= h * np.abs(v).max() * 1.01 + 1e-12
    assert np.abs(np.diff(v, axis=0)).max() <= h * np.abs(a).max() * 1.01 + 1e-12
    assert np.abs(np.diff(a, axis=0)).max() <= 0.2 * np.abs(a).max() + 1e-12  # no jump of the acceleration


@pytest.mark.parametrize("name", CURVES)
def test_curves_come_back_from_json(name):
    curve = CURVES[name]
    again = from_spec(json.loads(json.dumps(curve.spec())))
    t = np.linspace(0.0, curve.duration, 57)
    assert type(again) is type(curve) and again.duration == curve.duration
    assert all(np.array_equal(x, y) for x, y in zip(curve(t), again(t), strict=True))


@pytest.mark.parametrize("profile", ["quintic", "cycloid", "trapezoid"])
def test_moves_are_as_fast_as_the_limits_allow(profile):
    speed, push = np.array([1.0, 2.0]), np.array([5.0, 9.0])
    points = np.array([[0.0, 0.0], [1.0, -1.0], [1.001, -1.0]])
    moves = Moves.within(points, speed, push, profile)
    _, v, a = moves(np.linspace(0, moves.duration, 200001))
    used = np.maximum(np.abs(v).max(axis=0) / speed, np.abs(a).max(axis=0) / push)
    assert used.max() == pytest.approx(1.0, abs=1e-5) and np.all(used <= 1 + 1e-9)
    stops = np.concatenate([[0.0], np.cumsum(moves.durations)])
    assert moves(stops)[0] == pytest.approx(points, abs=1e-12) and np.abs(moves(stops)[1]).max() < 1e-9


def test_an_interpolated_motion_is_the_curve_between_its_samples():
    curve = trajectory(Fourier(0.25, 5))
    coarse, fine = Interpolated(sample(curve, 50.0)), sample(curve, 500.0)
    q, v, a = coarse(fine.t)
    assert np.abs(q - fine.q).max() < 1e-8 and np.abs(v - fine.v).max() < 1e-6
    assert np.abs(a - fine.a).max() < 1e-3


state = st.tuples(*[st.lists(st.floats(-x, x), min_size=2, max_size=2) for x in (1.0, 0.8, 3.0)])


@settings(max_examples=40, deadline=None)
@given(state, state)
def test_joins_keep_every_limit_or_are_refused(start, end):
    start, end = (tuple(np.array(x) for x in y) for y in (start, end))
    room = Room(np.ones(2), np.full(2, 4.0), np.full(2, -1.5), np.full(2, 1.5), np.full(2, 60.0))
    try:
        found = bridge(start, end, room)
    except DynidentError as error:
        assert "no join from" in str(error) and "keeps the limits" in str(error)
        return
    if found is None:
        return
    t = np.linspace(0, found.duration, 2001)
    q, v, a = found(t)
    assert np.abs(q).max() <= 1.5 + 1e-8 and np.abs(v).max() <= 1 + 1e-8 and np.abs(a).max() <= 4 + 1e-8
    assert np.abs(np.diff(a, axis=0) / t[1]).max() <= 60 * (1 + 1e-6)
    peaks = found.extremes()
    for (low, high), y in zip(peaks, (q, v, a), strict=False):
        assert np.all(y.min(axis=0) >= low - 1e-9) and np.all(y.max(axis=0) <= high + 1e-9)
        assert np.all(y.max(axis=0) >= high - 1e-3 * (1 + np.abs(high)))


def test_a_join_that_must_leave_the_range_says_so():
    rest = np.zeros(1)
    room = Room(np.ones(1), np.full(1, 2.0), np.full(1, -1.0), np.full(1, 1.0))
    with pytest.raises(DynidentError, match="coordinate 0 leaves its range"):
        bridge((np.array([0.99]), np.array([1.0]), rest), (rest, rest, rest), room)
    assert isinstance(bridge((np.array([0.3]), np.array([1.0]), rest), (rest, rest, rest), room), Bridge)


def test_leads_go_along_the_motion_and_keep_its_limits():
    curve = trajectory(RUNNING)
    t = np.linspace(0, curve.duration, 2001)
    q, v, a = curve(t)
    push = 1.001 * np.abs(a).max(axis=0)
    into, out = leads(curve, push)
    for lead in (into, out):
        x, dx, ddx = lead(np.linspace(0, lead.duration, 20001))
        assert np.all(x.min(axis=0) >= q.min(axis=0) - 1e-6) and np.all(x.max(axis=0) <= q.max(axis=0) + 1e-6)
        assert np.all(np.abs(dx).max(axis=0) <= np.abs(v).max(axis=0) + 1e-9) and np.all(np.abs(ddx).max(axis=0) <= push)
    assert into([0.0])[0] == pytest.approx(out([out.duration])[0], abs=1e-12)  # the same resting place
    assert resting_place(curve, push) == pytest.approx(into([0.0])[0][0], abs=1e-12)
    whole = Joined([into, curve, curve, out])
    assert all(np.abs(x - y).max() < 1e-9 for x, y in zip(into([into.duration]), curve([0.0]), strict=True))
    assert np.abs(whole([0.0, whole.duration])[1:]).max() < 1e-9
    with pytest.raises(DynidentError, match="cannot start from rest"):
        leads(curve, 0.9 * np.abs(a).max(axis=0))
    with pytest.raises(DynidentError, match="periodic motion"):
        Lead(CURVES["b-spline"])


def test_bad_input_is_answered_in_a_sentence(subtests):
    for make, words in [
        (lambda: Moves([[0.0, 1.0]], []), "points have shape"),
        (lambda: Moves([[0.0], [1.0]], [0.0]), "durations are"),
        (lambda: Moves.within([[0.0], [1.0]], 1.0, 1.0, "magic"), "profile is 'magic'"),
        (lambda: Moves.within([[0.0], [1.0]], 0.0, 1.0), "above zero"),
        (lambda: Interpolated(3), "at least two samples"),
        (lambda: Lead(trajectory(RUNNING), 0), "periods of a lead is 0"),
        (lambda: from_spec({"kind": "moves", "points": [[0]]}), "durations' is missing"),
    ]:
        with subtests.test(str(words)), pytest.raises(DynidentError, match=words):
            make()
