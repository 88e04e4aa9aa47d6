"""Bad files and calls, each with the exit code and a word that its one sentence must contain.

A case starts from a folder of good files (`good_files`), replaces some of them and runs one command there.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from fuzz.texts import URDF

import dynident as di

BAD_INPUT, USAGE = 1, 2
MJCF = """<mujoco model="arm2">
  <worldbody>
    <body name="link1" pos="0 0 0.3" euler="90 0 0">
      <joint name="joint1" type="hinge" axis="0 0 1"/>
      <inertial pos="0.2 0 0.01" mass="3.0" diaginertia="0.02 0.05 0.05"/>
      <body name="link2" pos="0.4 0 0">
        <joint name="joint2" type="hinge" axis="0 0 1"/>
        <inertial pos="0.1 0.02 0" mass="1.5" diaginertia="0.01 0.02 0.02"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
SCHEMA = """time = "t"
joints = ["joint1", "joint2"]
position = ["q_joint1", "q_joint2"]
effort = ["tau_joint1", "tau_joint2"]
effort_kind = "joint_torque"
"""
SIDECAR = """[[actuator]]
name = "motor1"
coupling = { joint1 = 1.0 }
ratio = 50.0
"""
BOMB = (
    '<!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)
OUTSIDE = '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/hostname">]>'


@dataclass(frozen=True)
class Case:
    """One bad call: files that replace the good ones (None removes), arguments, exit code, a word of the sentence."""

    args: tuple[str, ...]
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    word: str = ""
    code: int = BAD_INPUT


def motion(seed: int, seconds: float = 8.0, rate: float = 100.0) -> di.Motion:
    """Return sums of three sines for two joints, with exact derivatives."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 1.0 / rate)
    w = 2.0 * np.pi * np.array([0.25, 0.5, 0.75])
    size, phase = rng.uniform(0.2, 0.5, (2, 3)), rng.uniform(0.0, 6.0, (2, 3))
    angle = t[:, None, None] * w + phase
    q, v, a = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    return di.Motion(t, q.sum(axis=2), v.sum(axis=2), a.sum(axis=2))


def table(robot: di.Mechanism, seed: int) -> str:
    """Return the CSV text of a simulated run with a little noise and friction."""
    run = motion(seed)
    terms = {"fv_joint1": 2.0, "fc_joint1": 1.0, "fv_joint2": 0.7, "fc_joint2": 0.5, "ia_joint1": 0.3, "ia_joint2": 0.1}
    effort = di.inverse_dynamics(robot, run, robot.parameters.replace(terms))
    effort = effort + np.random.default_rng(seed).normal(0.0, 0.02, effort.shape)
    lines = ["t,q_joint1,q_joint2,tau_joint1,tau_joint2"]
    for row in np.column_stack([run.t, run.q, effort]):
        lines.append(",".join(f"{x:.9g}" for x in row))
    return "\n".join(lines) + "\n"


def npz(**arrays: object) -> bytes:
    """Return the bytes of an npz archive, pickled objects included."""
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.asarray(values) for name, values in arrays.items()})
    return buffer.getvalue()


IDENTIFY = ("identify", "robot.urdf", "run.csv", "--effort", "joint_torque", "--recovery", "prior", "-o", "out")
VALIDATE = ("validate", "fit.json", "other.csv", "--effort", "joint_torque")
DESCRIBE = ("describe", "robot.urdf")


def urdf_cases() -> dict[str, Case]:
    """Return broken URDF files."""

    def changed(old: str, new: str, count: int = 1) -> str:
        assert old in URDF, old
        return URDF.replace(old, new, count)

    texts: dict[str, tuple[str | bytes, str]] = {
        "empty": ("", "empty"),
        "blank": (" \n\t ", "empty"),
        "entity bomb": (changed("<robot", BOMB + "<robot").replace("arm2", "&i;"), "entit"),
        "outside entity": (changed("<robot", OUTSIDE + "<robot").replace("arm2", "&x;"), "entit"),
        "binary junk": (bytes(range(256)) * 4, "XML"),
        "nul bytes": (b"\0" * 64, "XML"),
        "a picture": (b"\x89PNG\r\n\x1a\n" + b"\0" * 30, "XML"),
        "wrong root": (URDF.replace("robot", "machine"), "machine"),
        "html": ("<html><body>404</body></html>", "html"),
        "json": ('{"robot": 1}', "XML"),
        "unknown encoding": (changed('version="1.0"', 'version="1.0" encoding="klingon"'), "XML"),
        "latin-1 bytes": (changed("arm2", "armé").encode("latin-1"), "XML"),
        "two roots": (URDF + URDF.replace('<?xml version="1.0"?>', ""), "XML"),
        "unclosed tag": (changed("</robot>", ""), "XML"),
        "unquoted attribute": (changed('"base"', "base"), "XML"),
        "doubled attribute": (changed('name="base"', 'name="base" name="b"'), "XML"),
        "deep nesting": ("<robot>" + "<a>" * 600 + "</a>" * 600 + "</robot>", "nested"),
        "no link": ('<robot name="r"></robot>', "no <link>"),
        "link without name": (changed('<link name="base"/>', "<link/>"), "name"),
        "joint without name": (changed('name="joint1"', 'label="joint1"'), "name"),
        "joint without type": (changed(' type="revolute"', ""), "type"),
        "unknown joint type": (changed('"revolute"', '"wobbly"'), "wobbly"),
        "joint without parent": (changed('<parent link="base"/>', ""), "parent"),
        "joint without child": (changed('<child link="link1"/>', ""), "child"),
        "parent does not exist": (changed('<parent link="base"/>', '<parent link="nowhere"/>'), "nowhere"),
        "child does not exist": (changed('<child link="link2"/>', '<child link="nowhere"/>'), "nowhere"),
        "link twice": (changed("</robot>", '<link name="link1"/></robot>'), "link1"),
        "joint twice": (changed('"joint2"', '"joint1"'), "joint1"),
        "cycle": (changed('<parent link="base"/>', '<parent link="link2"/>'), "cycle"),
        "joint onto itself": (changed('<parent link="link1"/>', '<parent link="link2"/>'), "link2"),
        "two bases": (changed("</robot>", '<link name="lonely"/></robot>'), "lonely"),
        "two parents": (
            changed("</robot>", '<joint name="j3" type="fixed"><parent link="base"/><child link="link2"/></joint></robot>'),
            "link2",
        ),
        "mimic of nobody": (changed('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><mimic joint="ghost"/>'), "ghost"),
        "mimic of itself": (changed('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><mimic joint="joint1"/>'), "joint1"),
        "mimic without joint": (changed('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><mimic multiplier="2"/>'), "joint"),
        "mimic multiplier text": (
            changed('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><mimic joint="joint2" multiplier="two"/>'),
            "two",
        ),
        "mass missing": (changed('<mass value="3.0"/>', ""), "mass"),
        "inertia missing": (changed('<inertia ixx="0.02" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/>', ""), "inertia"),
        "inertia incomplete": (changed('ixx="0.02" ', ""), "ixx"),
        "zero axis": (changed('<axis xyz="0 0 1"/>', '<axis xyz="0 0 0"/>'), "axis"),
        "axis of two numbers": (changed('<axis xyz="0 0 1"/>', '<axis xyz="0 1"/>'), "axis"),
        "axis of text": (changed('<axis xyz="0 0 1"/>', '<axis xyz="up"/>'), "up"),
        "axis NaN": (changed('<axis xyz="0 0 1"/>', '<axis xyz="0 0 nan"/>'), "nan"),
        "origin infinite": (changed('xyz="0 0 0.3"', 'xyz="0 0 inf"'), "inf"),
        "origin absurd": (changed('xyz="0 0 0.3"', 'xyz="0 0 1e300"'), "1e300"),
        "origin four numbers": (changed('xyz="0 0 0.3"', 'xyz="0 0 0.3 0"'), "4 numbers"),
        "rpy text": (changed('rpy="1.5707963267948966 0 0"', 'rpy="pi/2 0 0"'), "pi/2"),
        "underscore number": (changed('value="3.0"', 'value="3_0"'), "3_0"),
        "mass without value": (changed('<mass value="3.0"/>', "<mass/>"), "value"),
        "zero mass with inertia": (changed('value="3.0"', 'value="0"'), "mass"),
        "limit text": (changed('lower="-3"', 'lower="low"'), "low"),
        "limits crossed": (changed('lower="-3" upper="3"', 'lower="3" upper="-3"'), "limit"),
        "negative velocity limit": (changed('velocity="5"', 'velocity="-5"'), "velocity"),
    }
    for mass in ("-3.0", "nan", "inf", "heavy", "", "1e999", "-1e-9", "3 kg", "0x10"):
        texts[f"mass {mass!r}"] = (changed('value="3.0"', f'value="{mass}"'), "mass")
    for value in ("nan", "-inf", "big", "1e31"):
        texts[f"inertia {value!r}"] = (changed('iyy="0.05"', f'iyy="{value}"'), "iyy")
    for share in range(1, 13):
        cut = len(URDF) * share // 13
        texts[f"cut after {cut} bytes"] = (URDF[:cut], "XML")
    cases = {}
    for name, (text, word) in texts.items():
        content = text if isinstance(text, bytes) else text.encode()
        cases[f"urdf: {name}"] = Case(DESCRIBE, {"robot.urdf": content}, word)
    for name in ("entity bomb", "cycle", "mass '-3.0'", "unclosed tag", "joint twice"):
        content = cases[f"urdf: {name}"].files["robot.urdf"]
        cases[f"identify with urdf: {name}"] = Case(IDENTIFY, {"robot.urdf": content})
        cases[f"validate with urdf: {name}"] = Case((*VALIDATE, "--robot", "robot.urdf"), {"robot.urdf": content})
    return cases


def mjcf_cases() -> dict[str, Case]:
    """Return broken MJCF files."""

    def changed(old: str, new: str) -> str:
        assert old in MJCF, old
        return MJCF.replace(old, new, 1)

    texts = {
        "empty": ("", "empty"),
        "unclosed": (changed("</worldbody>", ""), "XML"),
        "entity bomb": (BOMB.replace("robot", "mujoco") + MJCF, "entit"),
        "no worldbody": ("<mujoco/>", "worldbody"),
        "body twice": (changed('"link2"', '"link1"'), "link1"),
        "joint twice": (changed('"joint2"', '"joint1"'), "joint1"),
        "negative mass": (changed('mass="3.0"', 'mass="-3"'), "mass"),
        "mass NaN": (changed('mass="3.0"', 'mass="nan"'), "nan"),
        "mass text": (changed('mass="3.0"', 'mass="heavy"'), "heavy"),
        "mass missing": (changed(' mass="3.0"', ""), "mass"),
        "inertia of two": (changed('diaginertia="0.02 0.05 0.05"', 'diaginertia="0.02 0.05"'), "diaginertia"),
        "unknown joint": (changed('type="hinge"', 'type="wobbly"'), "wobbly"),
        "zero axis": (changed('axis="0 0 1"', 'axis="0 0 0"'), "axis"),
        "equality of nobody": (changed("</worldbody>", '</worldbody><equality><joint joint1="ghost"/></equality>'), "ghost"),
        "actuator of nobody": (changed("</worldbody>", '</worldbody><actuator><motor joint="ghost"/></actuator>'), "ghost"),
        "class of nobody": (changed('name="joint1"', 'name="joint1" class="ghost"'), "ghost"),
        "neither": ("<machine/>", "machine"),
    }
    return {
        f"mjcf: {name}": Case(("describe", "robot.xml"), {"robot.xml": text.encode()}, word)
        for name, (text, word) in texts.items()
    }


def log_cases(run: str) -> dict[str, Case]:
    """Return broken logs, made from the text of a good one."""
    lines = run.splitlines()
    head, rows = lines[0], lines[1:]

    def with_row(k: int, text: str) -> str:
        return "\n".join([head, *rows[:k], text, *rows[k + 1 :]]) + "\n"

    def column(k: int, values: list[str]) -> str:
        cells = [row.split(",") for row in rows]
        for row, value in zip(cells, values, strict=False):
            row[k] = value
        return "\n".join([head, *(",".join(row) for row in cells)]) + "\n"

    n = len(rows)
    texts: dict[str, tuple[str | bytes, str]] = {
        "empty": ("", "empty"),
        "blank": ("\n\n \n", "no rows"),
        "comments only": ("# nothing\n# here\n", "no rows"),
        "header only": (head + "\n", "no rows"),
        "one row": ("\n".join(lines[:2]), ""),
        "three rows": ("\n".join(lines[:4]), ""),
        "twenty rows": ("\n".join(lines[:21]), "samples"),
        "empty header": (",,,,\n" + "\n".join(rows), ""),
        "no header": ("\n".join(rows), ""),
        "column twice": (run.replace("q_joint2", "q_joint1"), "q_joint1"),
        "no time": (run.replace("t,", "x,", 1), "time"),
        "two clocks": (run.replace("q_joint1", "time", 1), "time"),
        "no positions": (run.replace("q_joint", "foo"), "position"),
        "no efforts": (run.replace("tau_joint", "foo"), "effort"),
        "unknown joints": (run.replace("joint1", "shoulder").replace("joint2", "elbow"), "elbow"),
        "one unknown joint": (run.replace("joint2", "elbow"), "elbow"),
        "unicode joint": (run.replace("joint2", "関節"), "関節"),
        "text in numbers": (with_row(5, "0.05,a,b,c,d"), "row 6"),
        "a cell too many": (with_row(7, "1,2,3,4,5,6"), "row 8"),
        "a cell too few": (with_row(7, "1,2,3"), "row 8"),
        "cut short and continued": (
            run[: run.index("\n", len(run) // 2) + 12] + "\n" + run[-200:],
            "2 cells but there are 5 columns",
        ),
        "time NaN": (with_row(3, "nan,0,0,0,0"), "time"),
        "time infinite": (with_row(3, "inf,0,0,0,0"), "time"),
        "time missing": (with_row(3, ",0,0,0,0"), "time"),
        "time goes back": (with_row(9, rows[2]), "time"),
        "time repeated": (with_row(9, rows[8].partition(",")[0] + ",0,0,0,0"), "time"),
        "time all zero": (column(0, ["0"] * n), "time"),
        "time falls": (column(0, [str(-k * 0.01) for k in range(n)]), "time"),
        "time counts": (column(0, [str(k) for k in range(n)]), "rate"),
        "time in ms": (column(0, [str(k * 10) for k in range(n)]), "ms"),
        "position all NaN": (column(1, ["nan"] * n), ""),
        "effort all NaN": (column(3, ["nan"] * n), ""),
        "effort infinite": (column(3, ["inf"] * n), ""),
        "positions absurd": (column(1, ["1e300" if k % 2 else "-1e300" for k in range(n)]), ""),
        "efforts absurd": (column(3, ["1e308" if k % 2 else "-1e308" for k in range(n)]), "1e+308"),
        "binary junk": (bytes(range(256)) * 8, "UTF-8"),
        "utf-16 cut": (run.encode("utf-16")[:-1], "UTF-8"),
        "utf-16 without its mark": (run.encode("utf-16-le") + b"\xff", "UTF-8"),
        "nul bytes": (b"\0" * 100, ""),
        "xml": (URDF, ""),
        "json": ('[{"t": 0, "q": 1}]', ""),
        "sqlite": (b"SQLite format 3\0" + b"\1" * 64, ""),
    }
    texts["efforts dead"] = ("\n".join([head, *(",".join(row.split(",")[:3]) + ",0,0" for row in rows)]) + "\n", "dead")
    cases = {}
    for name, (text, word) in texts.items():
        content = text if isinstance(text, bytes) else text.encode()
        cases[f"log: {name}"] = Case(IDENTIFY, {"run.csv": content}, word)
    for name in ("header only", "time goes back", "text in numbers", "unknown joints", "one row", "no efforts"):
        content = cases[f"log: {name}"].files["run.csv"]
        cases[f"held-out log: {name}"] = Case((*IDENTIFY, "--validate", "other.csv"), {"other.csv": content})
        cases[f"validate: {name}"] = Case(VALIDATE, {"other.csv": content})
    values = np.array([[float(x) for x in row.split(",")] for row in rows])
    t, q, tau = values[:, 0], values[:, 1:3], values[:, 3:]
    binary: dict[str, tuple[str, bytes, str]] = {
        "gzip cut": ("run.csv.gz", gzip.compress(run.encode())[:-200], "gzip"),
        "gzip that is not": ("run.csv.gz", run.encode(), "gzip"),
        "npz cut": ("run.npz", npz(t=t, q=q, tau=tau)[:500], "npz"),
        "npz of text": ("run.npz", run.encode(), "npz"),
        "npz pickled": ("run.npz", npz(t=t, q=np.array([{}, []], dtype=object), tau=tau), "pickle"),
        "npz lengths": ("run.npz", npz(t=t, q=q[:50], tau=tau), ""),
        "npz widths": ("run.npz", npz(t=t, q=q, tau=tau[:, :1]), ""),
        "npz of nothing": ("run.npz", npz(), ""),
        "npz of a number": ("run.npz", npz(t=3.0), ""),
        "npz of cubes": ("run.npz", npz(t=t, q=np.zeros((3, 3, 3)), tau=tau), "position"),
        "npz complex": ("run.npz", npz(t=t, q=q + 1j, tau=tau), "column 'q'"),
        "npy": ("run.npz", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }" + b" " * 60, ""),
        "zip of junk": ("run.npz", _zip(b"junk"), ""),
        "mat of text": ("run.mat", run.encode(), "mat"),
        "mat of junk": ("run.mat", bytes(range(256)) * 3, "mat"),
        "hdf5 cut": ("run.h5", b"\x89HDF\r\n\x1a\n" + b"\0" * 40, "h5"),
        "parquet of junk": ("run.parquet", b"PAR1" + b"\0" * 40 + b"PAR1", "parquet"),
        "wrong ending": ("run.docx", run.encode(), "docx"),
        "bag": ("run.bag", b"#ROSBAG V2.0\n", "bag"),
        "no ending": ("run", run.encode(), "ending"),
    }
    for name, (file, content, word) in binary.items():
        cases[f"log: {name}"] = Case((*IDENTIFY[:2], file, *IDENTIFY[3:]), {file: content}, word)
    return cases | own_log_cases(rows)


def _zip(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("t.npy", content)
    return buffer.getvalue()


def own_log_cases(rows: list[str]) -> dict[str, Case]:
    """Return logs with dynident's own metadata line, spoiled."""
    good = {
        "format": "dynident-log",
        "version": 1,
        "effort_kind": "joint_torque",
        "joints": ["joint1", "joint2"],
        "fields": ["position", "effort"],
        "gain": None,
        "name": "run",
    }
    spoiled: dict[str, object] = {
        "effort_kind": "horsepower",
        "joints": ["joint1", "ghost"],
        "fields": ["position", "colour"],
        "gain": "big",
        "position_side": "upside",
    }
    more = [
        ("joints", 3),
        ("joints", [1, 2]),
        ("fields", 7),
        ("fields", ["position"]),
        ("gain", [1.0, 0.0]),
        ("gain", [1.0] * 5),
    ]
    more += [
        ("gain", {}),
        ("provenance", [1]),
        ("name", 5),
        ("effort_kind", None),
        ("fields", [[1]]),
        ("joints", ["joint1"] * 2),
    ]
    cases = {}
    body = "t,q_joint1,q_joint2,effort_joint1,effort_joint2\n" + "\n".join(rows) + "\n"
    call = ("identify", "robot.urdf", "run.csv", "--recovery", "prior", "-o", "out")
    for key, value in [*spoiled.items(), *more]:
        text = f"# {json.dumps({**good, key: value})}\n{body}"
        if (key, value) not in (("provenance", [1]), ("name", 5)):  # these only decorate
            cases[f"own log: {key} {value!r}"] = Case(call, {"run.csv": text.encode()})
    for key in ("effort_kind", "joints", "fields"):
        text = f"# {json.dumps({k: v for k, v in good.items() if k != key})}\n{body}"
        cases[f"own log: no {key}"] = Case(call, {"run.csv": text.encode()}, key)
    cases["own log: line cut"] = Case(call, {"run.csv": f"# {json.dumps(good)[:-9]}\n{body}".encode()}, "metadata")
    contradiction = f"# {json.dumps(good)}\n{body}".encode()
    cases["own log: other kind"] = Case((*call, "--effort", "motor_torque"), {"run.csv": contradiction}, "motor_torque")
    return cases
