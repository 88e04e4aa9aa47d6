"""Loops of one axis as linear systems: closed forms, python-control's own algebra, and the control code run step by step."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.linalg import expm

from dynident.control import Cascade, CurrentLoop, pi_gains
from dynident.control.cascade import keeps_margins
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError
from dynident.mechanics import Motion
from dynident.mechanism import Mechanism
from dynident_lab.servo import Axis, cutoff_frequency, delayed_integrator, margins
from dynident_lab.servo.chain import electric

FIVE_BAR = Drive("A", Motor(1.43, inertia=13e-4), Transmission(40.0), encoder=Encoder(velocity="exact"))
VISCOUS = 1.7e-3
LOOPS = Cascade(19.2, 0.14, 11.45, position_cycle=5e-3, velocity_cycle=250e-6)
SERVO = Drive(
    "B",
    Motor(0.0603, 0.6, 0.8e-3, inertia=1.4e-5),
    Transmission(-25.0, inertias=(2e-6,), stiffness=(67.0,), damping=(1e-3,)),
    encoder=Encoder(filter=900.0),
)
SERVO_LOOPS = Cascade(
    30.0,
    0.08,
    2.0,
    position_cycle=1e-3,
    velocity_cycle=5e-4,
    current=CurrentLoop(1.5, 1000.0, 1.25e-4),
    velocity_feedforward=0.7,
    position_filter=150.0,
    velocity_filter=700.0,
)
F = np.array([0.3, 1.0, 4.0, 15.0, 60.0])


def test_five_bar_velocity_loop_has_the_poles_of_the_document() -> None:
    poles = Axis(FIVE_BAR, LOOPS, viscous=VISCOUS).loop("velocity").poles
    moving = poles[np.abs(poles) > 1.0]
    np.testing.assert_allclose(np.abs(moving), 112.227, atol=1e-3)
    np.testing.assert_allclose(-moving.real / np.abs(moving), 0.692, atol=5e-4)


def test_closed_loops_are_the_second_order_closed_forms() -> None:
    axis, s = Axis(FIVE_BAR, LOOPS, load=2e-4, viscous=VISCOUS), 2j * np.pi * F
    J, Kt = 15e-4, 1.43
    C = 0.14 + 11.45 / s
    Tv = Kt * C / (J * s + VISCOUS + Kt * C)
    np.testing.assert_allclose(axis.response(F, "velocity", sampled=False), Tv, rtol=1e-9)
    np.testing.assert_allclose(axis.response(F, sampled=False), 19.2 * Tv / (s + 19.2 * Tv), rtol=1e-9)
    # rho / d: theta s (J s + c) = Kt C (-kv theta - s theta) - d / ratio
    stiffness = s * (J * s + VISCOUS) + Kt * C * (19.2 + s)
    np.testing.assert_allclose(axis.disturbance_response(F, sampled=False), -1.0 / 40.0**2 / stiffness, rtol=1e-9)


def test_python_control_closes_the_three_loops_the_same_way() -> None:
    control = pytest.importorskip("control", reason="python-control is not installed: pip install 'dynident[control]'")
    drive = replace(SERVO, transmission=Transmission(-25.0), encoder=Encoder(velocity="exact"))
    loops = replace(SERVO_LOOPS, velocity_feedforward=0.0, position_filter=0.0, velocity_filter=0.0)
    axis, J, Kt = Axis(drive, loops, load=1e-5, viscous=2e-5), 2.4e-5, 0.0603
    winding, rotor = control.tf([1.0], [0.8e-3, 0.6]), control.tf([1.0], [J, 2e-5])
    admittance = control.feedback(winding, Kt * Kt * rotor)
    current = control.feedback(control.tf([1.5, 1000.0], [1.0, 0.0]) * admittance)
    speed = control.feedback(control.tf([0.08, 2.0], [1.0, 0.0]) * current * Kt * rotor)
    position = control.feedback(30.0 * speed * control.tf([1.0], [1.0, 0.0]))
    s = 2j * np.pi * F
    for loop, system in (("current", current), ("velocity", speed), ("position", position)):
        np.testing.assert_allclose(axis.response(F, loop, sampled=False), system(s), rtol=1e-7)  # type: ignore[arg-type]
    mine = axis.loop("position").to_control()
    np.testing.assert_allclose(mine(s)[0, 0], position(s), rtol=1e-7)
    assert axis.loop("position", sampled=True).to_control().dt == 1e-3
    np.testing.assert_allclose(electric(axis.drive.motor).to_control()(s), winding(s), rtol=1e-12)
    np.testing.assert_allclose(axis.mechanical.to_control()(s), rotor(s), rtol=1e-12)


def test_margins_are_those_of_python_control() -> None:
    control = pytest.importorskip("control", reason="python-control is not installed: pip install 'dynident[control]'")
    system = control.tf([3.0], [1.0, 3.0, 3.0, 1.0])
    gm, pm, wpc, wgc = control.margin(system)
    found = margins(lambda f: system(2j * np.pi * f), 1e-3, 1e2)
    assert found.gain == pytest.approx(gm)
    assert found.phase == pytest.approx(pm)
    assert found.gain_frequency == pytest.approx(wpc / (2.0 * np.pi))
    assert found.phase_frequency == pytest.approx(wgc / (2.0 * np.pi))
    assert found.delay == pytest.approx(np.radians(pm) / wgc)
    assert cutoff_frequency(lambda f: 1.0 / (1.0 + 1j * f / 3.0), 1e-3, 1e3) == pytest.approx(3.0)


def test_a_current_loop_is_stable_although_the_motion_is_free() -> None:
    for delay in (0.0, 1e-5, 1e-4, 4e-4):
        axis = Axis(SERVO, SERVO_LOOPS, load=5e-6, delay=delay)
        assert axis.margins("current", sampled=False).gain > 2.0
        assert axis.stable("current", sampled=False)
    assert not Axis(SERVO, SERVO_LOOPS, load=5e-6, delay=1e-3).stable("current", sampled=False)


def test_a_loop_at_its_gain_margin_is_at_the_edge() -> None:
    """Raising kv by the gain margin puts a pole on the unit circle: the margin of the lifted loop is exact."""
    axis = Axis(FIVE_BAR, LOOPS, viscous=VISCOUS, delay=1e-3)
    edge = axis.margins().gain * 19.2
    assert Axis(FIVE_BAR, replace(LOOPS, position_gain=0.999 * edge), viscous=VISCOUS, delay=1e-3).stable()
    assert not Axis(FIVE_BAR, replace(LOOPS, position_gain=1.001 * edge), viscous=VISCOUS, delay=1e-3).stable()


def test_a_sampled_integrator_has_its_textbook_margin() -> None:
    """An ideal first-order loop, z - 1 + kv T: unstable at kv T = 2; with a whole cycle of delay at kv T = 1."""
    motor = Drive("C", Motor(1.0, inertia=1.0), encoder=Encoder(velocity="exact"))
    loops = Cascade(0.0, 1.0, 0.0, position_cycle=0.1, velocity_cycle=0.1)
    assert Axis(motor, loops).margins("velocity").gain == pytest.approx(20.0, rel=1e-6)
    assert Axis(motor, loops, delay=0.1).margins("velocity").gain == pytest.approx(10.0, rel=1e-6)


def _run(axis: Axis, periods: int) -> np.ndarray:
    """Return rho at every position tick: the control code with numbers, the plant by matrix exponentials."""
    g, cycles, plant = axis.gains, axis.loops.cycles, axis.plant()
    ratio, encoder = axis.drive.transmission.ratio, axis.drive.encoder
    h, n = cycles["current"], len(plant.A)
    m = 8  # parts of a cycle, so that a delay of whole parts is hit exactly
    block = np.zeros((n + 2, n + 2))
    block[:n, :n], block[:n, n:] = plant.A, plant.B
    move = expm(block * h / m)
    late = round(axis.dead_time / (h / m))
    shares = [
        1.0 if f == 0.0 else 1.0 - np.exp(-2.0 * np.pi * f * T)
        for f, T in (
            (g["position_filter"], cycles["position"]),
            (g["velocity_filter"], cycles["velocity"]),
            (encoder.filter, cycles["velocity"]),
        )
    ]
    x, theta0, speed, sum_v, amps, wanted, sum_i = np.zeros(n), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    inner, outer = round(cycles["velocity"] / h), round(cycles["position"] / h)
    pending, u, out = [0.0] * (late + 1), 0.0, []
    for k in range(periods * outer):
        y = plant.C @ x + plant.D[:, 0] * u
        r, rv = 1.0 + 0.1 * (k // outer), 0.5  # a ramp, sampled and held
        if k % outer == 0:
            out.append(y[0])
            command = ratio * (g["position_gain"] * (r - y[1] / ratio) + g["velocity_feedforward"] * rv)
            wanted += shares[0] * (command - wanted)
        if k % inner == 0:
            seen = (y[1] - theta0) / cycles["velocity"] if encoder.velocity == "difference" else y[2]
            theta0 = y[1]
            speed += shares[2] * (seen - speed)
            sum_v += cycles["velocity"] * (wanted - speed)
            amps += shares[1] * (g["velocity_gain"] * (wanted - speed) + g["velocity_integral"] * sum_v - amps)
        command = amps
        if axis.loops.current is not None:
            sum_i += h * (amps - y[3])
            command = g["current.gain"] * (amps - y[3]) + g["current.integral"] * sum_i
        for part in range(m):
            pending.append(command)
            u = pending[-1 - late]
            x = (move @ np.concatenate([x, [u, 0.3]]))[:n]
            del pending[: -late - 1]
            assert part < m
    return np.array(out)


@pytest.mark.parametrize(
    "axis",
    [
        Axis(FIVE_BAR, LOOPS, viscous=VISCOUS),
        Axis(replace(FIVE_BAR, encoder=Encoder(filter=300.0)), LOOPS, viscous=VISCOUS, delay=250e-6 * 1.25),
        Axis(SERVO, SERVO_LOOPS, load=5e-6),
        Axis(SERVO, SERVO_LOOPS, load=5e-6, delay=1.25e-4 * 2.5),
        Axis(replace(SERVO, encoder=Encoder(side="joint")), SERVO_LOOPS, delay=1.25e-4),
        Axis(
            replace(SERVO, motor=Motor(0.0603, 0.6, inertia=1.4e-5)),
            replace(SERVO_LOOPS, current=CurrentLoop(0.1, 300.0, 1.25e-4)),
        ),
    ],
    ids=["ideal", "delayed", "servo", "servo delayed", "joint encoder", "no inductance"],
)
def test_the_lifted_loops_are_the_control_code(axis: Axis) -> None:
    system = axis.loop("position", sampled=True)
    periods = 25
    inputs = np.column_stack([1.0 + 0.1 * np.arange(periods), np.full(periods, 0.5), np.full(periods, 0.3)])
    z, lifted = np.zeros(len(system.A)), []
    for row in inputs:
        lifted.append((system.C @ z + system.D @ row)[0])
        z = system.A @ z + system.B @ row
    np.testing.assert_allclose(lifted, _run(axis, periods), rtol=1e-7, atol=1e-9)


def test_the_lifted_loops_are_the_compiled_simulation() -> None:
    simulate = pytest.importorskip("dynident.simulate")
    rod = Mechanism.from_dh([(0.3, 0, 0, 0)], gravity=(0, 0, 0)).with_payload(1e-9)
    drive = replace(FIVE_BAR, actuator="joint_1", encoder=Encoder(filter=400.0))
    axis, t = Axis(drive, replace(LOOPS, position_filter=50.0)), np.arange(100) * 5e-3
    q, v = 0.02 * (1.0 - np.cos(4.0 * np.pi * t)), 0.08 * np.pi * np.sin(4.0 * np.pi * t)
    run = simulate.VirtualRobot(rod, [drive], axis.loops, step=1.25e-4).simulate(
        Motion(t, *(y[:, None] for y in (q, v, 0.0 * q)))
    )
    system, lifted = axis.loop("position", sampled=True), []
    z = np.zeros(len(system.A))
    for wanted in q:
        lifted.append((system.C @ z)[0])
        z = system.A @ z + system.B[:, 0] * wanted
    simulated = np.interp(t, run.truth.t, run.truth.motion.q[:, 0])
    np.testing.assert_allclose(lifted, simulated, atol=1e-9)
    assert np.abs(simulated).max() > 0.03


def test_the_standard_cascade_keeps_the_margins_of_the_frequency_response() -> None:
    """The core asks for stability at other gains and phases; margins of the open loop's response are the oracle."""
    cases = list(product((0.01, 10.0, 50.0), (0.3, 4.0), (0.05, 0.5, 5.0), (True, False)))
    found, expected = [], []
    for bandwidth, level, rate, exact in cases:
        proportional, integral = pi_gains(level, 0.0, 1.0, 5.0 * bandwidth)
        loops = Cascade(2.0 * np.pi * bandwidth, proportional, integral, position_cycle=1e-3, velocity_cycle=2.5e-4)
        encoder = Encoder(velocity="exact" if exact else "difference")
        axis = Axis(Drive("direction", Motor(1.0, inertia=1.0 / rate), encoder=encoder), loops)
        both = (axis.margins("velocity"), axis.margins("position"))
        expected.append(axis.stable() and all(m.gain >= 2.0 and m.phase >= 30.0 for m in both))
        found.append(keeps_margins(loops, rate, exact))
    assert found == expected
    assert 10 < sum(found) < len(cases) - 10


