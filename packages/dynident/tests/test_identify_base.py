from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from identify_cases import DOWN_Y, HALF, LWR, PLANAR, RRR, UR10, arm, smooth, svd_rank
from random_mechanisms import build, every_kind

from dynident.errors import ConditionWarning, DescriptionError, IdentificationError
from dynident.friction.terms import ASYMMETRIC, SYMMETRIC
from dynident.identify import BaseParameters, base_parameters
from dynident.identify import base as base_module
from dynident.mechanics import Motion, regressor
from dynident.mechanism import Actuator, Body, Coupling, Joint, Mechanism, Placement


def slider(*axes, gravity=(0, 0, 0)) -> Mechanism:
    """Return a chain of bodies that slide along the given axes; a letter R turns about z."""
    unit = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1), "R": (0, 0, 1)}
    names = ["base", *(f"b{i}" for i in range(len(axes)))]
    joints = [
        Joint(f"j{i}", "revolute" if a == "R" else "prismatic", names[i], names[i + 1], axis=np.array(unit[a], dtype=float))
        for i, a in enumerate(axes)
    ]
    return Mechanism("slider", tuple(Body(n, np.ones(10)) for n in names), tuple(joints), terms=(), gravity=np.array(gravity))


def holds(base: BaseParameters, tolerance: float = 1e-9) -> None:
    """Assert W phi == W_b K phi for random phi on random states that the search has not seen."""
    robot, rng = base.mechanism, np.random.default_rng(5)
    q, v, a = (rng.normal(size=(40, robot.dof)) for _ in range(3))
    W = regressor(robot, Motion(np.arange(40.0), q, 2 * v, 5 * a)).reshape(-1, len(robot.parameters))
    phi = rng.normal(size=(len(robot.parameters), 20))
    tau = W @ phi
    assert np.max(np.abs(tau - W[:, base.columns] @ (base.regrouping @ phi))) <= tolerance * np.max(np.abs(tau))


CASES = {
    "6R": (arm(UR10, ()), 36),
    "7R": (arm(LWR, ()), 43),
    "planar 2R": (arm(PLANAR, (), DOWN_Y), 6),
    "planar 2R, no gravity": (arm(PLANAR, (), (0, 0, 0)), 4),
    "RRR, rotors": (arm(RRR, ("ia",)), 16),
    "RRR": (arm(RRR, ()), 15),
    "RRR, rotors, no gravity": (arm(RRR, ("ia",), (0, 0, 0)), 14),
    "RRR, no gravity": (arm(RRR, (), (0, 0, 0)), 13),
    "P": (slider("x"), 1),
    "gantry": (slider("x", "y", "z"), 3),
    "gantry, gravity": (slider("x", "y", "z", gravity=(0, 0, -9.81)), 3),
    # turn about z, slide along x: Izz of both, m and mx, my of the slider (by hand)
    "cylindrical": (slider("R", "x"), 4),
}


@pytest.mark.parametrize("case", CASES)
def test_known_ranks(case):
    robot, rank = CASES[case]
    base = base_parameters(robot)
    assert base.rank == rank == svd_rank(robot)
    assert base.rank_gap > 1e6
    holds(base)


@pytest.mark.parametrize("terms", [("fv", "fc", "off"), SYMMETRIC, ASYMMETRIC, (*SYMMETRIC, "k"), ("off",)])
@pytest.mark.parametrize("rows", [RRR, UR10], ids=["RRR", "UR10"])
def test_joint_terms_add_their_columns(rows, terms):
    robot = arm(rows, terms)
    base = base_parameters(robot)
    own = len([t for t in terms if t != "ia"]) * len(rows)  # friction, offset and spring of a joint are always visible
    rotors = base_parameters(arm(rows, tuple(t for t in terms if t == "ia"))).rank
    assert base.rank == svd_rank(robot) == rotors + own
    holds(base)


