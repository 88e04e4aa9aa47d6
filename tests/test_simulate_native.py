"""A robot's own machine code against the kernels for whole motions, the code for any robot, and the C library."""

from __future__ import annotations

import ctypes
import gc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from weakref import ref

import numpy as np
import pytest
from hypothesis import given

import dynident as di
from dynident import robots
from dynident.graph import Graph
from dynident.mechanics import inverse_dynamics, mass_matrix
from dynident.mechanics.batch import at_rest, inertial_values
from dynident.mechanics.packed import CLOSURE, COUNT, FORCE, MASS, MOTION, SOLVE, SPEED
from dynident.simulate import layout as at
from dynident.simulate import native
from dynident.simulate.motion_kernels import motion_at, solve_at
from dynident.simulate.native import own_code
from dynident.simulate.skeleton import block_ends
from dynident.simulate.skeleton_kernels import closure_map
from dynident.symbolic.motion import Entry, Task
from dynident.symbolic.print_llvm import Native
from loop_cases import CASES
from plant_cases import chain, free, go
from random_mechanisms import PROPERTY, close, mechanisms, random_motion


def code(robot: di.Mechanism, name: str, arguments: int) -> object:
    """Return a function of a robot for calls from Python."""
    found = own_code(robot)
    assert found is not None
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)(found.address(name))


@PROPERTY
@given(mechanisms(largest=4))
def test_mass_matrix_and_bias_agree_with_the_kernels_for_motions(robot: di.Mechanism) -> None:
    motion = random_motion(robot, 3, seed=3)
    still = at_rest(robot, motion.q, motion.v)
    M, h = mass_matrix(robot, motion.q), inverse_dynamics(robot, still)
    n = len(robot.tree.coordinates)
    f, base = code(robot, "motion", 7), np.diag(np.arange(1.0, n + 1.0))
    phi = inertial_values(robot, robot.parameters.values)
    for i in range(3):
        q, v, ours, bias = motion.q[i].copy(), motion.v[i].copy(), base.copy(), np.zeros(n)
        f(*(x.ctypes.data for x in (q, v, phi, base, ours, bias, bias)))
        close(np.tril(ours), np.tril(M[i] + base), 1e-12)
        close(bias, h[i], 1e-12)


def everything(robot: di.Mechanism, own: bool, seed: int = 0) -> dict[int, np.ndarray]:
    """Return M, h, closure and bias of a robot near its home, by its own code or by that for any robot."""
    rng = np.random.default_rng(seed)
    home = robot.closure.home[robot.closure.independent] if robot.loops else np.zeros(robot.dof)
    assembly = free(robot, home, rng.normal(size=robot.dof) * 0.3)
    K, F = assembly.plant.K, assembly.plant.F.copy()
    assert K[MOTION] != 0
    if not own:
        K = K.copy()
        K[[MOTION, CLOSURE, SOLVE]] = 0
    n = K[COUNT]
    F[K[at.STATE] : K[at.STATE] + n] += rng.normal(size=n) * 1e-3  # off the closure, too
    F[K[SPEED] : K[SPEED] + n] = rng.normal(size=n)
    side = closure_map(K, F, K[at.STATE]) if robot.loops else 1.0
    motion_at(K, F, K[at.STATE])
    m = K[at.MISSING]
    sizes = {MASS: n * n, FORCE: n, at.CURVE: n, at.MAP: n * K[at.DOF], at.JACOBIAN: m * n * bool(robot.loops)}
    found = {key: F[K[key] : K[key] + size].copy() for key, size in sizes.items()}
    found[MASS] = np.tril(found[MASS].reshape(n, n))
    return {**found, -1: np.array([side])}


@pytest.mark.parametrize("name", ["cft", "dualv", "er3a_c60", "five_bar", "mast", "prr2", "prs3", "rrr", *CASES])
def test_own_code_is_the_code_for_any_robot(name: str) -> None:
    robot = CASES[name]() if name in CASES else getattr(robots, name).mechanism()
    for seed in range(3):
        ours, any_robot = (everything(robot, own, seed) for own in (True, False))
        for key, value in ours.items():
            close(value, any_robot[key], 1e-10)


