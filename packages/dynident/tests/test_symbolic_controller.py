"""Controller code in C against the batch functions: trees, a five-bar, a platform with four motors for three freedoms."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_robots

import dynident as di
from dynident.control import feedforward_torques
from dynident.errors import DescriptionError
from dynident.mechanics import close_positions, forward_kinematics
from dynident.mechanics.actuation import actuator_jacobian, least_torques
from dynident.symbolic.controller import ControllerCode

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="gcc is not installed")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2"]
ROBOTS = [small_robots.arm6, small_robots.five_bar, small_robots.platform]
CLOSE = {"rtol": 1e-12, "atol": 1e-11}
DEGREES = np.deg2rad(2.0)


class Built:
    """The library of one robot, called through ctypes."""

    def __init__(self, robot: di.Mechanism, folder: Path, friction: float | None = 0.0, frame: str | None = None) -> None:
        self.robot, self.code = robot, ControllerCode(robot, friction=friction, frame=frame)
        for file, text in self.code.c_files.items():
            (folder / file).write_text(text)
        name, target = self.code.name, folder / "model.so"
        assert GCC
        subprocess.run([GCC, *STRICT, "-fPIC", "-shared", f"{name}.c", "-lm", "-o", target], cwd=folder, check=True)
        self.library = ctypes.CDLL(str(target))
        self.pose = np.zeros(len(robot.tree.coordinates) if robot.loops else 0)
        if robot.loops:
            self.library[f"{name}_start"](self.pose.ctypes.data_as(ctypes.c_void_p))

    def __call__(self, name: str, size: int, *arrays: np.ndarray | None) -> tuple[int, np.ndarray]:
        out = np.full(size, 7.0)
        given = [self.pose] if self.robot.loops else []
        places = [None if x is None else np.ascontiguousarray(x) for x in (*given, *arrays, out)]
        code = self.library[f"{self.code.name}_{name}"](
            *(ctypes.c_void_p(None if x is None else x.ctypes.data) for x in places)
        )
        return code, places[-1] if places[-1] is not None else out


def states(robot: di.Mechanism, samples: int, seed: int = 0) -> tuple[di.Motion, np.ndarray]:
    """Return random states within reach of home, and starts at most two degrees (or 2 cm) away from them."""
    rng = np.random.default_rng(seed)
    home = robot.closure.home[robot.closure.independent] if robot.loops else np.zeros(robot.dof)
    size = 0.1 if robot.loops else 2.0
    q = home + rng.uniform(-size, size, (samples, robot.dof))
    start = q + rng.uniform(-0.5, 0.5, q.shape) * DEGREES
    v, a = rng.normal(0.0, 1.0, q.shape), rng.normal(0.0, 5.0, q.shape)
    return di.Motion(np.arange(float(samples)), q, v, a), start


def each(robot: di.Mechanism, q: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return a batch function of positions that do not follow one another."""
    if not robot.loops:
        return function(q)
    home = robot.closure.home[robot.closure.independent]
    way = np.stack([np.broadcast_to(home, q.shape), q], axis=1).reshape(-1, robot.dof)
    return function(way)[1::2]


def without(robot: di.Mechanism, friction: bool) -> di.Mechanism:
    """Return the robot with friction parameters at zero, or with these alone."""
    names, values = robot.parameters.names, robot.parameters.values.copy()
    kept = np.array([name.split("_")[0] in ("fv", "fc") for name in names])
    values[kept if friction else ~kept] = 0.0
    return robot.with_parameters(robot.parameters.replace(values))


@pytest.fixture(scope="module", params=ROBOTS, ids=lambda make: make.__name__)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    if GCC is None:
        pytest.skip("gcc is not installed")
    robot = request.param()
    terms = {name: ("ia", "fv", "fc", "off") for name in robot.coordinate_names if not robot.loops}
    if terms:
        robot = robot.with_terms(("ia", "fv", "fc", "off"))
        values = robot.parameters.values.copy()
        values[robot.tree.inertias.size :] = np.random.default_rng(5).uniform(0.1, 2.0, values.size - robot.tree.inertias.size)
        robot = robot.with_parameters(robot.parameters.replace(values))
    return Built(robot, tmp_path_factory.mktemp("c"))