@pytest.mark.parametrize("seed", range(4))
def test_the_states_do_not_matter(seed):
    robot = arm(UR10)
    one, other = base_parameters(robot), base_parameters(robot, seed=seed + 1)
    assert one.names == other.names
    np.testing.assert_allclose(one.regrouping, other.regrouping, atol=1e-9)


def test_a_wanted_order_is_honoured():
    robot = arm(RRR, ("ia",))
    usual = base_parameters(robot)
    assert "ia_joint_1" not in usual.leaders
    wanted = ["ia_joint_1", "m_link_3", "Iyy_link_3"]
    base = base_parameters(robot, order=wanted)
    assert list(base.leaders[:3]) == wanted
    assert base.rank == usual.rank
    holds(base)
    again = base_parameters(robot, order=base.leaders)
    np.testing.assert_array_equal(again.columns, base.columns)
    with pytest.raises(DescriptionError, match="unknown parameter 'm_nothing'"):
        base_parameters(robot, order=["m_nothing"])


@pytest.mark.parametrize("robot", [arm(RRR), arm(UR10, ("ia",)), arm(LWR, ASYMMETRIC)], ids=["RRR", "UR10", "LWR"])
def test_expressions_say_what_the_regrouping_does(robot):
    base = base_parameters(robot)
    names = robot.parameters.names
    for i, text in enumerate(base.expressions):
        label, right = text.split(" = ")
        row = np.zeros(len(names))
        for sign, size, name in re.findall(r"([+-]?) ?(?:(\d[\d.e+-]*) )?([A-Za-z]\w*)", right):
            row[names.index(name)] += (-1.0 if sign == "-" else 1.0) * float(size or 1.0)
        np.testing.assert_allclose(row, base.regrouping[i], rtol=1e-5, atol=1e-9)
        assert label == base.names[i]
        assert label == base.leaders[i] + ("R" if np.count_nonzero(row) > 1 else "")


def test_a_right_angle_written_with_five_digits_changes_nothing():
    rough = [(a, round(alpha, 4), d, theta) for a, alpha, d, theta in UR10]
    assert rough[0][1] == 1.5708 != HALF
    for terms in ((), SYMMETRIC):
        exact, written = base_parameters(arm(UR10, terms)), base_parameters(arm(rough, terms))
        assert written.rank == exact.rank
        assert written.leaders == exact.leaders
        np.testing.assert_allclose(written.regrouping, exact.regrouping, atol=2e-4)
        holds(written, 1e-4)  # what is neglected is a few millionths per column


def test_a_fixed_tool_changes_values_but_not_the_structure():
    robot = arm(UR10)
    tool = Body("tool", np.array([1.0, 0.1, 0.0, 0.2, 0.1, 0.0, 0.0, 0.1, 0.0, 0.05]))
    mount = Joint("mount", "fixed", "link_6", "tool", Placement(np.eye(3), np.array([0.0, 0.0, 0.1])))
    with_tool = replace(robot, bodies=(*robot.bodies, tool), joints=(*robot.joints, mount))
    bare, loaded = base_parameters(robot), base_parameters(with_tool)
    assert bare.names == loaded.names
    np.testing.assert_allclose(bare.regrouping, loaded.regrouping, atol=1e-12)
    assert not np.allclose(bare.values(robot.parameters.values), loaded.values(with_tool.parameters.values))
    holds(loaded)


def test_a_following_joint_has_no_row_of_its_own():
    free = arm(RRR, ("fv",))
    robot = replace(free, couplings=(Coupling("joint_3", {"joint_2": -2.0}, 0.1),), actuators=())
    base = base_parameters(robot)
    assert base.seen.shape == (2, base.rank)
    assert base.rank == svd_rank(robot) < base_parameters(free).rank
    row = base.regrouping[base.names.index("fv_joint_2R")]
    assert row[robot.parameters.index("fv_joint_3")] == pytest.approx(4.0, abs=1e-9)  # (dq3/dq2)^2
    holds(base)


