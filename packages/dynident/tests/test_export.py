"""Exported robots in the programs they are for: Pinocchio, MuJoCo, Drake and Gazebo have every number that was identified."""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mechanism_oracles import quietly, random_parameters

import dynident as di
from dynident.errors import DescriptionError, DynidentError
from dynident.export import Exported, export_robot
from dynident.export.robot import TARGETS
from dynident.friction import Stribeck, Viscous
from dynident.mechanism.urdf_writer import gazebo_base

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo" / "robot.urdf"
MODULES = {"pinocchio": "pinocchio", "mujoco": "mujoco", "drake": "pydrake", "gazebo": "dynident"}
REAL = {"ur5": "ur_description/urdf/ur5_robot.urdf", "z1": "z1.urdf", "panda": "panda_description/urdf/panda.urdf"}


def real(name: str) -> Path:
    try:
        found = [file for file in files("example-robot-data") or () if str(file).endswith(REAL[name])]
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed: pip install 'dynident[dev]'")
    return Path(str(found[0].locate()))


def identified(file: Path, seed: int = 0) -> di.Mechanism:
    """The robot with friction, rotor inertias and offsets on every joint, as if identified."""
    robot = quietly(di.Mechanism.from_urdf, file)
    rng, first = np.random.default_rng(seed), robot.tree.inertias.size
    values = robot.parameters.values.copy()
    values[first:] = rng.uniform(0.05, 0.5, values.size - first)
    return robot.with_parameters(robot.parameters.replace(values))


def loaded(done: Exported) -> Any:
    file = Path(done.files[1])
    spec = importlib.util.spec_from_file_location(f"{file.stem}_{done.target}", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["demo", *REAL])
def test_the_program_gives_the_same_torques(name: str, target: str, tmp_path: Path) -> None:
    pytest.importorskip(MODULES[target], reason=f"{target} is not installed")
    file = DEMO if name == "demo" else real(name)
    done = export_robot(identified(file), tmp_path, target, file)
    assert done.reader
    assert done.difference < 1e-9
    assert "largest difference" in done.summary()


def test_numbers_are_where_the_programs_have_them(tmp_path: Path) -> None:
    mujoco, pin = pytest.importorskip("mujoco"), pytest.importorskip("pinocchio")
    robot = identified(DEMO)
    p = robot.parameters.to_dict()
    model = mujoco.MjModel.from_xml_path(export_robot(robot, tmp_path / "m", "mujoco", DEMO).files[0])
    for name in robot.coordinate_names:
        d = model.joint(name).dofadr[0]
        assert model.dof_armature[d] == p[f"ia_{name}"]
        assert model.dof_frictionloss[d] == p[f"fc_{name}"]
        assert model.dof_damping.reshape(model.nv, -1)[d, 0] == p[f"fv_{name}"]
    done = export_robot(robot, tmp_path / "p", "pinocchio", DEMO)
    theirs = loaded(done).load()
    np.testing.assert_array_equal(theirs.armature, [p[f"ia_{name}"] for name in robot.coordinate_names])
    np.testing.assert_array_equal(theirs.damping, [p[f"fv_{name}"] for name in robot.coordinate_names])
    assert pin.__version__ in done.reader
    assert "off of joint1" in "\n".join(done.notes)
    text = Path(export_robot(robot.with_terms(("k",)), tmp_path / "g", "gazebo").files[0]).read_text()
    assert "<springStiffness>" not in text  # no joint has a spring


def test_gazebo_gets_a_base_with_mass_that_is_fixed_to_the_world(tmp_path: Path) -> None:
    """SDFormat 12.3 made an empty model of a URDF whose first link has no mass; with this file it agrees to 1e-13 N m."""
    done = export_robot(identified(DEMO), tmp_path, "gazebo", DEMO)
    assert done.difference < 1e-9
    text = Path(done.files[0]).read_bytes()
    again = quietly(di.Mechanism.from_urdf, done.files[0])
    assert again.root == "world"
    assert next(body for body in again.bodies if body.name == "base").inertia is not None
    assert gazebo_base(text) == text


def test_forward_dynamics_in_the_programs(tmp_path: Path) -> None:
    """Offsets act in MuJoCo's simulation and in aba; dry friction is left out, since MuJoCo's is a soft constraint."""
    mujoco = pytest.importorskip("mujoco")
    pytest.importorskip("pinocchio")
    robot = identified(DEMO).with_terms(("ia", "fv", "off", "k"))
    rng = np.random.default_rng(1)
    q, v, tau = rng.uniform(-1.0, 1.0, (3, 6))
    wanted = di.forward_dynamics(robot, q, v, 10.0 * tau)[0]
    arm = loaded(export_robot(robot, tmp_path / "p", "pinocchio", DEMO))
    np.testing.assert_allclose(arm.acceleration(arm.load(), q, v, 10.0 * tau), wanted, rtol=1e-10, atol=1e-10)
    try:
        arm = loaded(export_robot(robot, tmp_path / "m", "mujoco", DEMO))
        arm.load()
        model = arm.load()  # again, although a callback of the first one is there: MuJoCo reads no file while it has one
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, 10.0 * tau
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(data.qacc, wanted, rtol=1e-9, atol=1e-9)
    finally:
        mujoco.set_mjcb_passive(None)


