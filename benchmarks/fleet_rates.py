"""Rates of detected faults and false alarms: ``python -m benchmarks.fleet_rates [--robots 100] [--fleets 20]``.

Fleets of `benchmarks.fleet` are drawn repeatedly, with parameters, noise and random motions, because a single draw is random.
Logs are not simulated: the regression data of a robot are H = sum W^T W / sigma^2 over its three motions and h = H beta +
noise of covariance H. In addition, one robot of every healthy fleet is changed by the stated smallest change that the fleet
detects 9 times of 10, in a different parameter for each fleet, and the rate of detection is counted.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks import arms
from benchmarks.fleet import DESIGNS, FAULTS, MOTIONS, RATE, described, drawn, moved, sensor_noise
from dynident.validate import Verdict
from dynident_lab.fleet import RobotEstimate, questions

Array = NDArray[np.float64]

SECONDS, ROWS = 20, 25.0  # motions end at 0.5 Hz: rows at 25 Hz have the information of rows at 500 Hz


@cache
def base() -> di.BaseParameters:
    """Return the base parameters of the arm."""
    return di.base_parameters(described(arms.arm()))


@cache
def information(kind: str, seed: int) -> Array:
    """Return H of one motion."""
    own, robot = moved(kind, SECONDS, seed, ROWS), base().mechanism
    Y = np.asarray(di.regressor(robot, own)).reshape(len(own), robot.dof, -1)[:, :, base().columns]
    W = (Y / (sensor_noise() * np.sqrt(ROWS / RATE))[:, None]).reshape(-1, base().rank)
    return np.asarray(W.T @ W)


def evidence(kind: str, number: int, place: int, faulty: bool, rng: np.random.Generator) -> RobotEstimate:
    """Return the estimate of a robot from three logs; robots 1 to 5 may have their fault of `benchmarks.fleet`."""
    robot = base().mechanism
    seeds = (100 * number + k for k in range(3))
    H = sum((information(kind, s if kind == "random" else s % DESIGNS) for s in seeds), np.zeros(()))
    phi = drawn(robot, number)
    if faulty and place in FAULTS:
        name, factor = FAULTS[place]
        phi[robot.parameters.names.index(name)] *= factor
    values, vectors = np.linalg.eigh(H)
    h = H @ base().values(phi) + vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(base().rank))
    nothing, unused = Verdict(robot.name, True, (), ()), np.ones(base().rank)
    return RobotEstimate(f"R{place:04d}", robot.name, (), 1, H, h, unused, unused, 0.0, 0.0, nothing)


def fleet_of(kind: str, robots: int, number: int, faulty: bool) -> list[RobotEstimate]:
    """Return the robots of one fleet; five of them may have the faults."""
    rng, first = np.random.default_rng(number), 100_000 * (number + 1)  # numbers, and hence seeds, unique to this fleet
    found = [evidence(kind, first + r, r, faulty, rng) for r in range(1, robots + 1)]
    if kind == "random":
        information.cache_clear()
    return found


@dataclass
class Tally:
    """Results at one rate.

    Faults named, share of false ones, fleets with all five named, healthy fleets with an alarm, smallest changes named.
    """

    found: Counter[str] = field(default_factory=Counter)
    false: list[float] = field(default_factory=list)
    whole: int = 0
    alarmed: int = 0
    smallest: int = 0


def smallest_is_named(robots: list[RobotEstimate], rate: float, number: int) -> tuple[bool, bool]:
    """Return whether a healthy fleet has an alarm, and whether a robot with the smallest detectable change is named."""
    answers = questions(robots, base(), rate)
    seen = np.flatnonzero(np.isfinite(answers.detectable))
    p, r = seen[7 * number % seen.size], number % len(robots)
    k = base().regrouping[:, p] * answers.detectable[p]
    changed = [*robots[:r], replace(robots[r], score=robots[r].score + robots[r].information @ k), *robots[r + 1 :]]
    named = {d.serial for d in questions(changed, base(), rate).deviations}
    return bool(answers.deviations), robots[r].serial in named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=100)
    parser.add_argument("--fleets", type=int, default=20, help="fleets with faults, and as many without")
    parser.add_argument("--rates", default="0.01,0.05", help="of false alarms, by commas")
    parser.add_argument("--motion", choices=MOTIONS, default="designed", help="how the robots move")
    parser.add_argument("--first", type=int, default=0, help="number of the first fleet: others are other draws")
    given = parser.parse_args()
    serials = {f"R{place:04d}": name for place, (name, _) in FAULTS.items()}
    tallies = {float(rate): Tally() for rate in given.rates.split(",")}
    for number in range(given.first, given.first + 2 * given.fleets, 2):
        faulty = fleet_of(given.motion, given.robots, number, True)
        healthy = fleet_of(given.motion, given.robots, number + 1, False)
        for rate, tally in tallies.items():
            answers = questions(faulty, base(), rate)
            named = {d.serial for d in answers.deviations}
            tally.found.update(serials[serial] for serial in named & set(serials))
            tally.false.append(len(named - set(serials)) / max(len(named), 1))
            tally.whole += named >= set(serials)
            alarmed, smallest = smallest_is_named(healthy, rate, number // 2)
            tally.alarmed += alarmed
            tally.smallest += smallest
            z = " ".join(f"{answers.scores[serial]:.1f}" for serial in serials)
            false = len(named - set(serials))
            print(f"fleet {number}, rate {rate:g}: z of the faults {z}, limit {answers.limit:.2f}, false {false}", flush=True)
    for rate, tally in tallies.items():
        n, found = given.fleets, ", ".join(f"{name} {tally.found[name]}" for name in serials.values())
        print(
            f"{given.robots} robots, {given.motion} motions, rate {rate:g}: all five faults named in {tally.whole} of {n} "
            f"fleets ({found}), mean share of false ones {np.mean(tally.false):.4f} +- {np.std(tally.false) / np.sqrt(n):.4f}; "
            f"{tally.alarmed} of {n} fleets without faults had an alarm; the smallest change stated was named in "
            f"{tally.smallest} of {n}"
        )


if __name__ == "__main__":
    main()
