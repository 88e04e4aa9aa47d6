"""Generated C, NumPy and LaTeX: compiled, imported and read, they say what the graph says."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_mechanisms import build, close, coupled, every_kind

from dynident.errors import DynidentError
from dynident.mechanism import Mechanism
from dynident.symbolic import Program, derive, to_c, to_latex, to_numpy, write_program
from dynident.symbolic.derivation import DEFAULT, QUANTITIES

GCC = shutil.which("gcc")
RRR = [(0.0, np.pi / 2, 0.56, 0.0), (0.2, 0.0, 0.415, 0.0), (0.169, 0.0, 0.09, 0.0)]
# Forward dynamics needs possible bodies: it is tested in test_symbolic_model.
FORMS = tuple(name for name in QUANTITIES if not name.startswith("base_") and name != "forward_dynamics")
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wdouble-promotion", "-Wshadow", "-Wvla"]


def rrr() -> Mechanism:
    return Mechanism.from_dh(RRR, convention="standard", name="RRR robot")


def hostile() -> Mechanism:
    """Names that would break out of comments, strings and identifiers."""
    robot = build((("revolute", -1, False), ("revolute", 0, False)), 0, ("ia",))
    names = {"J0": 'int */ } system("x"); /*', "J1": "int  é\\\n%_{$#"}
    joints = tuple(replace(joint, name=names[joint.name]) if joint.name in names else joint for joint in robot.joints)
    return replace(robot, name='evil */ """ \\', joints=joints, actuators=())


def compiled(program: Program, folder: Path, name: str = "arm") -> dict[str, float]:
    """Compile with every warning as an error, run the harness and return the printed errors."""
    sources = to_c(program, name)
    for file, text in sources.files.items():
        (folder / file).write_text(text, encoding="ascii")
    files = [str(folder / f"{name}.c"), str(folder / f"{name}_test.c")]
    subprocess.run([str(GCC), *STRICT, "-O0", *files, "-o", str(folder / "check"), "-lm"], check=True)
    done = subprocess.run([str(folder / "check")], capture_output=True, text=True, check=True)
    return {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines()[:-1]}


@pytest.mark.skipif(GCC is None, reason="gcc is not installed")
@pytest.mark.parametrize(
    ("robot", "options"),
    [
        (rrr(), {"quantities": QUANTITIES, "geometry": "symbolic"}),
        (rrr(), {"quantities": DEFAULT, "parameters": "numeric"}),
        (coupled(), {"quantities": FORMS}),
        (every_kind(), {"quantities": ("inverse_dynamics", "regressor", "energies")}),
        (hostile(), {"quantities": DEFAULT, "geometry": "symbolic"}),
    ],
    ids=["rrr", "numeric", "coupled", "kinds", "hostile"],
)
def test_c_compiles_without_warnings_and_agrees(tmp_path: Path, robot: Mechanism, options: dict[str, object]) -> None:
    program = derive(robot, **options)
    errors = compiled(program, tmp_path)
    assert set(errors) == set(program.quantities)
    assert max(errors.values()) <= 1e-12


@pytest.mark.skipif(GCC is None, reason="gcc is not installed")
def test_the_harness_notices_a_wrong_source(tmp_path: Path) -> None:
    sources = to_c(derive(rrr(), ["gravity"]), "arm")
    wrong = re.sub(r"cos\(", "sin(", sources.source)
    assert wrong != sources.source
    for file, text in {**sources.files, "arm.c": wrong}.items():
        (tmp_path / file).write_text(text)
    subprocess.run(
        [str(GCC), str(tmp_path / "arm.c"), str(tmp_path / "arm_test.c"), "-o", str(tmp_path / "t"), "-lm"], check=True
    )
    # The robot's prior is zero, but the harness draws its own parameters.
    assert subprocess.run([str(tmp_path / "t")], capture_output=True, check=False).returncode == 1


def test_c_follows_the_rules_of_small_controllers() -> None:
    sources = to_c(derive(rrr()), "arm")
    everything = sources.header + sources.source
    assert (
        "void arm_inverse_dynamics(const double q[3], const double v[3], const double a[3], const double phi[42]" in everything
    )
    for banned in ("malloc", "free(", "goto", "float ", "static inline", "//", "alloca"):
        assert banned not in everything
    assert "#define ARM_Q_JOINT_1 0" in sources.header
    assert "#define ARM_PHI_M_LINK_1 0" in sources.header
    assert sources.source.count("{") == sources.source.count("}")
    # One exit: functions without a value never return early.
    assert "return;" not in everything


