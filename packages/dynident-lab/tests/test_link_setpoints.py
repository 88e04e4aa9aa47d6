"""The buffer of a controller: the curve through its points, its capacity, and a ramp to rest."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.errors import LinkError
from dynident_lab.link.setpoints import JointLimits, Point, Setpoints

BOX = JointLimits(("a", "b"), np.array([-2.0, -2.0]), np.array([2.0, 2.0]), np.array([3.0, 3.0]), np.full(2, np.inf))
T = 2.0


def polynomial(t):
    """A quintic of two joints that starts and ends at rest."""
    u = np.asarray(t) / T
    s = np.array([10 * u**3 - 15 * u**4 + 6 * u**5, 30 * u**2 * (1 - u) ** 2 / T, 60 * u * (1 - u) * (1 - 2 * u) / T**2])
    return np.stack([0.8 * s, -0.5 * s], axis=-1)


def filled(points: int, fields: str = "qva", capacity: int = 1000) -> Setpoints:
    buffer = Setpoints(np.zeros(2), BOX, capacity)
    buffer.begin()
    for t in np.linspace(0.0, T, points):
        q, v, a = polynomial(t)
        buffer.push(Point(float(t), q, v if "v" in fields else None, a if "a" in fields else None))
    buffer.finish()
    return buffer


def run(buffer: Setpoints, duration: float, chunk: float = 0.05):
    parts = []
    for _ in range(round(duration / chunk)):
        motion, since = buffer.take(chunk, 0.001)
        parts.append(np.column_stack([since, motion.q, motion.v, motion.a])[1:])
    return np.concatenate(parts)


@pytest.mark.parametrize("points", [2, 7, 101])
def test_points_with_all_fields_give_the_quintic_itself(points) -> None:
    rows = run(filled(points), T)
    q, v, a = polynomial(rows[:, 0])
    np.testing.assert_allclose(rows[:, 1:3], q, atol=1e-12)
    np.testing.assert_allclose(rows[:, 3:5], v, atol=1e-11)
    np.testing.assert_allclose(rows[:, 5:7], a, atol=1e-9)


@pytest.mark.parametrize(("fields", "order"), [("qv", 4), ("q", 2)])
def test_fewer_fields_converge_with_their_order(fields, order) -> None:
    errors = []
    for points in (21, 41):
        rows = run(filled(points, fields), T)
        inner = (rows[:, 0] > 0.3) & (rows[:, 0] < T - 0.3)
        errors.append(np.abs(rows[:, 1:3] - polynomial(rows[:, 0])[0])[inner].max())
    assert np.log2(errors[0] / errors[1]) > order - 0.6


def test_after_its_end_the_robot_stays_and_no_motion_runs() -> None:
    rows = run(filled(11), T + 0.5)
    after = rows[round(T / 0.001) :]
    assert np.isnan(after[:, 0]).all()
    np.testing.assert_allclose(after[:, 1:3], np.tile([0.8, -0.5], (len(after), 1)), atol=1e-12)
    assert not np.any(after[:, 3:])


def test_stopping_is_continuous_and_ends_at_rest() -> None:
    buffer = filled(101)
    before = run(buffer, 1.0)[-1]
    buffer.stop()
    after = run(buffer, 0.5)
    speed = before[3:5]
    np.testing.assert_allclose(after[0, 1:3], before[1:3] + 0.001 * speed, atol=1e-5)
    np.testing.assert_allclose(after[-1, 1:3] - before[1:3], 0.5 * speed * buffer.brake_time, atol=1e-9)
    assert not np.any(after[-1, 3:5])
    assert not buffer.moving


def test_a_stop_near_a_limit_ends_within_it_and_what_is_outside_may_come_back() -> None:
    buffer = Setpoints(
        np.zeros(2), JointLimits(BOX.names, BOX.lower, np.array([0.45, 2.0]), BOX.velocity, BOX.acceleration), 1000
    )
    buffer.begin()
    for t in (0.0, T / 2):
        buffer.push(Point(t, *polynomial(t)))
    run(buffer, 1.0)
    buffer.stop()
    assert 0.4 < run(buffer, 0.5)[-1, 1] < 0.45 + 1e-9
    outside = Setpoints(np.array([2.1, 0.0]), BOX)
    outside.begin()
    outside.push(Point(0.0, np.array([2.1, 0.0])))
    outside.push(Point(1.0, np.array([2.05, 0.0])))
    with pytest.raises(LinkError, match="above its upper limit 2"):
        outside.push(Point(2.0, np.array([2.2, 0.0])))


def test_the_buffer_is_full_until_points_are_reached() -> None:
    buffer = Setpoints(np.zeros(2), BOX, 10)
    buffer.begin()
    k = 0
    while buffer.room:
        t = 0.01 * k
        q, v, a = polynomial(t)
        buffer.push(Point(t, q, v, a))
        k += 1
    assert buffer.waiting == 10
    buffer.take(0.05, 0.001)
    assert buffer.waiting == 5


@pytest.mark.parametrize(
    ("point", "sentence"),
    [
        (Point(0.0, np.array([0.5, 0.0])), "starts with joint 'a' at 0.5 but it is at 0"),
        (Point(1.0, np.array([0.0, 2.5])), "above its upper limit 2"),
        (Point(1.0, np.array([0.0, -2.5])), "below its lower limit -2"),
        (Point(1.0, np.zeros(2), np.array([4.0, 0.0])), "above its limit 3"),
        (Point(0.1, np.array([1.0, 0.0])), "above its limit 3"),
        (Point(1e300, np.zeros(2), np.zeros(2), np.zeros(2)), "at most 1e.08 s long"),
        (Point(1e7, np.zeros(2), np.full(2, 1e308), np.full(2, -1e308)), "above its limit 3"),
    ],
)
def test_what_the_robot_cannot_do_is_refused(point, sentence) -> None:
    buffer = Setpoints(np.zeros(2), BOX)
    buffer.begin()
    with pytest.raises(LinkError, match=sentence):
        buffer.push(point)


def peaks(buffer: Setpoints, duration: float) -> tuple[float, float]:
    """Largest speed and acceleration of the setpoints that a robot gets."""
    rows = run(buffer, duration)
    return np.abs(rows[:, 3:5]).max(), np.abs(rows[:, 5:7]).max()


@pytest.mark.parametrize("fields", ["qva", "qv", "q"])
def test_speed_and_acceleration_between_points_are_limited(fields) -> None:
    """Whatever is known of the points: what passes stays below the limits, and what is refused would not."""
    speed, acceleration = peaks(filled(9, fields), T)
    for factor, sentence in ((1.001, ""), (0.99, "above its limit")):
        for v, a in ((factor * speed, 1e9), (1e9, factor * acceleration)):
            limits = JointLimits(BOX.names, BOX.lower, BOX.upper, np.full(2, v), np.full(2, a))
            buffer = Setpoints(np.zeros(2), limits, 1000)
            buffer.begin()

            def fill(into: Setpoints = buffer) -> None:
                for t in np.linspace(0.0, T, 9):
                    q, v, a = polynomial(t)
                    into.push(Point(float(t), q, v if "v" in fields else None, a if "a" in fields else None))
                into.finish()

            if sentence:
                with pytest.raises(LinkError, match=sentence):
                    fill()
            else:
                fill()


def test_a_jump_within_the_mean_speed_is_refused_for_its_acceleration() -> None:
    limits = JointLimits(BOX.names, BOX.lower, BOX.upper, np.full(2, 4.0), np.full(2, 15.0))
    buffer = Setpoints(np.zeros(2), limits)
    buffer.begin()
    buffer.push(Point(0.0, np.zeros(2)))
    buffer.push(Point(0.02, np.array([0.05, 0.0])))
    with pytest.raises(LinkError, match=r"setpoint of joint 'a' needs .*/s\^2, above its limit 15/s\^2"):
        buffer.push(Point(0.04, np.array([0.10, 0.0])))


def test_times_must_increase_and_a_trajectory_must_be_open() -> None:
    buffer = Setpoints(np.zeros(2), BOX)
    with pytest.raises(LinkError, match="no trajectory is open"):
        buffer.push(Point(0.0, np.zeros(2)))
    buffer.begin()
    buffer.push(Point(0.5, np.zeros(2)))
    with pytest.raises(LinkError, match="times must increase"):
        buffer.push(Point(0.5, np.zeros(2)))
