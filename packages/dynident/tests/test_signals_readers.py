from __future__ import annotations

import gc
import gzip
import weakref
from pathlib import Path

import numpy as np
import pytest

from dynident.errors import LogError
from dynident.signals import Log
from dynident.signals.formats import open_parquet
from dynident.signals.tables import COLUMNS
from dynident.signals.text import cells_of

T = np.arange(50) / 100.0
Q = np.column_stack([np.sin(T), np.cos(T)])
TAU = np.column_stack([T, -T])


def write(path, header, block, delimiter=","):
    lines = [delimiter.join(header), *(delimiter.join(map(repr, row)) for row in np.asarray(block).tolist())]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("header", "joints"),
    [
        (["t", "q_a", "q_b", "tau_a", "tau_b"], ("a", "b")),
        (["time", "q1", "q2", "tau1", "tau2"], ("joint_1", "joint_2")),
        (["Time", "Position1", "Position2", "Torque1", "Torque2"], ("joint_1", "joint_2")),
        (["timestamp", "- arm_1_position", "- arm_2_position", "- arm_1_effort", "- arm_2_effort"], ("arm_1", "arm_2")),
        (["times", "pos_x", "pos_y", "effort_x", "effort_y"], ("x", "y")),
        (["t", "q[0]", "q[1]", "tau[0]", "tau[1]"], ("joint_0", "joint_1")),
        (["t", "q_a [rad]", "q_b [rad]", "tau_a [Nm]", "tau_b [Nm]"], ("a", "b")),
    ],
)
def test_conventional_names(tmp_path, header, joints):
    log = Log.read(write(tmp_path / "a.csv", header, np.column_stack([T, Q, TAU])), effort="joint_torque")
    assert log.joints == joints
    np.testing.assert_array_equal(log.t, T)
    np.testing.assert_array_equal(log.position, Q)
    np.testing.assert_array_equal(log.effort, TAU)
    assert log.provenance["rows"] == 50
    assert len(log.provenance["sha256"][0]) == 64


def test_velocity_acceleration_temperature_are_taken(tmp_path):
    header = ["t", "q_a", "dq_a", "ddq_a", "tau_a", "temp_a"]
    log = Log.read(write(tmp_path / "a.csv", header, np.column_stack([T, T, 2 * T, 3 * T, 4 * T, 5 * T])), "joint_torque")
    np.testing.assert_array_equal(log.velocity[:, 0], 2 * T)
    np.testing.assert_array_equal(log.acceleration[:, 0], 3 * T)
    np.testing.assert_array_equal(log.temperature[:, 0], 5 * T)


def test_effort_kind_is_required(tmp_path):
    file = write(tmp_path / "a.csv", ["t", "q_a", "tau_a"], np.column_stack([T, T, T]))
    with pytest.raises(LogError, match="effort kind is missing"):
        Log.read(file)
    with pytest.raises(LogError, match="kind is 'torque'; it must be one of"):
        Log.read(file, "torque")
    with pytest.raises(LogError, match="different effort kinds"):
        Log.read(file, "joint_torque", schema={"effort_kind": "voltage"})


def test_kind_decides_between_torque_and_current(tmp_path):
    file = write(tmp_path / "a.csv", ["t", "q1", "Torque1", "Cur1"], np.column_stack([T, T, 2 * T, 3 * T]))
    np.testing.assert_array_equal(Log.read(file, "joint_torque").effort[:, 0], 2 * T)
    np.testing.assert_array_equal(Log.read(file, "motor_current").effort[:, 0], 3 * T)
    with pytest.raises(LogError, match="several kinds of effort"):
        Log.read(file, "voltage")


def test_delimiters_headerless_bom_and_missing_cells(tmp_path):
    block = np.column_stack([T, Q, TAU])
    for delimiter, name in ((";", "a.csv"), ("\t", "a.tsv"), (" ", "a.txt")):
        log = Log.read(write(tmp_path / name, ["t", "q_a", "q_b", "tau_a", "tau_b"], block, delimiter), "joint_torque")
        np.testing.assert_array_equal(log.position, Q)
    comma = tmp_path / "comma.csv"
    rows = ["t;q_a;tau_a", *(f"{a};{b};{c}".replace(".", ",") for a, b, c in zip(T, T, T, strict=True))]
    comma.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(rows).encode())
    np.testing.assert_array_equal(Log.read(comma, "joint_torque").position[:, 0], T)
    bare = tmp_path / "bare.csv"
    bare.write_text("\n".join(",".join(map(repr, r)) for r in block.tolist()))
    schema = {"time": "1", "position": [2, 3], "effort": ["4", "5"], "joints": ["a", "b"]}
    np.testing.assert_array_equal(Log.read(bare, "joint_torque", schema=schema).effort, TAU)
    holes = tmp_path / "holes.csv"
    holes.write_text("t,q_a,tau_a\n0,1,2\n1e-2,,3\n2e-2,nan,4\n3e-2,5,6\n")
    assert np.isnan(Log.read(holes, "joint_torque").position[:, 0]).tolist() == [False, True, True, False]


