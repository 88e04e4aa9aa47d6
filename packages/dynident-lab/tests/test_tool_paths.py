"""Task-space motions through inverse kinematics: positions, velocities and accelerations of the joints fit together."""

from __future__ import annotations

import numpy as np
import pytest
from identify_cases import RRR as TABLE

import dynident as di
from dynident.trajectory import Cycloid, Quintic, Trapezoid
from dynident_lab.tool_paths import Arc, Hop, Line, Segment, Spline, Task, along, joint_motion, speed_limit

pi = np.pi
RRR = di.Mechanism.from_dh(TABLE)
PUMA = di.Mechanism.from_dh(
    [
        (0, pi / 2, 0.67, 0),
        (0.4318, 0, 0, 0),
        (0.0203, -pi / 2, 0.15, 0),
        (0, pi / 2, 0.4318, 0),
        (0, -pi / 2, 0, 0),
        (0, 0, 0.1, 0),
    ]
)
SCARA = di.Mechanism.from_dh([(0.3, 0, 0.4, 0), (0.25, pi, 0, 0), (0, 0, 0, 0, "prismatic"), (0, 0, 0.1, 0)])
DOWN = np.diag([1.0, -1.0, -1.0])


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
@pytest.mark.parametrize("posture", ["front up", "front down", "back up", "back down"])
def test_strokes_and_hops_in_every_posture(profile, posture: str) -> None:
    """A line, a hop to a circle and the circle, in a plane of fixed y; the reach is front or back, the elbow up or down."""
    line, circle = Line((0.1, -0.4, 0.5), (0.2, -0.4, 0.55)), Arc((0.25, -0.4, 0.5), (0.25, -0.4, 0.53), (0, 1, 0))
    paths = (line, Hop(line.end, circle.start, (0, -1, 0), 0.02), circle)
    task = Task([Segment(p, profile(p.length, speed_limit(p, 0.4, 2.0), 2.0), pen=p is not paths[1]) for p in paths])
    tip = task.sample(500.0)
    motion = joint_motion(RRR, tip, posture=posture)
    _consistent(RRR, motion, tip, "link_3")
    assert np.all(tip.x[tip.pen, 1] == -0.4) and tip.x[~tip.pen, 1].min() < -0.41
    down = np.linalg.norm(tip.v[tip.pen], axis=1)
    assert down.max() <= 0.4 + 1e-9 and down.max() > 0.1
    reach = 0.2 * np.cos(motion.q[:, 1]) + 0.415 * np.cos(motion.q[:, 1] + motion.q[:, 2])
    assert np.all(reach > 0) == posture.startswith("front")


def test_bends_are_taken_slowly_enough() -> None:
    """Along and across a path the acceleration stays within what was asked for."""
    paths = [Arc((0.05, 0.0, 0.0), (0.0, 0.0, 0.0), (0, 0, 1), 4.0)]
    tip = along(paths, 0.5, 3.0, Trapezoid.within).sample(2000)
    assert np.linalg.norm(tip.a, axis=1).max() < 1.02 * np.sqrt(2.0) * 3.0


def test_joint_derivatives_are_those_of_the_positions() -> None:
    """Differences of fine samples converge to the returned rates with the square of the step."""
    task = along([Arc((0.45, 0.1, 0.6), (0.4, 0.1, 0.6), (0, 0, 1))], 0.3, 2.0)
    errors = []
    for rate in (500.0, 1000.0):
        motion = joint_motion(PUMA, task.sample(rate), rotation=DOWN)
        errors.append(
            # the last sample is after the end, where the jerk has a kink
            [np.abs((y[2:-1] - y[:-3]) * rate / 2 - dy[1:-2]).max() for y, dy in ((motion.q, motion.v), (motion.v, motion.a))]
        )
    ratio = np.array(errors[0]) / np.array(errors[1])
    assert np.all(ratio > 3.5) and np.all(np.array(errors[1]) < [1e-3, 1e-1])


@pytest.mark.parametrize(("robot", "z"), [(PUMA, 0.5), (SCARA, 0.2)], ids=["puma", "scara"])
def test_lines_and_circles_with_a_fixed_orientation(robot: di.Mechanism, z: float) -> None:
    task = along([Line((0.3, 0.25, z), (0.4, 0.15, z)), Arc((0.4, 0.15, z), (0.4, 0.2, z), (0, 0, 1))], 0.5, 2.0)
    tip = task.sample(200.0)
    _consistent(robot, joint_motion(robot, tip, rotation=DOWN), tip, f"link_{robot.dof}")
    assert tip.t[-1] == pytest.approx(task.duration, abs=1 / 200)


