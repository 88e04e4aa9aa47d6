"""Closed forms equal the Newton-Euler kernels, Lagrange's equations, and the numbers of the RRR paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from random_mechanisms import ALL_TERMS, BRANCHED, PROPERTY, build, close, coupled, every_kind, mechanisms, random_motion

from dynident import mechanics
from dynident.errors import DynidentError
from dynident.mechanics import Motion
from dynident.mechanism import Body, Coupling, Joint, Loop, Mechanism, Placement
from dynident.symbolic import Program, derive, operation_table
from dynident.symbolic.derivation import QUANTITIES, _natural

FORMS = tuple(name for name in QUANTITIES if not name.startswith("base_"))
RRR = [(0.0, np.pi / 2, 0.56, 0.0), (0.2, 0.0, 0.415, 0.0), (0.169, 0.0, 0.09, 0.0)]


def rrr(**changes: object) -> Mechanism:
    return Mechanism.from_dh(RRR, convention="standard", name="rrr", **changes).with_terms(("ia",))


def reference(robot: Mechanism, motion: Motion, link: str) -> dict[str, np.ndarray]:
    """The same quantities from the compiled kernels."""
    R, p = mechanics.forward_kinematics(robot, motion.q, link)
    T = np.zeros((len(motion), 4, 4))
    T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = R, p, 1.0
    phi = robot.parameters.values
    kinetic, potential = mechanics.energy_regressor(robot, motion)
    return {
        "inverse_dynamics": mechanics.inverse_dynamics(robot, motion),
        "regressor": mechanics.regressor(robot, motion),
        "mass_matrix": mechanics.mass_matrix(robot, motion.q),
        "coriolis_matrix": mechanics.coriolis_matrix(robot, motion.q, motion.v),
        "gravity": mechanics.gravity(robot, motion.q),
        "forward_kinematics": T,
        "jacobian": mechanics.jacobian(robot, motion.q, link),
        "energies": np.column_stack([kinetic @ phi, potential @ phi]),
    }


def agree(robot: Mechanism, program: Program, seed: int = 0, tolerance: float = 1e-12) -> None:
    motion = random_motion(robot, 6, seed)
    link = list(robot.tree.frames)[-1]
    for name, expected in reference(robot, motion, link).items():
        found = program.evaluate(name, q=motion.q, v=motion.v, a=motion.a)
        close(np.broadcast_to(found, expected.shape), expected, tolerance)


@given(robot=mechanisms(terms=ALL_TERMS))
@PROPERTY
def test_random_trees_equal_newton_euler(robot: Mechanism) -> None:
    agree(robot, derive(robot, FORMS))


@pytest.mark.parametrize(
    "robot", [every_kind(), coupled(), build(BRANCHED, 3, ALL_TERMS)], ids=["kinds", "coupled", "branched"]
)
@pytest.mark.parametrize("geometry", ["numeric", "symbolic"])
@pytest.mark.parametrize("parameters", ["numeric", "symbolic"])
def test_all_ways_of_deriving_agree(robot: Mechanism, geometry: str, parameters: str) -> None:
    agree(robot, derive(robot, FORMS, geometry=geometry, parameters=parameters), seed=5)


def test_couplings_by_functions_are_derived_from_their_own_code() -> None:
    """A crank that drives a slide, beside a linear follower: f, df/dq and its rate in closed form."""
    robot = build(
        (("revolute", -1, False), ("prismatic", 0, False), ("revolute", 1, False), ("revolute", 0, False)), 3, ALL_TERMS
    )

    def crank(x: np.ndarray) -> np.ndarray:
        return 0.2 * np.cos(x[:, 0]) + np.sqrt(0.5 - (0.2 * np.sin(x[:, 0])) ** 2) + x[:, 1] / (3.0 + np.tan(0.1 * x[:, 0]))

    couplings = (Coupling("J1", ["J0", "J3"], 0.1, function=crank), Coupling("J2", {"J3": 0.5}, 0.2))
    coupled_robot = replace(robot, couplings=couplings, actuators=())
    # The kernels difference the gradient numerically, hence not 1e-12.
    agree(coupled_robot, derive(coupled_robot, FORMS), tolerance=1e-7)
    program = derive(coupled_robot, ["inverse_dynamics", "regressor"])
    motion = random_motion(coupled_robot, 5)
    state = {"q": motion.q, "v": motion.v, "a": motion.a}
    close(
        program.evaluate("regressor", **state) @ robot.parameters.values, program.evaluate("inverse_dynamics", **state), 1e-12
    )


def test_rrr_at_ten_thousand_states() -> None:
    robot = rrr()
    rng = np.random.default_rng(1)
    phi = rng.normal(size=len(robot.parameters))
    q, v, a = (rng.normal(size=(10_000, 3)) * 3.0 for _ in range(3))
    expected = mechanics.inverse_dynamics(robot, Motion(np.arange(10_000.0), q, v, a), phi)
    for geometry in ("numeric", "symbolic"):
        program = derive(robot, ["inverse_dynamics", "base_parameters", "base_inverse_dynamics"], geometry=geometry)
        close(program.evaluate("inverse_dynamics", q=q, v=v, a=a, phi=phi), expected, 1e-12)
        beta = program.evaluate("base_parameters", phi=phi)
        close(program.evaluate("base_inverse_dynamics", q=q, v=v, a=a, beta=beta), expected, 1e-12)


def test_rrr_operations_are_below_the_papers_393() -> None:
    """[Kostic2002]: 393 operations for the closed form and 1050 for the numeric one."""
    robot = rrr()
    for geometry in ("numeric", "symbolic"):
        program = derive(robot, ["inverse_dynamics", "base_inverse_dynamics"], geometry=geometry)
        assert program.operations("inverse_dynamics").total <= 393
        assert program.operations("base_inverse_dynamics").total < program.operations("inverse_dynamics").total
    assert derive(robot, ["inverse_dynamics"], parameters="numeric").operations().total < 100  # a prior of zero mass
    table = operation_table(program, robot)
    assert "numeric Newton-Euler" in table
    assert table.splitlines()[0].split()[:3] == ["method", "+", "*"]


def test_count_of_a_known_polynomial() -> None:
    """(x + y)(x - y) + z."""
    program = derive(rrr(), ["gravity"])
    graph = program.graph
    x, y, z = (graph.symbol(f"phi[{i}]") for i in range(3))
    form = replace(program["gravity"], shape=(1,), entries=((x + y) * (x - y) + z,))
    counted = replace(program, quantities={"gravity": form})
    assert dict(counted.operations().counts) == {"+": 3, "*": 1, "/": 0, "sin": 0, "cos": 0, "other": 0}


def test_mass_matrix_rate_minus_twice_coriolis_is_skew() -> None:
    robot = build((("revolute", -1, False), ("revolute", 0, False), ("prismatic", 1, False)), 4)
    program = derive(robot, ["mass_matrix", "coriolis_matrix"])
    rng = np.random.default_rng(0)
    q, v, h = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), 1e-6
    rate = (program.evaluate("mass_matrix", q=q + h * v) - program.evaluate("mass_matrix", q=q - h * v)) / (2.0 * h)
    skew = rate - 2.0 * program.evaluate("coriolis_matrix", q=q, v=v)
    close(skew, -skew.transpose(0, 2, 1), 1e-7)


@pytest.mark.parametrize(
    "robot",
    [
        rrr(),
        build((("revolute", -1, False), ("prismatic", 0, True)), 2, ALL_TERMS),
        replace(
            build((("revolute", -1, False), ("revolute", 0, False), ("prismatic", 0, False)), 8, ("ia", "k")),
            couplings=(Coupling("J2", {"J0": 0.4, "J1": -1.0}, 0.3),),
            actuators=(),
        ),
    ],
    ids=["rrr", "prismatic", "coupled"],
)
def test_lagrange_agrees(robot: Mechanism) -> None:
    pytest.importorskip("sympy", reason="sympy is not installed: pip install sympy")
    from symbolic_lagrange import lagrange  # needs sympy

    equations = lagrange(robot)
    motion = random_motion(robot, 4, 3)
    phi = np.random.default_rng(0).normal(size=len(robot.parameters))
    program = derive(robot, ["inverse_dynamics", "mass_matrix", "coriolis_matrix", "gravity"])
    for ours, theirs in (
        ("inverse_dynamics", "torques"),
        ("mass_matrix", "mass_matrix"),
        ("coriolis_matrix", "coriolis_matrix"),
        ("gravity", "gravity"),
    ):
        found = program.evaluate(ours, q=motion.q, v=motion.v, a=motion.a, phi=phi)
        close(found, equations.evaluate(theirs, motion.q, motion.v, motion.a, phi), 1e-12)


def test_symbolic_geometry_follows_other_lengths() -> None:
    """The forms of one robot, with the lengths of another, are those of the other."""
    program = derive(rrr(), ["inverse_dynamics"], geometry="symbolic")
    assert program.inputs["geometry"] == ("d1", "a2", "d2", "a3", "d3", "g")
    rows = [(0.0, np.pi / 2, 0.3, 0.0), (-0.4, 0.0, 0.1, 0.0), (0.25, 0.0, -0.2, 0.0)]
    other = Mechanism.from_dh(rows, convention="standard", gravity=(0.0, 0.0, -3.7)).with_terms(("ia",))
    rng = np.random.default_rng(2)
    q, v, a = (rng.normal(size=(4, 3)) for _ in range(3))
    phi = rng.normal(size=len(other.parameters))
    found = program.evaluate("inverse_dynamics", q=q, v=v, a=a, phi=phi, geometry=[0.3, -0.4, 0.1, 0.25, -0.2, 3.7])
    close(found, mechanics.inverse_dynamics(other, Motion(np.arange(4.0), q, v, a), phi), 1e-12)


def test_modified_dh_has_its_lengths_as_symbols() -> None:
    rows = [(0.0, 0.0, 0.4, 0.0), (0.1, -np.pi / 2, 0.2, 0.0), (0.3, 0.4, 0.15, 0.1)]
    robot = Mechanism.from_dh(rows, convention="modified")
    program = derive(robot, ["forward_kinematics", "gravity"], geometry="symbolic")
    assert program.inputs["geometry"] == ("d1", "a2", "d2", "a3", "d3", "g")
    motion = random_motion(robot, 4)
    close(program.evaluate("forward_kinematics", q=motion.q), reference(robot, motion, "link_3")["forward_kinematics"], 1e-12)


@pytest.mark.real
@pytest.mark.parametrize(("file", "most"), [("ur10_petrone2025/ur10_robot", 1000), ("kuka_lwr4_flobaroid/kuka_lwr4", 1800)])
def test_real_arms_have_short_regressors(shared_data: Path, file: str, most: int) -> None:
    robot = Mechanism.from_urdf(shared_data / f"{file}.urdf")
    program = derive(robot, FORMS)
    agree(robot, program, tolerance=1e-9)  # right angles of the file are snapped, its digits are not exact
    assert program.operations("regressor").total < most


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_bad_requests_are_refused_in_one_sentence() -> None:
    robot = rrr()
    for words, ask in (
        ("unknown quantity 'torque'; known quantities are", lambda: derive(robot, ["torque"])),
        ("give a list", lambda: derive(robot, "regressor")),
        ("geometry is 'exact'", lambda: derive(robot, geometry="exact")),
        ("parameters is 'some'", lambda: derive(robot, parameters="some")),
        ("has no link 'tool'", lambda: derive(robot, ["jacobian"], frame="tool")),
        ("at most once", lambda: derive(robot, ["base_regressor"], columns=[1, 1])),
        ("has no quantity 'gravity'", lambda: derive(robot, ["regressor"])["gravity"]),
        ("needs 'v'", lambda: derive(robot, ["regressor"]).evaluate("regressor", q=[0.0] * 3)),
        ("needs 3 columns", lambda: derive(robot, ["gravity"]).evaluate("gravity", q=[0.0] * 2)),
        ("stopped at 100 sub-expressions", lambda: derive(robot, max_nodes=100)),
    ):
        with pytest.raises(DynidentError, match=words):
            ask()


def test_loops_fixed_robots_and_nonlinear_couplings_are_refused() -> None:
    body, inertia = np.zeros(10), np.zeros(10)
    joints = (
        Joint("j1", "revolute", "base", "l1"),
        Joint("j2", "revolute", "l1", "l2", Placement(np.eye(3), np.array([1, 0, 0]))),
    )
    bodies = (Body("base"), Body("l1", body), Body("l2", inertia))
    loop = Loop("cut", "point", "l2", "base", Placement(np.eye(3), np.array([0.5, 0, 0])), Placement())
    robot = Mechanism("bars", bodies, joints)
    with pytest.raises(DynidentError, match=r"derived for trees, but robot 'bars' has loops \(cut\)"):
        derive(replace(robot, loops=(loop,)))
    for bad in (lambda x: np.round(x[:, 0]), lambda x: np.where(x[:, 0] > 0.0, x[:, 0], 0.0), lambda x: np.arctan(x[:, 0])):
        with pytest.raises(DynidentError, match="coupling of joint 'j2' cannot be differentiated"):
            derive(replace(robot, couplings=(Coupling("j2", ["j1"], function=bad),), actuators=()))
    with pytest.raises(DynidentError, match="no moving joint"):
        derive(Mechanism("stone", (Body("base"),), ()))


def test_lengths_are_in_the_order_of_their_numbers() -> None:
    symbols = dict.fromkeys(["d10", "a10", "r_arm_x", "a2", "d1"], 0.5)
    assert list(_natural(symbols)) == ["r_arm_x", "d1", "a2", "a10", "d10"]
