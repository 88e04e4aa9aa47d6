"""The protocol of results: what is written comes back equal, and what is not a result is refused in one sentence."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from identify_cases import RRR, arm, evidence
from numpy.typing import NDArray
from result_cases import CASES
from result_checks import check_drawn, check_former_kinds, check_kinds, check_result, classes_of, results_of, shown_otherwise
from small_robots import platform

import dynident as di
from dynident.arrays import Array
from dynident.files import _huge, _toml, parsed, read_packed, to_json
from dynident.friction import Coulomb, FrictionLaw, Viscous
from dynident.results import Result
from dynident.validate import CrossValidation

FOLDS = CrossValidation(("a", "b"), np.array([0.1, 1.0 / 3.0]), np.array([[1.0, np.nan], [np.inf, 2.0]]), 0.2)


@dataclass(frozen=True, eq=False)
class Study(Result):
    """Every type that a field of a result may have."""

    name: str
    count: int
    error: float
    where: Literal["joint", "tool"]
    law: FrictionLaw
    long: Array
    empty: Array
    used: NDArray[np.bool_]
    pairs: tuple[tuple[int, float], ...]
    notes: Mapping[str, float] = field(default_factory=dict)
    drifts: Mapping[tuple[str, int], float] = field(default_factory=lambda: {("a", 1): 0.5})
    hot: float | None = None
    maybe: Array | None = None
    derived = ("twice",)

    @property
    def twice(self) -> float:
        """Shown in the file, computed from the fields."""
        return 2.0 * self.error


def study() -> Study:
    rng = np.random.default_rng(3)
    law = Coulomb() + Viscous()
    return Study(
        "x", 2, float("inf"), "tool", law, rng.normal(size=(700, 2)), np.zeros((0, 3)), np.array([True, False]), ((1, 0.1),)
    )


def through_json(result: Result) -> dict[str, Any]:
    """What `save` writes, as another program reads it."""
    return dict(json.loads(Path(result.save("result.json")).read_text(encoding="utf-8")))


def same(a: Study, b: Study) -> None:
    for name in ("name", "count", "error", "where", "law", "pairs", "notes", "drifts", "hot", "maybe", "twice"):
        assert getattr(a, name) == getattr(b, name), name
    for name in ("long", "empty", "used"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y, strict=True)


def test_every_type_of_field_comes_back_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = study()
    data = through_json(made)
    assert data["twice"] == "inf"  # JSON has no infinity
    assert data["law"]["class"] == "dynident.friction.Sum"
    same(made, Study.from_dict(data))
    listed = made.to_dict()
    assert listed["long"] == made.long.tolist()
    same(made, copy.deepcopy(made))
    same(made, pickle.loads(pickle.dumps(made)))  # noqa: S301 - our own bytes


def test_a_file_says_what_it_holds(tmp_path: Path) -> None:
    path = FOLDS.save(tmp_path / "folds.json")
    for found in (di.load(path), CrossValidation.load(path)):
        assert isinstance(found, CrossValidation)
        assert found.joints == FOLDS.joints
        np.testing.assert_array_equal(found.relative, FOLDS.relative)
        np.testing.assert_array_equal(found.rmse, FOLDS.rmse)
    with pytest.raises(di.DynidentError, match=r"contains dynident\.validate\.CrossValidation"):
        Study.load(path)


def test_a_notebook_shows_the_summary_and_runs_nothing_of_it() -> None:
    shown = CrossValidation(("a",), np.array([0.1]), np.array([[1.0]]), 0.2)._repr_html_()
    assert "cross-validation over time" in shown
    assert "&lt;b&gt;" in replace(study(), name="<b>")._repr_html_()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2]", "has no 'kind'"),
        ('{"kind": 3}', "has no 'kind'"),
        ('{"kind": "os.system"}', "does not know"),
        ('{"kind": "validate.judge"}', "does not know"),
        ('{"kind": "antigravity.Result"}', "does not know"),
        ('{"kind": "dynident.__main__.Result"}', "does not know"),
        ('{"kind": "dynident..results.Result"}', "does not know"),
        ('{"kind": "dynident.validate.judge"}', "does not know"),
        ('{"kind": "dynident.identify.CrossValidation"}', "does not know"),
        ('{"kind": "dynident.CrossValidation"}', "does not know"),
        ('{"kind": "dynident.nowhere.Verdict"}', "does not know"),
        ('{"kind": "dynident.fleet.FleetResult"}', "does not know"),
        ('{"kind": "validate.nothing"}', "does not know"),
        ('{"kind": "mechanics.Motion", "t": [0]}', "not a result by itself"),
        ('{"kind": "validate.CrossValidation"', "cannot read a result"),
        (
            '{"kind": "validate.CrossValidation", "joints": ["a"]}',
            "incomplete dynident.validate",
        ),
        ('{"kind": "validate.CrossValidation", "more": 1}', "has a field 'more'"),
        ('{"kind": "validate.CrossValidation", "joints": 3}', "is '3', not a list"),
        ('{"kind": "validate.CrossValidation", "joints": [3]}', r"joints\[0\]' is '3', not str"),
        ('{"kind": "validate.CrossValidation", "overall": true}', "is 'True', not a number"),
        ('{"kind": "validate.CrossValidation", "relative": [[1], [1, 2]]}', "not an array of numbers"),
        ('{"kind": "validate.CrossValidation", "relative": {"dtype": "O", "shape": [1], "base64": ""}}', "not an array"),
        ('{"kind": "validate.CrossValidation", "relative": {"dtype": "<f8", "shape": [9], "base64": "AA=="}}', "not an array"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(di.DynidentError, match=message):
        di.load(path)


def test_a_result_of_a_package_that_is_not_installed_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynident.results.installed", lambda: {"dynident": "0.3.0"})
    path = tmp_path / "file.json"
    for kind in ("dynident_lab.testbench.FrictionStudy", "testbench.FrictionStudy"):
        path.write_text(json.dumps({"kind": kind}), encoding="utf-8")
        with pytest.raises(di.DynidentError, match=re.escape("run  pip install 'dynident[lab]'")):
            di.load(path)


@pytest.mark.parametrize(
    ("field_", "value", "message"),
    [
        ("where", "wrist", "not one of joint, tool"),
        ("law", {"class": "mechanics.Motion"}, "not a FrictionLaw"),
        ("law", {"class": "friction.Friction"}, "not a FrictionLaw"),
        ("law", 3, "not a FrictionLaw"),
        ("pairs", [[1]], "not a list of 2"),
        ("hot", "warm", "not a number"),
        ("notes", [], "not an object"),
        ("drifts", {"a": 1.0}, "not a list"),
        ("used", [0.5], None),
    ],
)
def test_a_wrong_field_is_named(field_: str, value: object, message: str | None) -> None:
    data = {**study().to_dict(), field_: value}
    if message is None:
        assert Study.from_dict(data).used.dtype == np.bool_
        return
    with pytest.raises(di.DynidentError, match=message):
        Study.from_dict(data)


def test_what_no_file_can_hold_is_told(tmp_path: Path) -> None:
    odd = replace(study(), notes={"f": lambda: 0.0})  # type: ignore[dict-item]
    with pytest.raises(di.DynidentError, match="a function cannot be written to a file"):
        odd.save(tmp_path / "odd.json")
    assert not list(tmp_path.iterdir())


# ---- every result ------------------------------------------------------------------------------------------------------
def test_no_result_is_forgotten() -> None:
    assert results_of("dynident") == set(CASES)


def test_what_is_summed_up_or_drawn_is_a_result() -> None:
    assert shown_otherwise("dynident") == {"Log", "Motion"}


def test_names_in_files_old_and_new_are_of_one_class_each() -> None:
    check_former_kinds("dynident")
    check_kinds("dynident")


@pytest.mark.parametrize("name", CASES)
def test_results_are_saved_loaded_copied_pickled_and_shown(name: str, tmp_path: Path) -> None:
    check_result(CASES[name](), tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_results_are_drawn_without_arguments(name: str) -> None:
    check_drawn(CASES[name]())


def test_no_result_writes_json_by_hand() -> None:
    assert not any(hasattr(cls, "to_json") for cls in classes_of("dynident"))


def test_a_run_from_its_file_goes_on_as_the_run_itself(tmp_path: Path) -> None:
    made = CASES["Run"]()
    again = di.load(made.save(tmp_path / "run.json"))
    assert again.truth.checksum() == made.truth.checksum()
    later = [run.robot.simulate(run.reference, start=run.end, duration=0.15) for run in (made, again)]
    assert later[0].truth.checksum() == later[1].truth.checksum()
    np.testing.assert_array_equal(later[0].log.effort, later[1].log.effort)


def test_a_run_under_a_law_of_the_user_is_not_written(tmp_path: Path) -> None:
    class Own:
        cycle, command = 1e-3, "torque"

        def reset(self, machine: Any) -> None:
            """Start."""

        def update(self, setpoint: Any, measurement: Any) -> Array:
            return np.zeros(3)

    made = CASES["Run"]()
    odd = replace(made, robot=replace(made.robot, controller=Own()))
    with pytest.raises(di.DynidentError, match="a Own cannot be written to a file"):
        odd.save(tmp_path / "run.json")


def test_a_design_from_its_file_makes_the_same_plan(tmp_path: Path) -> None:
    made = CASES["Design"]()
    again = di.load(made.save(tmp_path / "design.json"))
    assert to_json(again.numbers()) == to_json(made.numbers())
    assert again.plan().identity == made.plan().identity


def test_a_robot_from_its_file_moves_as_before(tmp_path: Path) -> None:
    robot = platform()
    again = di.Mechanism.load(robot.save(tmp_path / "robot.json"))
    rng = np.random.default_rng(0)
    q = 0.05 * rng.normal(size=(5, robot.dof))
    motion = di.Motion(np.arange(5.0), q, rng.normal(size=q.shape), rng.normal(size=q.shape))
    np.testing.assert_array_equal(di.inverse_dynamics(again, motion), di.inverse_dynamics(robot, motion))


def test_a_robot_with_a_function_of_the_user_is_not_written_but_its_fit_is(tmp_path: Path) -> None:
    plain = arm(RRR)
    robot = replace(plain, couplings=(di.Coupling("joint_3", ("joint_2",), function=lambda x: np.sin(x[:, 0])),), actuators=())
    with pytest.raises(di.DynidentError, match="a function cannot be written to a file"):
        robot.save(tmp_path / "robot.json")
    fit = di.OLS().fit(evidence(robot, 400, noise=0.1)[0]).result_
    path = fit.save(tmp_path / "fit.json")
    with pytest.raises(di.DynidentError, match="contains Python functions, which no file can store; give the mechanism"):
        di.load(path)
    np.testing.assert_array_equal(di.Fit.load(path, robot).values, fit.values)


def test_packed_zeros_are_not_taken_for_a_hexadecimal_number(tmp_path: Path) -> None:
    """Base64 of some numbers and then many zeros has 0b4AAAA... in it, which was refused as a number of hundreds of digits."""
    long = np.zeros((700, 2))
    long[0, 0] = np.frombuffer(base64.b64decode("AAAA0b4AAAAAAAAA")[:8])[0]
    made = replace(study(), long=long)
    text = made.save(tmp_path / "zeros.json").read_text(encoding="utf-8")
    assert re.search("0b4A{250}", text)
    parsed(json.loads, text)
    with pytest.raises(ValueError, match=r"a number with hundreds of digits: '\{\"a\": 11111111\.\.\.'"):
        parsed(json.loads, '{"a": ' + "1" * 400 + "}")


def test_packed_arrays_may_be_long_and_the_rest_may_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of a minute at 1 kHz is 100 MB of packed arrays; as much other text takes many times its size in memory."""
    made = replace(study(), long=np.ones((700, 2)))
    path = made.save(tmp_path / "long.json")
    size = path.stat().st_size
    monkeypatch.setattr("dynident.files.BYTES", size - 10_000)
    same(Study.from_dict(read_packed(made.save(path), "a result")), made)
    path.write_text(json.dumps({"kind": "x", "values": [0] * size}), encoding="utf-8")
    with pytest.raises(di.DynidentError, match="larger than 0 MB; expected a result"):
        di.load(path)
    monkeypatch.setattr("dynident.files.PACKED", size - 1)
    wide = replace(study(), long=np.ones((150_000, 2)))  # 2.4 MB, and a third more in base64
    with pytest.raises(di.DynidentError, match="it needs 3 MB, more than is read back; save parts of it"):
        wide.save(path)


