"""Transfer functions, state space and modes of chains: three ways to the same numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynident.arrays import Complex
from dynident.drive import Chain, Drive, Motor, Transmission
from dynident.drive.drive import linear_drive
from dynident.errors import DynidentError
from dynident_lab.servo import StateSpace, TransferFunction, plot_bode
from dynident_lab.servo.chain import (
    anti_resonances,
    electric,
    modes,
    receptance,
    resonances,
    speed_per_voltage,
    state_space,
    transfer_functions,
    transmissibility,
)

MAST = Chain((2.028e-5, 2.0526e-6), (67.702,), (3.0e-8,))  # motor and carriage of [Roldan2017, table 4.2]


@st.composite
def chains(draw: st.DrawFn, most: int = 5, proportional: bool = False) -> Chain:
    n = draw(st.integers(1, most))
    J = [10.0 ** draw(st.floats(-6.0, -4.0)) for _ in range(n)]
    k = [10.0 ** draw(st.floats(1.0, 3.0)) for _ in range(n - 1)]
    c = [x * 1e-5 if proportional else x * 10.0 ** draw(st.floats(-7.0, -4.0)) for x in k]
    b = () if proportional else tuple(draw(st.floats(0.0, 1e-3)) for _ in range(n))
    return Chain(tuple(J), tuple(k), tuple(c), b)


def recursion(chain: Chain, s: Complex) -> list[Complex]:
    """x_1/F, then TF_i = x_i / x_{i-1}, from the load to the motor [Roldan2017, section 3.2.2], with viscous friction added."""
    m, b = chain.inertias, chain.viscous
    n = len(m)
    g = [c * s + k for c, k in zip(chain.damping, chain.stiffness, strict=True)]
    found: list[Complex] = []
    behind = np.zeros_like(s)
    for i in range(n - 1, 0, -1):
        after = g[i] * (1.0 - found[-1]) if found else behind
        found.append(g[i - 1] / (m[i] * s**2 + b[i] * s + g[i - 1] + after))
    first = g[0] * (1.0 - found[-1]) if n > 1 else behind
    return [1.0 / (m[0] * s**2 + b[0] * s + first), *found[::-1]]


def test_the_four_printed_transfer_functions() -> None:
    """Equations 3.7-3.12, coefficient by coefficient."""
    J1, J2, k, c = 2e-5, 3e-6, 60.0, 1e-4
    common = np.array([J1 * J2, (J1 + J2) * c, (J1 + J2) * k, 0.0, 0.0])
    expected = {
        "TF1": ([J2, c, k], common),
        "TF2": ([c, k], [J2, c, k]),
        "TF1d": ([J1, c, k], common),
        "TF2d": ([c, k], [J1, c, k]),
    }
    found = transfer_functions(Chain((J1, J2), (k,), (c,)))
    assert list(found) == list(expected)
    for name, (numerator, denominator) in expected.items():
        np.testing.assert_allclose(found[name].numerator, numerator, rtol=1e-14)
        np.testing.assert_allclose(found[name].denominator, denominator, rtol=1e-14)
        assert found[name].name.startswith(name)


def test_one_mass_is_the_document_s() -> None:
    one = Chain((2e-5,), viscous=(1e-3,))
    functions = transfer_functions(one)
    assert functions["TF1"].numerator == (1.0,)
    assert functions["TF1"].denominator == (2e-5, 1e-3, 0.0)
    assert functions["TF1"].rate.denominator == (2e-5, 1e-3)
    assert functions["TF2"].response(3.0) == 1.0
    assert resonances(one).size == anti_resonances(one).size == 0


@given(chains())
@settings(max_examples=40, deadline=None)
def test_polynomials_are_the_recursion(chain: Chain) -> None:
    f = np.geomspace(10.0, 3000.0, 60)  # below, the recursion's subtraction loses digits that the polynomials keep
    s = 2j * np.pi * f
    ratios = recursion(chain, s)
    product = ratios[0]
    np.testing.assert_allclose(receptance(chain, 0, 0).response(f), product, rtol=1e-10)
    for i in range(1, len(chain)):
        np.testing.assert_allclose(transmissibility(chain, i, i - 1).response(f), ratios[i], rtol=1e-10)
        product = product * ratios[i]
        np.testing.assert_allclose(receptance(chain, i, 0).response(f), product, rtol=1e-10)


@given(chains())
@settings(max_examples=40, deadline=None)
def test_polynomials_are_the_state_space(chain: Chain) -> None:
    """From 10 Hz: below, the state space itself loses digits, as its matrix is singular at rest."""
    f = np.geomspace(10.0, 1000.0, 40)
    n = len(chain)
    H = state_space(chain).response(f)
    for i in range(n):
        for column, (mass, sign) in enumerate(((0, 1.0), (n - 1, -1.0))):  # the mechanism's torque enters with a minus
            exact = receptance(chain, i, mass).response(f)
            size = np.abs(receptance(chain, mass, mass).response(f)) + np.abs(exact)
            np.testing.assert_array_less(np.abs(sign * H[:, i, column] - exact), 1e-10 * size)
            np.testing.assert_array_less(
                np.abs(H[:, n + i, column] - 2j * np.pi * f * H[:, i, column]), 1e-9 * np.abs(2 * np.pi * f * size)
            )


@given(chains(proportional=True))
@settings(max_examples=40, deadline=None)
def test_polynomials_are_the_sum_of_modes(chain: Chain) -> None:
    """Proportional damping: the modal sum 3.24-3.25 is exact, and the rigid motion is in it with omega = 0."""
    f = np.geomspace(0.1, 3000.0, 60)
    shown = modes(chain)
    assert shown.coupling < 1e-9
    np.testing.assert_allclose(shown.shapes @ np.diag(chain.inertias) @ shown.shapes.T, np.eye(len(chain)), atol=1e-12)
    assert shown.omega[0] == 0.0
    for i, j in ((0, 0), (-1, -1), (-1, 0)):
        exact, terms = receptance(chain, i, j).response(f), shown.response(f, i, j)
        size = np.maximum(np.abs(receptance(chain, i, i).response(f)), np.abs(exact)) + np.abs(
            shown.residues(i, j)[0] / (2 * np.pi * f) ** 2
        )
        np.testing.assert_array_less(np.abs(terms - exact), 1e-10 * size)
        assert shown.residues(i, j)[0] == pytest.approx(1.0 / sum(chain.inertias), rel=1e-12)


def test_unequal_damping_is_said() -> None:
    assert modes(Chain((1e-5, 1e-6, 1e-6), (10.0, 20.0), (1e-3, 0.0))).coupling > 0.1
    assert modes(Chain((1e-5, 1e-6), (10.0,), (1e-3,))).coupling < 1e-12
    assert np.isnan(modes(MAST).damping_ratio[0])
    assert modes(MAST).damping_ratio[1] == pytest.approx(-receptance(MAST).poles[-1].real / abs(receptance(MAST).poles[-1]))


@given(chains())
@settings(max_examples=40, deadline=None)
def test_limits_reciprocity_and_frequencies(chain: Chain) -> None:
    free = dataclasses.replace(chain, viscous=())
    low, high = 1e-3, 1e6
    total = sum(chain.inertias)
    for i, j in ((0, 0), (-1, 0), (-1, -1)):
        function = receptance(free, i, j)
        assert function.denominator[-2:] == (0.0, 0.0)  # the rigid motion is exact
        np.testing.assert_allclose(function.response(low) * -((2 * np.pi * low) ** 2) * total, 1.0, rtol=1e-5)
        assert function.numerator == receptance(free, j, i).numerator
    np.testing.assert_allclose(
        abs(receptance(free, 0, 0).response(high)) * (2 * np.pi * high) ** 2 * chain.inertias[0], 1.0, rtol=1e-2
    )
    assert transmissibility(free, -1, 0).response(0.0) == pytest.approx(1.0)
    undamped = Chain(chain.inertias, chain.stiffness)
    poles, zeros = receptance(undamped, 0, 0).poles[2:], receptance(undamped, 0, 0).zeros
    np.testing.assert_allclose(np.sort(np.abs(poles))[::2] / (2 * np.pi), resonances(undamped), rtol=1e-6)
    np.testing.assert_allclose(np.sort(np.abs(zeros))[::2] / (2 * np.pi), anti_resonances(undamped, 0), rtol=1e-6)


def test_zero_order_hold_is_exact_where_integration_is_not() -> None:
    """c_t = 3e-8 [Roldan2017, Table 4.2]: the mode decays by 1e-6 per step; any step length gives the pole's own decay."""
    pole, shapes = receptance(MAST).poles[-1], modes(MAST).shapes
    modal = np.kron(np.eye(2), shapes @ np.diag(MAST.inertias))  # modal angles and speeds of the masses' ones
    for cycle in (1e-5, 1.25e-4, 5e-3):
        held = state_space(MAST).discretise(cycle)
        steps = (modal @ held.A @ np.linalg.inv(modal)).reshape(2, 2, 2, 2)
        rigid, flexible = steps[:, 0, :, 0], steps[:, 1, :, 1]
        np.testing.assert_allclose(rigid, [[1.0, cycle], [0.0, 1.0]], rtol=1e-10, atol=1e-7)
        assert np.sqrt(np.linalg.det(flexible)) == pytest.approx(np.exp(pole.real * cycle), abs=1e-11)
        assert np.trace(flexible) == pytest.approx(2.0 * np.exp(pole * cycle).real, abs=1e-9)


