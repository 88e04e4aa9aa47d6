"""The same log in the dresses that files wear: written here with plain Python, pandas, polars and Arrow, read at first try."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.errors import LogError
from dynident.signals import Log

N = 6
NAMES = [f"joint{i}" for i in range(1, N + 1)]
T = np.arange(200) / 250.0
Q = np.sin(T[:, None] * np.arange(1, N + 1)) + 0.1 * np.arange(N)
V = np.cos(T[:, None] * np.arange(1, N + 1)) * np.arange(1, N + 1)
TAU = 10.0 * np.cos(3.0 * T[:, None] + np.arange(N))
STAMP = 1_700_000_000_000_000_000 + np.round(T * 1e9).astype(np.int64)


def csv(header: list[str], *blocks: np.ndarray, sep: str = ",", decimal: str = ".") -> bytes:
    columns = np.column_stack(blocks)
    rows = [sep.join(repr(x).replace(".", decimal) for x in row) for row in columns.tolist()]
    return ("\n".join([sep.join(header), *rows]) + "\n").encode()


def numbered(pattern: str, start: int = 1) -> list[str]:
    return [pattern.format(i) for i in range(start, start + N)]


def rows_of(function) -> str:
    return "\n".join(function(k) for k in range(len(T))) + "\n"


def listed(values) -> str:
    return "[" + ", ".join(repr(float(x)) for x in values) + "]"


PLAIN = csv(["t", *numbered("q{}"), *numbered("tau{}")], T, Q, TAU)
DRESSES: dict[str, bytes] = {
    "numbered from 1": PLAIN,
    "numbered from 0": csv(["t", *numbered("q{}", 0), *numbered("tau{}", 0)], T, Q, TAU),
    "numbered from 0 and from 1": csv(["t", *numbered("q{}", 0), *numbered("tau{}", 1)], T, Q, TAU),
    "numbered from 1 and from 0": csv(["t", *numbered("q{}", 1), *numbered("tau{}", 0)], T, Q, TAU),
    "numbered by brackets": csv(["t", *numbered("q[{}]", 0), *numbered("tau[{}]", 0)], T, Q, TAU),
    "underscored": csv(["time", *numbered("joint_{}_pos"), *numbered("joint_{}_torque")], T, Q, TAU),
    "axes of KUKA": csv(["t", *numbered("A{}_pos"), *numbered("A{}_torque")], T, Q, TAU),
    "axes in words": csv(["Time [s]", *numbered("Axis {} Position [deg]"), *numbered("Axis {} Torque")], T, np.degrees(Q), TAU),
    "words without gaps": csv(["Time(s)", *numbered("Joint{}Angle(deg)"), *numbered("Joint{}Torque")], T, np.degrees(Q), TAU),
    "applied torque": csv(["t", *numbered("joint_pos_joint{}"), *numbered("applied_torque_joint{}")], T, Q, TAU),
    "quantities above joints": csv(["", *["q"] * N, *["tau"] * N], T, Q, TAU).replace(
        b"\n", b"\n" + ",".join(["t", *NAMES, *NAMES]).encode() + b"\n", 1
    ),
    "words": csv(["Time", *numbered("JointPosition{}"), *numbered("MotorTorque{}")], T, Q, TAU),
    "German": csv(["t", *numbered("q{}"), *numbered("tau{}")], T, Q, TAU, sep=";", decimal=","),
    "tab and comma": csv(["t", *numbered("q{}"), *numbered("tau{}")], T, Q, TAU, sep="\t", decimal=","),
    "degrees in brackets": csv(["time [s]", *numbered("q{} [deg]"), *numbered("tau{} [Nm]")], T, np.degrees(Q), TAU),
    "parentheses": csv(["t (ms)", *numbered("q{}(°)"), *numbered("tau{} (kN·m)")], T * 1e3, np.degrees(Q), TAU / 1e3),
    "degrees as suffix": csv(["t_ms", *numbered("q{}_deg"), *numbered("tau{}_Nm")], T * 1e3, np.degrees(Q), TAU),
    "degrees in the middle": csv(["t", *numbered("pos_deg_{}"), *numbered("effort_{}")], T, np.degrees(Q), TAU),
    "unit row": PLAIN.replace(b"\n", b"\n" + b",".join([b"s", *[b"rad"] * N, *[b"Nm"] * N]) + b"\n", 1),
    "unit row in degrees": csv(["t", *numbered("q{}"), *numbered("tau{}")], T, np.degrees(Q), TAU).replace(
        b"\n", b"\n" + b",".join([b"[s]", *[b"[deg]"] * N, *[b"[Nm]"] * N]) + b"\n", 1
    ),
    "sep line": b"sep=,\r\n" + PLAIN.replace(b"\n", b"\r\n"),
    "savetxt": b"# made by numpy\n# " + PLAIN,
    "rows end in commas": PLAIN.replace(b"\n", b",\n").replace(b",\n", b"\n", 1),
    "spaces": csv(["t", *numbered("q{}"), *numbered("tau{}")], T, Q, TAU, sep="   "),
    "PlotJuggler": csv(
        ["__time", *(f"/joint_states/{n}/{f}" for f in ("position", "velocity", "effort") for n in NAMES)], T, Q, V, TAU
    ),
    "PlotJuggler arrays": csv(
        ["__time", *(f"/joint_states/{f}[{i}]" for f in ("position", "velocity", "effort") for i in range(N))], T, Q, V, TAU
    ),
    "KUKA FRI": csv(
        ["TimeStampSec", "TimeStampNanoSec", *numbered("MeasuredJointPosition_{}"), *numbered("CommandedJointPosition_{}"),
         *numbered("MeasuredTorque_{}")],
        STAMP // 10**9, STAMP % 10**9, Q, Q + 1, TAU,
    ).replace(b".0,", b",", 400),
    "LabVIEW": b"LabVIEW Measurement\t\nSeparator\tTab\n***End_of_Header***\t\n\t\nX_Dimension" + b"\tTime" * 12
    + b"\n***End_of_Header***\t\t\n"
    + csv(["X_Value", *numbered("q{}"), *numbered("tau{}"), "Comment"], T, Q, TAU, sep="\t"),
    "German words": b"Messung vom 12.03.2024;;\nRoboter: KR6;;\n\n"
    + csv(
        ["Zeit", *numbered("Achse {} Winkel"), *numbered("Achse {} Drehmoment")], T, np.degrees(Q), TAU, sep=";", decimal=","
    ).replace(b"\n", b"\n" + ";".join(["s", *["°"] * N, *["Nm"] * N]).encode() + b"\n", 1),
    "joints without a quantity": csv(["Time", *numbered("J{}"), *numbered("TRQ_J{}")], T, Q, TAU),
    "ros2 topic echo in YAML": rows_of(
        lambda k: f"header:\n  stamp:\n    sec: {STAMP[k] // 10**9}\n    nanosec: {STAMP[k] % 10**9}\n  frame_id: ''\nname:\n"
        + "".join(f"- {n}\n" for n in NAMES) + "position:\n" + "".join(f"- {x!r}\n" for x in Q[k].tolist())
        + "velocity: []\neffort:\n" + "".join(f"- {x!r}\n" for x in TAU[k].tolist()) + "---"
    ).encode(),
    "UR RTDE": csv(
        ["timestamp", *numbered("target_q_{}", 0), *numbered("actual_q_{}", 0), *numbered("actual_qd_{}", 0),
         *numbered("actual_TCP_force_{}", 0), *numbered("target_moment_{}", 0)],
        T, Q + 0.01, Q, V, TAU * 7, TAU,
    ),
    "ros2 topic echo": rows_of(
        lambda k: ",".join(
            [str(STAMP[k] // 10**9), str(STAMP[k] % 10**9), "", *NAMES, *(repr(float(x)) for x in (*Q[k], *V[k], *TAU[k]))]
        )
    ).encode(),
    "ros2 topic echo with a frame": rows_of(
        lambda k: ",".join(
            [str(STAMP[k] // 10**9), str(STAMP[k] % 10**9), "base", *NAMES, *(repr(float(x)) for x in (*Q[k], *V[k], *TAU[k]))]
        )
    ).encode(),
    "rostopic echo -p": (
        ",".join(["%time", "field.header.seq", "field.header.stamp", "field.header.frame_id",
                  *numbered("field.position{}", 0), *numbered("field.effort{}", 0)]) + "\n"
        + rows_of(lambda k: ",".join([str(STAMP[k] + 900), str(k), str(STAMP[k]), "base",
                                      *(repr(float(x)) for x in (*Q[k], *TAU[k]))]))
    ).encode(),
    "rostopic echo -p with names": (
        ",".join(["%time", *numbered("field.name{}", 0), *numbered("field.position{}", 0), *numbered("field.effort{}", 0)])
        + "\n" + rows_of(lambda k: ",".join([str(STAMP[k]), *NAMES, *(repr(float(x)) for x in (*Q[k], *TAU[k]))]))
    ).encode(),
    "names beside numbers": (
        ",".join(["Time", "name", *numbered("position_{}", 0), *numbered("effort_{}", 0)]) + "\n"
        + rows_of(lambda k: ",".join([repr(float(T[k])), f'"{NAMES}"', *(repr(float(x)) for x in (*Q[k], *TAU[k]))]))
    ).encode(),
    "Franka": csv(["time", *numbered("q[{}]", 0), *numbered("q_d[{}]", 0), *numbered("tau_J[{}]", 0),
                   *numbered("tau_ext[{}]", 0)], T, Q, Q * 2, TAU, TAU * 9),
    "list cells": (
        "timestamp,header.stamp.sec,header.stamp.nanosec,name,position,velocity,effort\n"
        + rows_of(lambda k: f'{STAMP[k] + 5000},{STAMP[k] // 10**9},{STAMP[k] % 10**9},"{NAMES}","{listed(Q[k])}",'
                            f'"{listed(V[k])}","{listed(TAU[k])}"')
    ).encode(),
    "numpy cells": (
        "t,q,tau\n"
        + rows_of(lambda k: f'{float(T[k])!r},"{listed(Q[k]).replace(",", "")}","{listed(TAU[k]).replace(",", "")}"')
    ).encode(),
    "stamps in ns": (
        ",".join(["stamp_ns", *numbered("position_{}", 0), *numbered("effort_{}", 0)]) + "\n"
        + rows_of(lambda k: ",".join([str(STAMP[k]), *(repr(float(x)) for x in (*Q[k], *TAU[k]))]))
    ).encode(),
    "unmarked ns": (
        ",".join(["timestamp", *numbered("q{}"), *numbered("tau{}")]) + "\n"
        + rows_of(lambda k: ",".join([str(STAMP[k]), *(repr(float(x)) for x in (*Q[k], *TAU[k]))]))
    ).encode(),
    "ISO stamps": (
        ",".join(["time", *numbered("q{}"), *numbered("tau{}")]) + "\n"
        + rows_of(lambda k: ",".join([str(STAMP[k].astype("datetime64[ns]")), *(repr(float(x)) for x in (*Q[k], *TAU[k]))]))
    ).encode(),
    "times of day": (
        ";".join(["time", *numbered("q{}"), *numbered("tau{}")]) + "\n"
        + rows_of(lambda k: ";".join([str(STAMP[k].astype("datetime64[ns]")).partition("T")[2],
                                      *(repr(float(x)).replace(".", ",") for x in (*Q[k], *TAU[k]))]))
    ).encode(),
    "German dates over midnight": (
        ";".join(["time", *numbered("q{}"), *numbered("tau{}")]) + "\n"
        + rows_of(lambda k: ";".join([f"{'31.12.2023 23:59:59' if k < 125 else '1.1.2024 0:00:00'},{(500 + 4 * k) % 1000:03d}",
                                      *(repr(float(x)).replace(".", ",") for x in (*Q[k], *TAU[k]))]))
    ).encode(),
    "UTF-16 with tabs": csv(["t", *numbered("q{}"), *numbered("tau{}")], T, Q, TAU, sep="\t").decode().encode("utf-16"),
    "Windows-1252": csv(["t", *numbered("q{} [°]"), *numbered("tau{}")], T, np.degrees(Q), TAU).decode().encode("cp1252"),
    "lines above the header": b"Recorder 2.1\nDate;2024-05-01\nRobot,arm\n\n" + PLAIN,
    "one line above the header": b"Recorder 2.1\n" + PLAIN,
    "BOM": b"\xef\xbb\xbf" + PLAIN,
    "text column": (
        ",".join(["t", "mode", *numbered("q{}"), *numbered("tau{}")]) + "\n"
        + rows_of(lambda k: ",".join([repr(float(T[k])), "RUN", *(repr(float(x)) for x in (*Q[k], *TAU[k]))]))
    ).encode(),
    "index column": ("," + PLAIN.decode().replace("\n", "\n0,")[: -len("0,")]).encode(),
}  # fmt: skip


def check(log: Log, exact: bool = True) -> None:
    assert len(log) == len(T)
    np.testing.assert_allclose(log.t - log.t[0], T, rtol=0, atol=2e-9)
    tolerance = 0 if exact else 4e-15
    np.testing.assert_allclose(log.position, Q, rtol=0, atol=max(tolerance, 4e-15))
    np.testing.assert_allclose(log.effort, TAU, rtol=0, atol=4e-14)
    renamed = log.named_like(NAMES)
    assert renamed.joints == tuple(NAMES)
    assert log.provenance["files"]


@pytest.fixture(params=["pyarrow", "fallback"])
def parser(request, monkeypatch):
    if request.param == "fallback":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    else:
        pytest.importorskip("pyarrow")
    return request.param


@pytest.mark.parametrize("dress", DRESSES)
def test_text(dress, parser, tmp_path):
    file = tmp_path / "run.csv"
    file.write_bytes(DRESSES[dress])
    log = Log.read(file, effort="joint_torque")
    if parser == "fallback" and dress in ("stamps in ns", "unmarked ns"):  # float64 holds stamps in ns to 256 ns
        np.testing.assert_allclose(log.t, T, rtol=0, atol=6e-7)
    else:
        check(log)


def test_notes_say_what_was_understood(tmp_path):
    words = {
        "numbered from 0": "channels joint_0 to joint_5, in this order",
        "degrees as suffix": "deg times 0.0174",
        "unit row": "row of units",
        "savetxt": "behind '#'",
        "UR RTDE": "is commanded",
        "stamps in ns": "in ns",
        "unmarked ns": "in ns",
        "ros2 topic echo": "ros2 topic echo",
        "list cells": "header.stamp",
        "text column": "mode",
        "Windows-1252": "Windows-1252",
        "lines above the header": "3 lines above the header",
        "one line above the header": "1 line above the header",
    }
    for dress, word in words.items():
        (tmp_path / "run.csv").write_bytes(DRESSES[dress])
        log = Log.read(tmp_path / "run.csv", effort="joint_torque")
        assert any(word in note for note in log.provenance["conversions"]), (dress, log.provenance["conversions"])


def test_topics_with_rows_of_their_own_come_to_one_clock(tmp_path):
    """PlotJuggler joins topics so: where one has a number the others have none."""
    late = T[::2] + 1e-3
    empty = [""] * N
    rows = [(t, [*map(repr, q.tolist()), *empty]) for t, q in zip(T.tolist(), Q, strict=True)]
    rows += [(t, [*empty, *(repr(float(3.0 * t + i)) for i in range(N))]) for t in late.tolist()]
    head = ["__time", *(f"/joint_states/{n}/position" for n in NAMES), *(f"/torques/{n}/effort" for n in NAMES)]
    text = "\n".join([",".join(head), *(",".join([repr(t), *cells]) for t, cells in sorted(rows))])
    (tmp_path / "run.csv").write_text(text + "\n")
    log = Log.read(tmp_path / "run.csv", effort="joint_torque")
    assert log.joints == tuple(NAMES)
    np.testing.assert_array_equal(log.position, Q[1:-1])
    np.testing.assert_allclose(log.effort, 3.0 * T[1:-1, None] + np.arange(N), atol=1e-12)
    assert "interpolated to the" in " ".join(log.provenance["conversions"])


def test_rows_and_stamps_that_repeat(tmp_path):
    file, rows = tmp_path / "run.csv", PLAIN.splitlines(keepends=True)
    file.write_bytes(b"".join([*rows[:50], *rows[40:50][-1:], *rows[50:]]))
    log = Log.read(file, effort="joint_torque")
    check(log)
    assert "1 duplicate rows removed" in " ".join(log.provenance["conversions"])
    file.write_bytes(csv(["t", *numbered("q{}"), *numbered("tau{}")], np.floor(T * 100.0) / 100.0, Q, TAU))
    with pytest.raises(LogError, match=r"has 0\.0 s in two different rows .* give rate= \(--rate\) in Hz"):
        Log.read(file, effort="joint_torque")
    check(Log.read(file, effort="joint_torque", rate=250.0))


@pytest.mark.parametrize("column", [False, True], ids=["absent", "empty"])
def test_a_joint_without_effort_keeps_its_position(column, tmp_path):
    """Else it would be taken to stand still, and the efforts of the others would be explained with the wrong pose."""
    names, blocks = numbered("tau{}"), list(TAU.T)
    blocks[2] = np.full(len(T), np.nan)
    if not column:
        del names[2], blocks[2]
    (tmp_path / "run.csv").write_bytes(csv(["t", *numbered("q{}"), *names], T, Q, *blocks))
    log = Log.read(tmp_path / "run.csv", effort="joint_torque")
    assert len(log.joints) == N
    np.testing.assert_array_equal(log.position, Q)
    np.testing.assert_array_equal(log.effort, TAU * (np.arange(N) != 2))
    assert "no effort of 3" in " ".join(log.provenance["conversions"])


def test_an_echo_of_one_joint_is_read(tmp_path):
    lines = [
        f"{s // 10**9},{s % 10**9},,slider,{q!r},{v!r},{f!r}"
        for s, q, v, f in zip(STAMP, *(x[:, 0].tolist() for x in (Q, V, TAU)), strict=True)
    ]
    (tmp_path / "run.csv").write_text("\n".join(lines) + "\n")
    log = Log.read(tmp_path / "run.csv", effort="joint_torque")
    assert log.joints == ("slider",)
    np.testing.assert_array_equal(log.position, Q[:, :1])
    np.testing.assert_array_equal(log.effort, TAU[:, :1])


def test_names_in_the_file_are_used(tmp_path):
    for dress in ("rostopic echo -p with names", "names beside numbers", "list cells", "ros2 topic echo"):
        (tmp_path / "run.csv").write_bytes(DRESSES[dress])
        assert Log.read(tmp_path / "run.csv", effort="joint_torque").joints == tuple(NAMES)


def test_reference_and_temperature_are_taken_along(tmp_path):
    header = ["t", *numbered("actual_q_{}"), *numbered("target_q_{}"), *numbered("tau_{}"), *numbered("joint_temperatures_{}")]
    (tmp_path / "a.csv").write_bytes(csv(header, T, Q, Q + 0.25, TAU, Q + 40.0))
    log = Log.read(tmp_path / "a.csv", effort="joint_torque")
    np.testing.assert_array_equal(log.reference, Q + 0.25)
    np.testing.assert_array_equal(log.temperature, Q + 40.0)
    np.testing.assert_array_equal(log.rows(5, 50).select(["joint_2"]).reference, (Q + 0.25)[5:50, [1]])


def test_json_and_arrays_of_simulators(tmp_path):
    import json

    records = [{"t": T[k], "state": {"q": Q[k].tolist()}, "tau": TAU[k].tolist(), "mode": "run"} for k in range(len(T))]
    (tmp_path / "records.json").write_text(json.dumps(records))
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, records)) + '\n{"t": 0.8, "sta')
    whole = {"log": {"t": T.tolist(), "joint_names": NAMES, "q": Q.tolist(), "tau": TAU.tolist(), "rate": 250}}
    (tmp_path / "whole.json").write_text(json.dumps(whole))
    np.savez(tmp_path / "one_robot.npz", dof_pos=Q[:, None], dof_torque=TAU[:, None], dof_names=np.array(NAMES), dt=0.004)
    for file in sorted(tmp_path.iterdir()):
        log = Log.read(file, effort="joint_torque")
        np.testing.assert_allclose(log.position, Q, atol=1e-15)
        np.testing.assert_allclose(log.t, T, atol=1e-12)
        assert len(log.joints) == N
    single = [{"t": T[k], "q": [Q[k, 0]], "tau": [TAU[k, 0]]} for k in range(len(T))]  # lists of one number
    (tmp_path / "single.json").write_text(json.dumps(single))
    np.testing.assert_array_equal(Log.read(tmp_path / "single.json", effort="joint_torque").position, Q[:, :1])
    with pytest.raises(LogError, match=r"shape \(200, 2, 6\) left out; give \(samples, joints\), of one robot"):
        Log.read({"q": np.stack([Q, Q], axis=1), "tau": np.stack([TAU, TAU], axis=1)}, "joint_torque", rate=250.0)
    for text, words in (
        ("[1, 2]", "neither a list of records"),
        ("{", "not JSON"),
        ("[" * 10**5, "not JSON"),
        ("[{}]", "numeric"),
    ):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(LogError, match=words):
            Log.read(tmp_path / "bad.json", effort="joint_torque")


@pytest.mark.parametrize(
    "ending", ["npz", "mat", "struct.mat", "h5", "parquet", "list.parquet", "decimal.parquet", "struct.parquet"]
)
def test_binary_files(ending, tmp_path):
    from scipy.io import savemat

    file = tmp_path / f"run.{ending}"
    if ending == "npz":
        np.savez(file, t=T, q=Q, tau=TAU, joint_names=NAMES)
    elif ending == "mat":
        savemat(file, {"t": T[:, None], "q": Q, "dq": V, "tau": TAU})
    elif ending == "struct.mat":
        savemat(file, {"log": {"time": T[:, None], "q": Q, "qd": V, "tau": TAU}})
    elif ending == "h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(file, "w") as group:
            group["run/time"], group["run/q"], group["run/tau"] = T, Q, TAU
    else:
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        if ending == "parquet":
            columns = {"t": T, **{f"q{i + 1}": Q[:, i] for i in range(N)}, **{f"tau{i + 1}": TAU[:, i] for i in range(N)}}
        elif ending == "list.parquet":
            columns = {"timestamp": T, "observation.state": list(np.degrees(Q) * 10), "observation.effort": list(TAU)}
            columns |= {"action": list(np.degrees(Q) * 10), "episode_index": np.zeros(len(T), dtype=np.int64)}
        elif ending == "struct.parquet":
            stamp = [{"sec": int(s // 10**9), "nanosec": int(s % 10**9)} for s in STAMP]
            columns = {
                "header": [{"stamp": s} for s in stamp],
                "name": [NAMES] * len(T),
                "position": list(Q),
                "effort": list(TAU),
            }
        else:
            from decimal import Decimal

            columns = {"t": [Decimal(f"{x:.6f}") for x in T]}
            columns |= {f"q{i + 1}": [Decimal(f"{x:.20f}") for x in Q[:, i]] for i in range(N)}
            columns |= {f"tau{i + 1}": [Decimal(f"{x:.20f}") for x in TAU[:, i]] for i in range(N)}
        pq.write_table(pa.table(columns), file)
    log = Log.read(file, effort="joint_torque")
    if ending == "list.parquet":  # ten times the angle: beyond what rad can be
        np.testing.assert_allclose(log.position, Q * 10, atol=1e-13)
        np.testing.assert_allclose(log.reference, Q * 10, atol=1e-13)
        np.testing.assert_array_equal(log.effort, TAU)
        assert any("degrees" in note for note in log.provenance["conversions"])
    else:
        check(log)


def test_frames_and_arrays():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    columns = {"t": T, **{f"q{i + 1}": Q[:, i] for i in range(N)}, **{f"tau{i + 1}": TAU[:, i] for i in range(N)}}
    records = np.rec.fromarrays(list(columns.values()), names=list(columns))
    for table in (
        pd.DataFrame(columns),
        pl.DataFrame(columns),
        pa.table(columns),
        columns,
        records,
        {"t": T, "q": Q, "tau": TAU},
    ):
        log = Log.read(table, effort="joint_torque")
        np.testing.assert_array_equal(log.position, Q)
        np.testing.assert_array_equal(log.effort, TAU)
        np.testing.assert_array_equal(log.t, T)
    indexed = pd.DataFrame(columns).drop(columns="t").set_index(pd.to_datetime(STAMP))
    check(Log.read(indexed, effort="joint_torque"))
    lists = pd.DataFrame({"t": T, "q": list(Q), "tau": list(TAU)})
    check(Log.read(lists, effort="joint_torque"))
    check(Log.read(pl.DataFrame({"t": T, "q": Q, "tau": TAU}), effort="joint_torque"))
    assert Log.read(columns, "joint_torque").checksum() == Log.read(pd.DataFrame(columns), "joint_torque").checksum()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (3, "path is 3"),
        (None, "path is None"),
        (object(), "cannot be read from a object"),
        ({"t": [0, 1], "q": "a.csv"}, "files are given for"),
        ({"position": "a.csv", "effort": np.zeros(3)}, "mixes files and arrays"),
        ([np.zeros(3)], "not all files"),
        ({"t": T, "q": [["a"]] * len(T), "tau": TAU}, "column 'q'"),
        ({"t": T, "q": [1.0, "x"] * 100, "tau": TAU}, "mixes numbers"),
    ],
)
def test_what_is_no_log(path, words):
    with pytest.raises(LogError, match=words):
        Log.read(path, effort="joint_torque")


def changed(old: str, new: str, count: int = 1) -> bytes:
    text = PLAIN.decode()
    assert old in text
    return text.replace(old, new, count).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (changed("\n0.004,", "\n0.0_04,"), r"row 2, column 't' is '0\.0_04'"),
        (changed("\n0.004,", "\n٠,"), r"row 2, column 't'"),
        (changed("\n0.004,", "\n0.004,0,"), "14 cells but there are 13 columns"),
        (changed("\n0.004,", "\n"), "12 cells but there are 13 columns"),
        (changed("q2", "q1"), r"\['q1'\] are repeated"),
        (changed("q1", "q1 [furlong]"), "'furlong', which is unknown"),
        (changed("tau1", "tau1 [A]"), "unit of effort is 'A'"),
        (changed("tau1", "tau1 [%]"), "unit of effort is '%'"),
        (PLAIN.replace(b",", b";").replace(b"0.004;", b"0,004;"), "decimal comma and others a decimal point"),
        (changed("q2", "pos1"), "both look like the position of '1'"),
        (csv(["t", *numbered("q{}"), *numbered("tau{}"), *numbered("effort{}")], T, Q, TAU, TAU), "several kinds of effort"),
        (csv(["t", *numbered("q{}"), *numbered("tau{}")], T * 1e-6, Q, TAU), "too short for a robot"),
        (csv(["t", "q1", "tau1", "episode_index"], T, T, T, np.floor(T * 5)), "4 episodes"),
    ],
)
def test_nothing_is_misread(data, words, tmp_path, parser):
    (tmp_path / "run.csv").write_bytes(data)
    with pytest.raises(LogError, match=words):
        Log.read(tmp_path / "run.csv", effort="joint_torque")


def test_decimal_commas_may_begin_late(tmp_path, parser):
    (tmp_path / "a.csv").write_text("t;q1;tau1\n0;0;0\n1;1;1\n" + "".join(f"{k};0,5;1,25\n" for k in range(2, 9)))
    log = Log.read(tmp_path / "a.csv", "joint_torque", rate=100.0)
    assert log.position[:, 0].tolist() == [0, 1, *[0.5] * 7]
    (tmp_path / "a.csv").write_text('t,q1,tau1\n"0,01","1,5",3\n' + "".join(f'"0,0{k}","2,5",1\n' for k in range(2, 9)))
    assert Log.read(tmp_path / "a.csv", "joint_torque").position[:, 0].tolist() == [1.5, *[2.5] * 7]


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 20, 100])
def test_a_row_cut_short_costs_that_row(cut, tmp_path, parser):
    data = PLAIN[: -cut - 1]
    (tmp_path / "run.csv").write_bytes(data)
    log = Log.read(tmp_path / "run.csv", effort="joint_torque")
    whole = data.rfind(b",") > data.rfind(b"\n") and data.count(b",", data.rfind(b"\n")) == 2 * N
    assert len(log) == len(T) - (not whole)
    np.testing.assert_array_equal(log.position[: len(T) - 1], Q[: len(log)][: len(T) - 1])
    assert whole or any("incomplete" in note for note in log.provenance["conversions"])


def test_episodes(tmp_path):
    header = ["timestamp", "q1", "tau1", "episode_index"]
    clock = np.concatenate([T[:100], T[:100]])
    (tmp_path / "a.csv").write_bytes(csv(header, clock, np.arange(200.0), clock, np.repeat([0.0, 1.0], 100)))
    for how in ({"episode": 1}, {"episode": "1"}, {"schema": {"episode": 1}}):
        log = Log.read(tmp_path / "a.csv", "joint_torque", **how)
        np.testing.assert_array_equal(log.position[:, 0], np.arange(100.0, 200.0))
    with pytest.raises(LogError, match="episode is 7; the file has 0, 1"):
        Log.read(tmp_path / "a.csv", "joint_torque", episode=7)
    with pytest.raises(LogError, match=r"2 episodes \(column 'episode_index': 0, 1\); choose one with episode= \(--episode\)"):
        Log.read(tmp_path / "a.csv", "joint_torque")
    runs = Log.read_episodes(tmp_path / "a.csv", "joint_torque")
    assert [(log.name, log.position[0, 0], len(log)) for log in runs] == [("a 0", 0.0, 100), ("a 1", 100.0, 100)]
    assert [log.name for log in Log.read_episodes({"t": T, "q": Q, "tau": TAU}, "joint_torque")] == ["the table"]


def test_runs_one_below_the_other_have_names_and_a_flag_is_no_run(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"t": T, "q1": Q[:, 0], "tau1": TAU[:, 0]})
    table = pd.concat([frame.assign(run="cold"), frame.assign(run="warm", q1=-Q[:, 0])])
    table.to_parquet(tmp_path / "runs.parquet")
    for source in (tmp_path / "runs.parquet", table):
        np.testing.assert_array_equal(Log.read(source, "joint_torque", episode="warm").position[:, 0], -Q[:, 0])
        assert len(Log.read_episodes(source, "joint_torque")) == 2
    assert len(Log.read(frame.assign(run=(T > 0.1).astype(int)), "joint_torque")) == len(T)


def tidy(order: str) -> dict[str, list]:
    """One row per joint and time: time by time, or joint by joint."""
    cells = [(k, i) for k in range(len(T)) for i in range(N)]
    cells.sort(key=lambda c: c if order == "times" else c[::-1])
    k, i = np.array(cells).T
    return {"time": T[k], "joint": [NAMES[x] for x in i], "position [deg]": np.degrees(Q[k, i]), "effort": TAU[k, i]}


@pytest.mark.parametrize("order", ["times", "joints"])
@pytest.mark.parametrize("source", ["csv", "parquet", "pandas", "numbered", "without clock"])
def test_one_row_per_joint(source, order, tmp_path, monkeypatch):
    import pandas as pd

    frame = pd.DataFrame(tidy(order))
    options = {}
    if source == "numbered":
        frame["joint"] = [int(name[5:]) for name in frame["joint"]]
    if source == "without clock":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        frame, options = frame.drop(columns="time"), {"rate": 250.0}
    if source == "parquet":
        frame.astype({"joint": "category"}).to_parquet(tmp_path / "run.parquet")
        frame = tmp_path / "run.parquet"
    elif source != "pandas":
        frame.to_csv(tmp_path / "run.csv", index=False)
        frame = tmp_path / "run.csv"
    log = Log.read(frame, "joint_torque", **options)
    assert list(log.joints) == ([f"joint_{i + 1}" for i in range(N)] if source == "numbered" else NAMES)
    np.testing.assert_allclose(log.position, Q, atol=1e-12)
    np.testing.assert_allclose(log.effort, TAU, atol=1e-12)
    np.testing.assert_allclose(log.t, T, atol=1e-12)
    assert any("converted to columns" in note for note in log.provenance["conversions"])


def test_one_row_per_quantity_and_rows_with_times_of_their_own(tmp_path):
    import pandas as pd

    wide = pd.DataFrame({"t": T} | {f"q{i + 1}": Q[:, i] for i in range(N)} | {f"tau{i + 1}": TAU[:, i] for i in range(N)})
    np.testing.assert_array_equal(Log.read(wide.melt(id_vars="t"), "joint_torque").effort, TAU)
    long = pd.DataFrame(tidy("times")).melt(id_vars=["time", "joint"], var_name="quantity")
    np.testing.assert_allclose(Log.read(long, "joint_torque").position, Q, atol=1e-12)
    apart = pd.DataFrame(tidy("times"))
    late = apart["joint"] == NAMES[1]
    apart.loc[late, "time"] += 0.001  # polled one after the other
    log = Log.read(apart, "joint_torque")
    np.testing.assert_allclose(log.position[:, 1], np.interp(T[1:], T + 0.001, Q[:, 1]), atol=1e-12)
    assert any("linear interpolation" in note for note in log.provenance["conversions"])
    with pytest.raises(LogError, match="are not in the order of their times"):
        Log.read(pd.concat([apart, apart]), "joint_torque")


@pytest.mark.parametrize(
    ("channels", "robot", "expected"),
    [
        (["joint_1", "joint_2"], ["joint1", "joint2"], ["joint1", "joint2"]),
        (["joint_2", "joint_1"], ["joint1", "joint2"], ["joint2", "joint1"]),
        (["joint_0", "joint_1"], ["joint1", "joint2"], ["joint1", "joint2"]),
        (["joint_1", "joint_2"], ["joint0", "joint1"], ["joint0", "joint1"]),
        (["joint_1", "joint_2"], ["shoulder", "elbow"], ["shoulder", "elbow"]),
        (["Shoulder", "Elbow"], ["elbow", "shoulder"], ["shoulder", "elbow"]),
        (["joint_1"], ["joint1", "joint2"], ["joint1"]),
        (["joint_1", "joint_2"], ["a", "b", "c"], ["joint_1", "joint_2"]),
        (["joint_1", "joint_3"], ["a", "b"], ["joint_1", "joint_3"]),
        (["left", "right"], ["a", "b"], ["left", "right"]),
        (["a", "b"], ["a", "A_", "b"], ["a", "b"]),
    ],
)
def test_names_of_the_robot(channels, robot, expected):
    log = Log(T, channels, Q[:, : len(channels)], TAU[:, : len(channels)], "joint_torque")
    named = log.named_like(robot)
    assert list(named.joints) == expected
    assert (named is log) == (expected == channels)


def test_numbered_channels_reach_the_regression():
    demo = Path(di.__file__).parents[4] / "examples" / "demo"
    if not demo.is_dir():
        pytest.skip("the demo is not beside the sources")
    robot, log = di.Mechanism.from_urdf(demo / "robot.urdf"), di.Log.read(demo / "train.csv.gz").rows(0, 1500)
    table = {"t": log.t, "q": log.position, "tau": log.effort}
    found = di.Regression.from_log(robot, di.Log.read(table, "joint_torque"))
    assert any(note.kind == "numbered" and "joint1" in note.sentence and "joint_1" in note.sentence for note in found.notes)
    expected, zero = di.Regression.from_log(robot, log), {"t": log.t}
    zero |= {f"position_{i}": log.position[:, i] for i in range(6)} | {f"effort_{i}": log.effort[:, i] for i in range(6)}
    for other in (found, di.Regression.from_log(robot, di.Log.read(zero, "joint_torque"))):
        fits = [di.OLS().fit(r).result_ for r in (expected, other)]
        np.testing.assert_array_equal(*(fit.standard.values for fit in fits))


def test_own_files_come_back(tmp_path):
    pytest.importorskip("pyarrow")
    log = Log(T, NAMES, Q, TAU, "motor_current", gain=np.arange(1.0, 7.0), velocity=V, temperature=Q + 40, reference=Q + 1)
    for ending in ("csv", "npz", "parquet", "mat"):
        back = Log.read(log.save(tmp_path / f"a.{ending}"))
        assert (back.joints, back.effort_kind) == (log.joints, log.effort_kind)
        for name in ("t", "position", "effort", "velocity", "temperature", "reference", "gain"):
            np.testing.assert_array_equal(getattr(back, name), getattr(log, name))
        again = log.save(tmp_path / f"b.{ending}")
        assert again.read_bytes() == (tmp_path / f"a.{ending}").read_bytes()
    from scipy.io import loadmat

    content = loadmat(io.BytesIO((tmp_path / "a.mat").read_bytes()), simplify_cells=True)
    np.testing.assert_array_equal(content["position"], Q)
    assert list(content["joint_names"]) == NAMES


def test_complex_numbers_are_no_positions(tmp_path):
    """SciPy writes them; a channel needs real ones, a spectrum beside it does not matter."""
    from scipy.io import savemat

    for name, values in (("mat", Q + 0.1j), ("npz", Q + 0.1j)):
        write = savemat if name == "mat" else lambda file, content: np.savez(file, **content)
        write(str(tmp_path / f"bad.{name}"), {"t": T, "q": values, "tau": TAU})
        with pytest.raises(LogError, match=r"column 'q' of 'bad.* has complex numbers"):
            di.Log.read(tmp_path / f"bad.{name}", "joint_torque")
        write(str(tmp_path / f"good.{name}"), {"t": T, "q": Q + 0j, "tau": TAU, "spectrum": values})
        np.testing.assert_array_equal(di.Log.read(tmp_path / f"good.{name}", "joint_torque").position, Q)


def test_a_position_has_no_unit_of_a_current(tmp_path):
    file = tmp_path / "one.csv"
    np.savetxt(file, np.column_stack([T, Q[:, 0], TAU[:, 0]]), delimiter=",", header="t,q_ma,tau_ma", comments="")
    log = di.Log.read(file, "joint_torque")
    np.testing.assert_allclose(log.position[:, 0], Q[:, 0], rtol=1e-12)
