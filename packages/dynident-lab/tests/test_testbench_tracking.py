"""The proof in closed loop: its arithmetic, then proofs on virtual robots."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from plant_cases import machine as plant_of
from plant_cases import slide
from small_robots import two_pushes

import dynident as di
from dynident.control import PID, Cascade, ComputedTorque, feedforward_torques
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError
from dynident.friction import Coulomb, Sigmoid, Viscous
from dynident.mechanism import from_com
from dynident.simulate import Sensors, VirtualRobot
from dynident.trajectory import random_motion
from dynident_lab.testbench import (
    TrackingProof,
    TrackingTrial,
    catalogue_model,
    feedback_alone,
    identify_friction,
    identify_machine,
    led_reference,
    tracking_proof,
    with_model,
)
from dynident_lab.testbench.tracking_result import ALONE, CATALOGUE, IDENTIFIED

T = np.linspace(0.0, 1.0, 200)
TABLE = {
    "PD": ((6.0, 6.5, 8.0, 8.5), (7.5, 7.0, 9.75, 7.25)),
    "case 1": ((3.0, 2.25, 2.0, 2.5), (3.5, 2.75, 2.2, 2.1)),
    "case 2": ((2.75, 2.5, 2.1, 2.0), (2.8, 2.6, 2.3, 2.15)),
}
"""Largest errors of four motors on two motions [1e-3 rad], invented."""
FIT = Mock(spec=di.Fit, condition=12.0, values=np.ones(40), training_relative=0.03)


def made(controller: str, motion: str, largest, model=0.0, feedback=1.0) -> TrackingTrial:
    """A trial whose errors are sines with given largest values and whose efforts have given RMS values."""
    k = len(largest)
    wave = np.sin(2.0 * np.pi * T)[:, None]
    flat = np.where(np.arange(T.size) % 2, 1.0, -1.0)[:, None]
    error = wave / np.abs(wave).max() * np.asarray(largest)
    return TrackingTrial(controller, motion, T, error, flat * np.broadcast_to(model, k), flat * np.broadcast_to(feedback, k))


@pytest.fixture(scope="module")
def table_4() -> TrackingProof:
    """Three controllers on two motions, with largest errors as in TABLE."""
    rows = ((ALONE, "PD"), (CATALOGUE, "case 2"), (IDENTIFIED, "case 1"))
    trials = tuple(
        made(name, f"trajectory {i + 1}", 1e-3 * np.array(TABLE[label][i]), 1.0) for i in (0, 1) for name, label in rows
    )
    motors = tuple(f"motor_{i}" for i in range(1, 5))
    return TrackingProof("platform", motors, ("rad",) * 4, "N m", trials, FIT, "computed torque")


def test_table_and_json_hold_the_numbers(table_4: TrackingProof) -> None:
    text = table_4.table(TABLE)
    assert "trajectory 2" in text and "8.5 (" in text and "published: case 2" in text and "9.75" in text
    assert len({len(line) for line in text.splitlines() if "motor_1" in line}) == 1
    data = table_4.numbers()
    assert len(data["trials"]) == 6
    row = next(r for r in data["trials"] if r["controller"] == IDENTIFIED and r["motion"] == "trajectory 1")
    np.testing.assert_allclose(row["largest"], 1e-3 * np.array(TABLE["case 1"][0]))
    np.testing.assert_allclose(
        row["reduction_largest"], 100.0 * (1.0 - np.divide(TABLE["case 1"][0], TABLE["PD"][0])), atol=0.01
    )
    assert "reduction_largest" not in data["trials"][0]


def test_figures_show_every_controller_and_actuator(table_4: TrackingProof) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")
    figures = table_4.figures(TABLE)
    assert set(figures) == {"errors_1", "errors_2", "largest_errors", "efforts"}
    over_time = figures["errors_1"].axes
    assert len(over_time) == 4
    assert [line.get_label() for line in over_time[0].lines[1:]] == [ALONE, CATALOGUE, IDENTIFIED]
    drawn = np.abs(over_time[3].lines[1].get_ydata()).max()
    assert drawn == pytest.approx(TABLE["PD"][0][3], rel=1e-6)
    heights = [bar.get_height() for bar in figures["largest_errors"].axes[0].patches]
    np.testing.assert_allclose(heights[:4], TABLE["PD"][0])


def test_wrong_questions_are_one_sentence(table_4: TrackingProof) -> None:
    with pytest.raises(DynidentError, match="no trial of 'magic'"):
        table_4.trial("magic", "trajectory 1")
    with pytest.raises(DynidentError, match="'largest' or 'rms'"):
        table_4.reduction(of="mean")
    with pytest.raises(DynidentError, match="one of joint, encoder, tool"):
        table_4.reduction(where="elbow")
    with pytest.raises(DynidentError, match="has no tool"):
        table_4.reduction(where="tool")
    assert table_4.places == ("joint",)


# ------------------------------------------------------------------------------------------------- laws and models
def arm(terms=()) -> di.Mechanism:
    """Two links in a vertical plane with numbers."""
    table = [{"a": 0.0, "alpha": 0.0, "d": 0.0, "joint": "shoulder"}, {"a": 0.3, "alpha": 0.0, "d": 0.0, "joint": "elbow"}]
    robot = di.Mechanism.from_dh(table, "modified", "two links", (0.0, -9.81, 0.0)).with_terms(terms)
    links = [from_com(2.0, (0.15, 0, 0), np.eye(3) * 0.02), from_com(1.2, (0.12, 0, 0), np.eye(3) * 0.01)]
    phi = np.concatenate([*links, np.zeros(len(robot.parameters) - 20)])
    return robot.with_parameters(robot.parameters.replace(phi))


def machine(law=None, noise: float = 0.02) -> VirtualRobot:
    friction = (Coulomb() + Viscous()).using(fc=0.02, fv=2e-4)
    motor = Motor(0.05, inertia=2e-5, current_limit=12.0)
    drives = [Drive(n, motor, Transmission.gear(80.0), friction, Encoder.lines(2048)) for n in ("shoulder", "elbow")]
    chosen = law or PID(400.0, 30.0, cycle=1e-3, derivative_filter=100.0)
    return VirtualRobot(arm(), drives, chosen, sensors=Sensors(effort_noise=noise), step=5e-4, name="two links")


def test_feedback_alone_keeps_the_gains() -> None:
    model = arm()
    pid = PID(3.0, 2.0, cycle=1e-3, feedforward=model)
    assert feedback_alone(pid, model, [0, 0]) == PID(3.0, 2.0, cycle=1e-3)
    assert with_model(feedback_alone(pid, model, [0, 0]), model) == pid
    loops = Cascade(1.0, 2.0, 3.0, position_cycle=1e-3, velocity_cycle=1e-3, torque_feedforward=model)
    assert feedback_alone(loops, model, [0, 0]).torque_feedforward is None
    assert with_model(loops, arm()).position_gain == 1.0


def test_computed_torque_without_its_model_is_pd_on_the_inertias() -> None:
    """Two motors push one mass: A = (1, 1), (A^+)^T m A^+ = m / 4 each, times k / n = 2: together the whole mass."""
    toy = two_pushes(3.0)
    law = feedback_alone(ComputedTorque(toy, 100.0, 20.0, 5.0, cycle=1e-3), toy, [0.0])
    assert isinstance(law, PID) and law.project
    np.testing.assert_allclose([law.kp, law.kd, law.ki], np.outer([100.0, 20.0, 5.0], [1.5, 1.5]))
    serial = feedback_alone(ComputedTorque(arm(), 100.0, 20.0, cycle=1e-3), arm(), [0.2, 0.4])
    np.testing.assert_allclose(serial.kp, 100.0 * np.diag(di.mass_matrix(arm(), [[0.2, 0.4]])[0]))
    assert not serial.project
    with pytest.raises(DynidentError, match="baseline="):
        feedback_alone(ComputedTorque(arm(), [1.0, 2.0], 1.0, cycle=1e-3), arm(), [0.0, 0.0])
    with pytest.raises(DynidentError, match="use PID, Cascade"):
        feedback_alone("magic", arm(), [0.0, 0.0])
    with pytest.raises(DynidentError, match="use PID, Cascade"):
        with_model("magic", arm())


def test_a_catalogue_knows_bodies_a_little_wrong_and_no_friction() -> None:
    truth = machine().model
    nominal = catalogue_model(truth, 0.1, 2)
    values, known = truth.parameters.to_dict(), nominal.parameters.to_dict()
    assert all(known[name] == 0.0 for name in known if name.startswith(("fv_", "fc_")))
    assert values["fc_shoulder"] == pytest.approx(80.0 * 0.02)
    ratios = {name: known[name] / values[name] for name in known if values[name] and not name.startswith("f")}
    np.testing.assert_allclose(np.abs(np.array([*ratios.values()]) - 1.0), 0.1)  # never luckier than it says
    assert ratios["m_link_1"] == pytest.approx(ratios["Izz_link_1"])  # one draw per body: it stays possible
    assert len({round(ratio, 6) for ratio in ratios.values()}) == 2  # some up, some down
    exact = catalogue_model(truth, 0.0).parameters.to_dict()
    assert exact["Izz_link_2"] == values["Izz_link_2"]
    with pytest.raises(DynidentError, match=r"0 to 0\.5"):
        catalogue_model(truth, 2.0)


# ------------------------------------------------------------------------------------------------- real proofs
CENTRE = np.array([0.3, -0.8])


@pytest.fixture(scope="module")
def proof() -> TrackingProof:
    training = [random_motion(CENTRE, [0.8, 0.7], 0, 4.0)]
    return tracking_proof(machine(), training, {"sweep": random_motion(CENTRE, [0.5, 0.5], 9, 2.0)})


def test_the_identified_model_beats_the_catalogue_and_the_feedback_alone(proof: TrackingProof) -> None:
    alone, catalogue, identified = (proof.trial(name, "sweep") for name in (ALONE, CATALOGUE, IDENTIFIED))
    assert np.all(identified.rms < catalogue.rms) and np.all(catalogue.rms < alone.rms)
    assert np.all(proof.reduction(of="rms") > 0.8) and np.all(proof.reduction() > 0.6)
    assert np.all(proof.effort_ratio > 3.0)
    assert proof.units == ("rad", "rad") and proof.effort_unit == "A"


def test_the_model_is_identified_from_the_noisy_log(proof: TrackingProof) -> None:
    """What is found is the truth within its own deviation, and not the truth itself."""
    truth = machine().model.parameters.values
    base = proof.fit.base
    off = proof.fit.values - base.regrouping @ truth
    assert np.abs(off).max() > 0.0
    assert np.median(np.abs(off) / proof.fit.std) < 5.0
    assert 0.001 < proof.fit.training_relative < 0.2


def test_feedback_and_model_share_the_whole_effort(proof: TrackingProof) -> None:
    alone = proof.trial(ALONE, "sweep")
    assert not np.any(alone.model)
    identified = proof.trial(IDENTIFIED, "sweep")
    expected = feedforward_torques(
        proof.fit.model, machine().reference(random_motion(CENTRE, [0.5, 0.5], 9, 2.0)).sample(identified.t)
    )
    np.testing.assert_allclose(identified.model, expected / (80.0 * 0.05), rtol=1e-9)
    assert np.all(np.abs(identified.model + identified.feedback) <= 12.0 + 1e-9)


def test_bad_proofs_are_one_sentence() -> None:
    motion = random_motion(CENTRE, [0.5, 0.5], 9, 2.0)
    with pytest.raises(DynidentError, match="was used for identification"):
        tracking_proof(machine(), [motion], {"same": motion})
    with pytest.raises(DynidentError, match="motions is empty"):
        tracking_proof(machine(), [motion], {})
    with pytest.raises(DynidentError, match="empty list"):
        identify_machine(machine(), [])
    with pytest.raises(DynidentError, match="half-width"):
        random_motion(CENTRE, [0.5, -0.5])


def test_random_motions_fill_their_box_from_rest_to_rest() -> None:
    motion = random_motion(CENTRE, [0.8, 0.5], 4, 5.0, periods=2)
    q, v, a = motion(np.linspace(0.0, 10.0, 4001))
    np.testing.assert_allclose(np.abs(q - CENTRE).max(axis=0), [0.8, 0.5], rtol=2e-3)
    np.testing.assert_allclose(np.array([q[0], q[-1]]) - CENTRE, 0.0, atol=1e-9)
    np.testing.assert_allclose([v[0], v[-1], a[0], a[-1]], 0.0, atol=1e-9)


def test_a_friction_law_is_identified_with_the_bodies() -> None:
    robot = machine()
    known = identify_friction(robot, random_motion(np.zeros(2), np.full(2, 0.8), duration=6.0), Sigmoid(1), starts=2)
    speeds = np.array([-1.5, -0.7, 0.7, 1.5])  # rad/s at the joint, beyond the transition at zero
    for drive in robot.drives:
        ratio = drive.transmission.ratio
        true = ratio * (0.02 * np.sign(ratio * speeds) + 2e-4 * ratio * speeds)
        found = np.array(known.friction[drive.actuator](speeds))
        np.testing.assert_allclose(found, true, rtol=0.05)


def test_friction_laws_are_for_a_pid() -> None:
    model, rub = arm(), {"elbow": Coulomb().using(fc=0.5)}
    law = with_model(PID(3.0, 2.0, cycle=1e-3), model, rub)
    assert law.friction is rub and feedback_alone(law, model, [0, 0]) == PID(3.0, 2.0, cycle=1e-3)
    with pytest.raises(DynidentError, match="only be given to a PID"):
        with_model(ComputedTorque(model, 1.0, 1.0, cycle=1e-3), model, rub)
    with pytest.raises(DynidentError, match="without feedforward"):
        PID(3.0, 2.0, cycle=1e-3, friction=rub)


def test_a_pid_adds_friction_to_its_feedforward() -> None:
    """The torque held at the first tick is model plus friction at the reference's speed, behind the gear."""
    robot, rub = machine(), {"elbow": (Coulomb() + Viscous()).using(fc=0.5, fv=0.1)}
    t = np.linspace(0.0, 0.1, 101)
    v = np.array([0.2, -0.3])
    motion = di.Motion(t, CENTRE + t[:, None] * v, np.tile(v, (101, 1)), np.zeros((101, 2)))
    asked = []
    for law in (with_model(robot.controller, arm()), with_model(robot.controller, arm(), rub)):
        run = replace(robot, controller=law, drives=[replace(d, encoder=Encoder()) for d in robot.drives]).simulate(motion)
        asked.append(run.truth.motor_torque[0] * 80.0)
    np.testing.assert_allclose(asked[1] - asked[0], [0.0, -0.5 - 0.1 * 0.3], atol=1e-9)


@pytest.mark.parametrize("stiffness", [None, 2.0e4])
def test_a_motor_leads_by_the_load_over_the_stiffness(stiffness: float | None) -> None:
    """One lifted mass behind a shaft without a gear: m (a + g) / k, and nothing where the shaft is rigid."""
    mass = 3.0
    lift = replace(slide(mass), gravity=(0.0, 0.0, -9.81))
    shaft = {} if stiffness is None else {"inertias": (1e-3,), "stiffness": (stiffness,), "damping": (5.0,)}
    drive = Drive("s", Motor(1.0, inertia=0.01), Transmission(1.0, 1.0, **shaft))
    elastic = plant_of(lift, [drive], step=2e-4)
    t = np.arange(0.0, 1.0, 1e-3)
    asked = di.Motion(t, *(np.array([f]).T for f in (0.1 * np.sin(t), 0.1 * np.cos(t), -0.1 * np.sin(t))))
    led = led_reference(elastic, lift, asked)
    load = mass * (9.81 - 0.1 * np.sin(led.t)) / (stiffness or np.inf)
    inner = slice(5, -10)
    np.testing.assert_allclose((led.q[:, 0] - 0.1 * np.sin(led.t))[inner], load[inner], atol=1e-6 if stiffness else 1e-12)
