"""Hostile .xacro files: no code is run, nothing outside the folder is read, and every bomb ends in one sentence."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from xacro_oracle import PACKAGES, oracle

from dynident import Mechanism
from dynident.errors import DescriptionError, DynidentError
from dynident.mechanism.xacro.expand import expand
from dynident.mechanism.xacro.expressions import MAX_NESTING, ExpressionError, _power

HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
PROPERTY = '<xacro:property name="{}" value="{}"/>'.format
LINK = '<link name="l"/>'


def write(folder: Path, body: str, name: str = "robot.xacro") -> Path:
    path = folder / name
    path.write_text(f"{HEAD}{body}{LINK}</robot>", encoding="utf-8")
    return path


def in_attribute(expression: str) -> str:
    return '<a v="${' + expression.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;") + '}"/>'


def test_the_known_escape_runs_with_the_xacro_package_only(tmp_path):
    """The frame of a running generator leads to the builtins of whoever evaluates it; here it only makes an empty file."""
    proof = tmp_path / "proof"
    make = f"g[0].gi_frame.f_back.f_back.f_back.f_builtins['open']('{proof}', 'w').close()"
    path = write(
        tmp_path, in_attribute(f"[0 for g in [[]] for q in [({make} for _ in [1])] for z in [g.append(q)] for r in q]")
    )
    with pytest.raises(DescriptionError, match=r"robot\.xacro: .*; "):
        Mechanism.from_urdf(path)
    assert not proof.exists()
    oracle(path)
    assert proof.exists(), "the file is no escape: the test proves nothing"


def test_what_is_not_on_the_list_is_refused(tmp_path, subtests):
    for expression in [
        "(lambda g: g)((x for x in [1])).gi_frame.f_builtins['__import__']('os').system('touch proof')",
        "[y.gi_frame.f_back.f_builtins['exec']('import os; os.mkdir(1)') for y in [(x for x in [1])]]",
        "().__class__.__base__.__subclasses__()",
        "''.__class__",
        "(x for x in [1]).gi_frame",
        "[x for x in [1]].gi_frame",
        "len.__self__",
        "min.__globals__",
        "math.__loader__",
        "xacro.load_yaml.__globals__",
        "load_yaml.call",
        "str.mro()",
        "str.format",
        "'{0.__class__}'.format(1)",
        "'abc'.format_map(dict(a=1))",
        "'abc'.__add__('d')",
        "'abc'.encode()",
        "[].append(1)",
        "dict(a=1).update(b=2)",
        "dict(a=1).__class__",
        "__import__('os')",
        "__builtins__",
        "open('/etc/passwd')",
        "eval('1')",
        "exec('1')",
        "compile('1', '', 'eval')",
        "getattr(1, 'real')",
        "globals()",
        "vars()",
        "python.vars()",
        "python.type(1)",
        "type(1)",
        "(1).real",
        "1j",
        "(-1)**0.5",
        "b'bytes'",
        "lambda: 1",
        "(y := 1)",
        "[*range(3)]",
        "max(*[1, 2])",
        "dict(**dict(a=1))",
        "f'x'",
        "...",
        "1 << 3",
        "[1] @ [2]",
        "yield",
        "(yield 1)",
        "await x",
        "import os",
        "a = 1",
        "1; 2",
        "",
        "'\\x1b[31m'",
        "'\\ud800'",
        "min",
        "math",
        "xacro.fatal('stop')",
        "robot.name",
    ]:
        with subtests.test(str(expression)):
            path = write(tmp_path, in_attribute(expression))
            with pytest.raises(DescriptionError, match=r"robot\.xacro: .*; "):
                Mechanism.from_urdf(path)
            assert [file.name for file in tmp_path.iterdir()] == ["robot.xacro"]


@pytest.mark.parametrize("command", ["$(env HOME)", "$(optenv HOME x)", "$(anon x)", "$(cwd)"])
def test_the_computer_is_not_asked(tmp_path, command):
    with pytest.raises(DescriptionError, match=r"depends on this computer .*expand the file to a \.urdf"):
        expand(write(tmp_path, f'<a v="{command}"/>'))


DOUBLING = "".join(PROPERTY(f"p{k + 1}", f"${{p{k}}}${{p{k}}}") for k in range(60)) + PROPERTY("p0", "xx")
TWICE = (
    '<xacro:macro name="m" params="n"><xacro:if value="${n &gt; 0}"><xacro:m n="${n - 1}"/><xacro:m n="${n - 1}"/></xacro:if>'
    '</xacro:macro><xacro:m n="40"/>'
)
LONG = PROPERTY("long", "${list(range(19000))}")
BOMBS = {
    "tower of powers": in_attribute("9**9**9"),
    "larger tower": in_attribute("9**9**9**9"),
    "negative base": in_attribute("(-9)**99999999"),
    "power of floats": in_attribute("9.0**9**9"),
    "product": PROPERTY("p0", "${2**200}")
    + "".join(f'<xacro:property name="p{k + 1}" value="${{p{k} * p{k}}}" lazy_eval="false"/>' for k in range(40)),
    "digits": in_attribute("int('9' * 4000)"),
    "shift": in_attribute("1 << 10**10"),
    "repeated text": in_attribute("'a' * 10**9"),
    "repeated list": in_attribute("[0] * 10**9"),
    "nested lists": in_attribute("[[0] * 10000] * 10000"),
    "lists of lists": PROPERTY("a", "${[1] * 1000}") + PROPERTY("b", "${[a] * 100}") + in_attribute("b"),
    "doubled text": DOUBLING + in_attribute("p60"),
    "range": in_attribute("range(10**9)"),
    "loops": in_attribute("len([1 for a in range(19000) for b in range(19000) if 0])"),
    "long comparisons": LONG + in_attribute("[long == long for i in range(19000)]"),
    "long searches": LONG + in_attribute("[-1 in long for i in range(19000)]"),
    "long maxima": LONG + in_attribute("[max(long) for i in range(19000)]"),
    "wide format": in_attribute("'%999999999d' % 1"),
    "starred format": in_attribute("'%*d' % (999999999, 1)"),
    "precise format": in_attribute("'%.99999999f' % 1.0"),
    "repeated format": in_attribute("('%(a)s' * 10000) % dict(a='x' * 90000)"),
    "rounding": in_attribute("round(5, -10**9)"),
    "joining": in_attribute("('x' * 90000).join(['a'] * 10000)"),
    "replacing": in_attribute("('x' * 90000).replace('x', 'y' * 90000)"),
    "macro calls itself": '<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>',
    "macro calls itself twice": TWICE,
    "block holds itself": '<xacro:property name="b"><xacro:insert_block name="b"/></xacro:property>'
    '<xacro:insert_block name="b"/>',
    "circle": PROPERTY("a", "${b}") + PROPERTY("b", "${a}") + in_attribute("a"),
    "long chain": "".join(PROPERTY(f"p{k + 1}", f"${{p{k}}}") for k in range(3000))
    + PROPERTY("p0", "1")
    + in_attribute("p3000"),
    "includes itself": '<xacro:include filename="robot.xacro"/>',
    "includes itself twice": '<xacro:include filename="robot.xacro" ns="a"/>' * 2,
    "elements": "<a/>" * 150_000,
    "depth": "<a>" * 2000 + "</a>" * 2000,
    "much text": PROPERTY("x", "${'a' * 99999}") + "<a>" + "${x}" * 2000 + "</a>",
    "brackets": in_attribute("(" * 3000),
    "signs": in_attribute("-" * 3900 + "1"),
    "negations": in_attribute("not " * 900 + "1"),
    "dots": PROPERTY("a", "${dict(a=1)}") + in_attribute("a" + ".a" * 1900),
    "long expression": in_attribute("1" + " + 1" * 5000),
    "open brackets": '<a v="' + "${" * 50_000 + '"/>',
    "dollars": '<a v="' + "$" * 50_000 + '"/>',
    "macro parameters": '<xacro:macro name="m" params="a:=' + "x" * 19_000 + "'\"/>",
    "function and text": '<a v="${min} x"/>',
    "function as command": '<a v="$(${min})"/>',
    "function as argument": '<xacro:arg name="x" default="${min}"/>',
    "long lists": LONG + '<a v="${long}"/>' * 5000,
    "long lists in text": LONG + "<a>" + "x ${long}" * 5000 + "</a>",
    "attributes": '<xacro:macro name="m"><a '
    + " ".join(f'a{k}=""' for k in range(20_000))
    + "/></xacro:macro>"
    + "<xacro:m/>" * 9000,
    "parameters": '<xacro:macro name="m" params="' + " ".join(f"a{k}:=1" for k in range(1500)) + '"/>' + "<xacro:m/>" * 9000,
    "packages": "".join(f'<a v="$(find package{k})"/>' for k in range(5000)),
    "long name": '<xacro:include filename="' + "a" * 5000 + '" optional="true"/><xacro:include filename="' + "a" * 5000 + '"/>',
    "long package": f'<a v="$(find {"a" * 5000})"/>',
    "strange package": '<a v="$(find ..)"/>',
    "wildcard": '<xacro:include filename="/*/*/*/*/*"/>',
    "no prefix": '<p:property xmlns:p="http://www.ros.org/wiki/xacro" name="a" value="1"/>',
}


def test_bombs_end_in_one_sentence(tmp_path, subtests):
    """Bounds are counted, not timed, so that this holds on every computer; a bomb that went off would not return."""
    for name, bomb in BOMBS.items():
        with subtests.test(name), pytest.raises(DescriptionError, match=r"^robot\.xacro: .*; "):
            Mechanism.from_urdf(write(tmp_path, bomb))


ALIASES = "a0: &a0 [1,1,1,1,1,1,1,1]\n" + "".join(f"a{k + 1}: &a{k + 1} [{','.join([f'*a{k}'] * 8)}]\n" for k in range(12))
MERGES = "b0: &b0 {x: 1}\n" + "".join(f"b{k + 1}: &b{k + 1} {{<<: [{','.join([f'*b{k}'] * 9)}]}}\n" for k in range(12))


@pytest.mark.parametrize(
    "text",
    [
        ALIASES,
        MERGES,
        "&a [*a]",
        "a: &a {<<: [*a]}",
        "[" * 10_000,
        "{a: " * 3000,
        "- " * 20_000,
        "x: " + "9" * 150_000,
        "x: 1" + ":59" * 60_000,
        "- a\n" * 200_000,
        "!!python/object/apply:os.system ['touch proof']",
        "!!python/name:os.system",
        "!!binary aGk=",
        "!degrees '9**9**9'",
        "!degrees '().__class__'",
        "'\\x00'\x00",
        '"\\ud800"',
        '"\\U7fffffff"',
        "{a: 1",
    ],
)
def test_hostile_yaml_ends_in_one_sentence(tmp_path, text):
    pytest.importorskip("yaml")
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises(DescriptionError, match=r"robot\.xacro: .*; "):
        Mechanism.from_urdf(write(tmp_path, in_attribute("str(load_yaml('data.yaml'))")))
    assert not (tmp_path / "proof").exists()


@pytest.mark.parametrize(
    ("power", "refused"), [("2**255", False), ("2**258", True), ("(-3)**163", True), ("1**(10**9)", False)]
)
def test_powers_of_too_many_bits_are_refused(tmp_path, power, refused):
    path = write(tmp_path, in_attribute(power))
    if refused:
        with pytest.raises(DescriptionError, match="makes an integer of more than 256 bits"):
            expand(path)
    else:
        expand(path)
    with pytest.raises(ExpressionError, match="makes an integer of more than 256 bits"):
        _power(3, 10**6)  # it is not computed first


def test_tables_of_yaml_are_read_up_to_a_depth(tmp_path):
    """The entries of the innermost table are one level below it."""
    pytest.importorskip("yaml")
    path = write(tmp_path, in_attribute("str(load_yaml('data.yaml'))"))
    (tmp_path / "data.yaml").write_text("{a: " * MAX_NESTING + "1" + "}" * MAX_NESTING)
    expand(path)
    (tmp_path / "data.yaml").write_text("{a: " * (MAX_NESTING + 1) + "1" + "}" * (MAX_NESTING + 1))
    with pytest.raises(DescriptionError, match=f"nested more than {MAX_NESTING} deep"):
        expand(path)


# ---- random input ---------------------------------------------------------------------------------------------------

TOKENS = [
    "1",
    "0.5",
    "'a'",
    "pi",
    "x",
    "long",
    "[",
    "]",
    "(",
    ")",
    ",",
    ".",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "<",
    ">",
    "==",
    "and",
    "or",
    "not",
    "in",
    "if",
    "else",
    "for",
    "lambda",
    ":",
    "=",
    "__class__",
    "gi_frame",
    "f_back",
    "len",
    "max",
    "min",
    "str",
    "range",
    "dict",
    "list",
    "map",
    "sorted",
    "math",
    "python",
    "xacro",
    "load_yaml('x')",
    "i",
    "10**9",
    "~",
    "^",
    "|",
    "&",
    "None",
    "True",
]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=14).map(" ".join) | st.text(max_size=40))
@example("len ,")
@example("[max, math]")
def test_any_expression_has_a_value_or_a_sentence(tmp_path, text):
    if not all(character.isprintable() for character in text) or "}" in text or "$" in text:
        return
    path = write(tmp_path, PROPERTY("x", "2") + PROPERTY("long", "${[1, 2]}") + in_attribute(text))
    try:
        value = expand(path).find("a")
    except DynidentError as error:
        assert "; " in str(error)
    else:
        assert value is not None
        assert not re.search(r"<(function|class|built-in|generator|bound)", value.get("v", ""))


def mutated(data: bytes, seed: int) -> bytes:
    """Return the bytes with a few of them removed, repeated, exchanged or overwritten."""
    choice = random.Random(seed)
    for _ in range(choice.randint(1, 4)):
        a, b = sorted(choice.choices(range(len(data)), k=2))
        b = min(b, a + 60)
        piece = choice.choice(
            [
                b"",
                data[a:b] * 2,
                data[a:b][::-1],
                bytes(choice.choices(b"${}()<>/\"'*[]._ 19ae^|:=", k=b - a)),
                b"xacro:",
                b"${",
            ]
        )
        data = data[:a] + piece + data[b:]
    return data


@pytest.mark.parametrize(
    "name", ["ur_style/urdf/ur_macro.xacro", "franka_style/robots/common/utils.xacro", "kuka_style/urdf/kr.XACRO"]
)
def test_mutated_packages_are_read_or_refused(tmp_path, name):
    data = (PACKAGES / name).read_bytes()
    for seed in range(150):
        path = tmp_path / "mutated.xacro"
        path.write_bytes(mutated(data, seed))
        try:
            expand(path, search=[PACKAGES])
        except DynidentError as error:
            assert "; " in str(error) or "needs the package" in str(error), error


def test_the_command_refuses_and_says_what_to_do(tmp_path):
    path = write(tmp_path, in_attribute("().__class__"))
    command = [sys.executable, "-m", "dynident", "describe", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "expand the file to a .urdf" in done.stderr
    assert "Traceback" not in done.stderr