def test_zero_order_hold_against_integration() -> None:
    chain = Chain((2e-5, 3e-6, 1e-6), (60.0, 40.0), (1e-4, 2e-4), (1e-4, 0.0, 1e-4))
    model, cycle = state_space(chain), 2e-4
    rng = np.random.default_rng(0)
    u = rng.standard_normal((6, 2))
    found = model.discretise(cycle).simulate(u)
    x = np.zeros(6)
    for k in range(5):
        x = solve_ivp(
            lambda _, y, k=k: model.A @ y + model.B @ u[k], (0.0, cycle), x, method="DOP853", rtol=1e-12, atol=1e-14
        ).y[:, -1]
        np.testing.assert_allclose(found[k + 1], x, rtol=1e-8, atol=1e-11)


def test_a_constant_torque_accelerates_the_whole_chain() -> None:
    held = state_space(MAST).discretise(1e-4)
    omega = held.simulate(np.tile([0.02, 0.005], (1001, 1)))[:, 2:]
    mean = omega @ np.array(MAST.inertias)  # momentum
    np.testing.assert_allclose(mean, (0.02 - 0.005) * 1e-4 * np.arange(1001), rtol=1e-9, atol=1e-15)


def test_python_control_agrees() -> None:
    control = pytest.importorskip("control", reason="python-control is not installed: pip install 'dynident[control]'")
    chain = Chain((2e-5, 3e-6, 1e-6), (60.0, 40.0), (1e-4, 2e-4))
    f = np.geomspace(1.0, 2000.0, 30)
    for function in (receptance(chain, 0, 0), receptance(chain, -1, 0), transmissibility(chain)):
        system = function.to_control()
        np.testing.assert_allclose(system(2j * np.pi * f), function.response(f), rtol=1e-10)
    model = state_space(chain)
    system = model.to_control()
    assert system.input_labels == ["tau_m", "tau_d"]
    np.testing.assert_allclose(np.moveaxis(system(2j * np.pi * f), -1, 0), model.response(f), rtol=1e-9, atol=1e-12)
    held, theirs = model.discretise(1e-4), control.sample_system(system, 1e-4, "zoh")
    np.testing.assert_allclose(held.A, theirs.A, rtol=1e-9, atol=1e-12 * np.abs(held.A).max())
    np.testing.assert_allclose(held.B, theirs.B, rtol=1e-9, atol=1e-12 * np.abs(held.B).max())
    assert held.to_control().dt == 1e-4
    np.testing.assert_allclose(
        np.moveaxis(held.to_control()(np.exp(2j * np.pi * f * 1e-4)), -1, 0), held.response(f), rtol=1e-7
    )