def test_random_states(built: Built) -> None:
    robot, n = built.robot, built.robot.dof
    motion, start = states(robot, 1000)
    doubled = lambda x: np.repeat(x, 2, axis=0) if robot.loops else x  # noqa: E731 - every second sample is home

    def with_rates(function: Callable[[di.Motion], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda q: function(di.Motion(np.arange(float(len(q))), q, doubled(motion.v), doubled(motion.a)))

    bare, rub = without(robot, friction=True), without(robot, friction=False)
    expected = {
        "inverse_dynamics": each(robot, motion.q, with_rates(lambda m: di.inverse_dynamics(bare, m))),
        "friction": each(robot, motion.q, with_rates(lambda m: di.inverse_dynamics(rub, m))),
        "gravity": each(robot, motion.q, lambda q: di.gravity(robot, q)),
        "forward_dynamics": each(
            robot, motion.q, lambda q: di.forward_dynamics(robot, q, doubled(motion.v), doubled(motion.a))
        ),
    }
    inputs = {"inverse_dynamics": "va", "friction": "v", "gravity": "", "forward_dynamics": "va"}
    starts = each(robot, start, lambda q: close_positions(robot, q)) if robot.loops else start
    for name, values in expected.items():
        found = np.empty((1000, n))
        for s in range(1000):
            if robot.loops:
                built.pose[:] = starts[s]
            code, found[s] = built(name, n, motion.q[s], *(getattr(motion, x)[s] for x in inputs[name]))
            assert code == 0
        scale = np.abs(values).max()
        np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-12 * scale)


def test_motors_along_a_motion_at_1_khz(built: Built) -> None:
    robot, k, n = built.robot, len(built.robot.actuators), built.robot.dof
    t = np.arange(1000)[:, None] * 1e-3
    home = robot.closure.home[robot.closure.independent] if robot.loops else np.zeros(n)
    w = np.arange(3.0, 3.0 + n)
    motion = di.Motion(t[:, 0], home + 0.05 * np.sin(w * t), 0.05 * w * np.cos(w * t), -0.05 * w**2 * np.sin(w * t))
    ratio = np.array([actuator.ratio for actuator in robot.actuators])
    expected = feedforward_torques(robot, motion) / ratio
    more = [None, None] if k > n else []
    if robot.loops:
        built.pose[:] = close_positions(robot, motion.q[:1])[0]
    found = np.array([built("feedforward", k, q, v, a, *more)[1] for q, v, a in zip(motion.q, motion.v, motion.a, strict=True)])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    if k > n:
        weights, push = np.arange(1.0, 1.0 + k), np.linspace(-2.0, 3.0, k)
        f = np.ones(n)
        built.pose[:] = close_positions(robot, motion.q[:1])[0]
        A = actuator_jacobian(robot, motion.q[:1])[0] / ratio[:, None]
        code, share = built("motor_torques", k, motion.q[0], f, weights, push)
        assert code == 0
        np.testing.assert_allclose(share, least_torques(A[None], f[None], push, weights)[0] / ratio, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(A.T @ (share * ratio), f, rtol=1e-11)


@needs_gcc
def test_outputs_stay_where_loops_cannot_be_closed(tmp_path: Path) -> None:
    robot = small_robots.five_bar("platform")
    built = Built(robot, tmp_path)
    pose = built.pose.copy()
    home = robot.closure.home[robot.closure.independent]
    for q in (home + 50.0, home * np.nan):
        code, out = built("inverse_dynamics", 2, q, np.zeros(2), np.zeros(2))
        assert code == 1
        np.testing.assert_array_equal(out, [7.0, 7.0])
        np.testing.assert_array_equal(built.pose, pose)
    assert built("inverse_dynamics", 2, home, np.zeros(2), np.zeros(2))[0] == 0


@needs_gcc
def test_friction_can_be_smooth_or_left_out(tmp_path: Path) -> None:
    robot = small_robots.arm3().with_terms(("fv", "fc"))
    values = robot.parameters.replace({f"fc_{name}": 2.0 for name in robot.coordinate_names})
    robot = robot.with_parameters(values)
    smooth = Built(robot, tmp_path, 0.02)
    v = np.array([0.01, -0.02, 1.0])
    viscous = robot.parameters.values[[robot.parameters.names.index(f"fv_{name}") for name in robot.coordinate_names]]
    np.testing.assert_allclose(smooth("friction", 3, np.zeros(3), v)[1], viscous * v + 2.0 * np.tanh(v / 0.02), rtol=1e-12)
    assert "friction(" not in ControllerCode(robot, friction=None).c_files["arm3.h"]


def ball_wrist() -> di.Mechanism:
    """Waist, shoulder and elbow with a spherical wrist."""
    bodies = [di.Body("base"), *(small_robots.rod(name, 1.0, 0.4) for name in ("column", "upper", "fore", "hand"))]
    joints = [
        di.Joint("waist", "revolute", "base", "column", axis=(0, 0, 1)),
        di.Joint("shoulder", "revolute", "column", "upper", axis=(0, 1, 0)),
        di.Joint("elbow", "revolute", "upper", "fore", small_robots.at(0.4), axis=(0, 1, 0)),
        di.Joint("wrist", "spherical", "fore", "hand", small_robots.at(0.4)),
    ]
    return di.Mechanism("ball wrist", bodies, joints)


def ball_rod() -> di.Mechanism:
    """Crank and rocker with skew axes; the coupler hangs on a ball of the tree, and a universal joint closes the loop."""
    names, lengths = ("crank", "coupler", "rocker"), (0.3, 1.0, 0.6)
    bodies = [di.Body("base"), *(small_robots.rod(name, 1.0, length) for name, length in zip(names, lengths, strict=True))]
    joints = [
        di.Joint("drive", "revolute", "base", "crank", axis=(0, 0, 1)),
        di.Joint("ball", "spherical", "crank", "coupler", small_robots.at(0.3)),
        di.Joint("swing", "revolute", "base", "rocker", small_robots.at(0.9), axis=(0, 1, 0)),
    ]
    cut = di.Loop(
        "cross", "universal", "coupler", "rocker", small_robots.at(1.0), small_robots.at(0.6), axis=(0, 0, 1), axis2=(0, 1, 0)
    )
    motor = di.Actuator("drive", {"drive": 1.0})
    home = {"drive": 1.2, "ball.ry": -0.6, "ball.rz": -1.4, "swing": -1.3}
    return di.Mechanism("ball rod", bodies, joints, loops=[cut], actuators=[motor], home=home, independent=["drive"])


KINEMATICS = [(small_robots.arm6, "link6"), (small_robots.five_bar, "platform"), (small_robots.platform, "platform")]
KINEMATICS += [(ball_wrist, "hand"), (ball_rod, "rocker")]


@needs_gcc
@pytest.mark.parametrize(("make", "frame"), KINEMATICS, ids=lambda x: getattr(x, "__name__", x))
def test_inverse_kinematics_reaches_targets_and_leaves_unreachable_ones(make: Any, frame: str, tmp_path: Path) -> None:
    robot = make()
    built = Built(robot, tmp_path, frame=frame)
    motion, start = states(robot, 100, seed=2)
    rotation, position = (
        forward_kinematics(robot, motion.q, frame)
        if not robot.loops
        else (
            each(robot, motion.q, lambda q: forward_kinematics(robot, q, frame)[0]),
            each(robot, motion.q, lambda q: forward_kinematics(robot, q, frame)[1]),
        )
    )
    targets = np.concatenate([rotation, position[:, :, None]], axis=2).reshape(-1, 12)
    starts = each(robot, start, lambda q: close_positions(robot, q)) if robot.loops else start
    function = built.library[f"{built.code.name}_inverse_kinematics"]
    for s in range(100):
        if robot.loops:
            built.pose[:] = starts[s]
        q = start[s].copy()
        state = [built.pose] if robot.loops else []
        assert function(*(ctypes.c_void_p(x.ctypes.data) for x in (*state, targets[s], q))) == 0
        np.testing.assert_allclose(q, motion.q[s], rtol=1e-9, atol=1e-9)
    far = targets[0] + 50.0 * (np.arange(12) % 4 == 3)
    before = q.copy()
    assert function(*(ctypes.c_void_p(x.ctypes.data) for x in (*state, far, q))) in (2, 3)
    np.testing.assert_array_equal(q, before)
    space: dict[str, Any] = {}
    exec(built.code.numpy, space)
    found = space["inverse_kinematics"](targets[0], start=starts[0])
    np.testing.assert_allclose(found[0] if robot.loops else found, motion.q[0], rtol=1e-9, atol=1e-9)
    pytest.importorskip("casadi")
    exec(built.code.casadi, space := {})
    q, *_, left = space["inverse_kinematics"](targets[0], start=starts[0].tolist())
    np.testing.assert_allclose(np.array(q).ravel(), motion.q[0], rtol=1e-9, atol=1e-9)
    assert float(left) < 1e-8


def test_links_that_do_not_show_the_coordinates_are_refused() -> None:
    with pytest.raises(DescriptionError, match="determines the coordinates"):
        _ = ControllerCode(small_robots.five_bar(), frame="bar4").c_files


@needs_gcc
@pytest.mark.parametrize("make", ROBOTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("real", ["double", "float"])
def test_self_test_under_sanitizers_and_as_cplusplus(make: Any, real: str, tmp_path: Path) -> None:
    robot = make()
    code = ControllerCode(robot, frame="platform" if robot.loops else "link6")
    for file, text in code.c_files.items():
        (tmp_path / file).write_text(text.replace("typedef double", f"typedef {real}"))
    assert GCC
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"] if real == "double" else []
    sources = [f"{code.name}.c", f"{code.name}_test.c"]
    subprocess.run([GCC, *STRICT, *checks, *sources, "-lm", "-o", "check"], cwd=tmp_path, check=True)
    done = subprocess.run(["./check"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert float(done.stdout.split()[-1]) < (1e-12 if real == "double" else 1e-2)
    (tmp_path / "use.cpp").write_text(f'#include "{code.name}.h"\nint main() {{ return {code.name.upper()}_OK; }}\n')
    plus = shutil.which("g++")
    if plus is not None:
        subprocess.run([plus, "-Wall", "-Wextra", "-pedantic", "-Werror", "use.cpp", "-c"], cwd=tmp_path, check=True)


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="clang comes with ziglang: pip install ziglang")
def test_compiles_with_clang(tmp_path: Path) -> None:
    code = ControllerCode(small_robots.platform())
    for file, text in code.c_files.items():
        (tmp_path / file).write_text(text)
    command = [sys.executable, "-m", "ziglang", "cc", *STRICT, f"{code.name}.c", f"{code.name}_test.c", "-lm", "-o", "check"]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run(["./check"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("make", ROBOTS, ids=lambda make: make.__name__)
def test_numpy_and_casadi_close_the_same_loops(make: Any) -> None:
    robot = make()
    motion, start = states(robot, 5, seed=3)
    expected = each(robot, motion.q, lambda q: di.gravity(robot, q))
    starts = each(robot, start, lambda q: close_positions(robot, q)) if robot.loops else start
    code, space = ControllerCode(robot), dict[str, Any]()
    exec(code.numpy, space)
    more = {"start": starts} if robot.loops else {}
    scale = np.abs(expected).max() + 1.0
    np.testing.assert_allclose(space["gravity"](motion.q, **more), expected, rtol=1e-12, atol=1e-12 * scale)
    f = space["feedforward"](motion.q, motion.v, motion.a, **more)
    assert f.shape == (5, len(robot.actuators))
    if robot.loops:
        with pytest.raises(ValueError, match="cannot be closed"):
            space["gravity"](motion.q * np.nan)
    pytest.importorskip("casadi", reason="CasADi is an extra: pip install 'dynident[casadi]'")
    other: dict[str, Any] = {}
    exec(code.casadi, other)
    for s in range(5):
        more = {"start": starts[s]} if robot.loops else {}
        found = other["feedforward"](motion.q[s], motion.v[s], motion.a[s], **more)
        np.testing.assert_allclose(np.array(other["ca"].evalf(found)).ravel(), f[s], rtol=1e-10, atol=1e-11 * scale)
