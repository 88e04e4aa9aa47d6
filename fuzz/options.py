"""Hostile options: every path, number and text of every registered command, one at a time, the other arguments being good."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import typing
from pathlib import Path

import numpy as np
from cyclopts import Argument

from dynident.cli import application, arguments_of, command_names
from fuzz.samples import good_files
from fuzz.watch import Tally, command

LONG = "x" * 5000
NUMBERS = ("nan", "inf", "-inf", "1e308", "1e-300", "-1", "0", "1000000000000", "1" * 400)
TEXTS = ("", "\x1b[31m\u202e", LONG, "nan", "1e308,-1", "joint1=", "=", "../..")
READ = ("zero", "folder", "dangling", "fifo", LONG, "empty", "robot.urdf/x")
TORQUE = ("--effort", "joint_torque")
#: Good arguments of every command beside the hostile one; `record` and `controller` end at once.
GOOD: dict[tuple[str, ...], tuple[str, ...]] = {
    ("describe",): ("robot.urdf",),
    ("inspect",): ("run.csv", *TORQUE, "--robot", "robot.urdf"),
    ("identify",): ("robot.urdf", "run.csv", *TORQUE, "--recovery", "prior", "-o", "out"),
    ("validate",): ("fit.json", "other.csv", *TORQUE),
    ("report",): ("fit.json", "other.csv", *TORQUE, "-o", "page.html"),
    ("compare-fits",): ("fit.json", "first.json", "-o", "page.html"),
    ("compare",): ("robot.urdf", "run.csv", *TORQUE),
    ("excite",): ("robot.urdf", "--limits", "limits.toml", "--iterations", "1", "--starts", "1", "-o", "out"),
    ("simulate",): ("motion.csv", "--robot", "robot.urdf", "-o", "sim.csv"),
    ("simulate-campaign",): ("plan.json", "--robot", "robot.urdf", "--cycles", "1", "-o", "simulated"),
    ("cycles",): ("robot.urdf", "campaign", "-o", "out"),
    ("record",): ("plan.json", "--controller", "simple_message://127.0.0.1:1", "-o", "recorded", "--dry-run"),
    ("live",): ("robot.urdf", "--controller", "simple_message://127.0.0.1:1", "--iterations", "1", "-o", "live"),
    ("controller",): ("robot.urdf", "--motion-port", "0", "--state-port", "0", "--duration", "0.05"),
    ("friction",): ("robot.urdf", "run.csv", *TORQUE, "-o", "out"),
    ("schedule",): ("er3a_c60", "--joint", "joint_4", "-o", "schedule.json"),
    ("maintenance",): ("robot.urdf", "campaign", "-o", "out"),
    ("repeatability",): ("fit.json", "first.json", "-o", "out"),
    ("export",): ("robot.urdf", "fit.json", "-o", "made.urdf"),
    ("derive",): ("robot.urdf", "--numpy", "-o", "derived"),
    ("monitor",): ("fit.json", "other.csv", *TORQUE),
    ("payload",): ("robot.urdf", "--loaded", "run.csv", "--unloaded", "other.csv", *TORQUE),
    ("gains",): ("robot.urdf", "--loaded", "run.csv", "--unloaded", "other.csv", "--mass", "1", *TORQUE),
    ("ik",): ("robot.urdf", "--position", "0.5,0,0.4"),
    ("check",): ("robot.urdf", "--samples", "5"),
    ("reduction",): ("robot.urdf",),
    ("acceleration",): ("dualv",),
    ("write",): ("GO", "-o", "written.csv"),
    ("workspace",): ("robot.urdf", "--size", "5"),
    ("partitions",): ("robot.urdf", "plan.json"),
    ("bandwidth",): ("robot.urdf", "--frequencies", "1,2", "--no-alone"),
    ("track",): ("robot.urdf",),
    ("convert",): ("run.csv", "made.npz", *TORQUE),
    ("reproduce",): ("--list",),
    ("fleet", "identify"): ("fleet.toml", "-o", "store"),
    ("fleet", "report"): ("store",),
}
NOT_TRIED = (("demo",), ("cache",), ("workbench",))  # they read no files of the user, or serve pages until they are stopped
OUTPUTS = ("--output", "--svg", "--truth", "--figures", "--mcap", "--plot", "--c", "--save-fit", "TARGET", "--live-fit")


def hostile_files() -> None:
    """Make what is no good file: a device, a folder, a link to nowhere, a pipe that nobody writes to, nothing."""
    for name in ("zero", "dangling", "fifo", "empty"):
        Path(name).unlink(missing_ok=True)
    shutil.rmtree("folder", ignore_errors=True)
    shutil.rmtree("nowhere", ignore_errors=True)
    Path("zero").symlink_to("/dev/zero")
    Path("folder").mkdir()
    Path("dangling").symlink_to("nowhere/at/all")
    os.mkfifo("fifo")
    Path("empty").touch()


@functools.cache
def parameters() -> tuple[tuple[tuple[str, ...], Argument], ...]:
    """Return every parameter of every registered command, with the words of the command."""
    verbs: list[tuple[str, ...]] = []
    for name in command_names():
        below = [word for word in application(name)[name] if not word.startswith("-")]
        verbs += [(name, word) for word in below] if below else [(name,)]
    return tuple(
        (words, argument)
        for words in verbs
        if words not in NOT_TRIED
        for argument in arguments_of(words)
        if not argument.children
    )


def hostile_values(parameter: Argument) -> tuple[str, ...]:
    """Return what a parameter is tried with, by its type; devices are never written to."""
    kind = parameter.hint
    while typing.get_args(kind):
        kind = next(each for each in typing.get_args(kind) if each is not type(None))
    if kind in (int, float):
        return NUMBERS
    if kind is bool:
        return ()
    paths = tuple(value for value in READ if value != "zero" or parameter.name not in OUTPUTS)
    return paths if issubclass(kind, Path) else TEXTS


def hostile_command(words: tuple[str, ...], parameter: Argument, value: str) -> tuple[str, ...]:
    """Return the good command with one value replaced or added."""
    good = list(GOOD[words])
    if parameter.name.startswith("--"):
        return (*words, *good, f"{parameter.name}={value}")
    places = [i for i, word in enumerate(good) if not word.startswith("-") and not (i and good[i - 1].startswith("-"))]
    place = [p.name for w, p in parameters() if w == words and not p.name.startswith("--")].index(parameter.name)
    if place >= len(places):
        return (*words, *good, value)
    good[places[place]] = value
    return (*words, *good)


def fuzz_options(count: int, seed: int = 0, worker: int = 0, workers: int = 1, verbs: tuple[str, ...] = ()) -> list[Tally]:
    """Try `count` hostile options, every `workers`-th of them here; return what came of them by verb."""
    chosen = [(words, p) for words, p in parameters() if not verbs or words[0] in verbs]
    cases = [(words, p, value) for words, p in chosen for value in hostile_values(p)]
    tallies = {" ".join(words): Tally(f"option {' '.join(words)}") for words, *_ in cases}
    order = np.random.default_rng(seed).permutation(len(cases))[:count]
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="dynident-fuzz-") as name:
        os.chdir(name)
        try:
            good_files(Path(), every=not verbs)
            for k in order[worker::workers]:
                hostile_files()  # the command before may have written there
                words, parameter, value = cases[k]
                outcome, where = command(hostile_command(words, parameter, value))
                tallies[" ".join(words)].add(outcome, where, f"{parameter.name} {value[:40]!r}")
        finally:
            os.chdir(before)
    return list(tallies.values())