def test_schema_pattern_list_toml_and_units(tmp_path):
    file = write(tmp_path / "a.csv", ["clk", "ang.a", "ang.b", "i.a", "i.b"], np.column_stack([T * 1e3, Q * 180 / np.pi, TAU]))
    toml = tmp_path / "log.toml"
    toml.write_text(
        'time = "clk"\njoints = ["b", "a"]\nposition = "ang.{joint}"\neffort = ["i.b", "i.a"]\n'
        'effort_kind = "motor_current"\ngain = [2, 3]\n[unit]\ntime = "ms"\nposition = "deg"\neffort = "mA"\n'
    )
    log = Log.read(file, schema=toml)
    assert log.joints == ("b", "a")
    np.testing.assert_allclose(log.position, Q[:, ::-1], rtol=1e-14)
    np.testing.assert_allclose(log.effort, TAU[:, ::-1] * 1e-3, rtol=1e-14)
    np.testing.assert_allclose(log.t, T, atol=1e-15)
    assert any("deg" in note for note in log.provenance["conversions"])
    discovered = Log.read(file, schema={"time": "clk", "position": "ang.{joint}", "effort": "i.{joint}", "unit": {"time": "ms"},
                                        "effort_kind": "motor_current"})  # fmt: skip
    assert discovered.joints == ("a", "b")
    assert not any(note.startswith("not used") and "clk" in note for note in discovered.provenance["conversions"])


def test_counts_and_factors(tmp_path):
    file = write(tmp_path / "a.csv", ["t", "q_a", "q_b", "tau_a", "tau_b"], np.column_stack([T, np.round(Q * 1e4), TAU]))
    log = Log.read(file, "joint_torque", units={"position": "counts", "effort": [2.0, "mNm"]}, counts_per_unit=1e4)
    np.testing.assert_allclose(log.position, Q, atol=1e-4)
    np.testing.assert_allclose(log.effort, TAU * [2.0, 1e-3], rtol=1e-14)
    with pytest.raises(LogError, match="counts_per_unit"):
        Log.read(file, "joint_torque", units={"position": "counts"})


def test_wrong_units(tmp_path, subtests):
    for units, words in [
        ({"position": "degree_s"}, "'degree_s', which is unknown; known: rad"),
        ({"effort": "A"}, "effort kind is 'joint_torque'"),
        ({"force": "N"}, "quantities are time"),
        ({"position": ["rad"]}, "2 channels but 1"),
        ({"position": 0.0}, "not zero"),
        ({"position": None, "effort": {}}, "unit name or a number"),
        ("deg", "give a mapping"),
    ]:
        with subtests.test(str(words)):
            file = write(tmp_path / "a.csv", ["t", "q_a", "q_b", "tau_a", "tau_b"], np.column_stack([T, Q, TAU]))
            with pytest.raises(LogError, match=words):
                Log.read(file, "joint_torque", units=units)


def test_clock_rules(tmp_path):
    counter = write(tmp_path / "n.csv", ["Time", "q1", "tau1"], np.column_stack([np.arange(50), T, T]))
    with pytest.raises(LogError, match="counts samples"):
        Log.read(counter, "joint_torque")
    assert Log.read(counter, "joint_torque", rate=1000).rate == pytest.approx(1000.0)
    no_time = write(tmp_path / "x.csv", ["q1", "tau1"], np.column_stack([T, T]))
    with pytest.raises(LogError, match="no time column"):
        Log.read(no_time, "joint_torque")
    np.testing.assert_array_equal(Log.read(no_time, "joint_torque", rate=5000).t, np.arange(50) / 5000.0)
    slow = write(tmp_path / "ms.csv", ["t", "q1", "tau1"], np.column_stack([T * 1000.0, T, T]))
    with pytest.raises(LogError, match="'time': 'ms'"):
        Log.read(slow, "joint_torque")
    normal = write(tmp_path / "s.csv", ["t", "q1", "tau1"], np.column_stack([T + 1.6e9, T, T]))
    assert Log.read(normal, "joint_torque").t[0] == 0.0
    for rate in (0, -5, "fast", True, 500):
        with pytest.raises(LogError, match="rate"):
            Log.read(normal, "joint_torque", rate=rate)
    two = write(tmp_path / "two.csv", ["t", "time", "q1", "tau1"], np.column_stack([T, T, T, T]))
    with pytest.raises(LogError, match="several columns look like time"):
        Log.read(two, "joint_torque")