def test_robots_without_closed_form_go_by_the_numeric_inverse() -> None:
    twisted = di.Mechanism.from_dh(
        [
            (0, pi / 2, 0.1273, 0),
            (-0.612, 0.2, 0, 0),
            (-0.5723, 0, 0, 0),
            (0, pi / 2, 0.1639, 0),
            (0, -pi / 2, 0.1157, 0),
            (0, 0, 0.0922, 0),
        ]
    )
    tip = along([Line((0.6, 0.3, 0.4), (0.5, 0.2, 0.6))], 0.5, 2.0).sample(40.0)
    with pytest.raises(di.DynidentError, match="use inverse_kinematics_numeric"):
        joint_motion(twisted, tip, rotation=DOWN)
    motion = joint_motion(twisted, tip, rotation=DOWN, start=[0.3, -1.2, 1.3, -1.5, -1.5, 0])
    R, p = di.forward_kinematics(twisted, motion.q, "link_6")
    assert np.abs(p - tip.x).max() < 1e-9 and np.abs(R - DOWN).max() < 1e-9


def test_out_of_reach_and_singular_paths_are_refused() -> None:
    far = along([Line((0.4, -0.3, 0.5), (0.9, -0.3, 0.5))], 0.5, 2.0).sample(100.0)
    with pytest.raises(di.DynidentError, match=r"target \d+ of \d+ .* m out of reach"):
        joint_motion(RRR, far)
    # Along the cylinder of radius d2 + d3 about the waist the reach is zero.
    waist = along([Line((0.3, -0.259, 0.8), (-0.3, -0.259, 0.8))], 0.5, 2.0).sample(100.0)
    with pytest.raises(di.DynidentError, match=r"singularity|jumps by"):
        joint_motion(RRR, waist)
    with pytest.raises(di.DynidentError, match="has 6 coordinates but the task fixes 3"):
        joint_motion(PUMA, far, start=np.zeros(6))


def test_bad_input() -> None:
    with pytest.raises(di.DynidentError, match="segment 1 does not start where segment 0 ends"):
        along([Line((0, 0, 0), (1, 0, 0)), Line((0, 0, 0), (1, 0, 0))], 1.0, 1.0)
    with pytest.raises(di.DynidentError, match=r"the profile covers 2\.0 m but the path is 1\.0 m long"):
        Segment(Line((0, 0, 0), (1, 0, 0)), Quintic(2.0, 1.0))
    with pytest.raises(di.DynidentError, match="the task has no segment"):
        Task([])
    with pytest.raises(di.DynidentError, match="rate is 0"):
        along([Line((0, 0, 0), (1, 0, 0))], 1.0, 1.0).sample(0)
    for call, message in (
        (lambda: Line((0, 0), (1, 1, 1)), r"start is \[0, 0\]; give three finite numbers"),
        (lambda: Arc((1, 0, 0), (0, 0, 0), (1, 0, 0)), "perpendicular to the radius"),
        (lambda: Arc((1, 0, 0), (0, 0, 0), (0, 0, 0)), "give a direction that is not zero"),
        (lambda: Arc((1, 0, 0), (0, 0, 0), (0, 0, 1), 0.0), "angle is 0.0"),
        (lambda: Spline([[0, 0, 0]]), r"points have shape \(1, 3\)"),
        (lambda: Spline([[0, 0, 0], [0, 0, 0], [1, 0, 0]]), "point 1 equals the one before"),
        (lambda: Hop((0, 0, 0), (1, 0, 0), (0, 0, 1), 0.0), "height is 0.0"),
    ):
        with pytest.raises(di.DynidentError, match=message):
            call()


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


def test_tips_show_path_and_speed() -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")
    paths = (Line((0.0, 0.0, 0.0), (0.2, 0.0, 0.1)), Hop((0.2, 0.0, 0.1), (0.3, 0.0, 0.0), (0.0, 1.0, 0.0), 0.05))
    tip = Task([Segment(path, Quintic.within(path.length, 0.3, 2.0), pen=i == 0) for i, path in enumerate(paths)]).sample(200.0)
    figure = tip.plot()
    drawn = [[np.asarray(line.get_ydata()) for line in axes.lines] for axes in figure.axes]
    down, _ = drawn[0]
    assert np.nanmax(down) == pytest.approx(tip.x[tip.pen, 2].max())
    assert np.nanmax(np.concatenate(drawn[1])) == pytest.approx(np.linalg.norm(tip.v, axis=1).max())
