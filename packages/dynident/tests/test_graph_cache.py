"""Compiled code on disk: kept once, shared by processes, and never trusted, required or growing without bound."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dynident
from dynident import graph as g
from dynident.graph import cache
from dynident.graph.cache import clear, usage
from dynident.graph.compiled import Compiled
from dynident.graph.machine import MachineCode

RUN = """
import sys
import numpy as np
from dynident import graph as g
from dynident.graph.compiled import Compiled

graph = g.Graph()
x = graph.symbols("x", 2)
function = g.Function("f", {"x": 2}, {"y": [g.sin(x[0]) * x[1] + FACTOR]})
y, points = np.empty((5, 1)), np.arange(10.0).reshape(5, 2)
Compiled(function)(5, {"x": points, "y": y})
assert np.allclose(y[:, 0], np.sin(points[:, 0]) * points[:, 1] + FACTOR, rtol=0, atol=1e-14)
print("right")
"""


def environment(folder: Path | str) -> dict[str, str]:
    return {**os.environ, "DYNIDENT_CACHE": str(folder), "PYTHONPATH": str(Path(dynident.__file__).parents[1])}


def start(folder: Path | str, code: str = RUN, **changes: str) -> subprocess.Popen[str]:
    """Start a process that compiles a small function and checks its values."""
    text = code.replace("FACTOR", "2.5")
    return subprocess.Popen(
        [sys.executable, "-c", text],
        env={**environment(folder), **changes},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def right(process: subprocess.Popen[str]) -> bool:
    out, error = process.communicate()
    assert process.returncode == 0, error
    return out.strip() == "right"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "objects"
    monkeypatch.setenv("DYNIDENT_CACHE", str(place))
    return place


def value(offset: float) -> float:
    """Compile x + offset, one object without functions of a library, in this process and return it at 1."""
    graph = g.Graph()
    y = np.empty((1, 1))
    function = g.Function("shift", {"x": 1}, {"y": [graph.symbol("x[0]") + offset]}, rows=frozenset("xy"))
    Compiled(function)(1, {"x": np.ones((1, 1)), "y": y})
    return float(y[0, 0])


def objects(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.o"))


def test_the_second_time_nothing_is_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert value(1.5) == 2.5
    assert usage()[:2] == (folder, 1)
    assert usage()[2] == objects(folder)[0].stat().st_size

    def refuse(*_: object) -> bytes:
        raise AssertionError("compiled again")

    monkeypatch.setattr(MachineCode, "_compiled", staticmethod(refuse))
    assert value(1.5) == 2.5
    with pytest.raises(AssertionError, match="compiled again"):
        value(1.75)


def test_other_code_is_another_object(folder: Path) -> None:
    assert [value(x) for x in (1.0, 2.0, 3.0)] == [2.0, 3.0, 4.0]
    assert len(objects(folder)) == 3
    assert clear() == 3
    assert usage() == (folder, 0, 0)
    assert value(1.0) == 2.0


def test_processes_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "objects"
    running = [start(folder) for _ in range(3)]
    assert all(right(process) for process in running)
    assert len(objects(folder)) == 2  # the function and its library
    assert not list(folder.glob(".new-*"))


def test_a_run_that_is_killed_while_it_writes(tmp_path: Path) -> None:
    killed = "import os, pathlib, signal\npathlib.Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n" + RUN
    if not hasattr(os, "fork"):
        pytest.skip("needs signals that kill")
    process = start(tmp_path, killed)
    process.communicate()
    assert process.returncode == -9
    assert not objects(tmp_path)
    assert len(list(tmp_path.glob(".new-*"))) == 1  # left behind, and no harm
    assert right(start(tmp_path))
    assert len(objects(tmp_path)) == 2


def test_what_a_killed_run_left_counts_and_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    left = folder / ".new-left"
    left.write_bytes(b"x" * 100_000)
    os.utime(left, (1.0, 1.0))
    assert usage()[1:] == (1, 100_000)
    monkeypatch.setattr(cache, "LIMIT", 90_000)
    assert value(1.0) == 2.0
    assert not left.exists()
    assert len(objects(folder)) == 1


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "empty", "folder"])
def test_a_file_that_cannot_be_trusted_is_compiled_again(folder: Path, damage: str) -> None:
    assert value(4.0) == 5.0
    (path,) = objects(folder)
    whole = path.read_bytes()
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        texts = {"truncated": whole[: len(whole) // 2], "flipped": bytes(flipped), "foreign": b"\x7fELF" + whole, "empty": b""}
        path.write_bytes(texts[damage])
    assert value(4.0) == 5.0
    if damage != "folder":
        assert path.read_bytes() == whole


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT])
def test_a_folder_that_cannot_be_written_to(folder: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object, **__: object) -> tuple[int, str]:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(cache.tempfile, "mkstemp", refuse)
    assert value(6.0) == 7.0
    assert not objects(folder)


def test_a_disk_that_fills_while_writing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, handle: int, _: str) -> None:
            self.handle = handle

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            os.close(self.handle)

        def write(self, body: bytes) -> int:
            os.write(self.handle, body[:100])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(cache.os, "fdopen", Full)
        assert value(8.0) == 9.0
    assert list(folder.iterdir()) == []
    assert value(8.0) == 9.0
    assert len(objects(folder)) == 1


def test_the_folder_stays_below_its_limit_and_keeps_what_was_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [value(float(k)) for k in range(4)] == [1.0, 2.0, 3.0, 4.0]
    size = usage()[2] // 4
    for age, path in enumerate(objects(folder)):
        os.utime(path, (1000.0 + age, 1000.0 + age))
    oldest = objects(folder)[0].stem
    assert cache.read(oldest) is not None  # used just now
    monkeypatch.setattr(cache, "LIMIT", 3 * size + size // 2)
    assert value(9.0) == 10.0
    assert usage()[2] <= cache.LIMIT
    assert cache.read(oldest) is not None
    monkeypatch.setattr(cache, "LIMIT", 0)
    assert value(10.0) == 11.0
    assert usage()[1] == 0


def test_no_home_and_no_cache(tmp_path: Path) -> None:
    nowhere = {key: x for key, x in environment("").items() if key not in ("DYNIDENT_CACHE", "XDG_CACHE_HOME")}
    nowhere |= {"HOME": os.devnull, "LOCALAPPDATA": os.devnull}
    done = subprocess.run(
        [sys.executable, "-c", RUN.replace("FACTOR", "2.5")],
        env=nowhere,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout.strip() == "right", done.stderr
    nothing = "\nfrom dynident.graph.cache import clear, usage\nassert usage() == (None, 0, 0) and clear() == 0\n"
    assert right(start("", RUN + nothing))


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs the permissions of POSIX")
def test_a_folder_that_others_may_write_to_is_not_used(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    assert value(1.0) == 2.0
    assert not objects(folder)
    folder.chmod(0o755)
    assert value(1.0) == 2.0
    assert len(objects(folder)) == 1


def test_a_processor_has_objects_of_its_own(tmp_path: Path) -> None:
    assert right(start(tmp_path))
    assert right(start(tmp_path, DYNIDENT_CPU="generic"))
    assert len(objects(tmp_path)) == 4


def test_objects_under_each_others_names_are_compiled_again(folder: Path) -> None:
    """Each is whole and right, but for another function: running one would give the other's value, or end the process."""
    assert [value(1.0), value(2.0)] == [2.0, 3.0]
    one, other = objects(folder)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    assert [value(1.0), value(2.0)] == [2.0, 3.0]
    assert [one.read_bytes(), other.read_bytes()] == [first, second]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_in_the_folder_is_not_waited_for(tmp_path: Path) -> None:
    assert right(start(tmp_path))
    path, _ = objects(tmp_path)
    path.unlink()
    os.mkfifo(path)
    process = start(tmp_path)
    try:
        assert right(process)
    finally:
        process.kill()
    assert path.is_file()  # replaced by the object


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners")
def test_an_object_of_another_user_is_not_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert value(3.0) == 4.0
    (path,) = objects(folder)
    assert cache.read(path.stem) is not None
    monkeypatch.setattr(cache, "_private", lambda _: True)
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    assert cache.read(path.stem) is None
