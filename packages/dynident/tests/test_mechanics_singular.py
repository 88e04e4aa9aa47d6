"""Mass matrices that cannot be inverted are told, and only those."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_mechanisms import build, coupled, random_inertia, random_motion
from refusals import refused

from dynident.mechanics import forward_dynamics, inverse_dynamics, mass_matrix
from dynident.mechanism import Body, Coupling, Joint, Mechanism

ROBOT = build([("revolute", -1, False), ("prismatic", 0, False), ("revolute", 1, False)], 1, ("ia", "fv"))


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
