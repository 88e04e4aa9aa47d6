"""How often faults are found and healthy robots named: ``python -m benchmarks.fleet_rates [--robots 100] [--fleets 20]``.

Fleets of `benchmarks.fleet` are drawn anew, with parameters, motions and noise, because one draw may be lucky or not. Logs are
left out: the evidence of a robot is H = sum W^T W / sigma^2 over its three motions and h = H beta + noise of covariance H.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

import dynident as di
from benchmarks import arms
from benchmarks.fleet import FAULTS, described, drawn, motion
from dynident.fleet import RobotEstimate, questions
from dynident.validate import Verdict

SECONDS, RATE, RECORDED = 20, 25.0, 500.0  # motions end at 0.5 Hz: rows at 25 Hz tell what those at 500 Hz do
NOISE = 0.2 * np.array(arms.NOISE) * np.sqrt(RATE / RECORDED)


def evidence(base: di.BaseParameters, number: int, place: int, faulty: bool, rng: np.random.Generator) -> RobotEstimate:
    """Return what three logs of a robot tell; at places 1 to 5 it may have the fault of that robot in `benchmarks.fleet`."""
    robot, H = base.mechanism, np.zeros((base.rank, base.rank))
    for k in range(3):
        own = motion(int(SECONDS * RATE), RATE, 100 * number + k)
        Y = np.asarray(di.regressor(robot, own)).reshape(len(own), robot.dof, -1)[:, :, base.columns]
        W = (Y / NOISE[:, None]).reshape(-1, base.rank)
        H += W.T @ W
    phi = drawn(robot, number)
    if faulty and place in FAULTS:
        name, factor = FAULTS[place]
        phi[robot.parameters.names.index(name)] *= factor
    values, vectors = np.linalg.eigh(H)
    h = H @ base.values(phi) + vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(base.rank))
    nothing, unused = Verdict(robot.name, True, (), ()), np.ones(base.rank)
    return RobotEstimate(f"R{place:04d}", robot.name, (), 1, H, h, unused, unused, 0.0, 0.0, nothing)


def fleet_of(base: di.BaseParameters, robots: int, number: int, faulty: bool) -> list[RobotEstimate]:
    """Return the robots of one fleet; five of them may have the faults."""
    rng, first = np.random.default_rng(number), 100_000 * (number + 1)  # numbers, and so seeds, that no other fleet has
    return [evidence(base, first + r, r, faulty, rng) for r in range(1, robots + 1)]


@dataclass
class Tally:
    """What came out at one rate: faults named, share of false ones, fleets with all five named, healthy ones with an alarm."""

    found: Counter[str] = field(default_factory=Counter)
    false: list[float] = field(default_factory=list)
    whole: int = 0
    alarmed: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", type=int, default=100)
    parser.add_argument("--fleets", type=int, default=20, help="fleets with faults, and as many without")
    parser.add_argument("--rates", default="0.01,0.05", help="of false alarms, by commas")
    given = parser.parse_args()
    base = di.base_parameters(described(arms.arm()))
    serials = {f"R{place:04d}": name for place, (name, _) in FAULTS.items()}
    tallies = {float(rate): Tally() for rate in given.rates.split(",")}
    for number in range(given.fleets):
        faulty = fleet_of(base, given.robots, number, True)
        healthy = fleet_of(base, given.robots, given.fleets + number, False)
        for rate, tally in tallies.items():
            answers = questions(faulty, base, rate)
            named = {d.serial for d in answers.deviations}
            tally.found.update(serials[serial] for serial in named & set(serials))
            tally.false.append(len(named - set(serials)) / max(len(named), 1))
            tally.whole += named >= set(serials)
            tally.alarmed += bool(questions(healthy, base, rate).deviations)
            z = " ".join(f"{answers.scores[serial]:.1f}" for serial in serials)
            false = len(named - set(serials))
            print(f"fleet {number}, rate {rate:g}: z of the faults {z}, limit {answers.limit:.2f}, false {false}", flush=True)
    for rate, tally in tallies.items():
        n, found = given.fleets, ", ".join(f"{name} {tally.found[name]}" for name in serials.values())
        print(
            f"{given.robots} robots, rate {rate:g}: all five faults named in {tally.whole} of {n} fleets ({found}), mean share "
            f"of false ones {np.mean(tally.false):.3f}; {tally.alarmed} of {n} fleets without faults had an alarm"
        )


if __name__ == "__main__":
    main()
