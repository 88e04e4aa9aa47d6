"""How often faults are found and healthy robots named: ``python -m benchmarks.fleet_rates [--robots 100] [--fleets 20]``.

Fleets of `benchmarks.fleet` are drawn anew, with parameters, motions and noise, because one draw may be lucky or not. Logs are
left out: the evidence of a robot is H = sum W^T W / sigma^2 over its three motions and h = H beta + noise of covariance H.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

import dynident as di
from benchmarks import arms
from benchmarks.fleet import FAULTS, described, drawn, motion
from dynident.fleet import FleetType, RobotEstimate, questions
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


def asked(base: di.BaseParameters, robots: int, fleet: int, faulty: bool, rate: float) -> FleetType:
    """Return the answers of one fleet."""
    rng, first = np.random.default_rng(fleet), 100_000 * (fleet + 1)  # numbers, and so seeds, that no other fleet has
    return questions([evidence(base, first + r, r, faulty, rng) for r in range(1, robots + 1)], base, rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", type=int, default=100)
    parser.add_argument("--fleets", type=int, default=20, help="fleets with faults, and as many without")
    parser.add_argument("--rate", type=float, default=0.01, help="of false alarms")
    given = parser.parse_args()
    base = di.base_parameters(described(arms.arm()))
    faults = {f"R{place:04d}": name for place, (name, _) in FAULTS.items()}
    found, false, whole, alarmed = Counter[str](), [], 0, 0
    for fleet in range(given.fleets):
        answers = asked(base, given.robots, fleet, True, given.rate)
        named = {d.serial for d in answers.deviations}
        found.update(faults[serial] for serial in named & set(faults))
        false.append(len(named - set(faults)) / max(len(named), 1))
        whole += named >= set(faults)
        healthy = asked(base, given.robots, given.fleets + fleet, False, given.rate)
        alarmed += bool(healthy.deviations)
        z = " ".join(f"{answers.scores[serial]:.1f}" for serial in faults)
        print(f"fleet {fleet}: z of the faults {z}, limit {answers.limit:.2f}, false {len(named - set(faults))}", flush=True)
    n = given.fleets
    print(f"{given.robots} robots, rate {given.rate:g}: all five faults named in {whole} of {n} fleets")
    print("named, by fault: " + ", ".join(f"{name} {found[name]} of {n}" for name in faults.values()))
    print(f"mean share of false ones among the robots named {np.mean(false):.4f}")
    print(f"healthy fleets with an alarm: {alarmed} of {n} (expected {given.rate * n:.2g})")


if __name__ == "__main__":
    main()
