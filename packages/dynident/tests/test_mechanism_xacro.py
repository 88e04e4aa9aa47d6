"""The xacro language: the same robots as the xacro package makes of the same files."""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xacro_oracle import PACKAGES, oracle, tree

from dynident import Mechanism
from dynident.errors import DescriptionError, MissingExtraError
from dynident.mechanism.xacro.expand import expand

HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'

ROBOTS = [
    ("ur_style/urdf/ur.urdf.xacro", {}),
    ("ur_style/urdf/ur.urdf.xacro", {"ur_type": "large", "tf_prefix": "left_", "safety_limits": "true", "name": "big"}),
    ("franka_style/robots/panda/panda.urdf.xacro", {}),
    ("franka_style/robots/panda/panda.urdf.xacro", {"arm_id": "fr3", "hand": "false", "gazebo": "true", "parent": "table"}),
    ("xarm_style/urdf/xarm_device.urdf.xacro", {}),
    ("xarm_style/urdf/xarm_device.urdf.xacro", {"limited": "1", "prefix": "L_", "attach_to": "", "robot_type": "xarm"}),
    ("kuka_style/urdf/kr.XACRO", {}),
]


def write(folder: Path, body: str, name: str = "robot.xacro") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{HEAD}{body}</robot>", encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "arguments"), ROBOTS)
def test_robot_packages_expand_as_with_the_xacro_package(name, arguments):
    path = PACKAGES / name
    # The package wants the arguments of <robot name="$(arg name)"> from outside.
    given = {"name": "ur", "dof": "2", **arguments}
    assert tree(expand(path, arguments=given)) == oracle(path, given)


@pytest.mark.parametrize(("name", "arguments"), ROBOTS)
@pytest.mark.filterwarnings("ignore::dynident.errors.DescriptionWarning")
def test_robot_packages_are_read_as_robots(name, arguments):
    robot = Mechanism.from_urdf(PACKAGES / name, arguments=arguments)
    assert robot.dof >= 2


