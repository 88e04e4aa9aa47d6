"""More of the corpus: calls with wrong options, and broken schemas, sidecars and fits."""

from __future__ import annotations

import json

from bad_input_corpus import DESCRIBE, IDENTIFY, SCHEMA, SIDECAR, URDF, USAGE, VALIDATE, Case


def option_cases() -> dict[str, Case]:
    """Return calls whose options, paths or outputs are wrong."""
    cases = {}
    for option, value, word in [
        ("--cutoff", "abc", "abc"),
        ("--cutoff", "nan", "cut"),
        ("--cutoff", "inf", "cut"),
        ("--cutoff", "0", "cut"),
        ("--cutoff", "-3", "-3"),
        ("--cutoff", "50", "50"),
        ("--cutoff", "1e9", "cut"),
        ("--cutoff", "0.01", ""),
        ("--cutoff", "", "cutoff"),
        ("--decimation", "0", "0"),
        ("--decimation", "-2", "-2"),
        ("--decimation", "1.5", "1.5"),
        ("--decimation", "many", "many"),
        ("--decimation", "100000", "decimation"),
        ("--estimator", "foo", "foo"),
        ("--estimator", "", "estimator"),
        ("--recovery", "foo", "foo"),
        ("--recovery", "PRIOR", "PRIOR"),
        ("--terms", "xyz", "xyz"),
        ("--terms", "fv,fv", "fv"),
        ("--terms", "ia;fv", "ia;fv"),
        ("--gain", "abc", "abc"),
        ("--gain", "", "gain"),
        ("--gain", "1,2,3", "gain"),
        ("--gain", "0", "gain"),
        ("--gain", "nan", "gain"),
        ("--gain", "1,,2", "1,,2"),
        ("--joints", "", "joint"),
        ("--joints", "joint1,ghost", "ghost"),
        ("--joints", "a,b,c", "a"),
        ("--joints", "joint1,joint1", "joint1"),
        ("--essential", "0.5", "0.5"),
        ("--essential", "-1", "-1"),
        ("--essential", "nan", "nan"),
        ("--sidecar", "ghost.toml", "ghost.toml"),
        ("--sidecar", ".", "directory"),
        ("--schema", "ghost.toml", "ghost.toml"),
        ("--schema", ".", "schema"),
        ("--validate", "ghost.csv", "ghost.csv"),
        ("--validate", "run.csv", "run"),
        ("--validate", "robot.urdf", "urdf"),
        ("--effort", "horsepower", "horsepower"),
        ("--effort", "motor_current", "gain"),
        ("--effort", "voltage", "gain"),
        ("--effort", "", "effort"),
        ("-o", "run.csv", "run.csv"),
        ("-o", "run.csv/deeper", "run.csv"),
        ("-o", "/proc/nowhere/out", "/proc/nowhere"),
    ]:
        call = IDENTIFY[:6] if option == "--recovery" else IDENTIFY
        output = ("-o", "out") if option == "--recovery" else ()
        cases[f"identify {option} {value!r}"] = Case(
            (*call[:5], *output, option, value) if output else (*call, option, value), {}, word
        )
    cases["identify without effort"] = Case(("identify", "robot.urdf", "run.csv", "-o", "out"), {}, "effort kind")
    cases["contradicting kinds"] = Case((*IDENTIFY, "--schema", "schema.toml", "--effort", "motor_torque"), {}, "motor_torque")
    calls = {
        "robot is a folder": (("describe", "folder"), "folder"),
        "robot is a folder.urdf": (("describe", "folder.urdf"), "folder"),
        "robot is missing": (("describe", "ghost.urdf"), "ghost.urdf"),
        "mjcf is missing": (("describe", "ghost.xml"), "ghost.xml"),
        "robot is a log": (("describe", "run.csv"), ".csv"),
        "robot without ending": (("describe", "robot"), "ending"),
        "robot of the empty name": (("describe", ""), ""),
        "robot unicode": (("describe", "робот.urdf"), "робот.urdf"),
        "robot with a very long name": (("describe", "r" * 300 + ".urdf"), "long"),
        "describe terms": (("describe", "robot.urdf", "--terms", "xyz"), "xyz"),
        "log is missing": ((*IDENTIFY[:2], "ghost.csv", *IDENTIFY[3:]), "ghost.csv"),
        "log is a folder": ((*IDENTIFY[:2], "folder.csv", *IDENTIFY[3:]), "folder.csv"),
        "log is a robot": ((*IDENTIFY[:2], "robot.urdf", *IDENTIFY[3:]), ".urdf"),
        "second log is missing": ((*IDENTIFY[:3], "ghost.csv", *IDENTIFY[3:]), "ghost.csv"),
        "fit is missing": (("validate", "ghost.json", "other.csv", "--effort", "joint_torque"), "ghost.json"),
        "fit is a folder": (("validate", "folder", "other.csv", "--effort", "joint_torque"), "folder"),
        "fit is a log": (("validate", "run.csv", "other.csv", "--effort", "joint_torque"), "run.csv"),
        "validate on training": (("validate", "fit.json", "run.csv", "--effort", "joint_torque"), "allow"),
        "validate without effort": (("validate", "fit.json", "other.csv"), "effort kind"),
        "report on training": (("report", "fit.json", "run.csv", "--effort", "joint_torque"), "allow"),
        "report into a folder": (("report", "fit.json", "-o", "folder"), "folder"),
        "report below a file": (("report", "fit.json", "-o", "run.csv/r.html"), "run.csv"),
        "export into a folder": (("export", "robot.urdf", "fit.json", "-o", "folder.urdf"), "folder"),
        "export below a file": (("export", "robot.urdf", "fit.json", "-o", "run.csv/x.urdf"), "run.csv"),
        "export unknown ending": (("export", "robot.urdf", "fit.json", "-o", "x.docx"), "docx"),
        "export without ending": (("export", "robot.urdf", "fit.json", "-o", "x"), "ending"),
        "export missing fit": (("export", "robot.urdf", "ghost.json", "-o", "x.urdf"), "ghost.json"),
        "export nowhere": (("export", "robot.urdf", "fit.json", "-o", "/proc/nowhere/x.urdf"), "/proc/nowhere"),
    }
    cases |= {name: Case(args, {}, word) for name, (args, word) in calls.items()}
    usage = {
        "no command there": ("fly",),
        "no robot": ("describe",),
        "no log": ("identify", "robot.urdf"),
        "no fit": ("validate",),
        "no held-out log": ("validate", "fit.json"),
        "no output": ("export", "robot.urdf", "fit.json"),
        "unknown option": ("describe", "robot.urdf", "--colour", "red"),
        "option without value": ("identify", "robot.urdf", "run.csv", "--effort"),
        "too many arguments": ("describe", "robot.urdf", "run.csv"),
        "essential is text": (*IDENTIFY, "--essential", "many"),
        "flag that is neither yes nor no": ("describe", "robot.urdf", "--json=maybe"),
        "option before the command": ("--json", "describe", "robot.urdf"),
    }
    return cases | {f"usage: {name}": Case(args, {}, "--help", USAGE) for name, args in usage.items()}


