"""The public names: the stubs list them, each can be imported, they work together, and importing them is cheap."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dynident as di

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "examples" / "demo"
LIMIT = 380
STUBS = {
    ".".join(stub.relative_to(source).parts[:-1]): stub
    for source in sorted((ROOT / "packages").glob("*/src"))
    for stub in sorted(source.rglob("__init__.pyi"))
}
SCRIPT = """
import dynident as di

robot = di.Mechanism.from_urdf(demo / "robot.urdf")
print(robot.joint_names, robot.dof, [actuator.name for actuator in robot.actuators])
base = di.base_parameters(robot)
print(base.rank, base.expressions[0])
log = di.Log.read(demo / "train.csv.gz")
fit = di.WLS().fit(di.Regression.from_log(robot, log)).result_
score = fit.score(di.Log.read(demo / "validate.csv.gz"))
print(score.summary())
loaded = robot.with_payload(2.0, com=(0.0, 0.0, 0.1))
motion = di.Motion(0.0, [0.1] * 6, [0.0] * 6, [0.0] * 6)
Y, tau = di.regressor(loaded, motion), di.inverse_dynamics(loaded, motion, loaded.parameters)
"""


def names_of(stub: Path) -> list[str]:
    """Return the names that a stub re-exports."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    return [alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]


@pytest.mark.parametrize("package", STUBS)
def test_a_stub_has_one_import_per_line_and_no_name_of_a_module(package: str) -> None:
    """The loader reads lines; a module of the name would replace what it loaded (`dynident.identify` is loaded first)."""
    stub = STUBS[package]
    lines = stub.read_text(encoding="utf-8").splitlines()
    others = [line for line in lines if not re.fullmatch(r"from \.[a-z0-9_.]* import (\w+) as \1", line)]
    assert [line for line in others if line and not re.match(r"[A-Za-z_]+: ", line)] == []
    modules = {path.stem for path in stub.parent.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    objects = {line.split()[3] for line in lines if line.startswith("from ") and not line.startswith("from . ")}
    assert objects & modules == ({"identify"} if package == "dynident" else set())


def process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("package", STUBS)
def test_every_name_of_a_stub_can_be_imported(package: str) -> None:
    module, names = importlib.import_module(package), names_of(STUBS[package])
    assert len(set(names)) == len(names) > 0
    assert [name for name in names if getattr(module, name, None) is None or name not in dir(module)] == []
    assert set(module.__all__) - {"__version__"} == set(names)


def test_the_core_has_few_public_names() -> None:
    packages = ["dynident", *(".".join(p.parts[:-1]) for p in _inits())]
    assert sum(len(getattr(importlib.import_module(name), "__all__", ())) for name in packages) <= LIMIT


def _inits() -> list[Path]:
    source = Path(di.__file__).parents[1]
    return [path.relative_to(source) for path in source.glob("dynident/*/**/__init__.py")]


def test_each_top_level_name_has_one_meaning() -> None:
    modules = {path.stem for path in Path(di.__file__).parent.glob("*.py")} - {"__init__"}
    assert not modules & set(di.__all__)
    assert [
        name for name in di.__all__ if inspect.ismodule(getattr(di, name)) and not hasattr(getattr(di, name), "__path__")
    ] == []
    with pytest.raises(AttributeError, match="no attribute 'ghost'"):
        _ = di.ghost  # type: ignore[attr-defined]


def test_identify_is_a_function_whatever_is_imported_first() -> None:
    for first in ("", "import dynident.identify", "from dynident.identify import MAP", "import dynident.validate"):
        assert (
            process(f"{first}\nimport dynident as di\nimport dynident.identify.fit\nprint(type(di.identify).__name__)")
            == "function"
        )


def test_fifteen_lines_use_the_pipeline() -> None:
    assert len([line for line in SCRIPT.splitlines() if line.strip()]) <= 15
    space: dict[str, object] = {"demo": DEMO, "print": lambda *_: None}
    exec(compile(SCRIPT, "script", "exec"), space)
    assert space["score"].metrics.relative < 0.03
    loaded, Y, tau = space["loaded"], space["Y"], space["tau"]
    np.testing.assert_allclose(Y[0] @ loaded.parameters.values, tau[0], rtol=1e-9, atol=1e-9)


def test_importing_is_cheap() -> None:
    """What only a computation, a plot or the command line needs is loaded when first used."""
    heavy = ("llvmlite", "scipy", "matplotlib", "cyclopts", "rich", "cvxpy", "pandas", "pyarrow", "h5py", "sympy")
    assert process(f"import sys, dynident; print([m for m in {heavy} if m in sys.modules])") == "[]"
    modest = "import sys; old = set(sys.modules); import dynident; print({'ast', 'typing', 'pathlib'} & set(sys.modules) - old)"
    assert process(modest) == "set()"
    use = "import sys, dynident as di; di.Mechanism.from_dh([(0.3, 0, 0, 0)]).parameters, di.Log, di.Motion"
    assert process(f"{use}; print([m for m in {heavy} if m in sys.modules and m != 'scipy'])") == "[]"


def test_a_verdict_does_not_load_the_whole_package() -> None:
    code = "import sys; from dynident.validate import judge; print(*(m for m in sys.modules if m.startswith('dynident')))"
    loaded = process(code).split()
    assert len(loaded) <= 40
    parts = {name.split(".")[1] for name in loaded if "." in name}
    assert parts.isdisjoint({"simulate", "control", "drive", "trajectory", "report"})


def test_python_m_dynident_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dynident", "--help"], capture_output=True, text=True, check=True, env=os.environ
    )
    assert "identify" in done.stdout
