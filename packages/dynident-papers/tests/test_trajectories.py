"""Letters, coupler curves and sums of sines as paths of a tool, and joint motions along them."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.trajectory import Cycloid, Interpolated, Multisine, Quintic, Trajectory, Trapezoid
from dynident_lab.tool_paths import joined, joint_motion
from dynident_papers.robots import rrr
from dynident_papers.trajectories import FourBar, sines_within, strokes, velocity_multiprofile, workspace_sines, write
from dynident_papers.trajectories.letters import GLYPHS
from dynident_papers.trajectories.sines import sine_bounds

pi = np.pi


RRR = rrr.mechanism()


def _consistent(robot: di.Mechanism, motion: di.Motion, tip, frame: str) -> None:
    """The tip does what was asked, by the kinematics of the mechanics room, which know nothing of paths."""
    R, p = di.forward_kinematics(robot, motion.q, frame)
    assert np.abs(p - tip.x).max() < 1e-12
    velocity, acceleration = di.frame_motion(robot, motion, frame)
    assert np.abs(np.einsum("nij,nj->ni", R, velocity[:, :3]) - tip.v).max() < 1e-11
    assert np.abs(np.einsum("nij,nj->ni", R, acceleration[:, :3]) - tip.a).max() < 1e-9
    if robot.dof > 3:
        assert np.abs(velocity[:, 3:]).max() < 1e-11 and np.abs(acceleration[:, 3:]).max() < 1e-9


@pytest.mark.parametrize("profile", [Quintic.within, Cycloid.within, Trapezoid.within])
@pytest.mark.parametrize("posture", rrr.POSTURES)
def test_the_writing_task(profile, posture: str) -> None:
    """[Kostic2002, section V]: letters o, m, y in a plane of fixed y, with fast and slow phases."""
    task = write("om y", 0.06, (0.1, -0.4, 0.5), profile=profile, speed=0.4, acceleration=2.0)
    tip = task.sample(500.0)
    motion = joint_motion(RRR, tip, posture=posture)
    _consistent(RRR, motion, tip, "link_3")
    assert np.all(tip.x[tip.pen, 1] == -0.4) and tip.x[~tip.pen, 1].min() < -0.41
    down = np.linalg.norm(tip.v[tip.pen], axis=1)  # (14)
    assert down.max() <= 0.4 + 1e-9 and down.max() > 0.2
    assert len(task.segments) == 2 * sum(segment.pen for segment in task.segments) - 1
    branch = rrr.POSTURES.index(posture)
    off = (rrr.inverse_kinematics(tip.x, rrr.EXAMPLE)[:, branch] - motion.q + pi) % (2 * pi) - pi
    assert np.abs(off).max() < 1e-9


def test_bends_are_taken_slowly_enough() -> None:
    """Along and across a stroke the acceleration stays within what was asked for, also on hops between near strokes."""
    tip = write("tue", 0.05, speed=0.5, acceleration=3.0, profile=Trapezoid.within).sample(2000)
    assert np.linalg.norm(tip.a, axis=1).max() < 1.02 * np.sqrt(2.0) * 3.0


@pytest.mark.parametrize("crossed", [False, True])
def test_the_bars_of_a_four_bar_keep_their_lengths(crossed: bool) -> None:
    """Points on the coupler at 0 and at its length are the two pins; crank, coupler and rocker join the bearings."""
    a, b, c, ground = 0.06, 0.16, 0.14, np.array([[0.1, 0.2], [0.25, 0.3]])
    s = np.linspace(0.0, 4.0 * np.pi, 200)
    pins = [FourBar(a, b, c, ground, point, crossed=crossed)(s)[0][:, :2] for point in ((0.0, 0.0), (b, 0.0), (0.0, b))]
    for start, end, length in ((ground[0], pins[0], a), (pins[0], pins[1], b), (ground[1], pins[1], c)):
        np.testing.assert_allclose(np.linalg.norm(end - start, axis=1), length, rtol=1e-12)
    np.testing.assert_allclose(np.arctan2(*(pins[0] - ground[0]).T[::-1]), np.angle(np.exp(1j * s)), atol=1e-9)
    np.testing.assert_allclose(np.sum((pins[1] - pins[0]) * (pins[2] - pins[0]), axis=1), 0.0, atol=1e-15)
    to, off = ground[1] - pins[0], pins[1] - pins[0]
    side = to[:, 0] * off[:, 1] - to[:, 1] * off[:, 0]
    assert np.all(side < 0.0 if crossed else side > 0.0)


def test_a_crank_that_cannot_turn_is_refused() -> None:
    with pytest.raises(di.DynidentError, match="shorten it"):
        FourBar(0.2, 0.16, 0.14, [[0.0, 0.0], [0.18, 0.0]], (0.1, 0.05))


@pytest.mark.parametrize("letter", GLYPHS)
def test_letters_are_smooth_and_of_the_right_size(letter: str) -> None:
    paths = strokes(letter, 0.1, (1, 2, 3))
    for path in paths:
        s = np.linspace(0, path.length, 2001)
        x, d, e = path(s)
        assert np.abs(np.linalg.norm(np.diff(d, axis=0), axis=1)).max() < 0.2  # no corner inside a stroke
        assert np.all(x[:, 1] == 2) and np.all(np.isfinite(e))
        assert x[:, 2].min() >= 3 - 0.065 and x[:, 2].max() <= 3 + 0.165
        assert x[:, 0].min() >= 1 - 0.01 and x[:, 0].max() <= 1.12


def test_strokes_that_meet_keep_the_pen_down() -> None:
    assert joined(strokes("v", 1.0)) == [False, True]
    assert joined(strokes("x", 1.0)) == [False, False]
    assert len(strokes("a b", 1.0)) == 4


def test_workspace_sines():
    tip = workspace_sines([0.5, 0.0, 0.3], [[0.1], [0.0], [0.05]], [1.0], 4.0, 500.0)
    assert tip.x[0] == pytest.approx([0.5, 0, 0.3]) and np.abs(tip.v[[0, -1]]).max() < 1e-9
    assert np.abs(np.gradient(tip.x[:, 0], tip.t)[5:-5] - tip.v[5:-5, 0]).max() < 1e-3


def test_the_coupler_curve_has_exact_derivatives() -> None:
    path, h = FourBar(0.06, 0.16, 0.14, [[0.1, 0.2], [0.28, 0.2]], (0.1, 0.05), start=0.3), 1e-5
    s = np.linspace(0, path.length, 203)[1:-1]
    for order in (0, 1):
        near = [path(s + k * h)[order] for k in (-2, -1, 1, 2)]
        slope = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * h)
        assert np.abs(slope - path(s)[order + 1]).max() < (1e-7, 1e-5)[order]


@pytest.mark.parametrize("kind", ["letters", "sines"])
def test_interpolated_joint_motions_have_exact_derivatives_and_rest_at_both_ends(kind: str) -> None:
    if kind == "letters":
        tip = write("o", 0.06, (0.1, -0.4, 0.5)).sample(50.0)
    else:
        tip = workspace_sines((0.2, -0.4, 0.5), [[0.05, 0], [0, 0.03], [0.02, 0.02]], [0.5, 0.9], 5.0, 50.0)
    curve, h = Interpolated(joint_motion(RRR, tip)), 1e-4
    t = np.random.default_rng(0).uniform(0.001, 0.999, 300) * curve.duration
    for order in (0, 1):
        near = [curve(t + k * h)[order] for k in (-2, -1, 1, 2)]
        slope, ours = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * h), curve(t)[order + 1]
        off = np.abs(ours - slope).max(axis=1) / np.abs(ours).max()
        assert np.quantile(off, 0.9) < 1e-7 and off.max() < 2e-3
    _, v, a = curve([0.0, curve.duration])
    assert np.abs(v).max() < 1e-9 and np.abs(a).max() < 1e-9


def test_texts_and_heights_that_cannot_be_written() -> None:
    for call, message in (
        (lambda: strokes("Hi!", 0.1), "text contains 'H'"),
        (lambda: strokes("  ", 0.1), "write at least one small letter"),
        (lambda: strokes("a" * 501, 0.1), "text has 501 letters; write at most 500"),
        (lambda: strokes("a", 0.0), "height is 0.0"),
        (lambda: strokes("a", 0.1, right=(1, 0, 0), up=(1, 0, 1)), "two directions at right angles"),
    ):
        with pytest.raises(di.DynidentError, match=message):
            call()


def derivative_error(curve, t, h=1e-5):
    """Largest difference between v, a and central differences of q, v."""
    q0, v0, _ = curve(t - h)
    q1, v1, _ = curve(t + h)
    _, v, a = curve(t)
    return max(np.abs((q1 - q0) / (2 * h) - v).max() / np.abs(v).max(), np.abs((v1 - v0) / (2 * h) - a).max() / np.abs(a).max())


def test_multiprofile():
    profile = velocity_multiprofile(1.0, 387.0, stage=10.0)
    t = np.linspace(0.1, profile.duration - 0.1, 5000)
    assert derivative_error(profile, t, 1e-6) < 1e-5
    _, v, a = profile([0.0, profile.duration])
    assert np.abs(v).max() < 1e-9 and np.abs(a).max() < 1e-9
    fastest = np.abs(profile(np.linspace(0.0, profile.duration, 200_001))[1]).max()
    assert 0.99 * 387.0 < fastest <= 387.0  # never above: 3779 for 3700 rpm would overspeed a drive


def test_bounds_of_sines_hold_and_are_those_of_a_single_sine():
    family = Multisine((0.5, 1.0, 1.5, 2.0), (0.3, 5.1, 2.2, 4.0), 6.0, 1.0)
    curve = Trajectory(family, 0.3 * np.random.default_rng(0).normal(size=(3, family.size)))
    q, v, a = curve(np.linspace(0.0, curve.duration, 20001))
    for values, bound in zip((q - curve.coefficients[:, 0], v, a), sine_bounds(family, curve.coefficients), strict=True):
        assert np.all(np.abs(values).max(axis=0) <= bound)
    slow = Multisine((2.0,), (0.0,), 1002.0, 500.0)  # such a fade adds next to nothing
    w = 4.0 * np.pi
    np.testing.assert_allclose(np.ravel(sine_bounds(slow, [[1.0, 0.3]])), [0.3, 0.3 * w, 0.3 * w**2], rtol=1e-3)


def test_sines_keep_their_limits_without_a_search():
    far, fast, hard = np.array([1.0, 0.5]), np.array([2.0, 3.0]), np.array([8.0, 5.0])
    curve = sines_within(far, fast, hard)
    peaks = [np.abs(x).max(axis=0) for x in curve(np.linspace(0.0, curve.duration, 20001))]
    share = np.array([x / limit for x, limit in zip(peaks, (far, fast, hard), strict=True)])
    assert share.max() <= 1.0 and share[1:].max() > 0.5  # equal amplitudes use a good part of what they may
    with pytest.raises(di.DynidentError, match="one number above zero"):
        sines_within(far, fast, [1.0])
