"""Temperatures of all zones, and what was mended with the compiled machine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from plant_cases import go, machine, slide

from dynident.control import OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import SimulationError
from dynident.friction import Coulomb, Viscous


def test_a_run_that_memory_does_not_hold_is_refused() -> None:
    robot = machine(slide(), law=OpenLoop(torque=[0.0]))
    with pytest.raises(SimulationError, match=r"simulate it in pieces|at a time"):
        go(robot, 10**9)


# ---- mended ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elastic", [False, True])
@pytest.mark.parametrize("fc", [0.0, 0.3])
def test_nothing_creeps_at_rest_behind_a_gear_with_losses(elastic: bool, fc: float) -> None:
    """Between W eta and W / eta, widened by the friction of the rotor, a weight stands still for good."""
    shafts = {"inertias": (1e-3,), "stiffness": (500.0,), "damping": (0.5,)} if elastic else {}
    gear = Transmission(10.0, 0.7, **shafts)
    rub = Coulomb().using(fc=fc) if fc else None
    lift = replace(slide(3.0), gravity=(0.0, 0.0, -9.81))
    weight = 3.0 * 9.81 / 10.0  # at the motor
    drive = Drive("s", Motor(1.0, inertia=0.01), gear, rub)
    for torque, holds in ((0.72 * weight - fc, True), (1.4 * weight + fc, True), (0.65 * weight - fc, False)):
        # The shaft of an elastic drive begins without twist, so that the load falls at first; oil brings it to rest.
        robot = machine(lift, [drive], OpenLoop(current=[torque]), 2e-4, friction={"s": Viscous().using(fv=30.0)})
        truth = go(robot, 20_001).truth
        late = truth.motion.q[truth.t > 2.0, 0]
        if holds:
            assert np.ptp(late) < 1e-13
        else:
            assert np.ptp(late) > 1e-3
