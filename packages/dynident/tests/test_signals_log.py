from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import dynident as di
from dynident.errors import LogError
from dynident.signals import Log
from dynident.signals.log import EFFORT_KINDS
from dynident.signals.tables import to_si


def make(n: int = 2, samples: int = 200, **changes: object) -> Log:
    t = np.arange(samples) / 100.0
    phase = np.arange(n)
    fields: dict[str, object] = {
        "t": t,
        "joints": [f"j{k}" for k in range(n)],
        "position": np.sin(t[:, None] + phase),
        "effort": np.cos(3 * t[:, None] + phase),
        "effort_kind": "joint_torque",
    }
    return Log(**{**fields, **changes})  # type: ignore[arg-type]


def test_effort_kind_is_required_and_checked():
    t = np.arange(10.0)
    with pytest.raises(TypeError):
        Log(t=t, joints=["a"], position=t, effort=t)  # type: ignore[call-arg]
    for wrong in ("torque", None, 3, ""):
        with pytest.raises(LogError, match="joint_torque, joint_force"):
            make(effort_kind=wrong)
    for kind in EFFORT_KINDS:
        assert make(effort_kind=kind).effort_kind == kind


def test_bad_fields_are_named(subtests):
    for changes, words in [
        ({"position": np.zeros((199, 2))}, r"'position' has shape \(199, 2\), but \(200, 2\)"),
        ({"effort": np.zeros((200, 3))}, r"'effort' has shape \(200, 3\), but \(200, 2\)"),
        ({"velocity": np.zeros(200)}, r"'velocity' has shape \(200,\)"),
        ({"gain": [1.0]}, r"gain: 1 given for 2 channels"),
        ({"gain": [1.0, 0.0]}, "not zero"),
        ({"gain": [1.0, np.nan]}, "finite"),
        ({"joints": ["a", "a"]}, "'a'"),
        ({"joints": []}, "empty"),
        ({"joints": "ab"}, "list of names"),
        ({"joints": ["a", ""]}, "not a name"),
        ({"position": [["x", "y"]] * 200}, "not numeric"),
        ({"position_side": "load"}, "'joint' or 'motor'"),
        ({"t": np.zeros(3)}, "at least 4"),
    ]:
        with subtests.test(str(words)), pytest.raises(LogError, match=words):
            make(**changes)


def test_clock_must_run_forward():
    t = np.arange(200) / 100.0
    t[57] = t[56]
    with pytest.raises(LogError, match="sample 57"):
        make(t=t)
    t = np.arange(200) / 100.0
    t[80] = np.nan
    with pytest.raises(LogError, match="sample 80"):
        make(t=t)


def test_nan_in_signals_is_allowed():
    q = np.sin(np.arange(400).reshape(200, 2) / 100.0)
    q[5, 1] = np.nan
    assert np.isnan(make(position=q).position[5, 1])


def test_arrays_are_private_and_read_only():
    q = np.zeros((200, 2))
    log = make(position=q)
    q[:] = 1.0
    assert log.position.max() == 0.0
    with pytest.raises(ValueError, match="read-only"):
        log.position[0, 0] = 1.0


def test_torque_needs_a_gain_for_current_and_voltage():
    for kind in ("motor_current", "voltage"):
        with pytest.raises(LogError, match="drive gain"):
            make(effort_kind=kind).torque()
    log = make(effort_kind="motor_current", gain=[2.0, -3.0])
    np.testing.assert_array_equal(log.torque(), log.effort * [2.0, -3.0])
    np.testing.assert_array_equal(make(gain=2.0).gain, [2.0, 2.0])
    log = make(effort_kind="motor_torque")
    np.testing.assert_array_equal(log.torque(), log.effort)


def test_select_rows_between():
    log = make(3, gain=[1.0, 2.0, 3.0], velocity=np.arange(600.0).reshape(200, 3))
    part = log.select(["j2", "j0"])
    assert part.joints == ("j2", "j0")
    np.testing.assert_array_equal(part.gain, [3.0, 1.0])
    np.testing.assert_array_equal(part.velocity, log.velocity[:, [2, 0]])
    piece = log.rows(10, 30)
    np.testing.assert_array_equal(piece.position, log.position[10:30])
    np.testing.assert_array_equal(log.between(0.1, 0.29).t, log.t[10:30])
    for call in (lambda: log.select(["x"]), lambda: log.rows(-1, 5), lambda: log.rows(0, 201), lambda: log.between(9, 10)):
        with pytest.raises(LogError):
            call()


def test_parts_have_the_digest_of_the_whole():
    log = make(n=3)
    assert log.rows(10, 60).checksum() == log.select(["j2"]).between(0.2, 1.0).checksum() == log.checksum()
    assert make(n=2).checksum() != log.checksum()
    assert make(provenance={"sha256": ["a", "b"]}).rows(10, 60).checksum() == '["a", "b"]'


def test_rate_leaves_out_gaps():
    t = np.concatenate([np.arange(100) / 100.0, 5.0 + np.arange(100) / 100.0])
    assert make(t=t).rate == pytest.approx(100.0)
    assert make(t=t).duration == pytest.approx(5.99)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "npz", "parquet"])