PROPERTY = '<xacro:property name="{}" value="{}"/>'.format
LANGUAGE = {
    "numbers": '<a a="${1}" b="${1.0}" c="${1/3}" d="${2**10}" e="${-3//2}" f="${-3%5}" g="${1e3}" h="${0x10}" i="${1e-7}"/>',
    "powers": '<a a="${2**-2}" b="${2**0.5}" c="${(-8)**3}" d="${10**20}"/>',
    "logic": '<a a="${1 &lt; 2 &lt; 3}" b="${not 0}" c="${0 or \'x\'}" d="${1 and 0.0}" '
    "e=\"${'a' in 'abc'}\" f=\"${[] is None}\"/>",
    "bits": '<a a="${6 &amp; 3}" b="${6 | 3}" c="${6 ^ 3}" d="${~6}" e="${+True}"/>',
    "conditional": "<a a=\"${1 if 2 &gt; 1 else 0}\" b=\"${'x' if False else 'y' if True else 'z'}\"/>",
    "math": '<a a="${sin(pi/6)}" b="${math.cos(1)}" c="${atan2(1, 2)}" d="${degrees(pi)}" e="${hypot(3,4)}" f="${floor(2.7)}" '
    'g="${ceil(2.1)}" h="${e}" i="${tau}" j="${log(10)}" k="${fabs(-1)}" l="${inf}" m="${pow(2,3)}" n="${exp(1)}"/>',
    "functions": '<a a="${max(1,2.5)}" b="${min([3,1])}" c="${len(\'four\')}" d="${round(2.567, 2)}" e="${int(3.9)}" '
    'f="${float(\'1e2\')}" g="${str(1.50)}" h="${bool(0)}" i="${list((1,2))}" j="${sorted([3,1,2])}" k="${python.abs(-2)}" '
    'l="${python.sum([1,2])}" m="${list(map(float, [1, 2]))}" n="${list(range(3))}" o="${round(7.5)}" p="${int(\'12\')}"/>',
    "python namespace": '<a a="${python.all([1,0])}" b="${python.any([1,0])}" c="${list(python.zip([1,2],[3,4]))}" '
    'd="${list(python.enumerate([5]))}" e="${python.tuple([1])}" f="${python.divmod(7,2)}" '
    'g="${list(python.reversed([1,2]))}"/>',
    "texts": "<a a=\"${'ab' + 'c'}\" b=\"${'a' * 3}\" c=\"${'a,b'.split(',')[1]}\" d=\"${'%.3f|%s' % (1/3, 2)}\" "
    "e=\"${'AbC'.lower()}\" f=\"${'a_b'.replace('_', '-')}\" g=\"${'-'.join(['x', 'y'])}\" h=\"${'hello'[1:3]}\" "
    "i=\"${'x'.startswith('x')}\" j=\"${' s '.strip()}\" k=\"${'7'.zfill(3)}\" l=\"${'b' &gt; 'a'}\" m=\"${'a' 'b'}\"/>",
    "lists": '<a a="${[1, 2] + [3]}" b="${[0] * 3}" c="${[1, 2, 3][-1]}" d="${[1, 2, 3, 4][::2]}" e="${(1, 2)[0]}" '
    'f="${[x * 2 for x in [1, 2, 3] if x != 2]}" g="${[a + b for a, b in [(1, 2)]]}" h="${[1, 2].index(2)}" '
    'i="${[[1]][0][0]}"/>',
    "dictionaries": PROPERTY("d", "${dict(a=1, b=[2, 3])}")
    + '<a a="${d[\'a\']}" b="${d[\'b\'][1]}" c="${\'a\' in d}" d="${list(d.keys())}" e="${d.get(\'z\', 5)}" f="${len(d)}" '
    'g="${xacro.dotify(d).a}" h="${list(d.items())}" i="${d}"/>',
    "tokenize": "<a a=\"${xacro.tokenize('1,2; 3')}\" b=\"${[float(w) for w in xacro.tokenize('1 2')]}\"/>",
    "messages": "<a a=\"${xacro.message('hello')}b\"/>",
    "literals": "".join(
        PROPERTY(f"p{k}", text)
        for k, text in enumerate(["1", "1.0", "true", "False", "'quoted'", "1_0", " 5 ", "1e3", "", "007", "inf", "x y", "'1'"])
    )
    + "".join(f'<a v="${{p{k}}}" w="${{p{k} == 1}}" x="${{str(p{k}) + \'|\'}}"/>' for k in range(13)),
    "lazy": PROPERTY("a", "${b + 1}") + PROPERTY("b", "2") + '<a v="${a}"/>' + PROPERTY("b", "5") + '<a v="${a} ${b}"/>',
    "eager": PROPERTY("b", "2")
    + '<xacro:property name="a" value="${b + 1}" lazy_eval="false"/>'
    + PROPERTY("b", "5")
    + '<a v="${a}"/>',
    "default": '<xacro:property name="a" default="1"/><xacro:property name="a" default="2"/><a v="${a}"/>',
    "remove": PROPERTY("a", "1")
    + '<xacro:property name="a" remove="true"/><xacro:property name="a" default="7"/><a v="${a}"/>',
    "computed name": '<xacro:property name="${\'a\' + \'b\'}" value="3"/><a v="${ab}"/>',
    "scopes": PROPERTY("x", "0")
    + '<xacro:macro name="inner"><xacro:property name="x" value="1" scope="parent"/><xacro:property name="g" value="${x}" '
    'scope="global"/></xacro:macro><xacro:macro name="outer"><xacro:inner/><b x="${x}" g="${g}"/></xacro:macro>'
    '<xacro:outer/><b x="${x}" g="${g}"/>',
    "dynamic scope": '<xacro:macro name="m"><b v="${hidden}"/></xacro:macro><xacro:macro name="n" params="hidden"><xacro:m/>'
    '</xacro:macro><xacro:n hidden="5"/>',
    "parameters": "<xacro:macro name=\"m\" params=\"a b:=2 c=3 d:=${b0 + 1} e:='x y' f:='' g:=^ h:=^|9 i:=$(arg z) j:='a'b\">"
    '<m v="${a}|${b}|${c}|${d}|${e}|${f}|${g}|${h}|${i}|${j}"/></xacro:macro><xacro:arg name="z" default="zz"/>'
    + PROPERTY("b0", "1")
    + PROPERTY("g", "G")
    + '<xacro:m a="0"/><xacro:m a="${[1, 2]}" b="${b0}" c="  c " h="" j="true"/>',
    "blocks": '<xacro:macro name="m" params="*first **second"><m><xacro:insert_block name="second"/><xacro:insert_block '
    'name="first"/><xacro:insert_block name="first"/></m></xacro:macro><xacro:m>'
    '<one v="${1 + 1}">t</one><two><x/>u<y/></two></xacro:m>',
    "blocks of macros": '<xacro:macro name="two"><p/><q/></xacro:macro><xacro:macro name="m" params="*a *b"><m>'
    '<xacro:insert_block name="b"/><xacro:insert_block name="a"/></m></xacro:macro><xacro:m><xacro:two/></xacro:m>',
    "property block": '<xacro:property name="b"><c v="${w}"/>text ${w}</xacro:property>'
    + PROPERTY("w", "1")
    + '<d><xacro:insert_block name="b"/></d>',
    "escaped": '<a v="$${x}" w="$$(y)" x="a $ b" y="$$${x}" z="5$">$${t}</a>',
    "conditions": "".join(
        f'<xacro:if value="{v}"><t v="{k}"/></xacro:if><xacro:unless value="{v}"><f v="{k}"/></xacro:unless>'
        for k, v in enumerate(["1", "0", "true", "False", "${1 == 1}", "${[]}", "${'true'}", "${0.0}", "3", "${'0'}"])
    ),
    "recursion": '<xacro:macro name="loop" params="n"><xacro:if value="${n &gt; 0}"><l n="${n}"/><xacro:loop n="${n - 1}"/>'
    '</xacro:if></xacro:macro><xacro:loop n="25"/>',
    "local macros": '<xacro:macro name="m"><xacro:macro name="k"><inner/></xacro:macro><xacro:k/></xacro:macro><xacro:m/>'
    '<xacro:macro name="k"><outer/></xacro:macro><xacro:k/><xacro:m/>',
    "redefined": '<xacro:macro name="m"><a/></xacro:macro><xacro:macro name="xacro:m"><b/></xacro:macro><xacro:m/>',
    "call": '<xacro:macro name="m_1" params="a"><m a="${a}"/></xacro:macro><xacro:call macro="m_${1}" a="2"/>',
    "element": '<xacro:element xacro:name="${\'el\'}" a="${1}"><b/>t</xacro:element>',
    "attribute": '<a old="1"><xacro:attribute name="${\'new\'}" value="${2}"/><xacro:attribute name="old" value="3"/></a>',
    "arg": '<xacro:arg name="x" default="${1 + 1}"/><a v="$(arg x)" w="${$(arg x) + 1}" x="${xacro.arg(\'x\') + \'!\'}"/>',
    "eval": '<xacro:arg name="x" default="2"/><xacro:arg name="s" default="abc"/><a v="$(eval x * 3)" w="$(eval s == \'abc\')" '
    'x="$(eval pi)" y="$(eval true and x)" z="$(eval [1, x][1])"/>',
    "shadowed": PROPERTY("pi", "3") + PROPERTY("e", "0") + '<a v="${pi} ${e} ${math.pi}"/>',
    "foreign": '<a xmlns:gz="http://gazebosim.org"><gz:b gz:c="${1 + 1}"/></a>',
    "text": "<a>${1 + 1} and ${'x'}<b/> tail ${2}</a>",
    "comments": PROPERTY("a", "1") + "<!-- ${nothing} --><a v='${a}'/><!-- xacro:eval-comments --><!-- ${a} -->",
    "hidden attribute": '<a xacro:note="${undefined}" b="1"/>',
}


