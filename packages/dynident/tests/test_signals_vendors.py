"""Logs of controllers and data sets that have a layout of their own, beside the dresses of plain text."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynident.errors import LogError
from dynident.signals import Log

N = 6
T = np.arange(200) / 250.0
Q = np.sin(T[:, None] * np.arange(1, N + 1)) + 0.1 * np.arange(N)
TAU = 10.0 * np.cos(3.0 * T[:, None] + np.arange(N))


def table(columns: dict[str, np.ndarray], sep: str = ",") -> str:
    """Delimited text; a pattern such as 'q{}' stands for the columns of an array, numbered from 0 ('q{0}') or 1 ('q{1}')."""
    names, blocks = [], []
    for pattern, values in columns.items():
        start = 1 if "{1}" in pattern else 0
        names += [pattern.replace("{1}", str(i + start)).replace("{0}", str(i)) for i in range(values.shape[1])]
        blocks.append(values)
    rows = [sep.join(map(repr, row)) for row in np.column_stack(blocks).tolist()]
    return "\n".join([sep.join(names), *rows]) + "\n"


def check(log: Log) -> None:
    assert log.position.shape == Q.shape
    np.testing.assert_allclose(log.t - log.t[0], T, atol=1e-9)
    np.testing.assert_allclose(log.position, Q, atol=1e-14)
    np.testing.assert_allclose(log.effort, TAU, atol=4e-14)


@pytest.mark.parametrize(
    ("columns", "reference"),
    [
        ({"t": T[:, None], "q[{0}]": Q, "q_d[{0}]": Q + 1, "dq_d[{0}]": Q, "tau_J[{0}]": TAU, "tau_J_d[{0}]": 2 * TAU,
          "tau_ext_hat_filtered[{0}]": 3 * TAU}, True),
        ({"Time_ms": 1e3 * T[:, None], "MeasJntPos_A{1}": Q, "CmdJntPos_A{1}": Q + 1, "MeasTrq_A{1}": TAU,
          "ExtTrq_A{1}": 3 * TAU}, True),
        ({"time": T[:, None], "iiwa.joint_position_measured[{0}]": Q, "iiwa.joint_position_commanded[{0}]": Q + 1,
          "iiwa.joint_torque_measured[{0}]": TAU, "iiwa.joint_torque_external[{0}]": 3 * TAU}, True),
        ({"Time (s)": T[:, None], "FeedBack Joints J{1} (deg)": np.degrees(Q), "Motor Torque J{1} (Nm)": TAU}, False),
        ({"tick_us": 1e6 * T[:, None], "pos{0}_mrad": 1e3 * Q, "tq{0}_mNm": 1e3 * TAU}, False),
        ({"t": T[:, None], "q_j{1}": Q, "tau_j{1}": TAU}, False),
        ({"t": T[:, None], "q_J{1}": Q, "dq_J{1}": Q, "tau_J{1}": TAU}, False),
        ({"t": T[:, None], "q_q{1}": Q, "tau_q{1}": TAU}, False),
        ({"t": T[:, None], "q_{0}": Q, "tau_J{0}": TAU}, False),
    ],
    ids=["libfranka", "KUKA FRI", "Drake", "ABB EGM", "ticks", "j1", "J1", "q1", "numbers"],
)  # fmt: skip
def test_columns_of_controllers(columns, reference, tmp_path):
    (tmp_path / "run.csv").write_text(table(columns))
    log = Log.read(tmp_path / "run.csv", effort="joint_torque")
    check(log)
    assert (log.reference is not None) == reference
    if reference:
        np.testing.assert_allclose(log.reference, Q + 1, atol=1e-14)


@pytest.mark.parametrize("sep", ["\t", ";"])
@pytest.mark.parametrize("parser", ["pyarrow", "fallback"])
def test_twincat_scope(sep, parser, tmp_path, monkeypatch):
    if parser == "fallback":
        monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    names = [f"{word}{i + 1}" for word in ("ActPos", "ActTorque") for i in range(N)]
    units = ["(deg)"] * N + ["(Nm)"] * N
    head = [f"Name{sep}Scope Project", f"File{sep}C:\\run.svdx", f"Starttime of export{sep}133238090039920000{sep}Monday", ""]
    for key, entries in (("Name", names), ("SymbolComment", [""] * 2 * N), ("SampleTime[ms]", ["4"] * 2 * N), ("Unit", units)):
        head.append(sep.join(cell for entry in entries for cell in (key, entry)))
    values = np.column_stack([np.degrees(Q), TAU])
    rows = [sep.join(f"{1e3 * t!r}{sep}{x!r}" for x in row) for t, row in zip(T.tolist(), values.tolist(), strict=True)]
    file = tmp_path / "scope.csv"
    file.write_text("\n".join([*head, "", *rows, "EOF", ""]))
    log = Log.read(file, effort="joint_torque")
    check(log)
    assert "TwinCAT" in " ".join(log.provenance["conversions"])
    rows[-1] = rows[-1].replace("796.0", "795.0", 1)
    file.write_text("\n".join([*head, "", *rows, ""]))
    with pytest.raises(LogError, match=r"times of their own \(795\.0, 796\.0 ms\)"):
        Log.read(file, effort="joint_torque")


def test_a_record_per_motor(tmp_path):
    """Unitree's low state: the ticks are its clock only where nothing else is."""
    records = [
        {"tick": int(1e3 * t), "motor_state": [{"q": x, "dq": 0.0, "tau_est": y, "temperature": [40, 41]} for x, y in rows]}
        for t, rows in zip(T, np.stack([Q, TAU], axis=2).tolist(), strict=True)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    (tmp_path / "a.json").write_text(json.dumps({"robot": {"name": "go2"}, "rate": 250, "samples": records}))
    for file in ("a.jsonl", "a.json"):
        check(Log.read(tmp_path / file, effort="joint_torque", units={"time": "ms"}))
    with pytest.raises(LogError, match=r"'tick' advances by 4 per sample"):
        Log.read(tmp_path / "a.json", effort="joint_torque")


def test_angles_wrapped_into_one_turn(tmp_path):
    wrapped = {
        "from -pi to pi": np.mod(Q + 2.8 + np.pi, 2 * np.pi) - np.pi,
        "from 0 to 2 pi": np.mod(Q, 2 * np.pi),
    }
    for values in wrapped.values():
        values[50] = np.nan  # a sample that is missing
        log = Log.read({"t": T, "q": values, "tau": TAU}, effort="joint_torque")
        turns = (log.position - values - (log.position - values)[0]) / (2 * np.pi)
        known = np.isfinite(values)
        np.testing.assert_allclose(turns[known], np.round(turns[known]), atol=1e-12)
        assert np.nanmax(np.abs(np.diff(log.position, axis=0))) < 0.1
        assert "made continuous" in " ".join(log.provenance["conversions"])
    # Motors turn by 6.3 rad per sample and more: such positions leave one turn, and stay.
    fast = np.cumsum(np.full((200, N), 6.28), axis=0)
    np.testing.assert_array_equal(Log.read({"t": T, "q": fast, "tau": TAU}, effort="joint_torque").position, fast)


def test_folder_of_a_data_set(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    (tmp_path / "set/data/chunk-000").mkdir(parents=True)
    (tmp_path / "set/meta").mkdir()
    columns = {"observation.state": np.degrees(Q).tolist(), "observation.effort": TAU.tolist(), "timestamp": T}
    file = tmp_path / "set/data/chunk-000/file-000.parquet"
    pq.write_table(pa.table(columns), file)
    names = [f"axis_{k}.pos" for k in "abcdef"]
    info = tmp_path / "set/meta/info.json"
    info.write_text(json.dumps({"features": {"observation.state": {"names": names}}}))
    log = Log.read(tmp_path / "set", effort="joint_torque")
    check(log)
    assert log.joints == tuple(n.removesuffix(".pos") for n in names)
    info.write_text("{")
    assert Log.read(tmp_path / "set", effort="joint_torque").joints[0] == "joint_1"
    with pytest.raises(LogError, match=r"has no file data/\*/\*\.parquet; download"):
        (tmp_path / "empty/meta").mkdir(parents=True)
        (tmp_path / "empty/data").mkdir()
        (tmp_path / "empty/meta/info.json").write_text("{}")
        Log.read(tmp_path / "empty", effort="joint_torque")
    file.with_name("file-001.parquet").write_bytes(file.read_bytes())
    with pytest.raises(LogError, match=r"has 2 files of numbers .*file-000\.parquet.*; give one of them"):
        Log.read(tmp_path / "set", effort="joint_torque")