def test_other_friction_negative_numbers_and_springs_arrive(tmp_path: Path) -> None:
    robot = quietly(di.Mechanism.from_urdf, DEMO).with_terms(("ia", "fvp", "fvn", "fcp", "fcn", "f3", "off", "k", "fc"))
    robot = robot.with_parameters(random_parameters(robot))  # negative ones too
    for target in ("mujoco", "gazebo"):
        if importlib.util.find_spec(MODULES[target]):
            done = export_robot(robot, tmp_path / target, target)
            assert done.difference < 1e-9
            assert "f3 of" in done.summary()


def test_friction_laws_and_forces_arrive(tmp_path: Path) -> None:
    pytest.importorskip("pinocchio")
    law = (Stribeck() + Viscous()).using(fc=1.0, fs=1.6, vs=0.15, fv=0.3)
    robot = identified(DEMO).with_friction({"joint2": law}).with_forces(di.Force("cable", "joint3", "q - 0.3", value=4.0))
    done = export_robot(robot, tmp_path, "pinocchio", DEMO)
    assert done.difference < 1e-9
    module = loaded(done)
    q = v = np.zeros(6)
    crawl = np.array([0.0, 0.05, 0.0, 0.0, 0.0, 0.0])
    given = module.remainder(q, crawl, v) - module.remainder(q, v, v)
    np.testing.assert_allclose(given[1], law(0.05), rtol=1e-12)
    np.testing.assert_allclose(np.delete(given, 1), 0.0, atol=1e-15)


def test_held_joints_and_mjcf_to_urdf(tmp_path: Path) -> None:
    pytest.importorskip("pinocchio")
    robot = identified(DEMO).lock({"joint3": 0.7})
    done = export_robot(robot, tmp_path / "held", "pinocchio", DEMO)
    assert done.difference < 1e-9
    assert "joint 'joint3' was locked" in done.summary()
    mujoco_file = Path(export_robot(identified(DEMO), tmp_path / "m", "mujoco").files[0])
    again = quietly(di.Mechanism.from_mjcf, mujoco_file)
    assert export_robot(again, tmp_path / "back", "pinocchio", mujoco_file).difference < 1e-9
    assert export_robot(again, tmp_path / "same", "mujoco", mujoco_file).difference < 1e-9


@pytest.mark.parametrize("target", ["pinocchio", "mujoco"])
def test_a_floating_base(target: str, tmp_path: Path) -> None:
    pytest.importorskip(MODULES[target])
    robot = quietly(di.Mechanism.from_urdf, DEMO, floating=True)
    base = robot.joint("floating_base").child
    robot = robot.with_payload(8.0, (0.1, 0.0, 0.2), np.diag([0.5, 0.4, 0.3]), body=base)
    robot = robot.with_parameters(random_parameters(robot))
    assert export_robot(robot, tmp_path, target).difference < 1e-9


def test_the_expansion_of_a_xacro(tmp_path: Path) -> None:
    pytest.importorskip("pinocchio")
    text = DEMO.read_text().replace("<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ', 1)
    text = text.replace("</robot>", '<xacro:arg name="tool" default="3"/></robot>')
    (tmp_path / "arm.xacro").write_text(text)
    done = export_robot(identified(tmp_path / "arm.xacro"), tmp_path / "out", "pinocchio", tmp_path / "arm.xacro")
    assert done.difference < 1e-9
    assert "xacro" not in Path(done.files[0]).read_text()


def test_what_cannot_be_exported_is_said(tmp_path: Path) -> None:
    robot = identified(DEMO)
    with pytest.raises(DynidentError, match=r"target is 'webots'; it must be one of pinocchio"):
        export_robot(robot, tmp_path, "webots")
    light = robot.with_parameters(robot.parameters.replace({"m_link3": -1.0}))
    with pytest.raises(DescriptionError, match=r"'link3' has mass -1 kg.*physically consistent"):
        export_robot(light, tmp_path, "mujoco", DEMO)
    ball = di.Mechanism("b", (di.Body("w"), di.Body("x", np.ones(10))), (di.Joint("j", "spherical", "w", "x"),))
    with pytest.raises(DescriptionError, match="joint 'j' is spherical; robots for drake have single-axis joints"):
        export_robot(ball, tmp_path, "drake")
    assert not list(tmp_path.iterdir())


def test_a_program_that_is_absent_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *x: None if name == "pydrake" else found(name, *x))
    monkeypatch.delitem(sys.modules, "pydrake", raising=False)
    done = export_robot(identified(DEMO), tmp_path, "drake", DEMO)
    assert np.isnan(done.difference)
    assert "not compared: Drake is not installed here" in done.summary()
    assert "drake:rotor_inertia" in Path(done.files[0]).read_text()


def test_what_the_data_do_not_determine_is_marked_in_every_file(tmp_path):
    arm = di.examples.arm6()
    fit = di.MAP().fit(di.Regression.from_logs(arm.robot, [arm.run])).result_
    first = fit.undetermined()[0]
    for target, name in (("gazebo", "arm6.urdf"), ("mujoco", "arm6.xml")):
        fit.export(tmp_path / target, target, arm.source)
        assert f"{first.name} {first.value:.4g} (description {first.description:.4g})" in (tmp_path / target / name).read_text()
