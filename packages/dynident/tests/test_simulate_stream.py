"""Long runs in pieces on disk, progress, temperatures of all zones, and what was mended with the compiled machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plant_cases import go, machine, slide
from simulate_cases import excitation, geared_arm

from dynident.control import OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import SimulationError
from dynident.friction import Coulomb, Viscous
from dynident.signals import Log
from dynident.simulate import Sensors


def test_pieces_on_disk_are_the_run_in_one_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynident.simulate.run.ROWS", 300)
    robot = geared_arm(2, sensors=Sensors(position_noise=1e-5, effort_noise=0.01))
    motion, seen = excitation(2, 1.0), []
    one = robot.simulate(motion, seed=5)
    run = robot.stream(motion, tmp_path / "long", seed=5, progress=lambda done, whole: seen.append(done / whole))
    assert len(run.logs) == 4
    assert run.samples == len(one.log)
    for name in ("t", "position", "effort"):
        joined = np.concatenate([getattr(run.log(i), name) for i in range(4)])
        np.testing.assert_allclose(joined, getattr(one.log, name), rtol=1e-12, atol=1e-12, err_msg=name)
    for name, whole in one.truth.arrays().items():
        joined = np.concatenate([run.truth(i)[name] for i in range(4)])
        np.testing.assert_allclose(joined, whole, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(whole).max()), err_msg=name)
    for kind, values in one.energy.items():
        np.testing.assert_allclose(run.energy[kind], values, rtol=1e-9)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)
    assert isinstance(run.log(0), Log)
    with pytest.raises(SimulationError, match="holds a run already; give an empty folder"):
        robot.stream(motion, tmp_path / "long")


def test_a_run_that_memory_does_not_hold_is_told_to_stream() -> None:
    robot = machine(slide(), law=OpenLoop(torque=[0.0]))
    with pytest.raises(SimulationError, match=r"use robot\.stream"):
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
