"""Damaged and hostile files in every format: one sentence, and no more memory than a small file may take."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optional import optional

from dynident.errors import DynidentError, LogError
from dynident.signals import Log, butterworth, diagnose, fourier, prepare

ARROW = optional("dynident.signals.arrow")  # it needs pyarrow
T = np.arange(60) / 100.0
Q = np.column_stack([np.sin(T), np.cos(T)])
TAU = np.column_stack([T, -T])
LOG = Log(T, ["a", "b"], Q, TAU, "joint_torque", temperature=Q, reference=Q)
TEXTS = {
    "plain.csv": b"t,q1,q2,tau1,tau2\n" + b"".join(b"%r,%r,%r,1,2\n" % (t, t, t) for t in T.tolist()),
    "echo.csv": b"".join(b"17,%d,,a,b,%r,0,1,2,3,%r\n" % (round(t * 1e9), t, t) for t in T.tolist()),
    "lists.csv": b"t,name,q,tau\n" + b"".join(b'%r,"[\'a\', \'b\']","[1.0, %r]","[0.5, 2.0]"\n' % (t, t) for t in T.tolist()),
    "units.csv": b"sep=;\nt;q1;tau1\ns;deg;Nm\n" + b"".join(b"0,%02d;0,5;1\n" % k for k in range(60)),
}
FORMATS = (
    *TEXTS,
    "own.csv",
    "own.csv.gz",
    "own.npz",
    "own.mat",
    "plain.mat",
    "own.parquet",
    "plain.h5",
    "own.mcap",
    "bag.db3",
    "bag.bag",
)


@cache
def good(name: str, folder: Path) -> bytes:
    """A good file of each format."""
    kind = name.split(".", 1)[1]
    if name in TEXTS:
        return TEXTS[name]
    if name == "plain.h5":
        h5py = pytest.importorskip("h5py")
        buffer = io.BytesIO()
        with h5py.File(buffer, "w") as file:
            file["t"], file["run/q"], file["run/tau"] = T, Q, TAU
        return buffer.getvalue()
    if name == "plain.mat":
        from scipy.io import savemat

        buffer = io.BytesIO()
        savemat(buffer, {"log": {"t": T, "q": Q, "tau": TAU, "names": ["a", "b"]}})
        return buffer.getvalue()
    if name.startswith("bag"):
        pytest.importorskip("rosbags.typesys")
        from test_signals_bags import Messages, states, write

        make = Messages(ros1=kind == "bag")
        path = write(
            folder / ("x.bag" if kind == "bag" else "x"), states(make)[:40], "ros1" if kind == "bag" else "SQLITE3", make
        )
        return (path if kind == "bag" else next(path.glob("*.db3"))).read_bytes()
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    if kind == "mcap":
        pytest.importorskip("mcap")
        pytest.importorskip("rosbags.typesys")
    return LOG.save(folder / name).read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


def mutated(data: bytes, draw) -> bytes:
    """Some bytes changed, a part cut out, doubled or moved, or the end cut off."""
    result = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        size = len(result)
        a, b = sorted(draw(st.tuples(st.integers(0, size), st.integers(0, size))))
        action = draw(st.sampled_from(["byte", "byte", "bytes", "cut", "double", "end", "number"]))
        if action == "byte" and size:
            result[draw(st.integers(0, size - 1))] = draw(st.integers(0, 255))
        elif action == "bytes":
            result[a : a + 4] = draw(st.binary(min_size=4, max_size=4))
        elif action == "number":
            result[a : a + 8] = draw(st.sampled_from([b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7, b"99999999", b"1e308,,,"]))
        elif action == "cut":
            del result[a : min(b, a + 200)]
        elif action == "double":
            result[a:a] = result[a : min(b, a + 200)]
        else:
            del result[a:]
    return bytes(result)


@pytest.mark.parametrize("name", FORMATS)
def test_the_files_are_good_before_they_are_damaged(name, folder):
    file = folder / f"good.{name.split('.', 1)[1]}"
    file.write_bytes(good(name, folder))
    assert len(Log.read(file, effort=None if name.startswith("own") else "joint_torque")) >= 40


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_mutated_files_give_a_log_or_a_sentence(name, folder, data):
    file = folder / f"mutated.{name.split('.', 1)[1]}"
    file.write_bytes(mutated(good(name, folder), data.draw))
    try:
        log = Log.read(file, effort=None if name.startswith("own") else "joint_torque")
    except DynidentError as error:
        assert 10 < len(str(error)) < 3000
        assert str(error).isprintable()
    else:
        assert np.all(np.diff(log.t) > 0)
        assert log.position.shape == log.effort.shape == (len(log), len(log.joints))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(text=st.text(alphabet="t,;q1 2\t.-e+#[]()'\"\n_=sepNmdg|", max_size=200))
def test_any_text_gives_a_log_or_a_sentence(text, tmp_path_factory):
    file = tmp_path_factory.getbasetemp() / "any.csv"
    file.write_text(text)
    try:
        Log.read(file, "joint_torque", rate=100.0)
    except DynidentError as error:
        assert str(error)


def bombs(folder: Path) -> list[Path]:
    """Small files that unpack to gigabytes, nest without end, or have columns without number."""
    folder.mkdir()
    (folder / "lines.csv.gz").write_bytes(gzip.compress(b"t,q1,tau1\n" + b"\n" * 300_000_000, 1))
    (folder / "blank.csv.gz").write_bytes(gzip.compress(b"t,q1,tau1\n" + b" \n" * 20_000_000, 1))
    (folder / "zeros.csv.gz").write_bytes(gzip.compress(b"t,q1,tau1\n" + b"0,0,0\n" * 30_000_000, 1))
    (folder / "wide.csv").write_bytes(b",".join(b"q%d" % i for i in range(30_000)) + b"\n" + b",".join([b"0"] * 30_000))
    (folder / "line.csv").write_bytes(b"a" * 9_000_000)
    (folder / "quote.csv").write_bytes(b't,q1,tau1\n"' + b"a" * 5_000_000)
    with zipfile.ZipFile(folder / "zeros.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (40_000_000,)})
        with archive.open("q.npy", "w", force_zip64=True) as entry:
            entry.write(header.getvalue())
            for _ in range(320):
                entry.write(bytes(1_000_000))
    try:
        import h5py

        with h5py.File(folder / "never.h5", "w") as file:
            file.create_dataset("q", (350_000_000,), chunks=(1_000_000,), dtype="f8")
        with h5py.File(folder / "circle.h5", "w") as file:
            file.create_group("a")["b"] = file["/"]
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"t": np.zeros(40_000_000)}), folder / "constant.parquet")
        from mcap.writer import CompressionType, Writer

        for kind in (CompressionType.LZ4, CompressionType.ZSTD):
            with (folder / f"{kind.name}.mcap").open("wb") as stream:
                writer = Writer(stream, chunk_size=1 << 31, compression=kind)
                writer.start()
                schema = writer.register_schema("sensor_msgs/msg/JointState", "ros2msg", b"")
                channel = writer.register_channel("/joint_states", "cdr", schema)
                for k in range(5):
                    writer.add_message(channel, k, bytes(50_000_000), k)
                writer.finish()
    except ImportError:
        pass  # the formats of extras that are not installed cannot be read either
    from scipy.io import savemat

    savemat(folder / "zeros.mat", {"q": np.zeros(40_000_000)}, do_compression=True)
    return sorted(folder.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in a forked child")
def test_bombs_are_refused_before_they_take_memory(tmp_path):

    for file in bombs(tmp_path / "bombs"):
        assert file.stat().st_size < 10_000_000
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            with Path("/proc/self/clear_refs").open("w") as peak:
                peak.write("5")
            before = int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])
            try:
                Log.read(file, "joint_torque", rate=100.0)
                said = "read"
            except LogError as error:
                said = f"refused {error}"
            except BaseException as error:
                said = f"raw {error!r}"
            status = Path("/proc/self/status").read_text()
            high = int(status.split("VmHWM:")[1].split()[0])
            os.write(writer, f"{high - before} {said[:300]}".encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        high, _, said = os.read(reader, 1000).decode().partition(" ")
        os.close(reader)
        assert said.startswith("refused"), (file.name, said)
        assert int(high) < 1_000_000, (file.name, high)  # kB


def test_names_are_shown_without_control_characters(tmp_path):
    text = "t,q_\x1b[31ma,tau_\x1b[31ma,\u202eevil\n" + "".join(f"0.0{k},1,2,3\n" for k in range(9))
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    log = Log.read(tmp_path / "a.csv", "joint_torque")
    assert log.joints == ("?[31ma",)
    assert all(note.isprintable() for note in log.provenance["conversions"])
    with pytest.raises(LogError) as told:
        Log.read(tmp_path / "a.csv", "joint_torque", schema={"time": "x"})
    assert str(told.value).isprintable()


def test_a_pipe_is_not_waited_for(tmp_path):
    for ending in ("csv", "mcap", "npz"):
        os.mkfifo(tmp_path / f"a.{ending}")
        with pytest.raises(LogError, match="not a regular file"):
            Log.read(tmp_path / f"a.{ending}", "joint_torque")


def test_a_clock_in_the_wrong_unit_is_refused_before_the_filter_is_padded():
    t = np.arange(2000) / 100.0
    q = np.column_stack([np.sin(t), np.cos(2 * t)])
    right = Log(t, ["a", "b"], q, q, "joint_torque")
    wrong = Log(t * 1e-7, ["a", "b"], q, q, "joint_torque")
    like = prepare(right)
    diagnose(wrong)
    with pytest.raises(LogError, match="check the unit of the clock"), pytest.warns(UserWarning):
        prepare(wrong, like=like)
    with pytest.raises(LogError, match="check the unit of the clock"):
        butterworth(1e9, q, 5.0)
    with pytest.raises(LogError, match="lower rate"):
        prepare(right, resample=1e9)
    with pytest.raises(LogError, match="harmonics"):
        fourier(1e3, np.tile(q, (10, 1)), 400.0, period=20.0)


def test_records_with_fields_of_their_own_do_not_grow(tmp_path, monkeypatch):
    """Every line has another field, which all lines before would have to be filled up for."""
    (tmp_path / "a.jsonl").write_text("\n".join(["{}"] * 20_000 + [f'{{"q{i}": 1}}' for i in range(20)]))
    monkeypatch.setattr("dynident.signals.reading.ROOM", 0)
    with pytest.raises(LogError, match="records would take"):
        Log.read(tmp_path / "a.jsonl", effort="joint_torque")


FOOTERS = """
import io, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from dynident.errors import LogError
from dynident.signals.reading import read_table