@pytest.mark.parametrize("case", LANGUAGE)
def test_language_agrees_with_the_xacro_package(tmp_path, case):
    path = write(tmp_path, LANGUAGE[case])
    assert tree(expand(path)) == oracle(path)


def _combined(inner):
    pair = st.tuples(inner, inner)
    operators = ["+", "-", "*", "/", "//", "%", "==", "!=", "<", ">=", "and", "or", "in", "is not", "&", "|", "^", "if x else"]
    functions = ["str", "int", "float", "bool", "len", "round", "sin", "sqrt", "floor", "list"]
    return st.one_of(
        st.tuples(pair, st.sampled_from(operators)).map(lambda t: f"({t[0][0]} {t[1]} {t[0][1]})"),
        st.tuples(st.sampled_from(["-", "not ", "~", "+"]), inner).map(lambda t: f"({t[0]}{t[1]})"),
        st.tuples(st.sampled_from(functions), inner).map(lambda t: f"{t[0]}({t[1]})"),
        pair.map(lambda t: f"max({t[0]}, {t[1]})"),
        pair.map(lambda t: f"[{t[0]}, {t[1]}]"),
        pair.map(lambda t: f"({t[0]})[{t[1]}]"),
        pair.map(lambda t: f"({t[0]})[:{t[1]}]"),
        st.tuples(inner, st.integers(0, 3)).map(lambda t: f"({t[0]} ** {t[1]})"),
        inner.map(lambda t: f"[k for k in {t} if k]"),
    )


