"""Live identification of a 2 kg payload on the virtual UR5e against a fixed plan: python -m benchmarks.link_live [SEEDS].

The arm differs from its description: inertial parameters and friction of the machine are changed by random factors of 10 %, one
set per seed. Each seed first identifies the bare arm (goal band=2%), then the payload, with sequentially
designed pieces, and with a fixed plan that repeats the first piece.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import dynident as di
from benchmarks import targets
from benchmarks.targets import target
from dynident.excitation import Plan
from dynident.excitation.experiment import PAYLOAD, motion_limits
from dynident.mechanism import Mechanism
from dynident.simulate import VirtualRobot
from dynident_lab.campaigns.log import CampaignLog, read_campaign
from dynident_lab.link import Goal, identify_live, simulate_campaign, ur5e

MASS, COM, INERTIA = 2.0, (0.02, -0.01, 0.06), np.diag([0.004, 0.004, 0.003])
LARGEST = 3.0  # largest mass of the payload [kg]
GOALS = (0.01, 0.001)  # two standard deviations of the mass over the mass
CHANGE = 0.1  # deviation of the arm from its description
PERIOD = 0.002


def changed(arm: Mechanism, seed: int) -> Mechanism:
    """Return the arm with masses and friction that differ from its description."""
    rng = np.random.default_rng(seed)
    bodies = tuple(b if b.inertia is None else replace(b, inertia=b.inertia * rng.normal(1.0, CHANGE)) for b in arm.bodies)
    joints = tuple(replace(j, terms={k: v * rng.normal(1.0, CHANGE) for k, v in j.terms.items()}) for j in arm.joints)
    return replace(arm, bodies=bodies, joints=joints)


class Robot:
    """A simulated robot that waits at the end of its last piece, without a clock."""

    def __init__(self, machine: VirtualRobot, seed: int, folder: Path) -> None:
        self.machine, self.seed, self.folder = machine, seed, folder
        self.waits: np.ndarray | None = None
        self.logs: list[di.Log] = []
        folder.mkdir()

    def __call__(self, number: int, plan: Plan) -> CampaignLog:
        """Run a piece."""
        where, seed = self.folder / f"{number}", 1000 * self.seed + number
        simulate_campaign(where, plan, self.machine, period=PERIOD, seed=seed, start=self.waits)
        self.waits, log = plan.home, read_campaign(where)
        self.logs.append(log.stages()["excitation"][0])
        return log


def measure(seed: int, folder: Path, **search: Any) -> dict[str, Any]:
    """Return the results of one seed: times and masses of the live run, and the time of a fixed plan."""
    arm = ur5e.mechanism()
    machine = replace(ur5e.machine(), mechanism=changed(ur5e.machine().mechanism, seed))
    full = replace(machine, mechanism=machine.mechanism.with_payload(MASS, COM, INERTIA))
    limits = motion_limits(arm.with_payload(LARGEST, name=PAYLOAD, separate=True), None, 0.0, True)[1]
    empty = Robot(machine, seed, folder / "bare")
    bare = identify_live(arm, limits, empty, Goal(band=0.02), **search)
    how: dict[str, Any] = {"unloaded": empty.logs, "payload": LARGEST, **search}
    found: dict[str, Any] = {
        "seed": seed,
        "without payload": {"time [s]": bare.updates[-1].time, "pieces": len(bare.updates)},
    }
    for share in GOALS:
        for label, adapt in (("live", True), ("fixed plan", False)):
            there = Robot(full, seed, folder / f"{label} {share}")
            made = identify_live(arm, limits, there, Goal(payload=share), adapt=adapt, **how)
            last = made.updates[-1]
            assert last.payload is not None
            load = last.payload
            found[f"payload={100 * share:g}%, {label}"] = {
                "time [s]": last.time,
                "pieces": len(made.updates),
                "reached": made.reached,
                "mass [kg]": load.mass,
                "standard deviation [kg]": load.mass_std,
                "error [%]": 100.0 * (load.mass / MASS - 1.0),
                "error [standard deviations]": (load.mass - MASS) / load.mass_std,
            }
    return found


def main() -> None:
    """Run all seeds, and print one line per target."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    found = []
    for number in range(seeds):
        with tempfile.TemporaryDirectory() as place:
            found.append(measure(number, Path(place), iterations=30, starts=2, workers=1))
            print(json.dumps(found[-1], indent=1), flush=True)
    for share in GOALS:
        live, fixed = ([one[f"payload={100 * share:g}%, {label}"] for one in found] for label in ("live", "fixed plan"))
        good = [
            abs(x["error [%]"]) < 1.0 and abs(x["error [standard deviations]"]) < 2.0 and x["time [s]"] <= 60.0 for x in live
        ]
        text = f"{sum(good)} of {seeds} seeds, mass within {max(abs(x['error [%]']) for x in live):.3f} %, "
        text += f"robot time {min(x['time [s]'] for x in live):.0f} to {max(x['time [s]'] for x in live):.0f} s; fixed plan "
        text += ", ".join(f"{x['time [s]']:.0f} s" if x["reached"] == "payload" else "not reached" for x in fixed)
        goal = "1 % and 2 sigma within 60 s for 4 of 5 seeds"
        target(f"live payload={100 * share:g}%", text, goal, sum(good) >= 0.8 * seeds)
    targets.end()


if __name__ == "__main__":
    main()