def test_own_files_come_back_exactly(tmp_path, ending):
    rng = np.random.default_rng(3)
    q = rng.standard_normal((200, 2))
    q[7, 0] = np.nan
    log = make(
        position=q,
        effort=rng.standard_normal((200, 2)) * 1e-7,
        velocity=rng.standard_normal((200, 2)),
        temperature=rng.standard_normal((200, 2)),
        t=np.cumsum(rng.uniform(0.001, 0.02, 200)),
        effort_kind="motor_current",
        gain=[0.1, 1 / 3],
        position_side="motor",
        name="trial 1",
        provenance={"files": ["a.csv"]},
        truth={"mass": np.array([1 / 3, 2.0])},
    )
    file = tmp_path / f"log.{ending}"
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet is an extra: pip install 'dynident[parquet]'")
    log.save(file)
    back = Log.read(file)
    for name in ("t", "position", "effort", "velocity", "temperature", "gain"):
        np.testing.assert_array_equal(getattr(back, name), getattr(log, name))
    assert back.acceleration is None
    assert (back.joints, back.effort_kind, back.position_side, back.name) == (log.joints, "motor_current", "motor", "trial 1")
    assert back.truth == {"mass": [1 / 3, 2.0]}
    assert back.provenance == {"files": ["a.csv"]}
    with pytest.raises(LogError, match="motor_current"):
        Log.read(file, effort="joint_torque")
    assert Log.read(file, effort="motor_current", joints=["j1"]).joints == ("j1",)


def test_one_joint_round_trip(tmp_path):
    log = make(1)
    for file in (log.save(tmp_path / "a.csv"), log.save(tmp_path / "a.npz")):
        np.testing.assert_array_equal(di.load(file).position, log.position)


def test_damaged_own_files(tmp_path):
    file = make().save(tmp_path / "a.csv")
    text = file.read_text().replace("q_j1", "q_x")
    file.write_text(text)
    with pytest.raises(LogError, match="q_j1"):
        Log.read(file)
    with pytest.raises(LogError, match=r"\.npz"):
        make().save(tmp_path / "a.txt")
    with pytest.raises(LogError, match="comma"):
        make(joints=["a,b", "c"]).save(tmp_path / "b.csv")


def test_log_does_not_import_scipy():
    code = "import sys, dynident.signals.log; assert not any(m.startswith(('scipy', 'llvmlite')) for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("quantity", "unit", "value", "si"),
    [
        ("velocity", "rpm", 1500.0, 25.0 * 2.0 * np.pi),  # 25 turns per second
        ("velocity", "rev/s", 2.0, 4.0 * np.pi),
        ("velocity", "deg/s", 90.0, np.pi / 2.0),
        ("velocity", "mm/s", 250.0, 0.25),
        ("position", "in", 1000.0, 25.4),
        ("position", "in", 39.37007874015748, 1.0),
        ("position", "cm", 170.0, 1.7),
        ("position", "mm", 1700.0, 1.7),
        ("position", "um", 5e5, 0.5),
        ("position", "deg", 180.0, np.pi),
        ("position", "rev", 0.25, np.pi / 2.0),
        ("position", "mrad", 1000.0 * np.pi, np.pi),
        ("time", "min", 2.0, 120.0),
        ("time", "s", 2.0, 2.0),
        ("time", "ns", 5e8, 0.5),
        ("time", "us", 2e6, 2.0),
        ("time", "ms", 1500.0, 1.5),
        ("acceleration", "deg/s^2", 360.0, 2.0 * np.pi),
        ("temperature", "K", 300.0, 26.85),
        ("velocity", "RPM", 60.0, 2.0 * np.pi),
        ("temperature", "C", 35.0, 35.0),
        ("temperature", "°C", 35.0, 35.0),
    ],
)
def test_units_of_everyday_quantities(quantity, unit, value, si):
    values, notes = to_si(quantity, np.array([value]), unit)
    assert values[0] == pytest.approx(si, rel=1e-12)
    assert len(notes) == (si != value)


@pytest.mark.parametrize(
    ("kind", "unit", "value", "si"),
    [
        ("joint_torque", "mNm", 2500.0, 2.5),
        ("joint_torque", "Ncm", 250.0, 2.5),
        ("joint_torque", "kN", 0.3, 300.0),
        ("motor_torque", "kNm", 0.04, 40.0),
        ("joint_force", "mN", 1500.0, 1.5),
        ("motor_current", "mA", 700.0, 0.7),
        ("voltage", "mV", 12000.0, 12.0),
    ],
)
def test_units_of_efforts(kind, unit, value, si):
    assert to_si("effort", np.array([value]), unit, effort_kind=kind)[0][0] == pytest.approx(si, rel=1e-12)


def test_a_log_in_rpm_and_inches_is_read_in_si():
    t = np.arange(100) / 100.0
    table = {"t": t, "q": np.column_stack([t, 10.0 * t]), "qd": np.full((100, 2), 30.0), "tau": np.zeros((100, 2))}
    log = Log.read(table, "joint_torque", units={"position": ["rad", "in"], "velocity": ["rpm", "mm/s"]})
    np.testing.assert_allclose(log.position[-1], [0.99, 0.99 * 0.254], rtol=1e-12)
    np.testing.assert_allclose(log.velocity[0], [np.pi, 0.03], rtol=1e-12)