LEAVES = [
    "0",
    "1",
    "3",
    "2.5",
    "1e-3",
    "'ab'",
    "'1.5'",
    "True",
    "None",
    "x",
    "name",
    "table['a']",
    "table['b']",
    "[1, 2]",
    "pi",
]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.recursive(st.sampled_from(LEAVES), _combined, max_leaves=8))
def test_whatever_has_a_value_has_that_of_the_xacro_package(tmp_path, expression):
    values = PROPERTY("x", "2") + PROPERTY("name", "text") + PROPERTY("table", "${dict(a=[1, 2.0], b='c')}")
    path = write(tmp_path, values + f"<a>${{{expression.replace('&', '&amp;').replace('<', '&lt;')}}}</a>")
    try:
        found = tree(expand(path))
    except DescriptionError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # "is not" with a number
        assert found == oracle(path)


def test_includes_agree_with_the_xacro_package(tmp_path):
    write(tmp_path, PROPERTY("a", "${2 * b}") + '<xacro:macro name="m"><m a="${a}"/></xacro:macro><i/>', "parts/one.xacro")
    write(tmp_path, '<xacro:include filename="one.xacro" ns="deep"/><xacro:deep.m/><t a="${deep.a}"/>', "parts/two.xacro")
    body = (
        PROPERTY("b", "3")
        + '<xacro:include filename="parts/one.xacro" ns="n"/><xacro:include filename="parts/two.xacro"/>'
        + '<xacro:include filename="parts/none.xacro" optional="true"/><xacro:n.m/><u a="${n.a}"/><xacro:deep.m/>'
        + '<xacro:call macro="n.m"/>'
    )
    path = write(tmp_path, body)
    assert tree(expand(path)) == oracle(path)


def test_units_and_aliases_of_yaml_agree_with_the_xacro_package(tmp_path):
    text = (
        "a: !degrees 90\nb: !inches 2*2\nc: &c {x: 1, y: [1, 2.5, null, true, 'text', 0o7, 1_000]}\nd: {<<: *c, x: 3}\ne: *c\n"
    )
    (tmp_path / "data.yaml").write_text(text)
    body = PROPERTY("d", "${xacro.load_yaml('data.yaml')}") + '<a v="${d}" w="${d.d.y[1]}" x="${d[\'e\'][\'x\']}" y="${d.a}"/>'
    path = write(tmp_path, body)
    assert tree(expand(path)) == oracle(path)


def test_dirname_is_the_folder_of_the_file(tmp_path):
    write(tmp_path, '<a v="$(dirname)"/>', "sub/part.xacro")
    path = write(tmp_path, '<a v="$(dirname)"/><xacro:include filename="$(dirname)/sub/part.xacro"/>')
    assert [child.get("v") for child in expand(path)] == [str(tmp_path), str(tmp_path / "sub")]


def test_abs_and_sum_are_known_without_their_namespace(tmp_path):
    assert expand(write(tmp_path, '<a v="${abs(-1.5) + sum([1, 2])}"/>'))[0].get("v") == "4.5"


# ---- where files may be ---------------------------------------------------------------------------------------------


