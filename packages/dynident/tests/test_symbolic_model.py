"""Models with their numbers inside: C, NumPy and CasADi give the torques and accelerations of the robot, with friction."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mechanism_oracles import quietly, random_parameters

import dynident as di
from dynident.symbolic import derive, write_model
from dynident.symbolic.controller import ControllerCode

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo"


@pytest.fixture(scope="module")
def arm() -> di.Mechanism:
    robot = quietly(di.Mechanism.from_urdf, DEMO / "robot.urdf").with_terms(("ia", "fv", "fc", "off", "k"))
    return robot.with_parameters(robot.parameters.replace(np.abs(random_parameters(robot).values)))


@pytest.fixture(scope="module")
def written(arm: di.Mechanism, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    names = {path.name for path in write_model(arm, folder)}
    assert names == {"arm6.h", "arm6.c", "arm6_test.c", "CMakeLists.txt", "arm6.py", "arm6_casadi.py"}
    return folder


def module(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"model_{file.stem}", file)
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def states(n: int = 6) -> tuple[np.ndarray, ...]:
    return tuple(np.random.default_rng(2).uniform(-1.0, 1.0, (4, 10, n)))


def test_numpy(arm: di.Mechanism, written: Path) -> None:
    q, v, a, tau = states()
    model = module(written / "arm6.py")
    torque = model.inverse_dynamics(q, v, a) + model.friction(q, v)
    np.testing.assert_allclose(torque, di.inverse_dynamics(arm, di.Motion(np.arange(10.0), q, v, a)), rtol=1e-11)
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), di.forward_dynamics(arm, q, v, tau), rtol=1e-8, atol=1e-10)


def test_forward_dynamics_undoes_inverse_dynamics(written: Path) -> None:
    q, v, a, _ = states()
    model = module(written / "arm6.py")
    tau = model.inverse_dynamics(q, v, a) + model.friction(q, v)
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), a, rtol=1e-8, atol=1e-9)


def test_casadi(written: Path, arm: di.Mechanism) -> None:
    ca = pytest.importorskip("casadi", reason="CasADi is an extra: pip install 'dynident[casadi]'")
    model = module(written / "arm6_casadi.py")
    q, v, a, tau = states()
    wanted = di.inverse_dynamics(arm, di.Motion(np.arange(10.0), q, v, a))
    forward = di.forward_dynamics(arm, q, v, tau)
    M = di.mass_matrix(arm, q)
    x, rates = ca.SX.sym("x", 6), ca.SX.sym("v", 6)

    def torque(q: Any, v: Any, a: Any) -> Any:
        return model.inverse_dynamics(q, v, a) + model.friction(q, v)

    jacobian = ca.Function("J", [x, rates], [ca.jacobian(torque(x, rates, ca.SX.zeros(6)), rates)])
    for s in range(10):
        np.testing.assert_allclose(torque(q[s], v[s], a[s]).full().ravel(), wanted[s], rtol=1e-11)
        np.testing.assert_allclose(model.forward_dynamics(q[s], v[s], tau[s]).full().ravel(), forward[s], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(model.mass_matrix(q[s]).full(), M[s], rtol=1e-11, atol=1e-12)
    step = 1e-6
    sides = [[torque(q[0], v[0] + way * step * e, 0 * e).full().ravel() for way in (1, -1)] for e in np.eye(6)]
    slopes = np.array([(up - down) / (2 * step) for up, down in sides]).T
    np.testing.assert_allclose(jacobian(q[0], v[0]).full(), slopes, rtol=1e-6, atol=1e-6)


def test_casadi_knows_every_operation() -> None:
    ca = pytest.importorskip("casadi", reason="CasADi is an extra: pip install 'dynident[casadi]'")
    base = di.Joint("base", "free", "world", "hull")
    arm = di.Joint("j", "revolute", "hull", "link", di.Placement(np.eye(3), [0.1, 0.2, 0.3]), axis=[1.0, 2.0, 2.0])
    bodies = (di.Body("world"), di.Body("hull", np.zeros(10)), di.Body("link", np.zeros(10)))
    robot = di.Mechanism("hull", bodies, (base, arm), terms=("ia", "fvp", "fvn", "fcp", "fcn", "f2"))
    robot = robot.with_parameters(random_parameters(robot))
    space: dict[str, Any] = {}
    exec(ControllerCode(robot).casadi, space)
    q, v, a, _ = states(robot.dof)
    q[:, 3:6] *= np.array([1.0, 0.1, 1e-4] + [0.5] * 7)[:, None]  # near and far from a rotation of zero
    for s in range(10):
        wanted = di.inverse_dynamics(robot, (q[s], v[s], a[s]))[0]
        found = space["inverse_dynamics"](q[s], v[s], a[s]) + space["friction"](q[s], v[s])
        np.testing.assert_allclose(found.full().ravel(), wanted, rtol=1e-11, atol=1e-12)
    assert ca.__version__


def test_forward_dynamics_with_parameters_as_inputs(arm: di.Mechanism) -> None:
    program = derive(arm, ("forward_dynamics",))
    q, v, _, tau = states()
    assert program.needed("forward_dynamics") == ("q", "v", "tau", "phi")
    np.testing.assert_allclose(
        program.evaluate("forward_dynamics", q=q, v=v, tau=tau), di.forward_dynamics(arm, q, v, tau), rtol=1e-8, atol=1e-10
    )
