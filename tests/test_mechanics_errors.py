"""Bad input: one sentence that names the field, the value and the remedy, and never another exception."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dynident.errors import DynidentError
from dynident.mechanics import (
    Motion,
    coriolis_matrix,
    energy_regressor,
    forward_dynamics,
    forward_kinematics,
    frame_motion,
    gravity,
    inverse_dynamics,
    jacobian,
    mass_matrix,
    momentum_regressor,
    regressor,
    regressor_rows,
)
from dynident.mechanism import Body, Coupling, Joint, Loop, Mechanism
from random_mechanisms import build, coupled, every_kind, random_inertia, random_motion

ROBOT = build([("revolute", -1, False), ("prismatic", 0, False), ("revolute", 1, False)], 1, ("ia", "fv"))
MOTION = random_motion(ROBOT, 5)
Q, V, A, T = MOTION.q, MOTION.v, MOTION.a, MOTION.t
WIDE = random_motion(every_kind(), 5)

POSITIONS: dict[str, Callable[[Mechanism, object], object]] = {
    "mass_matrix": mass_matrix,
    "coriolis_matrix": lambda r, q: coriolis_matrix(r, q, V),
    "coriolis_matrix v": lambda r, v: coriolis_matrix(r, Q, v),
    "gravity": gravity,
    "forward_kinematics": lambda r, q: forward_kinematics(r, q, "L1"),
    "forward_kinematics of the base": lambda r, q: forward_kinematics(r, q, "base"),
    "jacobian": lambda r, q: jacobian(r, q, "L1"),
    "jacobian of the base": lambda r, q: jacobian(r, q, "base"),
    "forward_dynamics q": lambda r, q: forward_dynamics(r, q, V, A),
    "forward_dynamics v": lambda r, v: forward_dynamics(r, Q, v, A),
    "forward_dynamics tau": lambda r, tau: forward_dynamics(r, Q, V, tau),
}
MOTIONS: dict[str, Callable[[Mechanism, Motion], object]] = {
    "inverse_dynamics": inverse_dynamics,
    "regressor": regressor,
    "regressor_rows": regressor_rows,
    "energy_regressor": energy_regressor,
    "momentum_regressor": momentum_regressor,
    "frame_motion": lambda r, m: frame_motion(r, m, "L1"),
    "frame_motion of the base": lambda r, m: frame_motion(r, m, "base"),
}


def refused(call: Callable[[], object], *words: str) -> None:
    """Assert that the call raises a DynidentError of one line that contains the words."""
    with pytest.raises(DynidentError) as caught:
        call()
    sentence = str(caught.value)
    assert "\n" not in sentence
    for word in words:
        assert word in sentence, sentence


def with_nan(x: np.ndarray) -> np.ndarray:
    bad = np.array(x)
    bad[2, 1] = np.nan
    return bad


# ---- motions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("t", "q", "v", "a", "word"),
    [
        (T, Q[:4], V, A, "(4, 3)"),
        (T, Q, V[:, :2], A, "v has shape"),
        (T, Q, V, A[None], "a has shape"),
        (T[:3], Q, V, A, "3 samples"),
        (T[:, None], Q, V, A, "one-dimensional"),
        (T, Q[None], V[None], A[None], "(1, 5, 3)"),
        (T[::-1], Q, V, A, "does not increase"),
        (np.zeros(5), Q, V, A, "does not increase"),
        ([0.0, 1.0, 1.0, 2.0, 3.0], Q, V, A, "sample 2"),
        ([0.0, np.nan, 2.0, 3.0, 4.0], Q, V, A, "t is not finite"),
        (T, with_nan(Q), V, A, "q is not finite at sample 2"),
        (T, Q, with_nan(V), A, "v is not finite"),
        (T, Q, V, with_nan(A), "a is not finite"),
        (T, Q, V, np.where(np.isnan(with_nan(A)), np.inf, A), "a is not finite"),
        (["a"] * 5, Q, V, A, "t is not"),
        (T, [["x"] * 3] * 5, V, A, "q is not"),
        (T, Q, [[1.0], [1.0, 2.0]], A, "v is not"),
        (T, Q, V, A * 1j, "a is not"),
        (T, None, V, A, "q"),
        (None, Q, V, A, "t"),
        (0.0, 1.0, 1.0, 1.0, "q has shape"),
    ],
)
def test_a_motion_that_is_not_one(t: object, q: object, v: object, a: object, word: str) -> None:
    refused(lambda: Motion(t, q, v, a), "motion", word)


def test_a_motion_is_sliced_by_slices_only() -> None:
    refused(lambda: MOTION[2], "slice")
    assert len(MOTION[1:3]) == 2


@pytest.mark.parametrize("name", MOTIONS)
def test_a_motion_of_another_robot(name: str) -> None:
    refused(lambda: MOTIONS[name](ROBOT, WIDE), "(5, 17)", "3 coordinates")


@pytest.mark.parametrize("name", MOTIONS)
def test_something_else_than_a_motion(name: str) -> None:
    refused(lambda: MOTIONS[name](ROBOT, (T, Q, V, A)), "Motion")


# ---- arrays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize(
    "values",
    [
        Q[:, :2],
        Q[0, :2],
        Q[None],
        np.array(1.0),
        with_nan(Q),
        Q + np.inf,
        "abc",
        [["a", "b", "c"]],
        Q * 1j,
        None,
        [[1], [1, 2]],
    ],
    ids=["narrow", "short", "3d", "scalar", "nan", "inf", "text", "texts", "complex", "none", "ragged"],
)
def test_positions_that_are_not_positions(name: str, values: object) -> None:
    refused(lambda: POSITIONS[name](ROBOT, values))


def test_arrays_of_different_lengths() -> None:
    refused(lambda: coriolis_matrix(ROBOT, Q, V[:2]), "2 samples", "5")
    refused(lambda: forward_dynamics(ROBOT, Q, V[:2], A), "5, 2 and 5")


def test_unknown_frames_and_references() -> None:
    for call in (
        lambda: forward_kinematics(ROBOT, Q, "hand"),
        lambda: frame_motion(ROBOT, MOTION, "hand"),
        lambda: jacobian(ROBOT, Q, "hand"),
        lambda: inverse_dynamics(ROBOT, MOTION, wrenches={"hand": np.zeros(6)}),
        lambda: forward_dynamics(ROBOT, Q, V, A, wrenches={"hand": np.zeros(6)}),
    ):
        refused(call, "no link 'hand'", "L1")
    refused(lambda: jacobian(ROBOT, Q, "L1", "body"), "'body'", "world")


@pytest.mark.parametrize(
    "wrenches",
    [{"L1": np.zeros(3)}, {"L1": np.zeros((4, 6))}, {"L1": [np.nan] * 6}, {"L1": "push"}, {"L1": None}, [np.ones(6)]],
)
def test_wrenches_that_are_not_wrenches(wrenches: object) -> None:
    refused(lambda: inverse_dynamics(ROBOT, MOTION, wrenches=wrenches), "wrench")
    refused(lambda: forward_dynamics(ROBOT, Q, V, A, wrenches=wrenches), "wrench")


# ---- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        np.zeros(3),
        np.zeros((36, 1)),
        1.0,
        "mass",
        np.full(36, np.nan),
        [None] * 36,
        every_kind().parameters,
        ROBOT.with_terms(("ia",)).parameters,
        ROBOT.parameters.replace({"m_L1": np.inf}),
    ],
    ids=["short", "column", "scalar", "text", "nan", "none", "other robot", "other terms", "inf"],
)
def test_parameters_that_do_not_belong_to_the_robot(parameters: object) -> None:
    assert len(ROBOT.parameters) == 36
    for call in (
        lambda: inverse_dynamics(ROBOT, MOTION, parameters),
        lambda: mass_matrix(ROBOT, Q, parameters),
        lambda: coriolis_matrix(ROBOT, Q, V, parameters),
        lambda: gravity(ROBOT, Q, parameters),
        lambda: forward_dynamics(ROBOT, Q, V, A, parameters),
    ):
        refused(call, "parameter")


def test_parameters_for_a_robot_that_has_none() -> None:
    robot = Mechanism("ghost", (Body("base"), Body("link")), (Joint("j", "revolute", "base", "link"),), terms=())
    motion = Motion(0.0, [0.1], [0.2], [0.3])
    refused(lambda: inverse_dynamics(robot, motion, [1.0]), "parameters have shape (1,)")
    assert not inverse_dynamics(robot, motion).any()
    assert regressor(robot, motion).shape == (1, 1, 0)


# ---- robots ----------------------------------------------------------------------------------------------------------


def test_loops_that_cannot_close_are_named() -> None:
    robot = replace(ROBOT, loops=(Loop("cut", "revolute", "L2", "base"),))
    for name, f in POSITIONS.items():
        if "base" not in name:
            refused(lambda f=f: f(robot, Q), "loop 'cut'", "home")
    for f in MOTIONS.values():
        refused(lambda f=f: f(robot, MOTION), "loop 'cut'")


def singular_robots() -> dict[str, Mechanism]:
    """Return robots with a joint that moves no inertia, exactly or to working precision."""
    rng = np.random.default_rng(0)
    mass, base = Body("b", random_inertia(rng)), Body("base")
    axis = np.array([0.3, -0.5, 0.8])

    def chain(*kinds: str, body: Body = mass) -> Mechanism:
        names = ["base", *(f"f{i}" for i in range(len(kinds) - 1)), "b"]
        joints = [Joint(f"j{i}", kind, names[i], names[i + 1], axis=axis) for i, kind in enumerate(kinds)]
        return Mechanism("singular", (base, *(Body(n) for n in names[1:-1]), body), tuple(joints), terms=())

    first, second = (Joint(f"j{i}", "revolute", a, b, axis=axis) for i, (a, b) in enumerate((("base", "b"), ("b", "end"))))
    return {
        "massless end": Mechanism("singular", (base, mass, Body("end")), (first, second), terms=()),
        "one axis twice": chain("revolute", "revolute"),
        "one slide twice": chain("prismatic", "prismatic"),
        "wrist of four axes": chain("revolute", "spherical"),
        "two balls": chain("spherical", "spherical"),
        "free under free": chain("free", "free"),
        "point mass on a ball": chain("spherical", body=Body("b", [1, 0.3, 0, 0, 0, 0, 0, 0.09, 0, 0.09])),
        "no mass at all": chain("free", body=Body("b", np.zeros(10))),
    }


@pytest.mark.parametrize("name", singular_robots())
def test_forward_dynamics_of_a_singular_robot(name: str) -> None:
    robot = singular_robots()[name]
    motion = random_motion(robot, 3)
    refused(lambda: forward_dynamics(robot, motion.q, motion.v, motion.a), "singular at sample 0", "inertia")


def test_forward_dynamics_of_a_singular_coupled_robot() -> None:
    robot = singular_robots()["one axis twice"]
    extra = Joint("j9", "revolute", "base", "l9")
    bodies = (*robot.bodies, Body("l9", random_inertia(np.random.default_rng(1))))
    robot = replace(robot, bodies=bodies, joints=(*robot.joints, extra), couplings=(Coupling("j9", {"j0": 0.0}),), actuators=())
    motion = random_motion(robot, 3)
    refused(lambda: forward_dynamics(robot, motion.q, motion.v, motion.a), "singular at sample 0")
    empty = coupled(terms=())
    refused(lambda: forward_dynamics(empty, *(np.zeros((2, empty.dof)),) * 3, np.zeros(len(empty.parameters))), "singular")


def test_a_rotor_makes_a_massless_joint_regular() -> None:
    robot = replace(singular_robots()["massless end"], terms=("ia",))
    phi = robot.parameters.replace({"ia_j1": 0.2}).values
    motion = random_motion(robot, 3)
    tau = inverse_dynamics(robot, motion, phi)
    np.testing.assert_allclose(forward_dynamics(robot, motion.q, motion.v, tau, phi), motion.a, rtol=1e-10)


def test_an_indefinite_mass_matrix_is_no_reason_to_refuse() -> None:
    """Published parameters need not belong to possible bodies; a zero on the diagonal of M needs row exchanges."""
    motion = random_motion(ROBOT, 40)
    rotor = ROBOT.parameters.values[ROBOT.parameters.names.index("ia_J0")] - mass_matrix(ROBOT, motion.q[0])[0, 0, 0]
    phi = ROBOT.parameters.replace({"ia_J0": float(rotor)}).values
    M = mass_matrix(ROBOT, motion.q, phi)
    assert abs(M[0, 0, 0]) < 1e-14
    assert np.any(np.linalg.eigvalsh(M)[:, 0] < 0.0)
    tau = inverse_dynamics(ROBOT, motion, phi)
    np.testing.assert_allclose(forward_dynamics(ROBOT, motion.q, motion.v, tau, phi), motion.a, atol=1e-9)


def test_light_but_real_links_are_not_called_singular() -> None:
    """A micro-gripper of milligrams at the end of a ten-metre, ten-ton boom."""
    boom, finger = (
        1e4 * np.array([1, 5, 0, 0, 0.1, 0, 0, 30, 0, 30]),
        1e-6 * np.array([1, 1e-3, 0, 0, 1e-7, 0, 0, 2e-6, 0, 2e-6]),
    )
    joints = (Joint("j0", "revolute", "base", "boom"), Joint("j1", "revolute", "boom", "finger"))
    robot = Mechanism("boom", (Body("base"), Body("boom", boom), Body("finger", finger)), joints, terms=())
    motion = random_motion(robot, 3)
    assert np.all(np.isfinite(forward_dynamics(robot, motion.q, motion.v, motion.a)))
