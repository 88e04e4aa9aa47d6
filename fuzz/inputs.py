"""Mutated files of every format, each through the command or the reader that a user would give it to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dynident as di
from dynident.drive import read_drives
from dynident.excitation import Plan, read_limits
from dynident_lab.campaigns import read_campaign, read_segment
from dynident_lab.fleet import read_fleet
from dynident_lab.link import Campaign, decode, open_controller
from fuzz.companions import RESULTS, identify_fleet
from fuzz.mutations import BINARY, PACKED, SUMMED, TABLE, TEXT, TREE, ZIPPED, Mutation, mutate
from fuzz.samples import good_files
from fuzz.watch import Tally, command, watched

Probe = Callable[[], tuple[str, str]]


@dataclass(frozen=True)
class Format:
    """A file that dynident reads: its name among the samples, its mutations, and what reads it (one is drawn per input)."""

    name: str
    file: str
    mutations: tuple[Mutation, ...]
    probes: tuple[Probe, ...]
    weight: int = 1  # share of the inputs


def cli(*args: str) -> Probe:
    """Return a probe that runs a command."""
    return partial(command, args)


def read(function: Callable[..., Any], *args: Any) -> Probe:
    """Return a probe that calls a reader."""
    return partial(watched, partial(function, *args))


def _log(path: str) -> Probe:
    return read(lambda: di.Log.read(path, effort="joint_torque"))


def _result(path: str) -> Probe:
    """Return a probe that reads any result and shows it."""
    return read(lambda: (di.load(path).summary(), di.load(path).to_dict()))


def _again(folder: str) -> Campaign:
    """Open a campaign as `record --resume` does, with a controller that is never connected."""
    return Campaign(folder, open_controller("simple_message://127.0.0.1:1"))


def _robot() -> di.Mechanism:
    return di.Mechanism.from_urdf("robot.urdf")


TORQUE = ("--effort", "joint_torque")
CHECK = cli("validate", "fit.json", "other.csv", *TORQUE)
IDENTIFYING = ("identify", "robot.urdf", "run.csv", *TORQUE, "-o", "out")
IDENTIFY = cli(*IDENTIFYING, "--recovery", "prior")
EXCITING = ("excite", "robot.urdf", "--limits", "limits.toml", "--iterations", "1", "--starts", "1", "-o", "out")
EXCITE = cli(*EXCITING)
SIMULATE = cli("simulate", "plan.json", "--robot", "robot.urdf", "-o", "sim.csv")
FORMATS = (
    Format("URDF", "robot.urdf", TEXT, (cli("describe", "robot.urdf"), cli("describe", "robot.urdf", "--json")), 3),
    Format("xacro", "arm.xacro", TEXT, (cli("describe", "arm.xacro"),), 2),
    Format("MJCF", "arm.xml", TEXT, (cli("describe", "arm.xml"),), 3),
    Format("SDF", "arm.sdf", TEXT, (cli("describe", "arm.sdf"),), 2),
    Format("loops", "loops.toml", TEXT, (cli("describe", "linkage.urdf", "--sidecar", "loops.toml"),), 2),
    Format("sidecar", "sidecar.toml", TEXT, (cli("describe", "robot.urdf", "--sidecar", "sidecar.toml"),), 3),
    Format("schema", "schema.toml", TEXT, (cli("validate", "fit.json", "other.csv", "--schema", "schema.toml"),), 3),
    Format("limits", "limits.toml", TEXT, (read(lambda: read_limits("limits.toml", _robot())),), 4),
    Format("limits, excite", "limits.toml", TEXT, (EXCITE,)),
    Format("limits of MoveIt", "joint_limits.yaml", TEXT, (read(lambda: read_limits("joint_limits.yaml", _robot())),), 2),
    *(
        Format(f"MJCF, {name}", name, TEXT, (cli("describe", "whole.xml"),))
        for name in ("whole.xml", "part.xml", "arm_part.xml")
    ),
    *(
        Format(f"xacro, {name}", name, TEXT, (cli("describe", "whole.xacro"),))
        for name in ("whole.xacro", "part.xacro", "numbers.yaml")
    ),
    Format(
        "drives",
        "drives.toml",
        TEXT,
        (
            read(lambda: read_drives("drives.toml", _robot())),
            cli("simulate", "motion.csv", "--robot", "robot.urdf", "--drives", "drives.toml", "-o", "sim.csv"),
        ),
        2,
    ),
    Format(
        "known",
        "known.toml",
        TEXT,
        (cli("identify", "robot.urdf", "run.csv", *TORQUE, "--sidecar", "known.toml", "-o", "out"),),
    ),
    Format("fleet", "fleet.toml", TEXT, (read(lambda: read_fleet("fleet.toml")),), 2),
    Format("table of logs", "logs.csv", TABLE, (read(lambda: read_fleet("fleet.toml")),)),
    Format("plan", "plan.json", TREE, (read(lambda: Plan.load("plan.json").curve), SIMULATE), 4),
    Format("start", "plan.json", TREE, (cli(*EXCITING, "--start", "plan.json"),)),
    Format("motion", "motion.csv", TABLE, (cli("simulate", "motion.csv", "--robot", "robot.urdf", "-o", "sim.csv"),), 2),
    Format("fit", "fit.json", TREE, (CHECK, cli("export", "robot.urdf", "fit.json", "-o", "made.urdf")), 4),
    Format("result", "fit.json", TREE, (_result("fit.json"),), 2),
    *(Format(f"result, {name}", f"{name}.json", TREE, (_result(f"{name}.json"),)) for name in ("score", "verdict", "robot")),
    *(Format(f"result, {name}", f"{name}.json", TREE, (_result(f"{name}.json"),)) for name in RESULTS),
    Format("two fits", "fit.json", TREE, (cli("compare-fits", "first.json", "fit.json", "-o", "page.html"),)),
    Format("fleet report", "store/fleet.json", TREE, (cli("fleet", "report", "store"),)),
    Format("fleet index", "store/index.jsonl", (*TREE, *TEXT), (read(identify_fleet),)),
    Format("fleet types", "store/types.json", TREE, (read(identify_fleet),)),
    Format("evidence", "evidence.npz", PACKED, (read(lambda: di.Regression.load("evidence.npz", _robot())),), 1),
    Format("log CSV", "other.csv", TABLE, (_log("other.csv"), CHECK), 5),
    Format("log CSV, identify", "run.csv", TABLE, (IDENTIFY,), 1),
    Format("log npz", "log.npz", PACKED, (_log("log.npz"),), 2),
    Format("log csv.gz", "log.csv.gz", ZIPPED, (_log("log.csv.gz"),), 2),
    *(Format(f"log {kind}", f"log.{kind}", BINARY, (_log(f"log.{kind}"),), 2) for kind in ("mat", "h5", "parquet")),
    *(Format(f"log {kind}", f"log.{kind}", BINARY, (_log(f"log.{kind}"),), 1) for kind in ("mcap", "bag", "db3")),
    *(Format(f"log {name}", name, BINARY, (_log(name),), 1) for name in ("lerobot.parquet", "log73.mat", "plain.mat")),
    Format("packet", "packet.bin", BINARY, (read(lambda: decode(Path("packet.bin").read_bytes())),)),
    Format("campaign", "campaign/campaign.json", TREE, (read(read_campaign, "campaign"),), 2),
    Format("campaign to resume", "campaign/campaign.json", TREE, (read(_again, "campaign"),)),
    Format("plan to resume", "campaign/plan.json", TREE, (read(_again, "campaign"),)),
    Format("sealed segment", "sealed/cycle_0001_1.parquet", BINARY, (read(read_campaign, "sealed"),)),
    Format("campaign journal", "campaign/journal.jsonl", SUMMED, (read(read_campaign, "campaign"),)),
    Format(
        "segment",
        "campaign/cycle_0001_1.seg",
        SUMMED,
        (read(read_campaign, "campaign"), read(read_segment, "campaign/cycle_0001_1.seg")),
    ),
)


def fuzz_formats(
    count: int, seed: int = 0, worker: int = 0, workers: int = 1, formats: tuple[Format, ...] = FORMATS
) -> list[Tally]:
    """Try `count` mutated inputs over all formats, every `workers`-th of them here; return what came of them."""
    before = Path.cwd()
    total = sum(form.weight for form in formats)
    with tempfile.TemporaryDirectory(prefix="dynident-fuzz-") as name:
        good, bench = Path(name) / "good", Path(name) / "bench"
        good.mkdir()
        good_files(good)
        shutil.copytree(good, bench)
        os.chdir(bench)
        try:
            return [_one_format(form, max(count * form.weight // total, 1), seed, worker, workers, good) for form in formats]
        finally:
            os.chdir(before)


def _one_format(form: Format, count: int, seed: int, worker: int, workers: int, good: Path) -> Tally:
    tally, original = Tally(form.name), (good / form.file).read_bytes()
    file = Path(form.file)
    for probe in form.probes:
        outcome, where = probe()
        assert outcome == "success", f"the good {form.name} is refused: {where}"
    for k in range(worker, count, workers):
        rng = np.random.default_rng([seed, k, *form.name.encode()])
        file.write_bytes(mutate(original, form.mutations, rng))
        probe = form.probes[int(rng.integers(0, len(form.probes)))]
        outcome, where = probe()
        tally.add(outcome, where, f"{form.name}, input {k} of seed {seed}")
    file.write_bytes(original)
    return tally