def test_numpy_module_is_batched_and_agrees() -> None:
    rng = np.random.default_rng(0)
    for robot, options in (
        (rrr(), {"quantities": QUANTITIES, "geometry": "symbolic"}),
        (coupled(), {"quantities": FORMS}),
        (every_kind(), {"quantities": FORMS}),
        (hostile(), {"quantities": DEFAULT, "geometry": "symbolic"}),
    ):
        program = derive(robot, **options)
        module: dict[str, object] = {}
        exec(compile(to_numpy(program), "generated", "exec"), module)
        inputs = {name: rng.normal(size=(5, len(labels))) for name, labels in program.inputs.items()}
        for name, form in program.quantities.items():
            arrays = {key: inputs[key] for key in program.needed(name)}
            expected = program.evaluate(name, **arrays)
            found = module[name](*arrays.values())  # type: ignore[operator]
            assert found.shape == (*((5,) if arrays else ()), *form.shape)
            close(np.broadcast_to(found, expected.shape), expected, 1e-13)


@pytest.mark.parametrize("geometry", ["numeric", "symbolic"])
def test_machine_code_of_a_closed_form(geometry: str) -> None:
    rng = np.random.default_rng(3)
    for robot in (rrr(), every_kind()):
        program = derive(robot, FORMS, geometry=geometry)
        for name, form in program.quantities.items():
            state = {key: rng.normal(size=(11, robot.dof)) for key in program.needed(name) if key in "qva"}
            other = {"phi": rng.normal(size=len(robot.parameters))} if "phi" in program.needed(name) else {}
            found = program.compiled(name)(**{key: np.asfortranarray(x) for key, x in state.items()}, **other)
            assert found.shape == (11 if state else 1, *form.shape)
            close(found, np.broadcast_to(program.evaluate(name, **state, **other), found.shape), 1e-13)
    gravity = derive(rrr(), ["gravity"]).compiled("gravity")
    assert gravity(q=[0.1, 0.2, 0.3]).shape == (1, 3)
    assert gravity(q=np.zeros((0, 3))).shape == (0, 3)
    for words, inputs in (
        ("needs 'q'", {}),
        ("needs 3 columns", {"q": [1.0, 2.0]}),
        ("'phi' has 2 rows", {"q": np.zeros((2, 3)), "phi": np.zeros((2, 42))}),
    ):
        with pytest.raises(DynidentError, match=words):
            gravity(**inputs)


def test_latex_is_balanced_numbered_and_explained() -> None:
    for robot in (rrr(), hostile()):
        program = derive(robot, ["inverse_dynamics", "mass_matrix", "base_regressor"], geometry="symbolic")
        text = to_latex(program)
        assert text.startswith(r"\documentclass")
        for environment in ("document", "align", "itemize"):
            begins, ends = (text.count(rf"\{word}{{{environment}}}") for word in ("begin", "end"))
            assert begins == ends > 0
        depth = 0
        for character in re.sub(r"\\[{}]", "", text):
            depth += {"{": 1, "}": -1}.get(character, 0)
            assert depth >= 0
        assert depth == 0
        assert text.isascii()
        assert len(re.findall(r"\\label\{eq:inverse-dynamics-\d+\}", text)) == robot.dof
        assert len(set(re.findall(r"\\label\{([^}]*)\}", text))) == text.count(r"\label{")
        assert r"\noindent where" in text
        assert r"\section{Symbols}" in text
        # Every row of an align but the last ends in a line break, and no cell is empty.
        for block in re.findall(r"\\begin\{align\}\n(.*?)\n\\end\{align\}", text, re.S):
            rows = block.split("\n")
            assert all(row.endswith(r"\\") for row in rows[:-1])
            assert not rows[-1].endswith(r"\\")
            assert all("&" in row for row in rows)
    assert r"d_{2}" in to_latex(derive(rrr(), ["gravity", "mass_matrix"], geometry="symbolic"))


def test_write_makes_the_files(tmp_path: Path) -> None:
    files = write_program(rrr(), tmp_path / "out")
    assert {file.name for file in files} == {
        "rrr_robot.h",
        "rrr_robot.c",
        "rrr_robot_test.c",
        "rrr_robot.py",
        "rrr_robot.tex",
    }
    assert all(file.stat().st_size > 500 for file in files)
    assert [file.name for file in write_program(rrr(), tmp_path, latex=False, c=False)] == ["rrr_robot.py"]


def test_hostile_names_stay_inside() -> None:
    program = derive(hostile(), DEFAULT, geometry="symbolic")
    header = to_c(program).header
    for line in header.splitlines():
        if line.startswith("#define"):
            assert re.fullmatch(r"#define [A-Z0-9_]+( \d+( /\* .* \*/)?)?", line), line
    assert header.count("*/") == header.count("/*")
    assert "system(" not in re.sub(r"/\*.*?\*/", "", header)