def test_a_motor_on_two_joints_adds_its_own_terms():
    plain = arm(UR10)
    motors = [Actuator(f"m{i}", {f"joint_{i}": 1.0}, ratio=50.0) for i in range(1, 6)]
    shared = Actuator("m6", {"joint_5": 1.0, "joint_6": 1.0}, ratio=32.0)
    robot = replace(plain, actuators=(*motors, shared))
    extra = [name for name in robot.parameters.names if name not in plain.parameters.names]
    assert extra == ["ia_m6", "fv_m6", "fc_m6"]
    base = base_parameters(robot)
    assert base.rank == base_parameters(plain).rank + 3 == svd_rank(robot)
    holds(base)
    # The motor's columns depend on q5 + q6, scaled to the joint side.
    motion = smooth(6, 30)
    Y = regressor(robot, motion)[:, :, [robot.parameters.index(name) for name in extra]]
    both = motion.v[:, 4] + motion.v[:, 5]
    for row in (4, 5):
        np.testing.assert_allclose(Y[:, row, 1], both, atol=1e-12)
        np.testing.assert_allclose(Y[:, row, 2], np.sign(both), atol=1e-12)
    assert not np.any(Y[:, :4])


def test_what_torques_cannot_show_is_listed():
    base = base_parameters(arm(PLANAR, (), DOWN_Y))
    flat = {f"{symbol}_link_{i}" for i in (1, 2) for symbol in ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "mz")}
    assert set(base.unidentifiable) == flat
    assert not np.any(base.regrouping[:, [base.mechanism.parameters.index(n) for n in flat]])
    vertical = base_parameters(arm(RRR, ()))
    assert set(vertical.unidentifiable) == {
        f"{s}_link_1" for s in ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyz", "Izz")
    }  # of the first link only the inertia about the vertical axis (y of its distal frame) acts


@pytest.mark.parametrize("reverse", [False, True])
def test_twin_branches_are_treated_alike(reverse):
    """Two equal arms on one base: the base parameters of one are those of the other, whichever is listed first."""
    bodies, joints = [Body("base")], []
    for side in ("r", "l") if reverse else ("l", "r"):
        parent = "base"
        for i in range(2):
            bodies.append(Body(f"{side}{i}", np.ones(10)))
            place = Placement(np.eye(3), np.array([0.3, 0.1, 0.0]))
            joints.append(Joint(f"j{side}{i}", "revolute", parent, f"{side}{i}", place, axis=np.array([0.0, 1.0, 0.0])))
            parent = f"{side}{i}"
    robot = Mechanism("twins", tuple(bodies), tuple(joints), terms=("ia", "fv"))
    base = base_parameters(robot)
    left = {e.replace("_l", "_").replace("_jl", "_j") for e in base.expressions if "_l" in e or "_jl" in e}
    right = {e.replace("_r", "_").replace("_jr", "_j") for e in base.expressions if "_r" in e or "_jr" in e}
    assert left == right
    assert base.rank == 2 * len(left) == svd_rank(robot)
    assert base.seen[:2, base.columns < 20].all() == base.seen[2:, base.columns >= 20].all()


def test_seen_tells_which_rows_have_a_column():
    robot = arm(UR10)
    base = base_parameters(robot)
    W = regressor(robot, smooth(6, 200))[:, :, base.columns]
    np.testing.assert_array_equal(base.seen, np.any(np.abs(W) > 1e-12, axis=0))
    assert not base.seen[5, base.leaders.index("fv_joint_1")]


@pytest.mark.parametrize(("twist", "rank"), [(0.0, 9), (1e-5, 9), (1e-3, 11)])
def test_a_twist_counts_when_torques_can_show_it(twist, rank):
    """Three parallel axes have 9 base parameters; a thousandth of a radian shows, what a drawing rounds off does not."""
    assert base_parameters(arm([(0.3, 0.0, 0.0, 0.0), (0.2, twist, 0.0, 0.0), (0.2, 0.0, 0.0, 0.0)], (), DOWN_Y)).rank == rank


def test_an_unclear_rank_is_said():
    with pytest.warns(ConditionWarning, match=r"rank of robot 'arm' is ambiguous: \d+ by QR, \d+ by singular values"):
        base_parameters(arm(UR10), tolerance=0.3)  # far too coarse: no gap there