def test_several_files(tmp_path):
    a = write(tmp_path / "pos.csv", ["Joint_1", "Joint_2"], Q)
    b = write(tmp_path / "cur.csv", ["Joint_1", "Joint_2"], TAU)
    log = Log.read({"position": a, "effort": b}, "motor_torque", rate=100, position_side="motor")
    assert log.joints == ("Joint_1", "Joint_2")
    np.testing.assert_array_equal(log.effort, TAU)
    schema = {"position": "pos:{joint}", "effort": "cur:{joint}", "joints": ["Joint_2", "Joint_1"], "rate": 100}
    np.testing.assert_array_equal(Log.read([a, b], "motor_torque", schema=schema).effort, TAU[:, ::-1])
    (tmp_path / "s.toml").write_text('rate = 100\nfiles = {position = "pos.csv", effort = "cur.csv"}\n')
    np.testing.assert_array_equal(Log.read(tmp_path, "motor_torque", schema=tmp_path / "s.toml").position, Q)
    c = write(tmp_path / "q.csv", ["t", "q_a"], np.column_stack([T, T]))
    d = write(tmp_path / "tau.csv", ["t", "tau_a"], np.column_stack([T, 2 * T]))
    np.testing.assert_array_equal(Log.read([c, d], "joint_torque").effort[:, 0], 2 * T)
    late = write(tmp_path / "late.csv", ["t", "tau_a"], np.column_stack([T + 0.5, 2 * T]))
    with pytest.raises(LogError, match="clocks of the files differ"):
        Log.read([c, late], "joint_torque")
    with pytest.raises(LogError, match="speed"):
        Log.read({"speed": a}, "joint_torque", rate=100)


def test_npz_mat_hdf5_parquet_arrays(tmp_path):
    from scipy.io import savemat

    np.savez(tmp_path / "a.npz", times=T, positions=Q, torques=TAU, target_positions=Q * 9)
    savemat(tmp_path / "a.mat", {"t": T, "data": {"q": Q.T, "tau": TAU}, "g": 2.5, "name": "x"})
    log = Log.read(tmp_path / "a.npz", "joint_torque", joints=["a", "b"])
    assert log.joints == ("a", "b")
    np.testing.assert_array_equal(log.position, Q)
    schema = {"position": "data.q", "effort": "data.tau", "gain": ["g", 3.0], "effort_kind": "motor_current"}
    log = Log.read(tmp_path / "a.mat", schema=schema)
    np.testing.assert_array_equal(log.position, Q)
    np.testing.assert_array_equal(log.gain, [2.5, 3.0])
    one = Log.read(tmp_path / "a.mat", "joint_torque", schema={"position": ["data.q[1]"], "effort": ["data.tau[0]"]})
    np.testing.assert_array_equal(one.position[:, 0], Q[:, 1])
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["run/q"], file["run/tau"], file["t"] = Q, TAU, T
    log = Log.read(tmp_path / "a.h5", "joint_torque", schema={"position": "run/q", "effort": "run/tau"})
    np.testing.assert_array_equal(log.effort, TAU)
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"t": T, "q_a": [None, *T[1:]], "tau_a": T}), tmp_path / "a.parquet")
    log = Log.read(tmp_path / "a.parquet", "joint_torque")
    assert np.isnan(log.position[0, 0])
    assert log.effort[5, 0] == T[5]


def test_unknown_columns_are_listed(tmp_path):
    file = write(tmp_path / "a.csv", ["t", "foo", "bar"], np.column_stack([T, T, T]))
    with pytest.raises(LogError, match="foo, bar"):
        Log.read(file, "joint_torque")
    for schema, words in (
        ({"position": ["foo"], "effort": ["baz"]}, "'baz', which is not there"),
        ({"position": "p_{joint}", "effort": ["bar"]}, "fits no column"),
        ({"position": ["foo"], "effort": ["bar"], "joints": ["a", "b"]}, "1 position channels for 2 joints"),
        ({"positions": ["foo"]}, "unknown keys"),
        ({"position": 3.5}, "schema key 'position'"),
        ({"time": "zeit"}, "'zeit' is not there"),
        ({"position": ["foo"], "effort": ["bar"], "gain": "g"}, "gain 'g'"),
    ):
        with pytest.raises(LogError, match=words):
            Log.read(file, "joint_torque", schema=schema)
    (tmp_path / "bad.toml").write_text("a = = 3")
    with pytest.raises(LogError, match="not valid TOML"):
        Log.read(file, "joint_torque", schema=tmp_path / "bad.toml")