def test_a_hostile_file_does_not_grow_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long arrays never become text, are handed out once and keep the size of their numbers; small objects are counted."""
    path = tmp_path / "long.json"
    made = replace(study(), long=np.ones((700, 2)))
    data = json.loads(made.save(path).read_text(encoding="utf-8"))
    first, second = (read_packed(path, "a result")["long"]["base64"] for _ in range(2))
    assert isinstance(first, memoryview) and first == second == data["long"]["base64"].encode()
    twice = {**data, "notes": {"base64": 0}, "pairs": {"base64": 0}}
    path.write_text(json.dumps(twice), encoding="utf-8")
    assert read_packed(path, "a result")["notes"] == {"base64": 0}
    with pytest.raises(di.DynidentError, match=r"pairs' is 'a packed array', not a list"):
        Study.from_dict(twice)
    with pytest.raises(di.DynidentError, match=r"not an array of numbers \(dtype int8\)"):
        Study.from_dict({**data, "long": {**data["long"], "dtype": "|i1", "shape": [11200]}})
    monkeypatch.setattr("dynident.files.NESTED", 100)
    path.write_text(json.dumps({"kind": "x", "values": [{}] * 99}), encoding="utf-8")
    with pytest.raises(di.DynidentError, match="more than 100 objects and lists"):
        di.load(path)
    monkeypatch.setattr("dynident.files.PACKED", 1 << 20)
    with path.open("wb") as stream:
        stream.truncate(1 << 40)  # a terabyte that no disk holds is refused unread
    with pytest.raises(di.DynidentError, match="larger than 1 MB; expected a result"):
        di.load(path)


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ('{"a": ' + "1" * 309 + "}", 6),
        ('{"é": 0b' + "1" * 250 + "}", 6),
        ('{"a": "' + "A" * 600 + '", "b": 0x' + "f" * 250 + "}", 615),
        ('{"a": ' + "1" * 308 + "}", None),
        ('{"a": 1.' + "1" * 400 + "}", None),
    ],
)
def test_numbers_of_hundreds_of_digits_are_found_in_long_texts(text: str, begin: int | None) -> None:
    assert _huge(text) == begin


def test_whole_numbers_of_toml_have_64_bits() -> None:
    assert parsed(_toml, f"a = [{-(2**63)}, {2**63 - 1}]") == {"a": [-(2**63), 2**63 - 1]}
    for number in (-(2**63) - 1, 2**63):
        with pytest.raises(ValueError, match="write numbers beyond 64 bits with a decimal point"):
            parsed(_toml, f"a = [{number}]")