def test_the_gap_counts_columns_without_effect():
    # Gravity along the axis shows no first moment; tilted by a millionth it shows mx and my of the first body by so little
    # that they still count as nothing, next to those of the second body that turns with it: the rank stays, the gap shrinks.
    clear, tilted = (base_parameters(slider("R", "x", "R", gravity=(tilt, 0, -9.81))) for tilt in (0.0, 1e-5))
    assert clear.unidentifiable == tilted.unidentifiable and "mx_b0" in tilted.unidentifiable
    assert clear.rank == tilted.rank
    assert clear.rank_gap > 1e9
    assert tilted.rank_gap < 1e7


def test_a_robot_without_joints_is_refused():
    still = Mechanism("stone", (Body("base"), Body("rock", np.ones(10))), (Joint("glue", "fixed", "base", "rock"),))
    with pytest.raises(IdentificationError, match="no moving joint"):
        base_parameters(still)


def test_fingerprint_tells_geometry_gravity_and_terms_but_not_priors():
    one = base_parameters(arm(RRR))
    assert one.fits(base_parameters(arm(RRR, prior=7)).fingerprint())
    longer = [RRR[0], (0.21, 0.0, 0.169, 0.0), RRR[2]]
    for other in (arm(longer), arm(RRR, gravity=(0, 0, -1.62)), arm(RRR, ASYMMETRIC), arm(UR10)):
        assert not one.fits(base_parameters(other).fingerprint())


TREES = {
    "ur10": arm(UR10),
    "every joint": every_kind(("ia", "fv", "off")),
    "branches": build(
        [("revolute", -1, False), ("revolute", 0, False), ("prismatic", 0, True), ("universal", 1, False)], 3, ("ia",)
    ),
    "planar": build([("planar", -1, False), ("revolute", 0, False), ("spherical", 1, False)], 5, ("ia", "fc")),
}


@pytest.mark.parametrize("robot", TREES.values(), ids=TREES)
def test_neighbours_tell_what_all_columns_together_tell(robot, monkeypatch):
    whole = base_parameters(robot)
    monkeypatch.setattr(base_module, "LARGE", 0)
    near = base_parameters(robot)
    assert sorted(near.columns) == sorted(whole.columns)
    a, b = np.argsort(whole.columns), np.argsort(near.columns)
    np.testing.assert_allclose(near.regrouping[b], whole.regrouping[a], atol=1e-10)
    assert np.array_equal(near.seen[:, b], whole.seen[:, a])
    assert near.rank_gap > 1e6


def test_a_long_chain_has_the_rank_of_its_joints():
    # A revolute joint adds seven inertial parameters; the first one, upright, shows one of them, and m of the second none.
    rows = [(0.2, 0.5 + 0.1 * (i % 5), 0.1, 0.0) for i in range(100)]
    chain = Mechanism.from_dh(rows, gravity=(0.0, 0.0, -9.81)).with_terms(())
    short = base_parameters(Mechanism.from_dh(rows[:5], gravity=(0.0, 0.0, -9.81)).with_terms(()))
    found = base_parameters(chain)
    assert found.rank == short.rank + 95 * 7
    assert found.rank_gap > 1e6


def test_a_robot_too_large_is_told(monkeypatch):
    monkeypatch.setattr(base_module, "LARGE", 1)
    monkeypatch.setattr(base_module, "MOST", 2)
    with pytest.raises(IdentificationError, match="has 6 coordinates; base parameters are found for 2 at most"):
        base_parameters(arm(UR10))


@pytest.mark.parametrize("tolerance", [-1.0, 0.0, 1.0, float("nan"), float("inf")])
def test_a_tolerance_that_tells_nothing_is_refused(tolerance):
    with pytest.raises(IdentificationError, match=r"tolerance is .*; it must be between 0 and 1"):
        base_parameters(arm(PLANAR), tolerance=tolerance)