def test_fast_cycles_approach_the_continuous_loops() -> None:
    errors = []
    for cycle in (2e-5, 1e-5):
        fast = replace(LOOPS, position_cycle=2 * cycle, velocity_cycle=cycle)
        axis = Axis(FIVE_BAR, fast, viscous=VISCOUS)
        errors.append(np.abs(axis.response(F) - axis.response(F, sampled=False)).max())
    assert errors[0] < 5e-4
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.1), "sampling is a first-order effect"


def test_longer_cycles_and_delays_cost_phase() -> None:
    phases = [Axis(FIVE_BAR, LOOPS, viscous=VISCOUS, delay=d).margins("velocity").phase for d in (0.0, 5e-4, 1e-3)]
    crossover = Axis(FIVE_BAR, LOOPS, viscous=VISCOUS).margins("velocity").phase_frequency
    assert phases[0] - phases[1] == pytest.approx(360.0 * crossover * 5e-4, rel=0.02)
    assert phases[1] - phases[2] == pytest.approx(360.0 * crossover * 5e-4, rel=0.02)
    slow = replace(LOOPS, velocity_cycle=1e-3)
    assert Axis(FIVE_BAR, slow, viscous=VISCOUS).margins("velocity").phase < phases[0] - 2.0
    # The dead time of the continuous loop is a Pade approximation of the same thing.
    late = Axis(FIVE_BAR, LOOPS, viscous=VISCOUS, delay=1e-3).margins("velocity", sampled=False).phase
    exact = Axis(FIVE_BAR, LOOPS, viscous=VISCOUS).margins("velocity", sampled=False)
    assert exact.phase - late == pytest.approx(360.0 * exact.phase_frequency * 1e-3, abs=1e-3)