def test_transfer_functions_as_polynomials() -> None:
    H = TransferFunction((0.0, 2.0), (1.0, 3.0), "a")
    assert H.numerator == (2.0,)
    assert H(0.0) == pytest.approx(2.0 / 3.0)
    assert np.isinf(abs(H(-3.0)))
    assert (H * H)(1.0) == pytest.approx(0.25)
    assert (3 * H)(1.0) == pytest.approx(1.5)
    assert H.rate(2.0) == pytest.approx(0.8)
    assert TransferFunction((1.0,), (1.0, 0.0)).rate.denominator == (1.0,)
    np.testing.assert_allclose(H.poles, [-3.0])
    assert TransferFunction((0.0,), (1.0,)).zeros.size == 0
    wide = TransferFunction((1.0,), tuple(np.poly([-1e-3, -1.0, -1e6]).tolist()))
    np.testing.assert_allclose(np.sort(wide.poles.real), [-1e6, -1.0, -1e-3], rtol=1e-8)
    assert TransferFunction((1.0,), (1.0, 1.0)) == TransferFunction((1.0,), (1.0, 1.0))


def test_bode_data_and_figure() -> None:
    f = np.geomspace(1.0, 2000.0, 200)
    first, second = transfer_functions(MAST)["TF1"], transfer_functions(MAST)["TF2"]
    bode = second.bode(f)
    assert bode.decibel[0] == pytest.approx(0.0, abs=1e-4)
    assert bode.phase[-1] == pytest.approx(-180.0, abs=0.1)
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'dynident[report]'")
    figure = first.plot(f, second)
    above, below = figure.axes
    assert len(above.lines) == len(below.lines) == 2
    assert below.get_xlabel() == "frequency [Hz]"
    assert "TF2" in above.get_legend().get_texts()[1].get_text()
    assert len(plot_bode([bode]).axes[0].lines) == 1
    assert len(plot_bode([bode], corner=True).axes[0].lines) == 3  # with -3 dB and the frequency there


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Chain((1.0, 1.0)), "2 inertias, 0 stiffnesses"),
        (lambda: Chain(()), "0 inertias"),
        (lambda: Chain((1.0, 0.0), (1.0,)), r"inertias\[1\] is 0"),
        (lambda: Chain((1.0, 1.0), (1.0,), (-1.0,)), r"damping\[0\] is -1"),
        (lambda: Chain((1.0, 1.0), (1.0,), (), (1.0,)), "1 viscous"),
        (lambda: receptance(MAST, 2, 0), "output is 2; the masses are 0"),
        (lambda: receptance(MAST, 0, 0.5), "input is 0.5"),
        (lambda: modes(MAST).response([1.0], 2), "output is 2; the masses are 0"),
        (lambda: MAST.loaded(-1.0), "inertia of the load is -1"),
        (lambda: TransferFunction((1.0,), (0.0, 0.0), "x"), "denominator is zero"),
        (lambda: TransferFunction((np.nan,), (1.0,)), r"numerator\[0\] is nan"),
        (lambda: TransferFunction((1.0,), (1.0,)).bode([0.0, 1.0]), "must increase and be above zero"),
        (lambda: StateSpace(np.eye(2), np.ones((2, 1)), np.ones((1, 3)), 0.0), "C has the shape"),
        (lambda: StateSpace(np.eye(1), [[1.0]], [[1.0]], 0.0, ("a", "b")), "2 inputs"),
        (lambda: StateSpace(np.eye(1), [[1.0]], [[1.0]], 0.0).simulate([1.0]), "is continuous"),
        (lambda: state_space(MAST).discretise(0.0), "cycle is 0"),
        (lambda: state_space(MAST).discretise(1e-3).discretise(1e-3), "sampled already"),
        (lambda: state_space(MAST).discretise(1e-3).simulate(np.zeros((3, 1))), r"u has the shape \(3, 1\)"),
        (lambda: state_space(MAST).discretise(1e-3).simulate(np.zeros((3, 2)), [0.0]), r"start has the shape"),
    ],
)
def test_wrong_chains_are_one_sentence(call: object, words: str) -> None:
    with pytest.raises(DynidentError, match=words) as caught:
        call()  # type: ignore[operator]
    assert "\n" not in str(caught.value)