def toml_cases() -> dict[str, Case]:
    """Return broken schemas and sidecars."""
    cases = {}
    schemas = {
        "not toml": ("time = = 3", "TOML"),
        "binary": (b"\xff\xfe\x00", "schema"),
        "unknown key": ('colour = "red"', "colour"),
        "deep": ("a = " + "[" * 5000, ""),
        "huge number": ("rate = " + "9" * 5000, ""),
        "time column": (SCHEMA.replace('"t"', '"clock"'), "clock"),
        "time is a number": (SCHEMA.replace('"t"', "5"), "5"),
        "time is a list": (SCHEMA.replace('"t"', '["t"]'), "t"),
        "joints is text": (SCHEMA.replace('["joint1", "joint2"]', '"joint1"'), "joint1"),
        "joints is a number": (SCHEMA.replace('["joint1", "joint2"]', "2"), "2"),
        "joints are numbers": (SCHEMA.replace('["joint1", "joint2"]', "[1, 2]"), "joints"),
        "joints too few": (SCHEMA.replace('["joint1", "joint2"]', '["joint1"]'), "joint1"),
        "position ghost": (SCHEMA.replace("q_joint2", "ghost"), "ghost"),
        "position number": (SCHEMA.replace('["q_joint1", "q_joint2"]', "3.5"), "position"),
        "position empty": (SCHEMA.replace('["q_joint1", "q_joint2"]', "[]"), "position"),
        "position pattern": (SCHEMA.replace('["q_joint1", "q_joint2"]', '"x_{joint}"'), "x_"),
        "effort ghost": (SCHEMA.replace("tau_joint1", "ghost"), "ghost"),
        "kind": (SCHEMA.replace("joint_torque", "horsepower"), "horsepower"),
        "kind number": (SCHEMA.replace('"joint_torque"', "3"), "3"),
        "side": (SCHEMA + 'position_side = "left"', "left"),
        "side number": (SCHEMA + "position_side = 3", "3"),
        "rate text": (SCHEMA + 'rate = "fast"', "fast"),
        "rate negative": (SCHEMA + "rate = -100", "-100"),
        "rate contradicts": (SCHEMA + "rate = 5000", "5000"),
        "gain text": (SCHEMA + 'gain = "kt"', "kt"),
        "gain table": (SCHEMA + "gain = { a = 1 }", "gain"),
        "gain many": (SCHEMA + "gain = [1, 2, 3]", "gain"),
        "unit unknown": (SCHEMA + '[unit]\nposition = "furlong"', "furlong"),
        "unit list": (SCHEMA + '[unit]\nposition = ["deg"]', "1 units"),
        "unit of what": (SCHEMA + '[unit]\ncolour = "deg"', "colour"),
        "unit zero": (SCHEMA + "[unit]\nposition = 0", "0"),
        "unit text": (SCHEMA + 'unit = "deg"', "deg"),
        "unit date": (SCHEMA + "[unit]\nposition = 2020-01-01", "unit"),
        "counts": (SCHEMA + '[unit]\nposition = "counts"', "--counts-per-unit"),
        "counts text": (SCHEMA + 'counts_per_unit = "many"\n[unit]\nposition = "counts"', "many"),
        "effort unit": (SCHEMA + '[unit]\neffort = "A"', "A"),
        "files ghost": (SCHEMA + 'files = ["ghost.csv"]', "ghost.csv"),
        "files number": (SCHEMA + "files = 5", "5"),
        "files role": (SCHEMA + 'files = { colour = "run.csv" }', "colour"),
        "files empty": (SCHEMA + "files = []", ""),
    }
    for name, (text, word) in schemas.items():
        content = text if isinstance(text, bytes) else text.encode()
        call = ("identify", "robot.urdf", "run.csv", "--schema", "schema.toml", "--recovery", "prior", "-o", "out")
        cases[f"schema: {name}"] = Case(call, {"schema.toml": content}, word)
    sidecars = {
        "not toml": ("[[actuator", "TOML"),
        "empty": ("", "empty"),
        "binary": (b"\xff\xfe", "TOML"),
        "unknown key": ("colour = 1", "colour"),
        "gravity of two": ("gravity = [0, 0]", "gravity"),
        "gravity text": ('gravity = "down"', "gravity"),
        "gravity nan": ("gravity = [0, 0, nan]", "gravity"),
        "terms text": ('terms = "fv"', "terms"),
        "terms unknown": ('terms = ["xyz"]', "xyz"),
        "actuator of nobody": (SIDECAR.replace("joint1", "ghost"), "ghost"),
        "actuator without name": (SIDECAR.replace('name = "motor1"', ""), "name"),
        "actuator twice": (SIDECAR + SIDECAR, "motor1"),
        "actuator ratio": (SIDECAR.replace("50.0", "0.0"), "ratio"),
        "actuator ratio text": (SIDECAR.replace("50.0", '"fast"'), "fast"),
        "actuator unknown key": (SIDECAR + "colour = 3", "colour"),
        "actuator is a table": ("[actuator]\nname = 'm'", "actuator"),
        "coupling of nobody": ('[[coupling]]\njoint = "ghost"\nof = { joint1 = 1.0 }', "ghost"),
        "coupling to itself": ('[[coupling]]\njoint = "joint1"\nof = { joint1 = 1.0 }', "joint1"),
        "coupling empty": ('[[coupling]]\njoint = "joint1"\nof = {}', "of"),
        "loop between ghosts": ('[[loop]]\nname="l"\nkind="point"\nbody_a="ghost"\nbody_b="link1"', "ghost"),
        "loop kind": ('[[loop]]\nname="l"\nkind="knot"\nbody_a="link2"\nbody_b="link1"', "knot"),
        "loop cannot close": (
            '[[loop]]\nname="far"\nkind="point"\nbody_a="link2"\nbody_b="base"\nxyz_b=[9.0, 9.0, 9.0]',
            "far",
        ),
    }
    for name, (text, word) in sidecars.items():
        content = text if isinstance(text, bytes) else text.encode()
        cases[f"sidecar: {name}"] = Case((*DESCRIBE, "--sidecar", "sidecar.toml"), {"sidecar.toml": content}, word)
    return cases