buffer, n = io.BytesIO(), 30
lists = pa.array([[float(k), 1.0] for k in range(n)])
pq.write_table(pa.table({"t": np.arange(n) * 0.01, "q": lists, "tau": lists, "name": ["a"] * n}), buffer)
good = buffer.getvalue()
length = int.from_bytes(good[-8:-4], "little")
read = refused = 0
for place in range(len(good) - 8 - length, len(good)):
    for change in (1, 16, 128):
        data = bytearray(good)
        data[place] ^= change
        with open(sys.argv[1], "wb") as file:
            file.write(data)
        try:
            read_table(sys.argv[1])
            read += 1
        except LogError:
            refused += 1
print(read, refused)
"""


def test_a_damaged_footer_of_parquet_never_ends_the_process(tmp_path):
    """pyarrow lets a C++ exception end it for some of them."""
    pytest.importorskip("pyarrow")
    done = subprocess.run(
        [sys.executable, "-c", FOOTERS, str(tmp_path / "x.parquet")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
    read, refused = map(int, done.stdout.split())
    assert read > 100 and refused > 100


@pytest.mark.parametrize(("data", "number"), [(b"\x00", 0), (b"\x01", -1), (b"\x02", 1), (b"\x03", -2), (b"\xff\x01", -128)])
def test_whole_numbers_of_thrift_have_their_sign_in_the_last_bit(data, number):
    """Zigzag numbers of the specification of Thrift's compact protocol."""
    assert ARROW._Thrift(data).whole() == number
