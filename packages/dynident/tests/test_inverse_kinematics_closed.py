"""Closed-form inverse kinematics: every branch inverts forward kinematics; names, reach and singularities are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import dynident as di
from dynident.mechanics import arm_structure, inverse_kinematics, reach, singularities
from dynident.mechanics.dynamics import end_frame

pi = np.pi
RRR = [(0, pi / 2, 0.56, 0), (0.2, 0, 0.169, 0), (0.415, 0, 0.09, 0)]
PUMA = [
    (0, pi / 2, 0.67, 0),
    (0.4318, 0, 0, 0),
    (0.0203, -pi / 2, 0.15, 0),
    (0, pi / 2, 0.4318, 0),
    (0, -pi / 2, 0, 0),
    (0, 0, 0.1, 0),
]
KUKA = [
    (0.35, -pi / 2, 0.675, 0),
    (1.15, 0, 0, 0),
    (0.041, -pi / 2, 0, -pi / 2),
    (0, pi / 2, 1.2, 0),
    (0, -pi / 2, 0, 0),
    (0, pi, 0.215, pi),
]
OBLIQUE = [
    (0.35, -1.1, 0.675, 0),
    (1.15, 0, 0, 0),
    (0.041, -1.2, 0.1, -1.5),
    (0, 1.3, 1.2, 0),
    (0, -1.0, 0, 0),
    (0, 0.4, 0.2, 3.0),
]
SCARA = [(0.3, 0, 0.1, 0.2), (0.2, pi, 0, 0.4), (0, 0, 0, 0, "prismatic"), (0, 0, 0.1, 0.3)]
UR10 = [
    (0, pi / 2, 0.1273, 0),
    (-0.612, 0, 0, 0),
    (-0.5723, 0, 0, 0),
    (0, pi / 2, 0.1639, 0),
    (0, -pi / 2, 0.1157, 0),
    (0, 0, 0.0922, 0),
]
TABLES = {
    "rrr": RRR,
    "planar 1R": [(0.4, 0, 0, 0.3)],
    "planar 2R": [(0.3, 0, 0, 0), (0.2, 0, 0, 0.4)],
    "planar 3R": [(0.3, 0, 0.1, 0.2), (0.2, 0, 0, 0.4), (0.1, 0, 0, 0.3)],
    "planar, one axis upside down": [(0.3, pi, 0.1, 0.2), (0.2, pi, 0, 0.4), (0.1, 0, 0, 0.3)],
    "scara": SCARA,
    "puma": PUMA,
    "kuka": KUKA,
    "oblique axes": OBLIQUE,
}


def _arm(name: str) -> di.Mechanism:
    return di.Mechanism.from_dh(TABLES[name], name=name)


def _turn(x: np.ndarray) -> np.ndarray:
    return np.abs((x + pi) % (2 * pi) - pi)


def _round_trip(robot: di.Mechanism, q: np.ndarray) -> np.ndarray:
    """Assert FK(IK(FK(q))) = FK(q) on every branch and return how near the nearest branch is to q."""
    arm, frame = arm_structure(robot), end_frame(robot, None)
    R, p = di.forward_kinematics(robot, q, frame)
    branches = inverse_kinematics(robot, R if arm.needs_rotation else None, p)
    assert branches.shape == (len(q), len(arm.postures), robot.dof)
    exists = np.isfinite(branches).all(axis=2)
    assert np.array_equal(exists, ~np.isnan(branches).all(axis=2))  # a row is whole or NaN
    sample = np.nonzero(exists)[0]
    R2, p2 = di.forward_kinematics(robot, branches[exists], frame)
    scale = max(arm.chain.length, 1.0)
    assert np.abs(p2 - p[sample]).max() < 1e-12 * scale
    if arm.needs_rotation:
        assert np.abs(R2 - R[sample]).max() < 1e-12
    off = np.where(arm.chain.revolute, _turn(branches - q[:, None]), np.abs(branches - q[:, None]))
    return np.nan_to_num(off, nan=np.inf).max(axis=2).min(axis=1)


@pytest.mark.parametrize("name", TABLES)
def test_every_branch_inverts_forward_kinematics(name: str) -> None:
    robot = _arm(name)
    q = np.random.default_rng(1).uniform(-pi, pi, (2000, robot.dof))
    assert np.all(_round_trip(robot, q) < 1e-8)  # random states come as near to a singularity as 1e-4


@given(seed=st.integers(0, 10**6), wrist=st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_elbow_arm_in_any_attitude(seed: int, wrist: bool) -> None:
    """Random lengths, twists of axis 1 and of the wrist, senses of the axes, and a base turned anyhow."""
    rng = np.random.default_rng(seed)
    a, d, t = rng.uniform(0.1, 1, 6), rng.uniform(-0.5, 0.5, 6), rng.uniform(-pi, pi, 6)
    rows = [(a[0], rng.uniform(0.4, 2.7), d[0], t[0]), (a[1], rng.choice([0, pi]), d[1], t[1])]
    if wrist:
        twist = rng.uniform(0.4, 2.7, 3) * rng.choice([-1, 1], 3)
        rows += [(a[2], twist[0], d[2], t[2]), (0, twist[1], d[3], t[3]), (0, twist[2], 0, t[4]), (a[5], 0.3, d[5], t[5])]
    else:
        rows += [(a[2], 0.7, d[2], t[2])]
    robot = di.Mechanism.from_dh(rows)
    base = di.Placement.from_rpy(rng.uniform(-1, 1, 3), rng.uniform(-3, 3, 3))
    joints = (replace(robot.joints[0], placement=base @ robot.joints[0].placement), *robot.joints[1:])
    q = rng.uniform(-pi, pi, (50, len(rows)))
    assert np.all(_round_trip(replace(robot, joints=joints), q) < 1e-6)


@pytest.mark.parametrize("name", ["rrr", "planar 3R", "scara", "puma", "kuka"])
@pytest.mark.parametrize("close", [0.0, 1e-15, 1e-9, 1e-6])
def test_poses_stay_exact_on_singularities(name: str, close: float) -> None:
    robot = _arm(name)
    rng = np.random.default_rng(3)
    q = rng.uniform(-pi, pi, (300, robot.dof))
    angle = {"scara": -0.4, "planar 3R": -0.4, "kuka": pi / 2 - np.arctan2(1.2, 0.041)}.get(name, 0.0)
    elbow = 1 if name in ("scara", "planar 3R") else 2
    q[:100, elbow] = angle + close  # stretched (nearly so for the puma)
    q[100:200, elbow] = angle + pi - close  # folded
    if robot.dof == 6:
        q[200:, 4] = close  # axes 4 and 6 in line
    assert np.all(np.isfinite(_round_trip(robot, q)))


def test_target_on_the_first_axis_of_an_arm_without_offset() -> None:
    robot = di.Mechanism.from_dh([(0, pi / 2, 0.3, 0), (0.4, 0, 0, 0), (0.4, 0, 0, 0)])
    q = inverse_kinematics(robot, None, [0.0, 0.0, 0.8])
    assert np.isfinite(q).all()
    assert np.abs(di.forward_kinematics(robot, q[0], "link_3")[1] - [0, 0, 0.8]).max() < 1e-15


def test_rounded_descriptions_are_polished() -> None:
    """URDF files write 1.5708 for a right angle; the closed form alone would miss by micrometres."""
    rows = [tuple(round(x, 4) for x in row) for row in KUKA]
    crooked = di.Mechanism.from_dh([rows[0], (1.15, 1e-5, 0, 0), *rows[2:]])
    assert arm_structure(crooked).mismatch > 9e-6
    q = np.random.default_rng(0).uniform(-2, 2, (200, 6))
    R, p = di.forward_kinematics(crooked, q, "link_6")
    branches = inverse_kinematics(crooked, R, p)
    exists = np.isfinite(branches).all(axis=2)
    assert exists.sum() > 1000
    _, p2 = di.forward_kinematics(crooked, branches[exists], "link_6")
    assert np.abs(p2 - p[np.nonzero(exists)[0]]).max() < 1e-12


def test_posture_names_say_what_one_sees() -> None:
    robot = _arm("rrr")
    rng = np.random.default_rng(5)
    _, p = di.forward_kinematics(robot, rng.uniform(-pi, pi, (500, 3)), "link_3")
    branches = inverse_kinematics(robot, None, p)
    names = arm_structure(robot).postures
    assert names == ("front up", "front down", "back up", "back down")
    for b, name in enumerate(names):
        q = branches[:, b]
        reach_now = 0.2 * np.cos(q[:, 1]) + 0.415 * np.cos(q[:, 1] + q[:, 2])
        assert np.all(reach_now > 0) == name.startswith("front")
        assert np.all(reach_now < 0) == name.startswith("back")
        # Height of the elbow over the line from shoulder to tip, at the elbow's place along the horizontal.
        tip_height = 0.2 * np.sin(q[:, 1]) + 0.415 * np.sin(q[:, 1] + q[:, 2])
        over = 0.2 * np.sin(q[:, 1]) - 0.2 * np.cos(q[:, 1]) / reach_now * tip_height
        assert np.all((over > 0) == name.endswith("up"))


@pytest.mark.parametrize("name", ["rrr", "oblique axes", "kuka"])
def test_distance_to_the_reachable_set(name: str) -> None:
    """Against a search over the joints by an optimiser that knows nothing of the structure."""
    robot = (
        di.Mechanism.from_dh(TABLES[name][:3])
        if name == "rrr"
        else di.Mechanism.from_dh([*TABLES[name][:2], (0.9, 0.2, 0.1, 0)])
    )
    rng = np.random.default_rng(7)
    targets = np.vstack([rng.normal(size=(4, 3)) * 3.0, [[0.02, 0.01, 0.6], [0.1, 0.0, 0.7], [0.0, 0.0, 4.0]]])
    found = reach(robot, None, targets)

    def nearest(x: np.ndarray) -> float:
        starts = rng.uniform(-pi, pi, (6, 3))
        cost = lambda q: float(np.sum((di.forward_kinematics(robot, q, "link_3")[1][0] - x) ** 2))  # noqa: E731
        return min(np.sqrt(minimize(cost, s, method="BFGS", options={"gtol": 1e-9}).fun) for s in starts)

    best = np.array([nearest(x) for x in targets])
    assert np.any(~found.reachable)
    assert np.allclose(found.distance[~found.reachable], best[~found.reachable], atol=1e-6)
    assert np.all(best[found.reachable] < 1e-4)


def test_planar_and_wrist_distances() -> None:
    planar = _arm("planar 2R")
    assert reach(planar, None, [[0.6, 0, 0], [0.05, 0, 0], [0.3, 0, 0.04]]).distance == pytest.approx([0.1, 0.05, 0.04])
    three = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.2, 0, 0, 0), (0.1, 0, 0, 0)])
    tilted = di.Placement.from_rpy((0, 0, 0), (0.2, 0, 0)).rotation
    assert reach(three, tilted, [0.4, 0, 0]).tilt == pytest.approx([0.2])
    wrist = reach(_arm("puma"), np.eye(3), [0.0, 0.15, 2.0])
    assert wrist.distance == pytest.approx([1.9 - 0.67 - 0.4318 - np.hypot(0.4318, 0.0203)])
    assert not wrist.reachable[0]
    narrow = reach(_arm("oblique axes"), di.Placement.from_rpy((0, 0, 0), (0, 1.5, 0)).rotation, np.array([[0.8, 0.3, 0.9]]))
    assert narrow.distance[0] == 0.0 and narrow.tilt[0] >= 0.0


@pytest.mark.parametrize("name", ["rrr", "puma", "kuka"])
def test_singularities_are_where_the_jacobian_loses_rank(name: str) -> None:
    robot = _arm(name)
    frame = end_frame(robot, None)
    q = np.random.default_rng(2).uniform(-pi, pi, (200, robot.dof))
    # For an orthogonal wrist det J is a constant times the product of the measures.
    if name == "rrr":
        det = np.linalg.det(di.jacobian(robot, q, frame, "world")[:, :3])
    else:
        det = np.linalg.det(di.jacobian(robot, q, frame, "world"))
    measure = np.prod(list(singularities(robot, q).values()), axis=0)
    ratio = np.abs(det) / measure
    assert ratio == pytest.approx(np.full(200, ratio[0]), rel=1e-6)
    assert singularities(robot, np.zeros(robot.dof)).keys() <= {"shoulder", "elbow", "wrist"}


def test_robot_without_closed_form_is_told_what_is_missing() -> None:
    cases = {
        r"axes 4, 5 and 6 meeting in one point .*0\.0\d+ m: use inverse_kinematics_numeric": [
            *UR10[:4],
            (0.05, *UR10[4][1:]),
            UR10[5],
        ],
        r"axes 2 and 3 parallel \(elbow arm\): they are 1 rad apart": [(0.1, 1, 0.1, 0)] * 3,
        r"3 or 6 revolute joints: there are 7 revolute": [(0.1, 1, 0.1, 0)] * 7,
        r"3 or 6 revolute joints: there are 5 revolute and 1": [(0.1, 1, 0.1, 0)] * 5 + [(0, 0, 0, 0, "prismatic")],
        r"wrist axes that follow each other not parallel": [*PUMA[:4], (0, 0, 0, 0), (0, 0, 0.1, 0)],
    }
    for message, rows in cases.items():
        with pytest.raises(di.DynidentError, match=message):
            inverse_kinematics(di.Mechanism.from_dh(rows), np.eye(3), [0.3, 0.3, 0.3])


def test_bad_input() -> None:
    rrr, puma = _arm("rrr"), _arm("puma")
    with pytest.raises(di.DynidentError, match="rotation is missing"):
        inverse_kinematics(puma, None, [0.3, 0.3, 0.5])
    with pytest.raises(di.DynidentError, match="can only place a point"):
        inverse_kinematics(rrr, np.eye(3), [0.3, 0.3, 0.5])
    with pytest.raises(di.DynidentError, match=r"position has shape \(2,\)"):
        inverse_kinematics(rrr, None, [0.3, 0.3])
    with pytest.raises(di.DynidentError, match="position is not finite at sample 1"):
        inverse_kinematics(rrr, None, [[0.3, 0.3, 0.3], [0.3, np.nan, 0.1]])
    with pytest.raises(di.DynidentError, match="not a rotation matrix"):
        inverse_kinematics(puma, 2 * np.eye(3), [0.3, 0.3, 0.3])
    with pytest.raises(di.DynidentError, match=r"rotation has shape \(3, 3, 3\) but there are 2 positions"):
        inverse_kinematics(puma, np.tile(np.eye(3), (3, 1, 1)), np.zeros((2, 3)))
    with pytest.raises(di.DynidentError, match="does not move with joint_3; lock such joints"):
        inverse_kinematics(rrr, None, [0.3, 0.3, 0.5], frame="link_2")
    with pytest.raises(di.DynidentError, match="no link 'hand'"):
        inverse_kinematics(rrr, None, [0.3, 0.3, 0.5], frame="hand")
    coupled = replace(rrr, couplings=(di.Coupling("joint_3", {"joint_2": 1.0}),), actuators=())
    with pytest.raises(di.DynidentError, match="joints joint_3 follow others; use inverse_kinematics_numeric"):
        inverse_kinematics(coupled, None, [0.3, 0.3, 0.5])


#: UR5: a, alpha, d, theta of every joint, from the maker's table of DH parameters [m].
UR5 = [
    (0.0, np.pi / 2, 0.089159, 0.0),
    (-0.425, 0.0, 0.0, 0.0),
    (-0.39225, 0.0, 0.0, 0.0),
    (0.0, np.pi / 2, 0.10915, 0.0),
    (0.0, -np.pi / 2, 0.09465, 0.0),
    (0.0, 0.0, 0.0823, 0.0),
]


def test_an_arm_with_three_parallel_axes_is_solved_in_all_branches():
    """The pose by the product of the table's matrices: every branch reaches it, and where it came from is one of them."""
    robot = di.Mechanism.from_dh(UR5)
    arm = arm_structure(robot)
    assert arm.kind.startswith("arm with three parallel axes") and len(arm.postures) == 8

    def pose(q):
        T = np.eye(4)
        for (a, alpha, d, _), x in zip(UR5, q, strict=True):
            (c, s), (ca, sa) = ((np.cos(y), np.sin(y)) for y in (x, alpha))
            T = T @ [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
        return T

    rng = np.random.default_rng(5)
    for q in rng.uniform(-3.0, 3.0, (12, 6)):
        T = pose(q)
        found = inverse_kinematics(robot, T[:3, :3], T[:3, 3])[0]
        found = found[np.isfinite(found).all(axis=1)]
        assert len(found) >= 2
        for x in found:
            np.testing.assert_allclose(pose(x), T, atol=1e-9)
        assert np.abs(np.angle(np.exp(1j * (found - q)))).max(axis=1).min() < 1e-7
        assert len(np.unique(found.round(6), axis=0)) == len(found)
    far = reach(robot, np.eye(3), [2.0, 0.0, 0.2])
    assert not far.reachable[0] and 0.8 < far.distance[0] < 1.4
    assert singularities(robot, [0.3, -1.0, 0.0, 0.4, 0.7, 0.2])["elbow"][0] < 1e-12  # stretched
    assert singularities(robot, [0.3, -1.0, 0.8, 0.4, 0.0, 0.2])["wrist"][0] < 1e-12