def fit_cases(fit: str) -> dict[str, Case]:
    """Return broken fits, made from the text of a good one."""
    data = json.loads(fit)
    texts: dict[str, tuple[str | bytes, str]] = {
        "empty": ("", "fit.json"),
        "cut": (fit[: len(fit) // 2], "fit.json"),
        "null": ("null", "kind"),
        "a list": ("[]", "kind"),
        "another kind": ('{"kind": "identify.Score"}', "kind"),
        "kind only": ('{"kind": "identify.Fit"}', "covariance"),
        "binary": (b"\xff\xfe\x00\x01", "fit.json"),
        "deep": ("[" * 100_000, "fit.json"),
        "long number": ("9" * 5000, "fit.json"),
        "xml": (URDF, "fit.json"),
    }
    first = data["base_parameters"][0]
    changes: dict[str, dict[str, object]] = {
        "value NaN": {"base_parameters": [{**first, "value": float("nan")}, *data["base_parameters"][1:]]},
        "value null": {"base_parameters": [{**first, "value": None}, *data["base_parameters"][1:]]},
        "value text": {"base_parameters": [{**first, "value": "big"}, *data["base_parameters"][1:]]},
        "one parameter lost": {"base_parameters": data["base_parameters"][1:]},
        "covariance NaN": {"covariance": [[float("nan")] * len(row) for row in data["covariance"]]},
        "covariance ragged": {"covariance": [[1.0], [1.0, 2.0]]},
        "covariance small": {"covariance": [[1.0]]},
        "combinations": {"combinations": [[1.0, 2.0]]},
        "combinations text": {"combinations": "all"},
        "sigma list": {"sigma": [1.0, 2.0]},
        "sigma NaN": {"sigma": {"joint1": float("nan"), "joint2": 1.0}},
        "terms": {"terms": ["xyz"]},
        "terms number": {"terms": 3},
        "joints": {"joints": ["ghost"]},
        "joints null": {"joints": None},
        "leaders": {"leaders": ["ghost"]},
        "leaders numbers": {"leaders": [1, 2]},
        "leaders nested": {"leaders": [["m_link1"]]},
        "fingerprint": {"fingerprint": [0.0] * len(data["fingerprint"])},
        "fingerprint text": {"fingerprint": "abc"},
        "fingerprint short": {"fingerprint": [1.0]},
        "standard lost": {"standard_parameters": {}},
        "standard NaN": {"standard_parameters": {name: float("nan") for name in data["standard_parameters"]}},
        "rows text": {"rows": "many"},
        "rows list": {"rows": [1]},
        "condition text": {"condition": "bad"},
        "sources number": {"sources": 5},
        "sources text": {"sources": ["run"]},
        "options list": {"options": ["x"]},
        "training text": {"training_relative": "small"},
    }
    texts |= {name: (json.dumps({**data, **change}), "fit.json") for name, change in changes.items()}
    cases = {}
    for name, (text, word) in texts.items():
        content = text if isinstance(text, bytes) else text.encode()
        cases[f"fit: {name}"] = Case(("export", "robot.urdf", "fit.json", "-o", "x.json"), {"fit.json": content}, word)
    for name, change in {
        "source without hash": {"sources": [{}]},
        "cutoff text": {"sources": [{**data["sources"][0], "cutoff": "low"}]},
        "cutoff null": {"sources": [{**data["sources"][0], "cutoff": None}]},
        "bandwidth zero": {"sources": [{**data["sources"][0], "bandwidth": 0.0}]},
        "options unknown": {"options": {"colour": "red"}},
        "sigma of ghosts": {"sigma": {"ghost": 1.0}},
    }.items():
        cases[f"fit for validate: {name}"] = Case(VALIDATE, {"fit.json": json.dumps({**data, **change}).encode()})
    other = URDF.replace('xyz="0.4 0 0"', 'xyz="0.5 0 0"').encode()
    renamed = URDF.replace("joint2", "elbow").encode()
    straight = URDF.replace('rpy="1.5707963267948966 0 0"', "").encode()
    for name, content in (("geometry", other), ("names", renamed), ("gravity", straight)):
        for args in (("export", "robot.urdf", "fit.json", "-o", "x.urdf"), (*VALIDATE, "--robot", "robot.urdf")):
            cases[f"fit of another robot ({name}): {args[0]}"] = Case(args, {"robot.urdf": content}, "fit")
    return cases
