"""What MATLAB saves beside arrays: structures in structures, objects and arrays of structures, in version 7 and 7.3 files."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynident.errors import LogError
from dynident.signals import Log
from dynident.signals.matlab import read_matlab

T = np.arange(50) / 100
Q = np.column_stack([np.sin(T), np.cos(T)])
TAU = 2.0 * Q
ARRAYS = {"t": T, "q": Q, "tau": TAU}
CSV = "T = timetable2table(data); T.Time = seconds(T.Time - T.Time(1)); writetable(T, 'run.csv')"


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def variable(class_: int, *parts: bytes) -> bytes:
    return element(14, element(6, struct.pack("<II", class_, 0)) + b"".join(parts))


def opaque(name: str, class_: str) -> bytes:
    """An object as MATLAB writes it: its name, the system of classes, its class, and where it lies in the hidden part."""
    place = np.array([0xDD000000, 2, 1, 1, 1, 1], dtype="<u4").tobytes()
    number = variable(13, element(5, struct.pack("<ii", 6, 1)), element(1, b""), element(6, place))
    return variable(17, *(element(1, text.encode()) for text in (name, "MCOS", class_)), number)


def matlab5(path: Path, *objects: bytes, **arrays: Any) -> Path:
    from scipy.io import savemat

    savemat(path, arrays or {"nothing": []})
    hidden = variable(9, element(5, struct.pack("<ii", 1, 8)), element(1, b""), element(2, bytes(8)))
    path.write_bytes(path.read_bytes() + b"".join(objects) + (hidden if objects else b""))
    return path


def matlab73(path: Path, objects: dict[str, str], **arrays: Any) -> Path:
    """HDF5 behind a header of 512 bytes; columns of MATLAB are rows of HDF5, objects have a class and a number."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in arrays.items():
            file.create_dataset(name, data=np.atleast_2d(values).T).attrs["MATLAB_class"] = np.bytes_("double")
        for name, class_ in objects.items():
            item = file.create_dataset(name, data=np.array([[0xDD000000, 2, 1, 1, 1, 1]], dtype="u4"))
            item.attrs["MATLAB_class"], item.attrs["MATLAB_object_decode"] = np.bytes_(class_), np.int32(3)
        file.create_dataset("note", data=np.array([[104], [105]], dtype="u2")).attrs["MATLAB_class"] = np.bytes_("char")
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path


def test_structures_in_structures_are_read_by_their_paths(tmp_path: Path) -> None:
    nested = {"log": {"meta": {"rate": 100.0}, "robot": ARRAYS}}
    deep = {f"log/robot/{name}": values for name, values in ARRAYS.items()}
    for file in (matlab5(tmp_path / "five.mat", **nested), matlab73(tmp_path / "seven.mat", {}, **deep)):
        log = Log.read(file, "joint_torque")
        np.testing.assert_array_equal(log.position, Q)
        np.testing.assert_array_equal(log.effort, TAU)
        np.testing.assert_array_equal(log.t, T)


@pytest.mark.parametrize(
    ("class_", "remedy"),
    [
        ("timetable", CSV),
        ("table", "writetable(data, 'run.csv')"),
        ("Simulink.SimulationData.Dataset", "save('run.mat', 't', 'q', 'tau')"),
    ],
)
def test_an_object_is_named_with_what_to_do_in_matlab(tmp_path: Path, class_: str, remedy: str) -> None:
    five = matlab5(tmp_path / "five.mat", opaque("data", class_))
    for file in (five, matlab73(tmp_path / "seven.mat", {"data": class_})):
        with pytest.raises(LogError) as refused:
            Log.read(file, "joint_torque")
        assert f"'data' is a {class_}, an object that only MATLAB opens; there write {remedy}" in str(refused.value)
    with pytest.raises(LogError, match=r"no time column.* 'data' is a "):
        Log.read(matlab5(tmp_path / "gains.mat", opaque("data", class_), gains=[1.0, 2.0]), "joint_torque")
    with pytest.raises(LogError, match=r"no effort columns .* 'data' is a "):
        Log.read(matlab5(tmp_path / "half.mat", opaque("data", class_), t=T, q=Q), "joint_torque")


