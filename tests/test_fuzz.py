"""A few inputs of every fuzzer (``make fuzz`` runs thousands), and what they once found."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli import run
from dynident.errors import DynidentError
from dynident.excitation import read_limits
from dynident.files import visible
from dynident.identify import Knowledge, fit_friction
from dynident.mechanism import apply_sidecar
from dynident_lab.fleet import read_fleet
from dynident_lab.servo import Modes
from dynident_papers.properties import check
from dynident_papers.workspace import workspace_map

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz.inputs import FORMATS, fuzz_formats
from fuzz.options import GOOD, fuzz_options, parameters
from fuzz.texts import URDF
from fuzz.watch import table

ROBOT = di.Mechanism.from_dh([(0.3, 0.0, 0.0, 0.0), (0.2, 0.0, 0.0, 0.0)], name="planar")
DIGITS = "9" * 5000


def test_mutated_files_are_read_or_refused() -> None:
    slow = ("motion", "plan", "log CSV, identify", "drives", "known", "start", "fleet index", "fleet types", "two fits")
    quick = tuple(form for form in FORMATS if form.name not in slow)
    tallies = fuzz_formats(60, 7, formats=quick)
    assert not any(tally.bad for tally in tallies), table(tallies)


def test_every_registered_command_is_fuzzed() -> None:
    assert {words for words, _ in parameters()} == set(GOOD)


def test_hostile_options_get_a_sentence() -> None:
    tallies = fuzz_options(25, 7, verbs=("describe", "validate", "export", "ik", "convert"))
    assert not any(tally.bad for tally in tallies), table(tallies)


@pytest.mark.parametrize("text", [f"a = {DIGITS}", "a = " + "[" * 5000], ids=["digits", "nesting"])
def test_toml_beyond_measure_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(text)
    for read in (lambda: apply_sidecar(ROBOT, file), lambda: read_limits(file, ROBOT)):
        with pytest.raises(DynidentError, match=r"hundreds of digits|nested too deeply"):
            read()


def test_a_step_that_never_ends_is_refused() -> None:
    t = np.linspace(0.0, 1.0, 50)
    motion = di.Motion(t, np.zeros((50, 2)), np.zeros((50, 2)), np.zeros((50, 2)))
    from dataclasses import replace

    machine = replace(di.simulate.standard_machine(ROBOT, motion.q), step=1e-9)
    with pytest.raises(DynidentError, match="steps"):
        machine.simulate(motion)


def test_no_name_commands_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.urdf").write_text(URDF.replace("joint1", "a\u009b31m\u202eb"), encoding="utf-8")
    for more in ((), ("--json",)):
        assert run(("describe", str(tmp_path / "r.urdf"), *more)) == 0
        shown = capsys.readouterr().out
        assert "\u009b" not in shown
        assert "\u202e" not in shown
        assert "\\u009b31m\\u202eb" in shown
    assert json.loads(visible(json.dumps({"a": "\u009b"}, ensure_ascii=False))) == {"a": "\u009b"}


def test_unknown_options_are_named() -> None:
    arm = di.examples.arm6()
    with pytest.raises(DynidentError, match="unknown option 'cutof'; options of prepare are method, cutoff"):
        di.Regression.from_log(arm.robot, arm.run, cutof=3.0)
    with pytest.raises(DynidentError, match="unknown option 'cutof'"):
        fit_friction(arm.robot, arm.run, "coulomb", {"cutof": 3.0})
    with pytest.raises(DynidentError, match="out is a list"):
        di.regressor(ROBOT, (np.zeros((2, 2)),) * 3, out=[])


@pytest.mark.parametrize("text", ["a: &a {x: 1}\nb: {<<: [*a, *a]}", "joint_limits: " + "x" * 300_001], ids=["merge", "size"])
def test_limits_of_moveit_are_bounded(tmp_path: Path, text: str) -> None:
    pytest.importorskip("yaml")
    (tmp_path / "joint_limits.yaml").write_text(text)
    with pytest.raises(DynidentError, match="or merge tables"):
        read_limits(tmp_path / "joint_limits.yaml", ROBOT)


def test_whole_numbers_of_toml_have_64_bits(tmp_path: Path) -> None:
    (tmp_path / "limits.toml").write_text("[joints.joint1]\nupper = 99999999999999999999\n")
    with pytest.raises(DynidentError, match="beyond 64 bits"):
        read_limits(tmp_path / "limits.toml", ROBOT)


def test_expressions_that_are_not_finite_are_named(tmp_path: Path) -> None:
    arm = di.examples.arm6()
    joint = arm.robot.joint_names[0]
    odd = arm.robot.with_forces(di.Force("odd", joint, "log(q - 100)"))
    with pytest.raises(DynidentError, match="the torques of odd are not finite"):
        di.Regression.from_log(odd, arm.run)
    for text in ("~" * 2000 + "q", "q[a" + ".a" * 1500 + "]", "q**(1e299*1e299)*0"):
        (tmp_path / "s.toml").write_text(f'[[force]]\nname = "odd"\njoint = "joint1"\nexpression = "{text}"\nheld = 3\n')
        with pytest.raises(DynidentError, match=r"held is 3; give the position"):
            apply_sidecar(ROBOT, tmp_path / "s.toml")
        try:
            di.Force("odd", "joint1", text)
        except DynidentError as error:
            assert len(str(error)) < 1000


@pytest.mark.parametrize("line", ["terms = 5", "terms = [[]]", "sidecar = 3", "search = [1]"])
def test_fields_of_a_fleet_of_any_type_are_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "r.urdf").write_text(URDF)
    (tmp_path / "fleet.toml").write_text(f'[robots.a]\ndescription = "r.urdf"\n{line}\n[fleet]\nlogs = "l.csv"\n')
    with pytest.raises(DynidentError, match=rf"{line.split(maxsplit=1)[0]} of \[robots.a\] is"):
        read_fleet(tmp_path / "fleet.toml")


def test_an_array_without_dimensions_is_a_number() -> None:
    assert di.drive.Transmission(ratio=np.array(50.0)).ratio == 50.0
    assert di.drive.Motor(torque_constant=np.array(0.1)).torque_constant == 0.1


def test_numbers_out_of_range_are_refused() -> None:
    from dynident.graph.printing import identifier
    from dynident_lab.link import Settings

    arm = di.examples.arm6()
    for options in ({"decimation": 10**20}, {"band": 1e-300}):
        with pytest.raises(DynidentError, match="cannot be decimated by 1e"):
            di.prepare(arm.run, **options)
    for body in ({"masses": {"link1": 1e308}}, {"centres": {"link1": (1e308, 0.0, 0.0)}}):
        with pytest.raises(DynidentError, match="1e\\+09"):
            di.MAP(known=Knowledge(**body)).fit(di.Regression.from_log(arm.robot, arm.run))
    with pytest.raises(DynidentError, match="repetitions is 99999999999999999999; give a whole number from 1 to"):
        Settings(repetitions=99999999999999999999)
    with pytest.raises(DynidentError, match="seed is -1; give a whole number"):
        check(arm.robot, seed=-1)
    with pytest.raises(DynidentError, match="from 3 to 501"):
        workspace_map(ROBOT, "link_2", size=10**20)
    with pytest.raises(DynidentError, match=r"shapes \(0, 2\); give"):
        Modes(np.zeros(2), np.zeros(2), np.zeros((0, 2)))
    assert len(identifier("x" * 5000)) == 100 == len(identifier("y" * 5000))
    assert di.trajectory.Fourier(np.array(0.5), 3).frequency == 0.5
    assert di.prepare(arm.run, cutoff=np.array(8.0), decimation=np.array(2)).decimator.factor == 2


def test_a_lost_standard_error_costs_no_result() -> None:
    from dynident.cli.consoles import _Notes

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    told = _Notes(file=Full())
    told.print("a note")
    assert told.quiet


def test_messages_name_the_folder_that_was_given(tmp_path: Path) -> None:
    from dynident.outputs import output_set

    with pytest.raises(DynidentError) as found, output_set(tmp_path / "out", ()) as stage:
        raise DynidentError(f"cannot write '{stage / 'fit.json'}': No space left on device")
    assert str(found.value) == f"cannot write '{tmp_path.resolve() / 'out' / 'fit.json'}': No space left on device"
