"""Stepped sines against transfer functions and against the loops computed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from simulate_cases import excitation, geared_arm
from test_simulate_limit_cycle import chain, limited

import dynident as di
from dynident.control import PID, Cascade, ComputedTorque
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError, SimulationWarning
from dynident.mechanism import Body, Joint, Mechanism
from dynident.simulate import VirtualRobot
from dynident_lab.servo import SineResponse, Sweep, actuators_alone, bandwidth, sweep

MASS, KP, KD = 2.0, 800.0, 40.0


def slide(controller: object, inertia: float = 0.0, ratio: float = 1.0, step: float = 1e-4) -> VirtualRobot:
    body = Body("carriage", np.array([MASS, *[0.0] * 9]))
    joint = Joint("x", "prismatic", "base", "carriage", axis=np.array([1.0, 0.0, 0.0]))
    robot = Mechanism("slide", (Body("base"), body), (joint,), terms=(), gravity=np.zeros(3))
    drive = Drive("x", Motor(0.05, inertia=inertia), Transmission(ratio), encoder=Encoder(velocity="exact"))
    return VirtualRobot(robot, [drive], controller, step=step)  # type: ignore[arg-type]


def test_pd_on_a_mass_has_its_transfer_function() -> None:
    f = np.array([0.5, 2.0, 4.0, 8.0])
    found = bandwidth(slide(PID(KP, KD, cycle=1e-4)), "x", 1e-3, f)
    s = 2j * np.pi * f
    hold = (1.0 - np.exp(-s * 1e-4)) / (s * 1e-4)  # torques are held over a cycle
    loop = hold * (KD * s + KP) / (MASS * s**2)
    wanted = loop / (1.0 + loop)
    np.testing.assert_allclose(found.response, wanted, rtol=2e-4)
    np.testing.assert_allclose(found.actuators[:, 0], found.response, rtol=1e-9)
    assert np.all(found.scatter < 2e-3)
    assert np.all(found.distortion < 1e-2)
    assert np.all(found.saturated == 0.0)


def by_hand(f: float, J: float, kv: float, kP: float, kI: float, Kt: float, outer: int, inner: float) -> complex:
    """Return the response of P and PI loops on an inertia, cycle by cycle: the torque is constant in between."""
    w, position, speed, integral, asked = 2.0 * np.pi * f, 1.0, 0.0, 0.0, 0.0
    count = round((3.0 + 6.0 / f) / inner)
    y = np.empty(count)
    for i in range(count):
        y[i] = position
        if i % outer == 0:
            asked = kv * (np.cos(w * i * inner) - position)
        error = asked - speed
        integral += inner * error
        push = Kt * (kP * error + kI * integral) / J
        position += speed * inner + 0.5 * push * inner**2
        speed += push * inner
    t = inner * np.arange(count)
    late = t > t[-1] - 4.0 / f
    W = np.column_stack([np.cos(w * t), np.sin(w * t), np.ones_like(t)])[late]
    c = np.linalg.lstsq(W, y[late], rcond=None)[0]
    return complex(c[0], -c[1])


@pytest.mark.parametrize("alone", [False, True])
def test_a_cascade_does_what_its_loops_do_by_hand(alone: bool) -> None:
    loops = Cascade(20.0, 0.5, 5.0, position_cycle=5e-3, velocity_cycle=1e-3)
    robot = slide(loops, inertia=1e-4, ratio=100.0, step=5e-4)
    J = 1e-4 + (0.0 if alone else MASS / 100.0**2)
    f = np.array([1.0, 5.0])
    found = bandwidth(robot, "x", 1e-3, f, mechanism=not alone)
    wanted = [by_hand(float(hz), J, 20.0, 0.5, 5.0, 0.05, 5, 1e-3) for hz in f]
    np.testing.assert_allclose(found.response, wanted, rtol=3e-3)
    assert found.mechanism is not alone


def made_up(response: list[complex], f: list[float]) -> SineResponse:
    z = np.array(response)
    zero = np.zeros(z.size)
    return SineResponse(np.array(f), z, z[:, None], zero, zero, zero, "x", 1e-3, "made up", True, ("x",))


def test_bandwidth_is_interpolated_and_phase_is_continuous(tmp_path: Path) -> None:
    f = np.geomspace(0.5, 50.0, 40)
    first = made_up(list(1.0 / (1.0 + 1j * f / 7.0)), f.tolist())
    assert first.bandwidth == pytest.approx(7.0, rel=2e-3)
    third = made_up(list(1.0 / (1.0 + 1j * f / 7.0) ** 4), f.tolist())
    assert np.all(np.diff(third.phase) < 0.0)
    assert third.phase[-1] == pytest.approx(-4.0 * np.rad2deg(np.arctan(50.0 / 7.0)), rel=1e-9)
    assert np.isnan(made_up([1.0, 0.9], [1.0, 2.0]).bandwidth)
    assert np.isnan(made_up([0.5, 0.4], [1.0, 2.0]).bandwidth)
    assert "bandwidth 6.989 Hz" in str(first)
    again = di.load(first.save(tmp_path / "response.json"))
    assert np.array_equal(again.response, first.response) and again.name == first.name
    assert np.array_equal(SineResponse.from_dict(json.loads(json.dumps(first.to_dict()))).actuators, first.actuators)


def test_bode_figure_has_both_lines() -> None:
    pytest.importorskip("matplotlib")
    f = np.geomspace(0.5, 50.0, 10)
    one = made_up(list(1.0 / (1.0 + 1j * f / 7.0)), f.tolist())
    figure = one.plot(one, labels=("with", "alone"))
    assert len(figure.axes) == 2
    assert figure.axes[0].get_legend().get_texts()[0].get_text().startswith("with")
    with pytest.raises(DynidentError, match="labels"):
        one.plot(one, labels=("one",))


def test_actuators_alone_need_inertia_and_a_controller_that_works_without_the_mechanism() -> None:
    with pytest.raises(DynidentError, match="no inertia"):
        actuators_alone(slide(PID(KP, KD, cycle=1e-3)))
    with pytest.raises(DynidentError, match="needs the mechanism"):
        actuators_alone(slide(ComputedTorque(slide(PID(1.0, 1.0, cycle=1e-3)).mechanism, 1.0, 1.0, cycle=1e-3)))


def test_bad_input_is_one_sentence() -> None:
    robot = slide(PID(KP, KD, cycle=1e-3))
    for call in (
        lambda: bandwidth(robot, "y", 1e-3, [1.0]),
        lambda: bandwidth(robot, "x", -1e-3, [1.0]),
        lambda: bandwidth(robot, "x", 1e-3, [0.0]),
        lambda: bandwidth(robot, "x", 1e-3, []),
        lambda: bandwidth(robot, "x", 1e-3, [1.0], cycles=1),
        lambda: bandwidth(robot, "x", 1e-3, [1.0], centre=[0.0, 1.0]),
        lambda: sweep(robot, {}, lambda r: 0.0),
        lambda: sweep(robot, {"position_gain": [1.0]}, lambda r: 0.0),
        lambda: sweep(robot, {"kp": [1.0]}, 3.0),  # type: ignore[arg-type]
    ):
        with pytest.raises(DynidentError) as error:
            call()
        assert "\n" not in str(error.value)


def test_sweep_is_a_table_that_says_where_it_is_unstable() -> None:
    loops = Cascade(20.0, 0.5, 5.0, position_cycle=5e-3, velocity_cycle=1e-3)
    robot = slide(loops, inertia=1e-4, ratio=100.0, step=5e-4)
    gains, cycles = [10.0, 20.0, 2000.0], [5e-3, 10e-3]
    found = sweep(
        robot,
        {"position_gain": gains, "position_cycle": cycles},
        lambda r: bandwidth(r, "x", 1e-3, np.geomspace(0.5, 20.0, 8), workers=1).bandwidth,
    )
    values = np.array(found.column()).reshape(3, 2)
    assert values[0, 0] < values[1, 0]  # more gain, more bandwidth
    assert np.all(values[:2, 0] < values[:2, 1])  # dead time bends the response up before it falls
    assert np.all(np.isnan(values[2]))
    assert all(found.notes[i] for i in (4, 5))
    assert found.summary().count("\n") == 6
    with pytest.raises(DynidentError, match="no number"):
        found.column("other")


def test_a_sweep_marks_what_is_unstable_and_what_is_at_its_limits() -> None:
    robot = limited(chain(2), PID(400.0, 40.0, cycle=1e-3), 30.0)
    motion = excitation(2, 2.0, size=0.4)
    with pytest.warns(SimulationWarning):
        found = sweep(
            robot,
            {"kp": [400.0, 1e7]},
            lambda r: max(r.simulate(motion, duration=0.5, start={"q": [0.9, -0.9]}).tracking().largest),
        )
    assert np.isfinite(found.column()[0]) and np.isnan(found.column()[1])
    assert "current limit of 30 A" in found.notes[0] and found.notes[1].startswith("instability: joint 'j")


def test_a_sweep_is_drawn_with_one_curve_per_combination_of_the_other_settings() -> None:
    grid = tuple({"gain": g, "cycle": c} for g in (1.0, 2.0) for c in (0.1, 0.2))
    found = Sweep(grid, tuple({"value": float(i)} for i in range(4)), ("",) * 4)
    np.testing.assert_array_equal([line.get_ydata() for line in found.plot().axes[0].lines], [[0.0, 2.0], [1.0, 3.0]])


def test_a_corner_outside_the_measured_frequencies_is_said() -> None:
    assert "bandwidth above 5 Hz" in str(bandwidth(geared_arm(), "joint_1", 0.02, [2.0, 5.0], settle=0.5))
