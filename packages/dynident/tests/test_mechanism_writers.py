"""URDF and MJCF writers: reload and compare inverse dynamics, and touch nothing else."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import numpy as np
import pytest
from mechanism_oracles import quietly, random_parameters, shared_urdfs, torque_difference

from dynident.errors import DescriptionError
from dynident.friction.terms import ASYMMETRIC
from dynident.mechanism import write_mjcf, write_urdf
from dynident.mechanism.mjcf import read_mjcf
from dynident.mechanism.urdf import read_urdf
from dynident.mechanism.xml import XmlPatch

ROBOTS = Path(__file__).parent / "robots"
URDFS = shared_urdfs()


def urdf_round_trip(source, robot, parameters, tmp_path):
    path = write_urdf(source, robot, parameters, tmp_path / "out" / "new.urdf")
    return path, quietly(read_urdf, path)


@pytest.mark.parametrize("seed", range(5))
def test_rich_urdf_round_trips(tmp_path, seed):
    source = ROBOTS / "rich.urdf"
    robot = read_urdf(source)
    phi = random_parameters(robot, seed)
    _, again = urdf_round_trip(source, robot, phi, tmp_path)
    assert torque_difference(robot, again, phi) < 1e-10
    assert again.parameters.names == robot.parameters.names
    assert np.allclose(again.parameters.values, phi.values, rtol=1e-10, atol=1e-12)


@pytest.mark.real
@pytest.mark.skipif(not URDFS, reason="no shared data: set DYNIDENT_DATA to its folder")
@pytest.mark.parametrize("source", URDFS, ids=lambda path: path.stem)
def test_shared_urdfs_round_trip(tmp_path, source):
    robot = quietly(read_urdf, source)
    phi = random_parameters(robot)
    path, again = urdf_round_trip(source, robot, phi, tmp_path)
    assert torque_difference(robot, again, phi) < 1e-10
    assert_only_numbers_changed(source, path)


def assert_only_numbers_changed(source, path):
    """Lines that differ are those of inertial and dynamics elements; nothing is lost."""
    allowed = re.compile(r"<(mass|origin|inertia|inertial|dynamics)\b|i[xyz][xyz]=|^\s*$")
    for line in difflib.ndiff(source.read_text().splitlines(), path.read_text().splitlines()):
        if line[:2] in ("- ", "+ "):
            assert allowed.search(line), line


def test_unchanged_parameters_give_the_same_bytes(tmp_path):
    for name, reader, writer in (("rich.urdf", read_urdf, write_urdf), ("rich.xml", read_mjcf, write_mjcf)):
        robot = reader(ROBOTS / name)
        path = writer(ROBOTS / name, robot, robot.parameters, tmp_path / name)
        assert path.read_bytes() == (ROBOTS / name).read_bytes()


def test_one_changed_number_changes_one_place(tmp_path):
    source = ROBOTS / "rich.urdf"
    robot = read_urdf(source)
    path, _ = urdf_round_trip(source, robot, robot.parameters.replace({"fv_pan": 0.1 + 0.2}), tmp_path)
    expected = source.read_bytes().replace(b'damping="0.5"', b'damping="0.30000000000000004"')
    assert path.read_bytes() == expected
    path, _ = urdf_round_trip(source, robot, robot.parameters.replace({"fc_spin": 0.25}), tmp_path)
    assert b'<axis xyz="0 1 1"/><dynamics friction="0.25"/></joint>' in path.read_bytes()


def test_line_ends_encoding_quotes_and_comments_stay(tmp_path):
    text = (ROBOTS / "rich.urdf").read_text().replace("utf-8", "iso-8859-1").replace("the end", "fin de l'étape >")
    source = tmp_path / "latin.urdf"
    source.write_bytes(text.replace("\n", "\r\n").encode("iso-8859-1"))
    robot = read_urdf(source)
    phi = random_parameters(robot)
    path, again = urdf_round_trip(source, robot, phi, tmp_path)
    assert torque_difference(robot, again, phi) < 1e-10
    new, old = path.read_bytes(), source.read_bytes()
    assert new.count(b"\n") == new.count(b"\r\n") >= old.count(b"\r\n")
    assert b"<link name='shoulder'  >" in new
    assert b"<!-- a rotated inertial frame -->" in new
    assert new.endswith("fin de l'étape > -->\r\n".encode("iso-8859-1"))


def test_source_may_be_overwritten_and_floating_base_is_written(tmp_path):
    source = tmp_path / "robot.urdf"
    source.write_bytes((ROBOTS / "rich.urdf").read_bytes())
    robot = read_urdf(source, floating=True)
    phi = random_parameters(robot)
    write_urdf(source, robot, phi, source)
    assert torque_difference(robot, read_urdf(source, floating=True), phi) < 1e-10


def test_links_without_inertial_or_dynamics_get_them(tmp_path):
    source = tmp_path / "bare.urdf"
    source.write_text(
        '<robot name="r">\n  <link name="a"/>\n  <link name="b"/>\n  <link name="c">\n    <visual/>\n  </link>\n'
        '  <joint name="j" type="continuous">\n    <parent link="a"/>\n    <child link="b"/>\n  </joint>\n'
        '  <joint name="k" type="continuous"><parent link="b"/><child link="c"/></joint>\n</robot>\n'
    )
    robot = quietly(read_urdf, source).with_terms(("ia", "k"))
    phi = random_parameters(robot)
    path, again = urdf_round_trip(source, robot, phi, tmp_path)
    assert torque_difference(robot, again, phi) < 1e-10
    text = path.read_text()
    assert '<link name="b"><inertial>' in text
    assert '  <link name="c">\n    <inertial>' in text
    assert text.count("<dynamics ") == text.count('damping="0.0"') == 2  # urdfdom refuses <dynamics> without
    pin = pytest.importorskip("pinocchio")
    assert pin.buildModelFromUrdf(str(path)).nv == 2


def test_terms_that_were_dropped_become_zero(tmp_path):
    source = ROBOTS / "rich.urdf"
    for terms in ((), ("fc",), ASYMMETRIC):
        robot = read_urdf(source).with_terms(terms)
        phi = random_parameters(robot)
        _, again = urdf_round_trip(source, robot, phi, tmp_path)
        assert torque_difference(robot, again, phi) < 1e-10


def test_payload_is_written_into_its_link(tmp_path):
    source = ROBOTS / "rich.urdf"
    robot = read_urdf(source).with_payload(1.5, [0.1, 0.2, 0.3], 0.01 * np.eye(3), body="wheel")
    _, again = urdf_round_trip(source, robot, robot.parameters, tmp_path)
    assert torque_difference(robot, again) < 1e-10
    assert again.parameters["m_wheel"] == pytest.approx(2.2)


def test_locked_joints_are_left_alone(tmp_path):
    source = ROBOTS / "rich.urdf"
    robot = read_urdf(source).lock({"reach": 0.1})
    phi = random_parameters(robot)
    _, again = urdf_round_trip(source, robot, phi, tmp_path)
    assert torque_difference(robot, again.lock({"reach": 0.1}), phi) < 1e-10


@pytest.mark.parametrize(("name", "body"), [("rich.urdf", "wheel"), ("rich.xml", "tool")])
def test_impossible_masses_are_refused_and_nothing_is_written(tmp_path, name, body):
    reader, writer = (read_urdf, write_urdf) if name.endswith("urdf") else (read_mjcf, write_mjcf)
    robot = reader(ROBOTS / name)
    for mass in (0.0, -0.5, 7e-16):  # the last is zero but for rounding
        with pytest.raises(DescriptionError, match=f"{name}: body '{body}' has mass .*centre of mass"):
            writer(ROBOTS / name, robot, robot.parameters.replace({f"m_{body}": mass}), tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_fixed_links_must_leave_some_mass(tmp_path):
    robot = read_urdf(ROBOTS / "rich.urdf")  # 'plate' keeps its 0.4 kg
    with pytest.raises(DescriptionError, match=r"'shoulder' has mass -0\.1"):
        write_urdf(ROBOTS / "rich.urdf", robot, robot.parameters.replace({"m_shoulder": 0.3}), tmp_path / "x.urdf")


@pytest.mark.parametrize("part", [0.1, 0.5])
def test_a_group_lighter_than_its_fixed_links_is_divided_anew(tmp_path, part):
    source = ROBOTS / "rich.urdf"
    robot = read_urdf(source)
    own = [name for name in robot.parameters.names if name.endswith("_shoulder") and not name.startswith(("f", "ia", "off"))]
    phi = robot.parameters.replace({name: part * robot.parameters[name] for name in own})
    path, again = urdf_round_trip(source, robot, phi, tmp_path)
    assert torque_difference(robot, again, phi) < 1e-10
    masses = [float(mass) for mass in re.findall(r'<mass value="([^"]+)"', path.read_text())]
    assert min(masses) > 0.0


def test_wrong_sources_are_refused(tmp_path):
    robot = read_urdf(ROBOTS / "rich.urdf")
    other = tmp_path / "other.urdf"
    other.write_text('<robot name="o"><link name="z"/></robot>')
    with pytest.raises(DescriptionError, match="is not in the file"):
        write_urdf(other, robot, robot.parameters, tmp_path / "x.urdf")
    with pytest.raises(DescriptionError, match="xacro"):
        write_urdf(tmp_path / "r.xacro", robot, robot.parameters, tmp_path / "x.urdf")
    with pytest.raises(DescriptionError, match="do not belong"):
        write_urdf(ROBOTS / "rich.urdf", robot.with_terms(()), robot.parameters, tmp_path / "x.urdf")
    with pytest.raises(DescriptionError, match="save it as UTF-8"):
        XmlPatch('<?xml version="1.0" encoding="utf-16"?><robot name="r"/>'.encode("utf-16"), "robot")


# ---- MJCF -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_rich_mjcf_round_trips(tmp_path, seed):
    source = ROBOTS / "rich.xml"
    robot = read_mjcf(source)
    phi = random_parameters(robot, seed)
    path = write_mjcf(source, robot, phi, tmp_path / "new.xml")
    again = quietly(read_mjcf, path)
    assert torque_difference(robot, again, phi) < 1e-10
    third = quietly(read_mjcf, write_mjcf(path, again, again.parameters.replace(again.parameters.values * 1.1), path))
    assert torque_difference(again, third, again.parameters.replace(again.parameters.values * 1.1)) < 1e-10


def test_mujoco_itself_reads_what_is_written(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    source = ROBOTS / "rich.xml"
    robot = read_mjcf(source)
    phi = random_parameters(robot)
    phi = phi.replace({name: abs(phi[name]) for name in phi if name.split("_")[0] in ("ia", "fv", "fc", "k")})
    model = mujoco.MjModel.from_xml_path(str(write_mjcf(source, robot, phi, tmp_path / "new.xml")))
    tool = model.body("tool")
    assert tool.mass[0] == pytest.approx(phi["m_tool"])
    assert tool.ipos == pytest.approx(np.array([phi[f"m{s}_tool"] for s in "xyz"]) / phi["m_tool"])
    dof = model.joint("lift").dofadr[0]
    assert model.dof_damping[dof] == pytest.approx(phi["fv_lift"])
    assert model.dof_armature[dof] == pytest.approx(phi["ia_lift"])
    assert model.joint("lift").stiffness[0] == pytest.approx(phi["k_lift"])
    assert model.numeric("dynident_offset_lift").data[0] == phi["off_lift"]


@pytest.mark.parametrize("head", ['<compiler inertiafromgeom="true" angle="radian"/>', '<compiler settotalmass="9"/>'])
def test_settings_that_would_undo_the_numbers_go(tmp_path, head):
    source = tmp_path / "r.xml"
    source.write_text(
        f"<mujoco>{head}<worldbody><body name='a'><joint name='j'/><geom size='0.1'/>"
        "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/><body name='c'><geom size='.2' pos='1 0 0'/></body>"
        "<body name='b' pos='1 0 0'><joint name='k'/><geom size='0.2'/></body></body></worldbody></mujoco>"
    )
    robot = read_mjcf(source)
    phi = robot.parameters.replace({"m_b": 5.0, "fvp_j": 1.0} if "fvp_j" in robot.parameters else {"m_b": 40.0})
    again = quietly(read_mjcf, write_mjcf(source, robot, phi, tmp_path / "new.xml"))
    assert torque_difference(robot, again, phi) < 1e-10


def test_asymmetric_friction_survives_in_custom(tmp_path):
    source = ROBOTS / "rich.xml"
    robot = read_mjcf(source).with_terms(ASYMMETRIC)
    phi = random_parameters(robot)
    again = quietly(read_mjcf, write_mjcf(source, robot, phi, tmp_path / "new.xml"))
    assert torque_difference(robot, again, phi) < 1e-10


def test_included_bodies_are_not_written(tmp_path):
    (tmp_path / "part.xml").write_text("<mujoco><body name='b'><joint/><geom size='1'/></body></mujoco>")
    source = tmp_path / "main.xml"
    source.write_text("<mujoco><worldbody><include file='part.xml'/></worldbody></mujoco>")
    robot = read_mjcf(source)
    with pytest.raises(DescriptionError, match="included file"):
        write_mjcf(source, robot, robot.parameters.replace({"m_b": 1.0}), tmp_path / "new.xml")


def test_numbers_go_into_the_custom_element_that_a_file_has(tmp_path):
    source = tmp_path / "own.xml"
    text = (ROBOTS / "rich.xml").read_text().replace("</mujoco>", '<custom><numeric name="mine" data="7"/></custom></mujoco>')
    source.write_text(text)
    robot = read_mjcf(source).with_terms(ASYMMETRIC)
    phi = random_parameters(robot)
    written = write_mjcf(source, robot, phi, tmp_path / "new.xml")
    assert written.read_text().count("<custom>") == 1
    assert 'name="mine" data="7"' in written.read_text()
    assert torque_difference(robot, quietly(read_mjcf, written), phi) < 1e-10
