"""The fit of a simulator to torque logs: the numbers of another machine come back from its noisy log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.control import PID
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import IdentificationError
from dynident.friction import Coulomb, Viscous
from dynident.simulate import VirtualRobot
from dynident_lab.servo import MachineFit, fit_machine


def machine(*numbers: tuple[float, float]) -> VirtualRobot:
    """Return an arm in a horizontal plane whose drives have an inertia [kg m^2] and Coulomb friction [N m]."""
    rows = [(0.3, 0, 0, 0)] * len(numbers)
    arm = di.Mechanism.from_dh(rows, gravity=(0, 0, 0)).with_payload(0.5)
    drives = [
        Drive(f"joint_{i + 1}", Motor(0.05, inertia=J), Transmission.gear(50.0), (Coulomb() + Viscous()).using(fc=fc, fv=1e-4))
        for i, (J, fc) in enumerate(numbers)
    ]
    return VirtualRobot(arm, drives, PID(300.0, 10.0, cycle=1e-3), step=5e-4)


def swing(joints: int) -> di.Motion:
    t = np.arange(1501) / 500.0
    w = 2.0 * np.pi * np.array([1.0, 3.0])
    q, v, a = (np.zeros((t.size, joints)) for _ in range(3))
    for i in range(joints):
        phase = 0.7 * i
        q[:, i] = 0.3 * np.sin(w[0] * t + phase) + 0.05 * np.sin(w[1] * t)
        v[:, i] = 0.3 * w[0] * np.cos(w[0] * t + phase) + 0.05 * w[1] * np.cos(w[1] * t)
        a[:, i] = -0.3 * w[0] ** 2 * np.sin(w[0] * t + phase) - 0.05 * w[1] ** 2 * np.sin(w[1] * t)
    return di.Motion(t, q, v, a)


def noisy(log: di.Log, size: float) -> di.Log:
    rng = np.random.default_rng(0)
    return replace(log, effort=np.asarray(log.effort) + size * rng.standard_normal(np.shape(log.effort)))


def test_inertia_and_friction_of_two_drives_come_back(tmp_path) -> None:
    truth, start = machine((2e-5, 0.03), (1e-5, 0.02)), machine((4e-5, 0.01), (2e-5, 0.04))
    wanted = swing(2)
    log = noisy(truth.simulate(wanted).log, 0.05)
    found = fit_machine(start, [wanted], [log], shared=False)
    expected = np.array([2e-5, 0.03, 1e-5, 0.02])
    assert found.names == ("joint_1 inertia", "joint_1 fc", "joint_2 inertia", "joint_2 fc")
    np.testing.assert_allclose(found.values, expected, rtol=0.03)
    assert np.all(np.abs(found.values - expected) < 5.0 * found.std)
    assert found.after < 0.1 * found.before
    drives = found.apply(start).drives
    assert drives[1].motor.inertia == found.values[2]
    assert drives[1].friction.parameters["coulomb.fc"] == found.values[3]
    assert drives[1].friction.parameters["viscous.fv"] == 1e-4
    again = MachineFit.load(found.save(tmp_path / "fit.json"))
    assert again.summary() == found.summary()
    assert len(again.plot().axes) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"numbers": ("mass",)}, "has inertia, coulomb.fc"),
        ({"numbers": ()}, "name each once"),
        ({"logs": []}, "1 references and 0 logs"),
        ({"cutoff": 900.0}, "less than half the log's rate"),
        ({"effort": ["a"]}, "no effort of 'a'"),
    ],
)
def test_bad_input_is_one_sentence(change: dict[str, object], words: str) -> None:
    robot, wanted = machine((2e-5, 0.03)), swing(1)
    log = robot.simulate(wanted, duration=0.2).log
    arguments = {"references": [wanted], "logs": [log], **change}
    with pytest.raises(IdentificationError, match=words):
        fit_machine(robot, **arguments)  # type: ignore[arg-type]


def test_a_guess_of_zero_is_refused() -> None:
    robot, wanted = machine((2e-5, 0.0)), swing(1)
    with pytest.raises(IdentificationError, match="first guess above zero"):
        fit_machine(robot, [wanted], [robot.simulate(wanted, duration=0.1).log])
