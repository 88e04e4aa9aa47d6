"""The virtual robot: references, models, methods and controllers against independent answers."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulate_cases import arm, cascade, excitation, geared_arm, geared_drives, pid
from small_robots import ROTOR, five_bar_machine, platform, two_pushes

import dynident as di
from dynident.control import ComputedTorque, CurrentLoop, OpenLoop
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.drive.joint_terms import seen_from, terms_of
from dynident.errors import SimulationError, SimulationWarning
from dynident.excitation import Plan, Stage
from dynident.files import to_json
from dynident.friction import Asymmetric, Coulomb, LuGre, Offset, Stribeck, Viscous
from dynident.mechanics import actuator_jacobian, forward_dynamics, inverse_dynamics, jacobian
from dynident.simulate import Disturbance, VirtualRobot
from dynident.trajectory.reference import reference_of


def ideal(mechanism: di.Mechanism, controller: Any, **options: Any) -> VirtualRobot:
    """Return a robot whose drives give the wanted torque at once and see everything."""
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(velocity="exact")) for a in mechanism.actuators]
    return VirtualRobot(mechanism, drives, controller, **options)


# ------------------------------------------------------------------------------------------------------------- references
def test_a_motion_is_met_at_its_samples_and_smooth_between() -> None:
    curve = excitation(3, 4.0)
    t = np.arange(0.0, 4.0001, 0.05)
    through = reference_of(di.Motion(t + 7.0, *curve(t)), arm()).curve
    for mine, exact in zip(through(t), curve(t), strict=True):
        assert np.allclose(mine, exact, atol=1e-11)
    fine = np.linspace(0.0, 4.0, 1001)
    for mine, exact, tolerance in zip(through(fine), curve(fine), (1e-7, 1e-5, 1e-3), strict=True):
        assert np.allclose(mine, exact, atol=tolerance)
    q, v, a = through(np.array([-1.0, 9.0]))
    assert np.allclose(q, [curve([0.0])[0][0], curve([4.0])[0][0]])
    assert not v.any()
    assert not a.any()


def test_plans_and_their_files_are_references(tmp_path: Path) -> None:
    robot = arm()
    names = robot.coordinate_names
    stage = Stage("excite", "training", excitation(3, 4.0))
    plan = Plan("arm", names, [stage], 2, 1000.0, np.full(3, 3.0), np.full(3, 20.0), np.zeros(3), period=8.0)
    path = plan.save(tmp_path / "plan.json")
    given, read = reference_of(plan, robot), reference_of(path, robot)
    t = np.linspace(0.0, 15.0, 400)
    for one, other in zip(given.curve(t), read.curve(t), strict=True):
        assert np.allclose(one, other, atol=1e-9)
    assert given.duration == pytest.approx(plan.curve.duration)
    assert given.source["plan"] == plan.identity
    again = given.curve(np.array([2.0, 2.0 + plan.period]))[0]
    assert np.allclose(again[0], again[1])
    turned = Plan("arm", names[::-1], [stage], 1, 1000.0, np.full(3, 3.0), np.full(3, 20.0), np.zeros(3))
    assert np.allclose(reference_of(turned, robot).curve(t)[0], turned.curve(t)[0][:, ::-1])
    with pytest.raises(SimulationError, match="make a plan for this robot"):
        reference_of(plan, arm(2))
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(SimulationError, match="cannot be read as a plan"):
        reference_of(tmp_path / "other.json", robot)


# ------------------------------------------------------------------------------------------------------------------ model
def test_the_model_has_the_drives_as_joint_terms() -> None:
    model = geared_arm().model
    found = model.parameters
    for name in model.coordinate_names:
        assert found[f"ia_{name}"] == pytest.approx(100.0**2 * 2e-4)
        assert found[f"fv_{name}"] == pytest.approx(100.0**2 * 2e-4)
        assert found[f"fc_{name}"] == pytest.approx(100.0 * 0.03)
    assert [actuator.ratio for actuator in model.actuators] == [100.0] * 3
    assert [actuator.gain for actuator in model.actuators] == [0.15] * 3


def test_terms_of_laws_and_through_gears() -> None:
    both = (Coulomb() + Viscous() + Offset()).using(fc=1.0, fv=2.0, off=0.5)
    assert terms_of(both) == ({"fc": 1.0, "fv": 2.0, "off": 0.5}, True)
    assert terms_of(None) == ({}, True)
    curve = (Stribeck() + Viscous()).using({"stribeck.fc": 1.0, "stribeck.fs": 1.5, "stribeck.vs": 0.1, "viscous.fv": 0.2})
    assert terms_of(curve) == ({"fc": 1.0, "fv": 0.2}, False)
    assert terms_of(LuGre(1e5, 10.0, 1.0, 1.2, 0.01, fv=0.3)) == ({"fc": 1.0, "fv": 0.3}, False)
    ways = Asymmetric().using(fcp=1.0, fcn=2.0, fvp=3.0, fvn=4.0)
    assert terms_of(ways)[1]
    assert seen_from(terms_of(ways)[0], -10.0) == {"fcp": 20.0, "fcn": 10.0, "fvp": 400.0, "fvn": 300.0}
    assert seen_from({"off": 1.0, "fc": 1.0, "ia": 1.0}, -10.0) == {"off": -10.0, "fc": 10.0, "ia": 100.0}


def test_a_gear_in_the_mechanism_is_not_counted_twice() -> None:
    machine = five_bar_machine()
    model = machine.model
    assert [actuator.ratio for actuator in model.actuators] == [40.0, 40.0]
    assert model.parameters["ia_alpha1"] == pytest.approx(40.0**2 * ROTOR)
    assert any("not only viscous and Coulomb" in note for note in machine.model_notes)


# -------------------------------------------------------------------------------------------------------------- the plant
def test_recorded_accelerations_are_those_of_forward_dynamics() -> None:
    robot = geared_arm()
    run = robot.simulate(excitation(3, 2.0))
    m = run.truth.motion
    tau = run.truth.motor_torque * 100.0
    away = np.all(np.abs(m.v) > 1e-2, axis=1)  # where Coulomb friction is not turning over
    a = forward_dynamics(robot.model, m.q, m.v, tau)
    assert away.mean() > 0.5
    assert np.abs(a - m.a)[away].max() < 1e-8 * np.abs(m.a).max()


def test_a_constant_torque_on_a_free_slide_is_a_parabola() -> None:
    robot = ideal(two_pushes(2.0), OpenLoop(torque=[3.0, 1.0]), step=1e-3)
    robot = replace(robot, sensors=replace(robot.sensors, side="joint", effort="joint_torque"))
    rest = di.Motion([0.0, 1.0], np.zeros((2, 1)), np.zeros((2, 1)), np.zeros((2, 1)))
    run = robot.simulate(rest, start={"q": [0.5], "velocity": [-1.0]})
    t = run.truth.t
    assert np.allclose(run.truth.motion.q[:, 0], 0.5 - t + 0.5 * 2.0 * t**2, atol=1e-12)
    assert np.allclose(run.log.effort[:, 0], 4.0)


def test_disturbances_and_wrenches_act_as_torques() -> None:
    """Holding against a wrench takes J^T w, against a disturbance its negative."""
    robot = ideal(arm(), pid(1500.0, 60.0, ki=6000.0))
    pose = np.array([[0.2, 0.4, -0.7]] * 2)
    still = di.Motion([0.0, 4.0], pose, np.zeros((2, 3)), np.zeros((2, 3)))
    wrench, push = np.array([5.0, -3.0, 2.0, 0.5, 0.4, -0.3]), np.array([1.0, 2.0, -1.0])
    base = robot.simulate(still).truth.current[-1]
    pressed = robot.simulate(still, wrenches={"link_3": wrench}).truth.current[-1]
    assert np.allclose(pressed - base, -jacobian(arm(), pose[:1], "link_3")[0].T @ wrench, atol=1e-3)
    pushed = robot.simulate(still, disturbance=lambda t: push * min(1.0, t)).truth.current[-1]
    assert np.allclose(pushed - base, -push, atol=1e-3)
    table = robot.simulate(still, disturbance=Disturbance([0 * push, push], t=[0.0, 1.0])).truth.current[-1]
    assert np.allclose(table, pushed, atol=1e-6)


def test_decoupled_with_the_exact_loop_is_the_coupled_robot() -> None:
    robot = geared_arm()
    curve = excitation(3, 1.0, size=0.2)
    one, other = robot.simulate(curve), robot.simulate(curve, method="decoupled", loop="exact")
    size = np.abs(one.truth.motion.v).max()
    assert np.abs(one.truth.motion.v - other.truth.motion.v).max() < 1e-6 * size
    heavy = ideal(arm(), pid())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            heavy.simulate(curve, method="decoupled", loop="delayed", duration=0.01)
        except SimulationError as error:
            assert "mass matrix" in str(error) or "instability" in str(error)
    assert any(issubclass(w.category, SimulationWarning) and "diverges" in str(w.message) for w in caught)


# ----------------------------------------------------------------------------------------------------------- controllers
def test_computed_torque_with_the_true_model_follows_exactly() -> None:
    robot = geared_arm(drives=tuple(replace(d, friction=None, encoder=Encoder(velocity="exact")) for d in geared_drives(arm())))
    law = ComputedTorque(robot.model, 400.0, 40.0, cycle=5e-4)
    run = replace(robot, controller=law).simulate(excitation(3, 2.0, size=0.3))
    assert max(run.tracking().largest) < 2e-4
    without = replace(robot, controller=pid(400.0, 40.0)).simulate(excitation(3, 2.0, size=0.3))
    assert max(without.tracking().largest) > 20.0 * max(run.tracking().largest)


def test_feedforward_of_the_model_reduces_the_error_of_a_pd() -> None:
    robot = geared_arm(controller=pid(2000.0, 200.0))
    curve = excitation(3, 2.0, size=0.3)
    alone = max(robot.simulate(curve).tracking().rms)
    helped = max(replace(robot, controller=pid(2000.0, 200.0, feedforward=robot.model)).simulate(curve).tracking().rms)
    assert helped < 0.1 * alone


def test_a_current_loop_and_an_ideal_current_agree() -> None:
    robot = arm(2)
    drives = [
        replace(drive, encoder=Encoder(velocity="exact"))
        for drive in geared_drives(robot, resistance=0.5, inductance=1e-3, voltage_limit=200.0)
    ]
    ideal_loop = VirtualRobot(robot, drives, cascade(), step=6.25e-5)
    real_loop = VirtualRobot(robot, drives, cascade(current=CurrentLoop(4.0, 2000.0, 6.25e-5)), step=6.25e-5)
    curve = excitation(2, 1.0, size=0.2)
    one, other = ideal_loop.simulate(curve), real_loop.simulate(curve)
    assert np.abs(one.truth.motion.q - other.truth.motion.q).max() < 1e-3
    late = one.truth.t > 0.1
    error = (one.truth.mean_current - other.truth.mean_current)[late]
    assert np.sqrt(np.mean(error**2)) < 0.05 * np.std(one.truth.current[late])
    assert np.allclose(one.energy["electric"], one.energy["copper"] + one.energy["mechanical"], rtol=1e-9)
    fine = real_loop.simulate(curve, log_cycle=6.25e-5).truth  # every step: voltages held, currents straight in between
    electric = 6.25e-5 * (fine.voltage[:-1] * (fine.current[1:] + fine.current[:-1]) / 2.0).sum(axis=0)
    np.testing.assert_allclose(other.energy["electric"], electric, rtol=0.02)  # a log of 1 ms is not worse


class PythonPD:
    """The same PD as the compiled one, in Python."""

    cycle = 1e-3
    command = "torque"

    def __init__(self, kp: float, kd: float) -> None:
        self.kp, self.kd, self.calls, self.robot = kp, kd, 0, None

    def reset(self, robot: Any, start: Any) -> None:
        self.robot, self.calls = robot, 0
        assert start.rho.shape == (len(robot.drives),)

    def update(self, t: float, reference: Any, measurement: Any) -> np.ndarray:
        assert t == pytest.approx(self.calls * self.cycle)
        self.calls += 1
        return self.kp * (reference.rho - measurement.rho) + self.kd * (reference.rho_v - measurement.rho_v)


@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_a_controller_in_python_does_what_the_compiled_one_does(noise: float) -> None:
    drives = tuple(replace(d, encoder=replace(d.encoder, noise=noise)) for d in geared_drives(arm()))
    compiled = geared_arm(drives=drives, controller=pid(3000.0, 300.0))
    curve = excitation(3, 0.5, size=0.2)
    law = PythonPD(3000.0, 300.0)
    one, other = compiled.simulate(curve), replace(compiled, controller=law).simulate(curve)
    assert law.calls == 501
    assert np.allclose(one.truth.motion.q, other.truth.motion.q, atol=1e-9)
    assert np.allclose(one.truth.current, other.truth.current, atol=1e-6)


def test_a_controller_in_python_that_breaks_is_named() -> None:
    class Broken(PythonPD):
        def update(self, t: float, reference: Any, measurement: Any) -> np.ndarray:
            return np.full(3 if t < 0.01 else 2, 0.0 if t < 0.005 else np.nan)

    with pytest.raises(SimulationError, match=r"undefined at t = 0\.005"):
        geared_arm(controller=Broken(1.0, 1.0)).simulate(excitation(3, 1.0))

    class Short(PythonPD):
        def update(self, t: float, reference: Any, measurement: Any) -> np.ndarray:
            return np.zeros(2)

    with pytest.raises(SimulationError, match=r"returns shape \(2,\)"):
        geared_arm(controller=Short(1.0, 1.0)).simulate(excitation(3, 1.0))


# ------------------------------------------------------------------------------------------------- limits and instability
def test_limits_are_counted_and_named() -> None:
    robot = arm()
    weak = VirtualRobot(robot, geared_drives(robot, current_limit=1.2), cascade())
    with pytest.warns(SimulationWarning, match=r"motor of 'joint_2' was at its current limit of 1.2 A .* % of the time"):
        run = weak.simulate(excitation(3, 2.0))
    assert run.saturation["joint_2"] > 0.01
    assert np.abs(run.truth.current).max() <= 1.2 + 1e-12
    assert run.saturation["joint_2"] == pytest.approx(np.mean(np.abs(run.truth.current[:, 1]) > 1.1999), abs=0.05)
    assert "at a limit" in run.summary()
    slow = VirtualRobot(robot, geared_drives(robot, speed_limit=10.0), cascade())
    with pytest.warns(SimulationWarning, match="above its speed limit"):
        slow.simulate(excitation(3, 2.0))


def test_saturation_of_a_python_controller_is_counted_too() -> None:
    robot = arm()
    drives = geared_drives(robot, current_limit=1.2)
    curve = excitation(3, 0.5)
    with pytest.warns(SimulationWarning):
        one = VirtualRobot(robot, drives, pid(3000.0, 300.0)).simulate(curve)
    with pytest.warns(SimulationWarning):
        other = VirtualRobot(robot, drives, PythonPD(3000.0, 300.0)).simulate(curve)
    assert one.saturation == pytest.approx(other.saturation, abs=1e-3)


@pytest.mark.parametrize("gain", [5e5, 1e9])
def test_unstable_gains_are_reported_with_time_and_joint(gain: float) -> None:
    with pytest.raises(SimulationError, match=r"instability: joint 'joint_\d' passed 1e\+06 rad/s at t = [\d.]+ s") as caught:
        geared_arm(controller=pid(gain, gain)).simulate(excitation(3, 2.0))
    assert "nan" not in str(caught.value).lower()


def test_a_robot_thrown_into_a_singularity_says_so() -> None:
    machine = platform()
    robot = ideal(machine, OpenLoop(torque=[50.0, 50.0, -50.0, -50.0]))
    still = di.Motion([0.0, 2.0], np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(SimulationError, match=r"loops cannot be closed|instability") as caught:
        robot.simulate(still)
    assert "t = " in str(caught.value)


def test_backlash_and_elastic_shafts_run() -> None:
    robot = arm(2)
    soft = [
        replace(d, transmission=Transmission(100.0, inertias=(1e-5,), stiffness=(20.0,), damping=(2e-3,), backlash=1e-3))
        for d in geared_drives(robot)
    ]
    run = VirtualRobot(robot, soft, cascade()).simulate(excitation(2, 1.0, size=0.2))
    twist = run.truth.theta - 100.0 * run.truth.rho
    assert 5e-4 < np.abs(twist).max() < 0.2
    assert any("elastic" in note for note in run.robot.model_notes)


def test_start_beside_the_reference_is_pulled_in() -> None:
    robot = geared_arm()
    still = di.Motion([0.0, 1.5], np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)))
    run = robot.simulate(still, start={"q": [0.02, -0.01, 0.03]})
    assert np.allclose(run.truth.motion.q[0], [0.02, -0.01, 0.03])
    assert np.abs(run.truth.motion.q[-1]).max() < 1e-3


def test_json_and_repr_hold_the_numbers() -> None:
    run = geared_arm().simulate(excitation(3, 0.5), seed=5)
    text = to_json(run.numbers())
    assert '"seed": 5' in text
    assert "NaN" not in text
    assert "3 drives, Cascade" in repr(run.robot)
    assert np.allclose(inverse_dynamics(run.robot.model, run.truth.motion).shape, run.truth.rho.shape)
    assert actuator_jacobian(run.robot.mechanism, run.truth.motion.q[0]).shape == (1, 3, 3)


def test_a_log_with_its_reference_serves_as_instruments() -> None:
    from dynident.identify import IV, Regression
    from dynident.simulate import standard_machine
    from dynident.trajectory import random_motion

    arm = di.Mechanism.from_dh([(0.3, 0, 0, 0)], gravity=(0, -9.81, 0)).with_payload(2.0)
    wanted = random_motion([0.3], [0.8], duration=2.0)
    run = standard_machine(arm, controller="pd", bandwidth=4.0, step=1e-3).simulate(wanted, seed=1)
    log = run.log_with_reference()
    assert run.log.reference is None
    assert log.reference is not None
    np.testing.assert_allclose(log.reference[0], run.reference.q[0])
    assert np.isfinite(IV().fit(Regression.from_log(arm, log, keep_rows=True)).coef_).all()