def test_legs_are_blocks_of_the_closure() -> None:
    robot = robots.dualv.mechanism()
    ends = block_ends(robot.closure.selected, robot.tree.arrays, robot.closure.dependent)
    assert ends.tolist() == [3] * 3 + [6] * 3 + [9] * 3 + [12] * 3
    robot = CASES["Bennett"]()
    assert set(block_ends(robot.closure.selected, robot.tree.arrays, robot.closure.dependent)) == {robot.closure.dependent.size}


def test_runs_by_both_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, x, v = chain(3), np.array([0.3, -0.4, 0.5]), np.array([1.0, -2.0, 3.0])
    own = go(free(robot, x, v), 500)
    monkeypatch.setattr(native, "LARGEST", 50)
    monkeypatch.setattr(native, "_native", native._native.__wrapped__)
    assembly = free(robot, x, v)
    assert assembly.plant.K[MOTION] == 0
    close(go(assembly, 500), own, 1e-10)


def test_code_depends_on_the_geometry_only() -> None:
    robot = chain(3)
    heavier = robot.with_parameters(robot.parameters.replace(2.0 * robot.parameters.values))
    assert own_code(heavier) is own_code(robot)
    assert own_code(replace(robot, gravity=np.array([0.0, 0.0, -1.62]))) is not own_code(robot)


def test_code_lives_as_long_as_what_runs_it() -> None:
    robot = replace(chain(3), gravity=np.array([0.0, 0.0, -3.71]))
    assembly, alive = free(robot, np.zeros(3)), ref(own_code(robot))
    native._native.cache_clear()
    gc.collect()
    assert alive() is not None
    go(assembly, 10)
    del assembly
    gc.collect()
    assert alive() is None


def test_threads_share_one_code() -> None:
    robot = di.Mechanism.from_dh([(0.1234, 0.0, 0.0, 0.0), (0.2, 0.7, 0.1, 0.0)], name="threads")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: own_code(robot), range(32)))
    assert found[0] is not None and all(one is found[0] for one in found)


def test_sine_and_cosine() -> None:
    graph = Graph()
    angles = [graph.symbol(f"q[{i}]") for i in range(6)]
    values = [graph.call(op, angle) for angle in angles for op in ("sin", "cos")]
    made = Native([Task("turn", ("q",), ("r",), tuple(Entry("r", i, value) for i, value in enumerate(values)))])
    f = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(made.address("turn"))
    rng, r = np.random.default_rng(0), np.zeros(12)
    for size in (0.0, 1e-9, 0.1, 1.0, 10.0, 1e4, 9e4, 1e6, 1e12):
        for _ in range(50):
            q = rng.normal(size=6) * size
            f(q.ctypes.data, r.ctypes.data)
            np.testing.assert_allclose(r[::2], np.sin(q), rtol=0.0, atol=2.3e-16)
            np.testing.assert_allclose(r[1::2], np.cos(q), rtol=0.0, atol=2.3e-16)
    q = np.array([0.5 * np.pi, np.pi, -0.5 * np.pi, 1.5 * np.pi, np.nan, np.inf])
    f(q.ctypes.data, r.ctypes.data)
    np.testing.assert_allclose(r[:8:2], np.sin(q[:4]), atol=2.3e-16)
    np.testing.assert_allclose(r[1:8:2], np.cos(q[:4]), atol=2.3e-16)
    assert np.isnan(r[8:]).all()


def test_solution() -> None:
    robot = chain(3)
    assembly = free(robot, np.zeros(3))
    K, F = assembly.plant.K, assembly.plant.F
    M, x = F[K[at.GENERAL] : K[at.GENERAL] + 9].reshape(3, 3), F[K[at.TRIAL] : K[at.TRIAL] + 3]
    rng = np.random.default_rng(0)
    for _ in range(20):
        A = rng.normal(size=(3, 3))
        A, b = A + A.T, rng.normal(size=3)  # indefinite
        M[:], x[:] = A, b
        assert solve_at(K, F, K[at.GENERAL], K[at.TRIAL]) == -1
        np.testing.assert_allclose(A @ x, b, atol=1e-10)
    M[:], x[:] = np.ones((3, 3)), 1.0
    assert solve_at(K, F, K[at.GENERAL], K[at.TRIAL]) == 1