def test_packages_are_found_by_manifest_neighbour_name_and_search_path(tmp_path):
    def package(folder: str, name: str, manifest: bool = True) -> None:
        write(tmp_path / folder, f'<link name="{name}"/>', "part.xacro")
        if manifest:
            (tmp_path / folder / "package.xml").write_text(f"<package><name>{name}</name></package>")

    package("work/cloned-elsewhere", "own_description")
    package("work/neighbour", "neighbour")
    package("other/third", "third", manifest=False)
    include = '<xacro:include filename="$(find {})/part.xacro"/>'.format
    path = write(tmp_path / "work" / "cloned-elsewhere" / "urdf", include("own_description") + include("neighbour"))
    assert [link.get("name") for link in expand(path)] == ["own_description", "neighbour"]
    path = write(tmp_path / "work" / "cloned-elsewhere" / "urdf", include("third"))
    with pytest.raises(DescriptionError, match=r"package 'third' is not found .* --search"):
        expand(path)
    assert [link.get("name") for link in expand(path, search=[tmp_path / "other"])] == ["third"]
    assert [link.get("name") for link in expand(path, search=[tmp_path / "other" / "third"])] == ["third"]
    meshes = write(tmp_path / "robot", '<mesh filename="$(find third)/mesh.stl"/>')  # never opened
    assert expand(meshes)[0].get("filename") == "package://third/mesh.stl"
    named = write(tmp_path / "plain_description" / "urdf", include("plain_description"), "main.xacro")
    write(tmp_path / "plain_description", '<link name="by_name"/>', "part.xacro")
    assert expand(named)[0].get("name") == "by_name"


@pytest.mark.parametrize("outside", ["../secret.xacro", "{}/secret.xacro", "sub/../../secret.xacro", "link.xacro"])
def test_includes_outside_the_folder_are_refused(tmp_path, outside):
    write(tmp_path, '<link name="secret"/>', "secret.xacro")
    path = write(tmp_path / "robot", f'<xacro:include filename="{outside.format(tmp_path)}"/>')
    (tmp_path / "robot" / "sub").mkdir()
    (tmp_path / "robot" / "link.xacro").symlink_to(tmp_path / "secret.xacro")
    with pytest.raises(DescriptionError, match="outside the robot's folder"):
        expand(path)
    assert expand(path, search=[tmp_path])[0].get("name") == "secret"


def test_yaml_outside_the_folder_is_refused(tmp_path):
    (tmp_path / "secret.yaml").write_text("password: 1")
    path = write(tmp_path / "robot", "<a v=\"${load_yaml('../secret.yaml')}\"/>")
    with pytest.raises(DescriptionError, match="outside the robot's folder"):
        expand(path)
    assert expand(path, search=[tmp_path])[0].get("v") == "{'password': 1}"


def test_yaml_without_pyyaml_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "data.yaml").write_text("a: 1")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match=r"dynident\[yaml\]"):
        expand(write(tmp_path, "<a v=\"${load_yaml('data.yaml')}\"/>"))


def test_home_and_the_top_of_the_disk_are_no_packages(tmp_path, monkeypatch):
    """A folder's name alone makes it a package, but not the home folder's or what holds it."""
    monkeypatch.setenv("HOME", str(tmp_path / "users" / "me"))
    write(tmp_path / "users", '<link name="secret"/>', "secret.xacro")
    for name in ("me", "users", Path(tmp_path).parts[1]):
        path = write(tmp_path / "users" / "me" / "robot", f'<xacro:include filename="$(find {name})/secret.xacro"/>')
        with pytest.raises(DescriptionError, match=f"package '{name}' is not found"):
            expand(path)


# ---- the readers ----------------------------------------------------------------------------------------------------

BODIES = (
    '<link name="a"/><link name="b">'
    '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin xyz="${%s} 0 0"/></joint>'


def test_arguments_reach_the_robot(tmp_path):
    path = write(tmp_path, '<xacro:arg name="l" default="1"/>' + BODIES + JOINT % "2 * $(arg l)")
    assert np.allclose(Mechanism.from_urdf(path).joint("j").placement.translation, [2.0, 0.0, 0.0])
    assert np.allclose(Mechanism.from_urdf(path, arguments={"l": 0.5}).joint("j").placement.translation, [1.0, 0.0, 0.0])


def test_capital_letters_are_a_xacro_file_too(tmp_path):
    path = write(tmp_path, BODIES + JOINT % "pi", "ROBOT.XACRO")
    assert math.isclose(Mechanism.from_urdf(path).joint("j").placement.translation[0], math.pi)
