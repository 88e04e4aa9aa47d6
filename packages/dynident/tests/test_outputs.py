"""Results appear as one set: whatever moment a process dies at, the folder holds the old set or the new one."""

from __future__ import annotations

import errno
import os
import signal
import sys
from pathlib import Path

import pytest

from dynident.errors import DynidentError
from dynident.files import read_toml, write_atomic
from dynident.outputs import _exchange, output_set

OWNS = ("fit.json", "model.*", "verdict.json")
OLD = {"fit.json": "old", "model.urdf": "old", "verdict.json": "old"}
NEW = {"fit.json": "new", "model.xml": "new", "verdict.json": "new"}

forks = pytest.mark.skipif(
    not hasattr(os, "fork") or sys.platform != "linux", reason="needs fork and Linux's exchange of folders"
)


def write(folder: Path, content: dict[str, str]) -> None:
    with output_set(folder, OWNS) as stage:
        for name, text in content.items():
            write_atomic(stage / name, text)


def seen(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if any(path.match(pattern) for pattern in OWNS)}


def killed_at(event: int, folder: Path, content: dict[str, str]) -> bool:
    """Write in a process that dies without warning at its n-th use of the file system; say whether it came so far."""
    child = os.fork()
    if child == 0:
        count = 0

        def hook(name: str, _: tuple[object, ...]) -> None:
            nonlocal count
            if name.startswith(("os.", "open", "shutil.", "tempfile.", "ctypes.")):
                count += 1
                if count == event:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        try:
            write(folder, content)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@forks
def test_a_kill_at_any_moment_leaves_one_whole_set_and_the_next_run_cleans_up(tmp_path):
    folder, outcomes = tmp_path / "out", set()
    event = 1
    while True:
        write(folder, OLD)
        (folder / "notes.txt").write_text("mine")
        killed = killed_at(event, folder, NEW)
        assert seen(folder) in (OLD, NEW), f"mixed after the kill at event {event}"
        assert (folder / "notes.txt").read_text() == "mine"
        outcomes.add(seen(folder) == NEW)
        if not killed:
            break
        event += 1
    assert event > 20, "the kills must fall into the writing"
    assert outcomes == {False, True}
    write(folder, NEW)
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "what killed runs left is gone"


@forks
def test_a_kill_while_one_file_is_written_leaves_the_old_one_and_the_next_run_cleans_up(tmp_path):
    target = tmp_path / "fit.json"
    target.write_text("old")
    child = os.fork()
    if child == 0:
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        write_atomic(target, "new")
    os.waitpid(child, 0)
    assert target.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2, "the temporary file of the killed process"
    write_atomic(target, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["fit.json"]
    assert target.read_text() == "new"


def test_files_of_an_earlier_set_go_and_others_stay(tmp_path):
    folder = tmp_path / "out"
    write(folder, OLD)
    (folder / "notes.txt").write_text("mine")
    write(folder, NEW)
    assert seen(folder) == NEW
    assert (folder / "notes.txt").read_text() == "mine"


def test_the_working_folder_and_folders_with_folders_are_not_exchanged(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    write(folder, OLD)
    (folder / "deeper").mkdir()
    identity = folder.stat().st_ino
    write(folder, NEW)
    assert seen(folder) == NEW
    assert folder.stat().st_ino == identity
    (folder / "deeper").rmdir()
    monkeypatch.chdir(folder)
    write(Path(), OLD)
    assert seen(folder) == OLD
    assert folder.stat().st_ino == identity


def test_an_error_changes_nothing(tmp_path):
    folder = tmp_path / "out"
    write(folder, OLD)
    with pytest.raises(RuntimeError), output_set(folder, OWNS) as stage:
        write_atomic(stage / "fit.json", "new")
        raise RuntimeError
    assert seen(folder) == OLD
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_full_disk_names_the_file_and_the_space_it_needs(tmp_path, monkeypatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DynidentError, match=r"cannot write '.*fit.json': No space left.*needs 2 MB; free some space"):
        write_atomic(tmp_path / "fit.json", b"x" * 2_000_000)
    assert list(tmp_path.iterdir()) == []


def test_who_may_not_write_beside_the_output_writes_in_it(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr("dynident.outputs.os.access", lambda path, mode: Path(path) != tmp_path)
    with output_set(home, ("a",)) as stage:
        assert stage.parent == home
        (stage / "a").write_text("new")
    assert [path.name for path in home.iterdir()] == ["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_an_interruption_is_not_hidden_by_a_temporary_file_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Path, _: Path) -> None:
        self.unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "file", b"x")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="renameat2 is Linux's")
def test_folders_are_exchanged_in_one_step_where_the_system_can(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not _exchange(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this file system cannot")
    assert [entry.name for entry in (tmp_path / "one").iterdir()] == ["other"]
    assert [entry.name for entry in (tmp_path / "other").iterdir()] == ["one"]


@pytest.mark.parametrize(
    ("text", "good"), [(str(-(2**63)), True), (str(-(2**63) - 1), False), (str(2**63 - 1), True), (str(2**63), False)]
)
def test_whole_numbers_of_toml_have_64_bits(tmp_path: Path, text: str, good: bool) -> None:
    (tmp_path / "x.toml").write_text(f"a = {text}\n")
    if good:
        assert read_toml(tmp_path / "x.toml", "numbers") == {"a": int(text)}
    else:
        with pytest.raises(DynidentError, match="beyond 64 bits"):
            read_toml(tmp_path / "x.toml", "numbers")


def test_without_file_locks_a_file_is_closed_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no fcntl and refuses to rename open files."""
    opened, replace, fdopen = [], Path.replace, os.fdopen

    def remember(*arguments: object, **options: object) -> object:
        opened.append(fdopen(*arguments, **options))  # type: ignore[arg-type, call-overload]
        return opened[-1]

    def renamed(path: Path, target: Path) -> Path:
        assert opened[-1].closed
        return replace(path, target)

    monkeypatch.setattr("dynident.files.fcntl", None)
    monkeypatch.setattr(os, "fdopen", remember)
    monkeypatch.setattr(Path, "replace", renamed)
    write_atomic(tmp_path / "fit.json", "new")
    assert (tmp_path / "fit.json").read_text(encoding="utf-8") == "new"
