"""Static friction laws: identities, exact derivatives, the documents' numbers, bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynident.errors import DescriptionError, LogError
from dynident.friction import (
    TERMS,
    Asymmetric,
    Coulomb,
    FrictionLaw,
    LoadDependent,
    Offset,
    Polynomial,
    Ripple,
    Sigmoid,
    SmoothStribeck,
    Stribeck,
    Sum,
    Tanh,
    TemperatureDependent,
    Viscous,
    dissipation,
)
from dynident.friction.law import State

LAWS: dict[str, tuple[FrictionLaw, tuple[float, ...]]] = {
    "coulomb": (Coulomb(), ()),
    "viscous": (Viscous(), ()),
    "offset": (Offset(), ()),
    "polynomial": (Polynomial(), ()),
    "exponential stribeck": (Stribeck(exponent=1.0), (0.4,)),
    "gaussian stribeck": (Stribeck(), (0.4,)),
    "free stribeck": (Stribeck(exponent=None), (0.4, 1.3)),
    "tanh": (Tanh(), (3.0,)),
    "smooth stribeck": (SmoothStribeck(), (2.0, 5.0)),
    "two sigmoids": (Sigmoid(2), (4.0, -1.5)),
    "three sigmoids": (Sigmoid(3), (4.0, -1.5, 9.0)),
    "asymmetric": (Asymmetric(), ()),
    "asymmetric stribeck": (Asymmetric(Stribeck(exponent=None)), (0.4, 0.7, 1.3, 2.0)),
    "load": (LoadDependent(), ()),
    "load tanh": (LoadDependent(Tanh(), powers=(1.0, 1.5)), (3.0,)),
    "cogging": (Ripple((1.0, 2.0)), ()),
    "ripple of tanh": (Ripple((3.0,), Tanh() + Viscous()), (3.0,)),
    "warm": (TemperatureDependent(Sigmoid() + Coulomb()), (4.0, -1.5, -0.01)),
    "nested": (Asymmetric(LoadDependent(Ripple((2.0,), TemperatureDependent(Tanh())))), (3.0, 2.0, -0.01, 0.02)),
    "sum": (Tanh() + Viscous() + Tanh() + Ripple() + LoadDependent(Stribeck()), (3.0, 8.0, 0.5)),
}
CASES = pytest.mark.parametrize(("law", "eta"), LAWS.values(), ids=LAWS.keys())


def random_state(shape: tuple[int, ...] = (40,), seed: int = 0) -> State:
    """States away from the jumps at v = 0 and tau = 0, where a finite difference means nothing."""
    rng = np.random.default_rng(seed)
    sign = rng.choice([-1.0, 1.0], shape)
    v, tau = sign * rng.uniform(0.01, 2.0, shape), rng.choice([-1.0, 1.0], shape) * rng.uniform(0.1, 3.0, shape)
    return State(v, q=rng.uniform(-3.0, 3.0, shape), tau=tau, T=rng.uniform(15.0, 60.0, shape))


def moved(state: State, channel: str, step: float) -> State:
    values = {name: getattr(state, name) for name in ("v", "q", "tau", "T")}
    return State(**{**values, channel: values[channel] + step})


@CASES
@pytest.mark.parametrize("channel", ["v", "q", "tau", "T"])
def test_derivatives_with_respect_to_the_state(law: FrictionLaw, eta: tuple[float, ...], channel: str) -> None:
    state, h = random_state(), 1e-6
    exact = law.columns(state, eta, channel)
    numeric = (law.columns(moved(state, channel, h), eta) - law.columns(moved(state, channel, -h), eta)) / (2 * h)
    np.testing.assert_allclose(exact, numeric, rtol=1e-7, atol=1e-7)


@CASES
def test_derivatives_with_respect_to_the_shape(law: FrictionLaw, eta: tuple[float, ...]) -> None:
    state, h = random_state(), 1e-6
    exact = law.columns(state, eta, "shape")
    assert exact.shape == (40, len(law.linear), len(law.shape))
    for i in range(len(eta)):
        up, down = np.array(eta), np.array(eta)
        up[i], down[i] = up[i] + h, down[i] - h
        numeric = (law.columns(state, up) - law.columns(state, down)) / (2 * h)
        np.testing.assert_allclose(exact[..., i], numeric, rtol=1e-7, atol=1e-7)


@CASES
def test_the_value_is_linear_in_the_linear_parameters(law: FrictionLaw, eta: tuple[float, ...]) -> None:
    state, rng = random_state(), np.random.default_rng(1)
    rho = rng.normal(size=len(law.linear))
    parameters = np.concatenate([rho, eta])
    value = law.value(state, parameters)
    np.testing.assert_allclose(value, law.columns(state, eta) @ rho)
    np.testing.assert_allclose(law.using(dict(zip(law.parameters, parameters, strict=True)))(state), value)
    gradient = law.value(state, parameters, "parameters")
    for i, h in itertools.product(range(parameters.size), [1e-6]):
        step = np.zeros(parameters.size)
        step[i] = h
        numeric = (law.value(state, parameters + step) - law.value(state, parameters - step)) / (2 * h)
        np.testing.assert_allclose(gradient[:, i], numeric, rtol=1e-6, atol=1e-6)
    slope = (law.value(moved(state, "v", 1e-6), parameters) - law.value(moved(state, "v", -1e-6), parameters)) / 2e-6
    np.testing.assert_allclose(law.value(state, parameters, "v"), slope, rtol=1e-6, atol=1e-6)


@CASES
def test_laws_take_batches_of_any_shape(law: FrictionLaw, eta: tuple[float, ...]) -> None:
    k, s = len(law.linear), len(law.shape)
    state = random_state((5, 3))
    flat = State(state.v.ravel(), *(np.ravel(getattr(state, name)) for name in ("q", "tau", "T")))
    for by, tail in [("", (k,)), ("v", (k,)), ("q", (k,)), ("shape", (k, s))]:
        batch = law.columns(state, eta, by)
        assert batch.shape == (5, 3, *tail)
        np.testing.assert_array_equal(batch.reshape(15, *tail), law.columns(flat, eta, by))
    assert law.columns(State(0.3, 0.1, 0.2, 25.0), eta).shape == (k,)  # type: ignore[arg-type]


@CASES
def test_names_are_distinct_and_ranges_fit(law: FrictionLaw, eta: tuple[float, ...]) -> None:
    assert len(set(law.parameters)) == len(law.parameters) == len(law.linear) + len(eta)
    ranges = law.shape_range(2.5)
    assert ranges.shape == (len(eta), 2)
    assert (ranges[:, 0] < ranges[:, 1]).all()


@CASES
def test_extreme_speeds_stay_finite(law: FrictionLaw, eta: tuple[float, ...]) -> None:
    v = np.array([0.0, 1e-300, -1e-12, 1e3, -1e3])
    state = State(v, q=np.zeros(5), tau=np.zeros(5), T=np.full(5, 20.0))
    for by in ("", "v", "q", "tau", "T", "shape"):
        assert np.isfinite(law.columns(state, eta, by)).all(), by


def test_simple_laws_are_the_joint_terms() -> None:
    v = np.array([-2.0, 0.0, 3.0])
    for law in (Coulomb(), Viscous(), Offset()):
        np.testing.assert_array_equal(law.columns(v)[:, 0], TERMS[law.linear[0]].column(v, v, v))
    both = Asymmetric()
    assert both.linear == ("coulomb.fcp", "coulomb.fcn", "viscous.fvp", "viscous.fvn")
    for i, name in enumerate(both.linear):
        np.testing.assert_array_equal(both.columns(v)[:, i], TERMS[name.split(".")[1]].column(v, v, v))


def test_the_sign_of_zero_is_zero() -> None:
    for law, eta in [(Coulomb(), ()), (Polynomial(), ()), (Stribeck(), (0.1,)), (Asymmetric(), ()), (Tanh(), (5.0,))]:
        assert not law.columns(0.0, eta).any()


@settings(max_examples=30, deadline=None)
@given(st.floats(-5.0, 5.0), st.lists(st.floats(-3.0, 3.0), min_size=4, max_size=4))
def test_the_polynomial_is_the_one_of_document_3(v: float, a: list[float]) -> None:
    expected = a[0] * np.sign(v) + a[1] * v + a[2] * v**2 * np.sign(v) + a[3] * v**3  # eq. 88
    assert Polynomial().value(v, a) == pytest.approx(expected, abs=1e-9)
    assert Polynomial().value(-v, a) == pytest.approx(-expected, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-3.0, 3.0), min_size=7, max_size=7), st.floats(-2.0, 2.0))
def test_sigmoids_in_the_document_s_form_and_in_canonical_form(p: list[float], v: float) -> None:
    law = Sigmoid(3)
    # [Kostic2002, eq. 9]
    printed = p[0] * v + sum(p[1 + i] * (1.0 - 2.0 / (1.0 + np.exp(2.0 * p[4 + i] * v))) for i in range(3))
    assert law.value(v, p) == pytest.approx(printed, abs=1e-12)
    canonical = law.canonical(p)
    assert (canonical[4:] >= 0.0).all()
    assert (np.diff(canonical[4:]) >= 0.0).all()
    assert law.value(v, canonical) == pytest.approx(printed, abs=1e-12)
    twin = [p[0], -p[2], p[1], p[3], -p[5], p[4], p[6]]
    np.testing.assert_array_equal(np.abs(law.canonical(twin)[4:]), canonical[4:])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_laws_add(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chosen = [list(LAWS.values())[i] for i in rng.integers(0, len(LAWS), 3)]
    total = chosen[0][0] + chosen[1][0] + chosen[2][0]
    assert isinstance(total, Sum)
    state = random_state((7,), seed)
    rhos = [rng.normal(size=len(law.linear)) for law, _ in chosen]
    etas = [np.array(eta) for _, eta in chosen]
    expected = sum(law.value(state, np.concatenate([r, e])) for (law, _), r, e in zip(chosen, rhos, etas, strict=True))
    np.testing.assert_allclose(total.value(state, np.concatenate([*rhos, *etas])), expected, atol=1e-12)


def test_parameters_of_a_sum_carry_the_name_of_their_law() -> None:
    law = Coulomb() + Viscous() + Tanh() + Tanh()
    assert law.linear == ("coulomb.fc", "viscous.fv", "tanh.fc", "tanh2.fc")
    assert law.shape == ("tanh.beta", "tanh2.beta")
    friction = (Coulomb() + Viscous()).using(fc=2.0, fv=0.5)
    assert friction.parameters == {"coulomb.fc": 2.0, "viscous.fv": 0.5}
    np.testing.assert_allclose(friction([-1.0, 0.0, 2.0]), [-2.5, 0.0, 3.0])
    np.testing.assert_allclose(friction.power([-1.0, 2.0]), [2.5, 6.0])


def test_the_stribeck_curve_goes_from_breakaway_to_coulomb() -> None:
    for exponent in (0.5, 1.0, 2.0):
        friction = Stribeck(exponent).using(fc=1.0, fs=1.7, vs=0.01)
        np.testing.assert_allclose(friction([1e-12, -1e-12, 100.0, -100.0]), [1.7, -1.7, 1.0, -1.0], rtol=2e-5)
        assert friction(0.01) == pytest.approx(1.0 + 0.7 / np.e)
    smooth = SmoothStribeck().using(fc=1.0, fcs=0.7, alpha=5.0, beta=1e6)
    assert smooth(1e-3) == pytest.approx(1.7, rel=1e-4)
    assert smooth(100.0) == pytest.approx(1.0)


def test_the_actuator_of_the_five_bar_robot() -> None:
    """[Roldan2017, Table 4.1]: F_c = 0.478 N m, c = 1.7e-3 N m s/rad, beta = 10.78 s/rad, at 3700 rpm and below."""
    friction = (Tanh() + Viscous()).using(fc=0.478, beta=10.78, fv=1.7e-3)
    top = 3700.0 * 2.0 * np.pi / 60.0
    assert friction(top) == pytest.approx(0.478 + 1.7e-3 * top)
    assert friction(1.0 / 10.78) == pytest.approx(0.478 * np.tanh(1.0) + 1.7e-3 / 10.78)
    assert dissipation(friction, top).dissipative


def test_the_catalogue_friction_of_a_guide() -> None:
    """[Roldan2016, eq. 23]: 0.2 + 4.07e-2 M_load [N m]."""
    friction = (Coulomb() + LoadDependent(powers=(1.0,))).using({"coulomb.fc": 0.2, "load.fc_tau1": 4.07e-2})
    np.testing.assert_allclose(friction(State(np.array([1.0, -1.0]), tau=np.array([10.0, -10.0]))), [0.607, -0.607])


# [Rodriguez2002, Table 4]: B_v, B_f1, B_f2, w_1, w_2 of the joints q1, q2, q4, q5 of the CFT robot, signs as printed.
CFT = {
    "q1": (97.2600, -54.9912, -46.5915, 150.3190, -98.9881),
    "q2": (9.0999, 18.4710, 11.1605, 136.8945, -170.4702),
    "q4": (11.6257, -3.5232, 2.2684, -35.3699, -89.3236),
    "q5": (9.6229, -5.8564, 8.2304, 36.0641, 16.2942),
}


@pytest.mark.parametrize(
    ("joint", "net", "slope", "end"),
    [
        ("q1", -8.3997, -3556.96, 0.0864),
        ("q2", 7.3105, 635.15, None),
        ("q4", 1.2548, -66.38, 0.0165),
        ("q5", 2.3740, -67.48, 0.0423),
    ],
)
def test_the_friction_of_the_cft_robot_feeds_energy(joint: str, net: float, slope: float, end: float | None) -> None:
    law = Sigmoid()
    friction = law.using(dict(zip(law.parameters, CFT[joint], strict=True)))
    canonical = law.canonical(CFT[joint])
    assert canonical[1:3].sum() == pytest.approx(net, abs=5e-5)
    assert friction(0.0, by="v") == pytest.approx(slope, abs=5e-3)
    found = dissipation(friction, speed=1.0)
    assert found.dissipative == (end is None)
    if end is not None:
        assert len(found.active) == 2
        np.testing.assert_allclose(found.active, [(-end, 0.0), (0.0, end)], atol=5.1e-5)
        assert "active" in found.summary()
        assert friction.power(found.at) < 0.0
    if joint == "q1":
        assert found.lowest == pytest.approx(-14.44, abs=5e-3)
        assert abs(found.at) == pytest.approx(0.0074, abs=5e-5)


def test_active_intervals_inside_and_at_the_end_of_the_range() -> None:
    friction = Polynomial().using(a0=1.0, a1=-3.0, a2=2.0 - 1e-3, a3=0.0)
    roots = np.roots([2.0 - 1e-3, -3.0, 1.0])
    found = dissipation(friction, speed=5.0)
    np.testing.assert_allclose(found.active[1], sorted(roots), rtol=1e-9)
    offset = dissipation((Coulomb() + Offset()).using(fc=1.0, off=1.5), speed=2.0)
    assert offset.active == ((-2.0, 0.0),)
    rising = dissipation(LoadDependent(powers=(1.0,)).using(fc_tau1=-0.1), speed=2.0, tau=3.0)
    assert rising.active == ((-2.0, 0.0), (0.0, 2.0))
    assert dissipation(Coulomb().using(fc=0.0), speed=1.0).dissipative


def test_temperature_scales_the_whole_law() -> None:
    law = TemperatureDependent(Coulomb() + Viscous(), reference=25.0)
    state = State(np.array([1.0, -2.0]), T=np.array([25.0, 45.0]))
    np.testing.assert_allclose(law.value(state, {"fc": 2.0, "fv": 1.0, "alpha": -0.01}), [3.0, -4.0 * 0.8])


def test_bad_input_gets_one_sentence(subtests: pytest.Subtests) -> None:
    for call, error, words in [
        (lambda: Polynomial(degree=12), DescriptionError, "degree = 12"),
        (lambda: Stribeck(exponent=-1.0), DescriptionError, "exponent = -1.0"),
        (lambda: Sigmoid(terms=0), DescriptionError, "terms = 0"),
        (lambda: LoadDependent(powers=(0.5,)), DescriptionError, "powers"),
        (lambda: Ripple(harmonics=()), DescriptionError, "harmonics"),
        (lambda: TemperatureDependent(Coulomb(), reference=float("nan")), DescriptionError, "reference"),
        (lambda: Sum(()), DescriptionError, "at least one"),
        (lambda: Tanh().columns([1.0]), DescriptionError, "1 shape parameters"),
        (lambda: Tanh().columns([1.0], [np.nan]), DescriptionError, "finite"),
        (lambda: Stribeck().columns([1.0], [-0.1]), DescriptionError, "vs = -0.1"),
        (lambda: Tanh().value([1.0], [1.0]), DescriptionError, "shape"),
        (lambda: Tanh().value([1.0], [np.inf, 1.0]), DescriptionError, "finite"),
        (lambda: Tanh().using(fc=1.0), DescriptionError, "beta"),
        (lambda: Tanh().using(fc=1.0, beta=1.0, gamma=2.0), DescriptionError, "gamma"),
        (lambda: (Tanh() + Coulomb()).using(fc=1.0, beta=1.0), DescriptionError, "tanh.fc, coulomb.fc"),
        (lambda: Tanh().shape_range(0.0), DescriptionError, "speed = 0.0"),
        (lambda: dissipation(Coulomb().using(fc=1.0), -1.0), DescriptionError, "speed = -1.0"),
        (lambda: LoadDependent().columns([1.0]), LogError, "needs tau"),
        (lambda: Ripple().columns([1.0]), LogError, "needs q"),
        (lambda: TemperatureDependent(Coulomb()).columns([1.0], [0.1]), LogError, "needs T"),
        (lambda: State(np.zeros(3), q=np.zeros(2)), LogError, r"q has the shape \(2,\)"),
        (lambda: Coulomb().columns([np.nan]), LogError, "not finite"),
    ]:
        with subtests.test(str(words)):
            with pytest.raises(error, match=words) as caught:
                call()
            assert "\n" not in str(caught.value)


def test_only_laws_can_be_added() -> None:
    with pytest.raises(TypeError):
        Coulomb() + 3.0  # type: ignore[operator]
