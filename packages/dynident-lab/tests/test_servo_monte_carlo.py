"""Many runs: reproducible by the seed whatever the number of threads, varied by a function, with progress and failures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from refusals import all_refused
from simulate_cases import excitation, geared_arm, noisy_arm, pid, same

import dynident as di
from dynident.errors import SimulationError
from dynident.friction import Coulomb
from dynident.simulate import VirtualRobot
from dynident_lab.servo import monte_carlo

CURVE = excitation(2, 0.3, size=0.1)
REST = di.Motion([0.0, 0.02], np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)))


def test_batches_do_not_depend_on_the_number_of_threads_or_runs() -> None:
    robot = noisy_arm()
    many = monte_carlo(robot, CURVE, 4, seed=2, workers=3)
    alone = monte_carlo(robot, CURVE, 4, seed=2, workers=1)
    fewer = monte_carlo(robot, CURVE, 2, seed=2)
    assert all(same(a, b) for a, b in zip(many, alone, strict=True))
    assert all(same(a, b) for a, b in zip(many[:2], fewer, strict=True))
    assert not same(many[0], many[1])


def test_vary_gets_a_generator_of_its_own_and_progress_counts() -> None:
    def vary(rng: np.random.Generator, robot: VirtualRobot) -> VirtualRobot:
        law = Coulomb().using(fc=float(rng.uniform(0.01, 0.05)))
        return replace(robot, drives=tuple(replace(d, friction=law) for d in robot.drives))

    seen: list[tuple[int, int]] = []
    runs = monte_carlo(noisy_arm(), CURVE, 3, seed=1, vary=vary, progress=lambda done, all_: seen.append((done, all_)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    found = [run.log.truth["parameters"]["fc_joint_1"] for run in runs]  # type: ignore[index]
    assert len(set(found)) == 3
    assert all(1.0 <= fc <= 5.0 for fc in found)
    again = monte_carlo(noisy_arm(), CURVE, 3, seed=1, vary=vary, workers=1)
    assert all(same(a, b) for a, b in zip(runs, again, strict=True))


def test_runs_that_fail_are_named_or_left_out() -> None:
    def vary(rng: np.random.Generator, robot: VirtualRobot) -> VirtualRobot:
        return replace(robot, controller=pid(1e7, 1e7)) if rng.random() < 0.5 else robot

    robot = noisy_arm()
    kept = monte_carlo(robot, CURVE, 6, seed=0, vary=vary, failure="skip")
    assert 0 < len(kept) < 6
    with pytest.raises(SimulationError, match=r"run \d: instability"):
        monte_carlo(robot, CURVE, 6, seed=0, vary=vary)


BATCHES: list[tuple[dict[str, Any], str]] = [
    ({"runs": 0}, "runs is 0"),
    ({"runs": 1.5}, "runs is 1.5"),
    ({"workers": 0}, "workers is 0"),
    ({"seed": -1}, "seed is -1"),
    ({"vary": lambda rng, robot: None}, "the result of vary"),
    ({"failure": "ignore"}, "failure is 'ignore'"),
    ({"log_cycle": 3.3e-4}, "run 0"),
    ({"log_cycle": 3.3e-4, "failure": "skip"}, "all 2 runs failed"),
]


def test_a_wrong_batch_is_refused() -> None:
    robot = geared_arm()
    all_refused((lambda given={"runs": 2, **options}: monte_carlo(robot, REST, **given), text) for options, text in BATCHES)