def test_damaged_files(tmp_path):
    from scipy.io import savemat

    good = ("t,q_a,tau_a\n" + "\n".join(f"{t},{t},{t}" for t in T)).encode()
    np.savez(tmp_path / "good.npz", times=T, positions=Q, torques=TAU)
    savemat(tmp_path / "good.mat", {"t": T, "q": Q, "tau": TAU}, do_compression=True)
    np.savez(tmp_path / "pickled.npz", times=T, positions=np.array([{}, 1], dtype=object))
    cases = {
        "empty.csv": b"",
        "header.csv": b"t,q_a,tau_a\n",
        "comment.csv": b"# nothing\n",
        "text.csv": good + b"\nx,y,z",
        "short.csv": good + b"\n1,2\n3,4,5",
        "twice.csv": b"t,q_a,q_a\n1,2,3\n",
        "binary.csv": b"\xff\xfe\x00\x01" * 20,
        "cut.csv.gz": gzip.compress(good * 50)[:-40],
        "cut.npz": (tmp_path / "good.npz").read_bytes()[:-300],
        "cut.mat": (tmp_path / "good.mat").read_bytes()[:300],
        "noise.mat": bytes(range(256)) * 4,
        "noise.npz": b"no archive at all",
        "noise.parquet": b"PAR1 no",
        "noise.h5": b"no hdf",
        "a.xlsx": b"1",
    }
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(LogError, match=name):
            Log.read(tmp_path / name, "joint_torque")
    with pytest.raises(LogError, match="pickled object"):
        Log.read(tmp_path / "pickled.npz", "joint_torque")
    with pytest.raises(LogError, match=r"absent\.csv"):
        Log.read(tmp_path / "absent.csv", "joint_torque")


def test_a_parquet_file_is_forgotten_when_it_is_closed(tmp_path: Path) -> None:
    """Metadata of long logs take megabytes: fleets open them once per piece, and must not wait for Python's collector."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"t": [0.0, 0.1], "q1": [1.0, 2.0]}), tmp_path / "log.parquet")
    gc.collect()
    gc.disable()
    try:
        for stream in ((tmp_path / "log.parquet").open("rb"), (tmp_path / "log.parquet").read_bytes()):
            file = open_parquet(stream, 1 << 20)
            metadata = weakref.ref(file.metadata)
            del file
            assert metadata() is None
            if not isinstance(stream, bytes):
                stream.close()
    finally:
        gc.enable()


def test_columns_that_were_not_used_are_told_by_families():
    """Seven currents behind seven other columns are not hidden: they may be the efforts that are wanted."""
    t = np.arange(50) / 100
    table = {"t": t} | {f"q{i}": np.sin(t + i) for i in range(1, 8)} | {f"tau{i}": np.cos(t + i) for i in range(1, 8)}
    table |= {f"{name}{i}": t + i for name in ("sm", "cur", "spare") for i in range(1, 8)}
    log = Log.read(table, "joint_torque")
    assert "not used: sm1 to sm7, cur1 to cur7, spare1 to spare7" in log.provenance["conversions"]


def test_a_blank_that_does_not_break_lines_is_a_blank(tmp_path):
    rows = "\n".join(f"{0.01 * k:.2f},{k},{2 * k}\u00a0" for k in range(20))
    (tmp_path / "run.csv").write_text(f"t,q1,tau1\n{rows}\n", encoding="utf-8")
    log = Log.read(tmp_path / "run.csv", "joint_torque")
    np.testing.assert_array_equal(log.effort[:, 0], 2.0 * np.arange(20))


def test_a_line_with_too_many_columns_says_how_many():
    with pytest.raises(LogError, match=f"it has {COLUMNS + 2} columns; at most {COLUMNS} are read"):
        cells_of(",".join("x" * (COLUMNS + 2)), ",")


@pytest.mark.parametrize("mark", ['"', "\u20ac", "\u2028"])
def test_a_separator_that_cannot_separate_is_refused(tmp_path, mark):
    (tmp_path / "run.csv").write_text(f"sep={mark}\nt,q1,tau1\n0,1,2\n", encoding="utf-8")
    with pytest.raises(LogError, match="as the separator of its cells"):
        Log.read(tmp_path / "run.csv", "joint_torque")