def test_the_mechanism_costs_bandwidth() -> None:
    alone, loaded = (Axis(FIVE_BAR, LOOPS, load=load, viscous=VISCOUS).bandwidth("velocity") for load in (0.0, 13e-4))
    assert loaded < alone


def test_elastic_shafts_show_their_resonance() -> None:
    axis = Axis(SERVO, SERVO_LOOPS)
    f = np.sqrt(67.0 * (1.4e-5 + 2e-6) / (1.4e-5 * 2e-6)) / (2.0 * np.pi)
    poles = axis.plant().poles
    assert np.abs(np.abs(poles) / (2.0 * np.pi) - f).min() < 0.02 * f


def test_the_inferred_gain_of_the_mast_has_the_digests_response() -> None:
    """The percentages are those of the fit before k_v and T were rounded, hence 0.25 points."""
    T = delayed_integrator(22.8, 8.8e-3, [0.4, 5.0, 10.0])
    np.testing.assert_allclose(100.0 * np.abs(T), [99.6, 68.1, 41.8], atol=0.25)
    np.testing.assert_allclose(np.degrees(np.angle(T)), [-6.3, -64.8, -100.8], atol=0.05)
    edge = cutoff_frequency(lambda f: delayed_integrator(25.0, 0.0, f), 0.01, 100.0)
    assert edge == pytest.approx(25.0 / (2.0 * np.pi), rel=1e-4)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Axis(FIVE_BAR, LOOPS, load=-1.0), "axis: load is -1; give a number of at least 0"),
        (lambda: Axis(FIVE_BAR, LOOPS, delay=float("nan")), "axis: delay is nan; give a number"),
        (lambda: Axis(FIVE_BAR, LOOPS).loop("current"), "the cascade has an ideal current loop"),
        (lambda: Axis(FIVE_BAR, LOOPS).loop("torque"), "loop is 'torque'"),
        (lambda: Axis(FIVE_BAR, replace(LOOPS, current=CurrentLoop(1.0, 1.0, 250e-6))), "neither resistance nor inductance"),
        (
            lambda: Axis(FIVE_BAR, replace(LOOPS, position_gain=[1.0, 2.0]), actuator=2).gains,
            "actuator = 2, but position_gain",
        ),
        (lambda: delayed_integrator(0.0, 1.0, 1.0), "gain is 0.0"),
        (lambda: margins(lambda f: f, 1.0, 0.5), r"highest is 0.5; give a number \[Hz\] above 1"),
        (lambda: cutoff_frequency(lambda f: f, 0.5, 1.0, level=2.0), "level is 2.0"),
    ],
)
def test_bad_input_is_refused(call: object, sentence: str) -> None:
    with pytest.raises(DynidentError, match=sentence):
        call()  # type: ignore[operator]