def test_python_control_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "control", None)
    with pytest.raises(DynidentError, match=r"dynident\[control\]"):
        receptance(MAST).to_control()


def test_the_winding_and_the_speed_per_voltage() -> None:
    motor, f = Motor(0.05, resistance=0.3, inductance=1e-4), np.array([0.0, 100.0])
    np.testing.assert_allclose(electric(motor).response(f), 1.0 / (0.3 + 1e-4j * 2.0 * np.pi * f))
    with pytest.raises(DynidentError, match="resistance and inductance are 0"):
        electric(Motor(0.1))
    motor = Motor(30.2e-3, resistance=0.299, inertia=1.42e-5)
    drive = Drive("a", motor, Transmission(inertias=(1e-5,)))
    (pole,) = speed_per_voltage(drive).poles
    assert -1.0 / pole.real == pytest.approx((motor.inertia + 1e-5) * motor.resistance / motor.torque_constant**2, rel=1e-12)
    assert speed_per_voltage(drive).response(0.0) == pytest.approx(1.0 / 30.2e-3)


@given(chains(), st.booleans(), st.floats(0.0, 1e-3))
def test_the_linear_drive_is_speed_per_voltage(chain: Chain, winding: bool, inductance: float) -> None:
    """State matrices from the expressions of the simulation against transfer functions from polynomials."""
    chain = dataclasses.replace(chain, viscous=())
    motor = Motor(0.05, resistance=0.3, inductance=1e-4 + inductance if winding else 0.0, back_emf=0.06)
    A, B, row = linear_drive(chain, motor, voltage=True)
    f, n = np.array([0.7, 30.0, 400.0]), len(chain)
    system = StateSpace(A, B, np.vstack([np.eye(len(A))[n], row[:-2]]), np.array([[0.0, 0.0], row[-2:]]))
    Z, E = receptance(chain, 0, 0).rate.response(f), electric(motor).response(f)
    speed = 0.05 * E * Z / (1.0 + 0.05 * 0.06 * E * Z)
    np.testing.assert_allclose(system.response(f)[:, 0, 0], speed, rtol=1e-6)
    np.testing.assert_allclose(system.response(f)[:, 1, 0], E * (1.0 - 0.06 * speed), rtol=1e-5)
