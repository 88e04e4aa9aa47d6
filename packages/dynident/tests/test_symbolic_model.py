"""Models with their numbers inside: C, NumPy and CasADi give the torques and accelerations of the robot, with friction."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mechanism_oracles import quietly, random_parameters

import dynident as di
from dynident.symbolic import derive, to_casadi, write_model
from dynident.symbolic.printers import model_program

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo"


@pytest.fixture(scope="module")
def arm() -> di.Mechanism:
    robot = quietly(di.Mechanism.from_urdf, DEMO / "robot.urdf").with_terms(("ia", "fv", "fc", "off", "k"))
    return robot.with_parameters(robot.parameters.replace(np.abs(random_parameters(robot).values)))


@pytest.fixture(scope="module")
def written(arm: di.Mechanism, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    names = {path.name for path in write_model(arm, folder)}
    assert names == {"arm6.h", "arm6.c", "arm6_test.c", "arm6.py", "arm6_casadi.py"}
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
    np.testing.assert_allclose(model.torque(q, v, a), di.inverse_dynamics(arm, di.Motion(np.arange(10.0), q, v, a)), rtol=1e-11)
    np.testing.assert_allclose(model.acceleration(q, v, tau), di.forward_dynamics(arm, q, v, tau), rtol=1e-8, atol=1e-10)


def test_forward_dynamics_undoes_inverse_dynamics(written: Path) -> None:
    q, v, a, _ = states()
    model = module(written / "arm6.py")
    np.testing.assert_allclose(model.acceleration(q, v, model.torque(q, v, a)), a, rtol=1e-8, atol=1e-9)


def test_c_checks_itself_and_takes_no_parameters(written: Path, arm: di.Mechanism) -> None:
    header = (written / "arm6.h").read_text()
    assert "void arm6_torque(const double q[6], const double v[6], const double a[6], double tau[6]);" in header
    assert "void arm6_acceleration(const double q[6], const double v[6], const double tau[6], double acc[6]);" in header
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    q, v, a = (x[0] for x in states()[:3])
    rows = ", ".join("{" + ", ".join(map(repr, x.tolist())) + "}" for x in (q, v, a))
    main = (
        '#include "arm6.h"\n#include <stdio.h>\nint main(void) { const double x[3][6] = {' + rows + "}; double tau[6]; int i;"
        ' arm6_torque(x[0], x[1], x[2], tau); for (i = 0; i < 6; i++) { printf("%.17g ", tau[i]); } return 0; }\n'
    )
    (written / "main.c").write_text(main)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1"]
    for source in ("arm6_test.c", "main.c"):
        subprocess.run([compiler, *flags, "arm6.c", source, "-lm", "-o", source[:-2]], cwd=written, check=True)
    subprocess.run(["./arm6_test"], cwd=written, check=True, stdout=subprocess.PIPE)
    said = subprocess.run(["./main"], cwd=written, check=True, stdout=subprocess.PIPE, text=True).stdout
    wanted = di.inverse_dynamics(arm, di.Motion([0.0], [q], [v], [a]))[0]
    np.testing.assert_allclose([float(x) for x in said.split()], wanted, rtol=1e-10, atol=1e-10)


def test_casadi(written: Path, arm: di.Mechanism) -> None:
    ca = pytest.importorskip("casadi", reason="CasADi is an extra: pip install 'dynident[casadi]'")
    model = module(written / "arm6_casadi.py")
    q, v, a, tau = states()
    wanted = di.inverse_dynamics(arm, di.Motion(np.arange(10.0), q, v, a))
    forward = di.forward_dynamics(arm, q, v, tau)
    M = di.mass_matrix(arm, q)
    x, rates = ca.SX.sym("x", 6), ca.SX.sym("v", 6)
    jacobian = ca.Function("J", [x, rates], [ca.jacobian(model.torque(x, rates, ca.SX.zeros(6)), rates)])
    for s in range(10):
        np.testing.assert_allclose(model.torque(q[s], v[s], a[s]).full().ravel(), wanted[s], rtol=1e-11)
        np.testing.assert_allclose(model.acceleration(q[s], v[s], tau[s]).full().ravel(), forward[s], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(model.mass_matrix(q[s]).full(), M[s], rtol=1e-11, atol=1e-12)
    step = 1e-6
    sides = [[model.torque(q[0], v[0] + way * step * e, 0 * e).full().ravel() for way in (1, -1)] for e in np.eye(6)]
    slopes = np.array([(up - down) / (2 * step) for up, down in sides]).T
    np.testing.assert_allclose(jacobian(q[0], v[0]).full(), slopes, rtol=1e-6, atol=1e-6)


def test_casadi_knows_every_operation() -> None:
    ca = pytest.importorskip("casadi", reason="CasADi is an extra: pip install 'dynident[casadi]'")
    base = di.Joint("base", "free", "world", "hull")
    arm = di.Joint("j", "revolute", "hull", "link", di.Placement(np.eye(3), [0.1, 0.2, 0.3]), axis=[1.0, 2.0, 2.0])
    bodies = (di.Body("world"), di.Body("hull", np.zeros(10)), di.Body("link", np.zeros(10)))
    robot = di.Mechanism("hull", bodies, (base, arm), terms=("ia", "fvp", "fvn", "fcp", "fcn", "f2"))
    robot = robot.with_parameters(random_parameters(robot))
    program = model_program(robot)
    space: dict[str, Any] = {}
    exec(to_casadi(program), space)
    q, v, a, _ = states(robot.dof)
    q[:, 3:6] *= np.array([1.0, 0.1, 1e-4] + [0.5] * 7)[:, None]  # near and far from a rotation of zero
    for s in range(10):
        wanted = program.evaluate("torque", q=q[s], v=v[s], a=a[s])[0]
        np.testing.assert_allclose(space["torque"](q[s], v[s], a[s]).full().ravel(), wanted, rtol=1e-11, atol=1e-12)
    assert ca.__version__


def test_forward_dynamics_with_parameters_as_inputs(arm: di.Mechanism) -> None:
    program = derive(arm, ("forward_dynamics",))
    q, v, _, tau = states()
    assert program.needed("forward_dynamics") == ("q", "v", "tau", "phi")
    np.testing.assert_allclose(
        program.evaluate("forward_dynamics", q=q, v=v, tau=tau), di.forward_dynamics(arm, q, v, tau), rtol=1e-8, atol=1e-10
    )