def test_an_object_beside_a_log_does_not_hide_it(tmp_path: Path) -> None:
    five = matlab5(tmp_path / "five.mat", opaque("data", "timetable"), opaque("remark", "string"), **ARRAYS)
    for file in (five, matlab73(tmp_path / "seven.mat", {"data": "timetable", "remark": "string"}, **ARRAYS)):
        log = Log.read(file, "joint_torque")
        np.testing.assert_array_equal(log.position, Q)
        said = "; ".join(log.provenance["conversions"])
        assert "'data' is a timetable" in said
        assert "remark" not in said


def test_an_array_of_structures_is_named_with_what_to_do_in_matlab(tmp_path: Path) -> None:
    several = np.array([(T, Q, TAU)] * 2, dtype=[(name, object) for name in ARRAYS])
    with pytest.raises(LogError, match=r"'log' is an array of 2 structures; .* one = log\(1\)"):
        Log.read(matlab5(tmp_path / "five.mat", log=several), "joint_torque")
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "seven.mat", "w") as file:
        inner = file.create_dataset("#refs#/a", data=Q)
        file.create_dataset("log/q", data=[inner.ref, inner.ref], dtype=h5py.ref_dtype)
    with pytest.raises(LogError, match="'log' is an array of 2 structures"):
        Log.read(tmp_path / "seven.mat", "joint_torque")


def test_thousands_of_objects_and_missing_parts_are_one_sentence(tmp_path: Path) -> None:
    many = [opaque(f"data{k}", "timetable") for k in range(300)]
    with pytest.raises(LogError, match=r"'data0' is a timetable.* 295 more objects") as refused:
        Log.read(matlab5(tmp_path / "many.mat", *many, gains=[1.0, 2.0]), "joint_torque")
    assert len(str(refused.value)) < 1500
    shape = element(5, struct.pack("<ii", 1, 1))
    small = struct.pack("<II", 4 << 16 | 14, 0)  # a variable of nothing
    cells = variable(1, shape, element(1, b"cells"), small * 1000)
    np.testing.assert_array_equal(Log.read(matlab5(tmp_path / "cells.mat", cells, **ARRAYS), "joint_torque").position, Q)
    few = variable(1, element(5, struct.pack("<ii", -2, 3)), element(1, b"few"))
    with pytest.raises(LogError, match="'few' has -6 cells"):
        Log.read(matlab5(tmp_path / "few.mat", few, **ARRAYS), "joint_torque")
    with pytest.raises(LogError, match="the fields of 's' have names of 0 letters; the file is damaged"):
        Log.read(matlab5(tmp_path / "cut.mat", variable(2, shape, element(1, b"s")), **ARRAYS), "joint_torque")


@pytest.mark.parametrize("cell", ["{:g} sec", "17-Nov-2026 14:00:{:06.3f}"])
def test_times_as_matlab_writes_them_into_text(tmp_path: Path, cell: str) -> None:
    rows = [f"{cell.format(t)},{q:.17g},{tau:.17g}" for t, q, tau in zip(T, Q[:, 0], TAU[:, 0], strict=True)]
    (tmp_path / "run.csv").write_text("\n".join(["Time,q_a,tau_a", *rows]), encoding="utf-8")
    log = Log.read(tmp_path / "run.csv", "joint_torque")
    np.testing.assert_allclose(log.t - log.t[0], T, atol=1e-9)


def test_complex_numbers_of_matlab_keep_their_sign(tmp_path):
    savemat = pytest.importorskip("scipy.io").savemat
    values = np.array([1.0 + 2.0j, -3.0 - 0.5j, 4.0 + 0.0j])
    savemat(tmp_path / "x.mat", {"z": values})
    np.testing.assert_array_equal(read_matlab((tmp_path / "x.mat").read_bytes(), 1 << 20)["z"], values)


def test_an_object_of_a_newer_matlab_file_is_named_by_its_own_place(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "run.mat", "w") as file:
        item = file.create_dataset("run/motor", data=np.zeros(1, dtype=np.uint32))
        item.attrs["MATLAB_class"] = np.bytes_("timeseries")
        item.attrs["MATLAB_object_decode"] = 3
    with pytest.raises(LogError, match=r"'run\.motor' is a timeseries"):
        Log.read(tmp_path / "run.mat", "joint_torque")
