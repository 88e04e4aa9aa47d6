"""Fits of actuators: modal tests and responses whose truth is known, with standard deviations that are true."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.arrays import Array, Complex
from dynident.drive import Chain, Encoder
from dynident.drive.drive import counted
from dynident.errors import DynidentError, IdentificationError
from dynident.friction import Coulomb, FrictionLaw, Offset, Tanh, Viscous
from dynident_lab.servo.chain import modes, receptance, resonances
from dynident_papers.robots import five_bar
from dynident_papers.robots.mast import data as mast
from dynident_papers.servo import ActuatorFit, fit_actuator, fit_modal
from dynident_papers.trajectories import velocity_multiprofile

TRUTH = np.array([mast.J_1, mast.J_2, mast.TABLE_4_2["k_t"], mast.TABLE_4_2["c_t"]])
LINES = np.arange(50.0, 1600.0, 2.0)


def hammer(chain: Chain, f: Array, noise: float, seed: int = 0) -> Complex:
    """Accelerance [1/kg] of the carriage: hammer and accelerometer on the load, noise in proportion to the response."""
    rng = np.random.default_rng(seed)
    clean = receptance(chain, -1, -1).response(f) * (2j * np.pi * f) ** 2 * mast.MOTOR_RATIO**-2
    return clean * (1.0 + noise * (rng.standard_normal(f.size) + 1j * rng.standard_normal(f.size)) / np.sqrt(2.0))


def two(c: float = TRUTH[3]) -> Chain:
    return Chain((mast.J_1, mast.J_2), (mast.TABLE_4_2["k_t"],), (c,))


def test_table_4_2_from_a_hammer_test() -> None:
    """Zoomed lines show even the damping of 3e-8 N m s/rad: half-power bandwidth 2.6 mHz."""
    f = np.unique(np.concatenate([LINES, 959.1913 + np.linspace(-0.01, 0.01, 101)]))
    fit = fit_modal(f, hammer(two(), f, 0.01))
    assert fit.frequency[0] == pytest.approx(959.1913, abs=1e-4)
    assert fit.error == pytest.approx(0.01, rel=0.1)
    found = fit.two_mass("load", mast.MOTOR_RATIO)
    np.testing.assert_allclose(found.values, TRUTH, rtol=0.01)
    assert np.all(np.abs(found.values - TRUTH) < 4.0 * found.standard_deviation)
    assert np.all(found.standard_deviation < 0.005 * TRUTH)
    assert resonances(found.chain)[0] == pytest.approx(959.19, abs=0.01)
    effective = mast.J_1 * mast.J_2 / (mast.J_1 + mast.J_2)
    k, deviation = fit.stiffness(effective)
    assert k == pytest.approx(67.702, rel=1e-6)
    assert 0.0 < deviation < 1e-4
    mass = 1.0 / (fit.value("residue_1") + fit.value("rigid"))  # what moves with the carriage
    assert mass == pytest.approx(mast.J_2 * mast.MOTOR_RATIO**2, rel=0.01)


def test_ordinary_lines_say_that_so_little_damping_is_not_seen() -> None:
    found = fit_modal(LINES, hammer(two(), LINES, 0.02)).two_mass("load", mast.MOTOR_RATIO)
    np.testing.assert_allclose(found.values[:3], TRUTH[:3], rtol=0.01)
    assert found.standard_deviation[3] > TRUTH[3]
    assert abs(found.values[3] - TRUTH[3]) < 4.0 * found.standard_deviation[3]
    assert found.chain.damping[0] >= 0.0


def test_standard_deviations_are_true() -> None:
    truth = np.array([*TRUTH[:3], 5e-4])
    z = []
    for seed in range(40):
        found = fit_modal(LINES[::2], hammer(two(5e-4), LINES[::2], 0.03, seed)).two_mass("load", mast.MOTOR_RATIO)
        z.append((found.values - truth) / found.standard_deviation)
    spread = np.std(z, axis=0)
    assert np.all((spread > 0.7) & (spread < 1.35)), spread
    assert np.all(np.abs(np.mean(z, axis=0)) < 0.6)


@pytest.mark.parametrize("kind", ["accelerance", "mobility", "receptance"])
def test_kinds_of_response_and_the_motor_s_side(kind: str) -> None:
    chain = two(5e-4)
    power = {"accelerance": 2, "mobility": 1, "receptance": 0}[kind]
    frf = receptance(chain, 0, 0).response(LINES) * (2j * np.pi * LINES) ** power
    fit = fit_modal(LINES, frf, kind=kind, upper=False)
    assert fit.names == ("f_1", "xi_1", "residue_1", "rigid")
    np.testing.assert_allclose(fit.two_mass("motor").values, [*TRUTH[:3], 5e-4], rtol=1e-8)
    np.testing.assert_allclose(fit.response(LINES, kind), frf, rtol=1e-8)
    assert fit.value("upper") == 0.0
    measured, fitted = fit.plot(LINES, frf, kind).axes[0].lines
    np.testing.assert_allclose(fitted.get_ydata(), measured.get_ydata(), rtol=1e-8)


def test_several_modes() -> None:
    chain = Chain((2e-5, 3e-6, 2e-6), (60.0, 20.0), (6e-4, 2e-4))
    f = np.arange(20.0, 1500.0, 2.0)
    rng = np.random.default_rng(3)
    clean = receptance(chain, 0, 0).response(f) * (2j * np.pi * f) ** 2
    noisy = clean * (1.0 + 0.01 * (rng.standard_normal(f.size) + 1j * rng.standard_normal(f.size)))
    fit = fit_modal(f, noisy, modes=2)
    shown = modes(chain)
    np.testing.assert_allclose(fit.frequency, shown.frequency[1:], rtol=1e-3)
    np.testing.assert_allclose(fit.damping_ratio, shown.damping_ratio[1:], rtol=0.02)
    np.testing.assert_allclose(fit.residue, shown.residues()[1:], rtol=0.02)
    with pytest.raises(IdentificationError, match="2 modes were fitted"):
        fit.two_mass()
    one = fit_modal(f[f < 500.0], noisy[f < 500.0], start=[shown.frequency[1]])  # the other above the band
    assert one.frequency[0] == pytest.approx(shown.frequency[1], rel=5e-3)
    known = fit_modal(f, noisy, modes=2, deviation=np.abs(clean))
    np.testing.assert_allclose(known.frequency, shown.frequency[1:], rtol=1e-3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f, H: fit_modal(f[::-1], H), "must rise"),
        (lambda f, H: fit_modal(f, H[:-1]), "frf has the shape"),
        (lambda f, H: fit_modal(f, np.where(f > 100, H, np.nan)), r"frf\[0\] is not finite"),
        (lambda f, H: fit_modal(f, np.where(f > 100, H, 0.0)), r"frf\[0\] is zero"),
        (lambda f, H: fit_modal(f, ["a"] * f.size), "not an array of complex"),
        (lambda f, H: fit_modal(f, H, kind="force"), "kind is 'force'"),
        (lambda f, H: fit_modal(f, H, modes=0), "modes is 0"),
        (lambda f, H: fit_modal(f[:4], H[:4]), "4 lines cannot support 5 numbers"),
        (lambda f, H: fit_modal(f[f < 500], H[f < 500]), "has 0 peaks"),
        (lambda f, H: fit_modal(f, H, start=[1e5]), "within the band"),
        (lambda f, H: fit_modal(f, H, deviation=-np.abs(H)), "not above zero"),
        (lambda f, H: fit_modal(f, -H).two_mass(), "does not describe two masses"),
        (lambda f, H: fit_modal(f, H).two_mass("middle"), "at is 'middle'"),
        (lambda f, H: fit_modal(f, H).two_mass(ratio=0.0), "ratio is 0"),
        (lambda f, H: fit_modal(f, H).value("k"), "has no 'k'"),
        (lambda f, H: fit_modal(f, H).stiffness(-1.0), "inertia is -1"),
        (lambda f, H: fit_modal(f, H).stiffness(1.0, mode=1), "mode is 1; the fit has 1 modes"),
    ],
)
def test_wrong_responses_are_one_sentence(call: object, words: str) -> None:
    with pytest.raises(DynidentError, match=words) as caught:
        call(LINES, receptance(two(5e-4)).response(LINES) * (2j * np.pi * LINES) ** 2)  # type: ignore[operator]
    assert "\n" not in str(caught.value)


T = np.arange(0.0, 10.0, 1e-3)


def sines(t: Array, parts: tuple[tuple[float, float], ...], seed: int = 0) -> tuple[Array, Array, Array]:
    phase = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, len(parts))
    terms = [(a, 2.0 * np.pi * f, p) for (f, a), p in zip(parts, phase, strict=True)]
    x = sum(a * np.sin(w * t + p) for a, w, p in terms)
    v = sum(a * w * np.cos(w * t + p) for a, w, p in terms)
    return np.asarray(x), np.asarray(v), np.asarray(-sum(a * w**2 * np.sin(w * t + p) for a, w, p in terms))


MOTION = ((0.4, 13.5), (5.0, 5.0), (10.0, 2.0))  # the frequencies of the document's tests [Hz], and amplitudes [rad]


def mast_response(seed: int = 0, offset: float = 0.0) -> tuple[Array, Array]:
    """Position in counts and torque of a MAST actuator with the adjusted numbers of section 4.2.4.2."""
    x, v, a = sines(T, MOTION, seed)
    tau = (mast.J_1_ADJUSTED + mast.J_2) * a + mast.COULOMB_ADJUSTED * np.sign(v) + 1e-5 * v + offset
    return counted(x, Encoder.lines(500).resolution), tau + 0.01 * np.random.default_rng(seed).standard_normal(T.size)


def test_the_adjusted_set_of_the_mast() -> None:
    """J1 / 1.56 and 7.18e-2 N m (the document's fit), from counts and a noisy torque, with true standard deviations."""
    z = []
    for seed in range(12):
        position, torque = mast_response(seed)
        fit = fit_actuator(T, position, torque, cutoff=60.0)
        z.append((fit.values - [mast.J_1_ADJUSTED + mast.J_2, mast.COULOMB_ADJUSTED, 1e-5]) / fit.standard_deviation)
    assert fit.names == ("inertia", "coulomb.fc", "viscous.fv")
    assert mast.J_1 / (fit.inertia - mast.J_2) == pytest.approx(1.56, rel=0.005)
    assert fit.friction.parameters["coulomb.fc"] == pytest.approx(7.18e-2, rel=0.01)
    assert np.all(np.abs(z) < 4.5)
    assert np.sqrt(np.mean(np.square(z))) < 1.6
    assert "inertia" in fit.summary()
    by_current = fit_actuator(T, position, current=torque / 30.2e-3, torque_constant=30.2e-3, cutoff=60.0)
    np.testing.assert_allclose(by_current.values, fit.values, rtol=1e-9)


def test_an_offset_is_another_law() -> None:
    position, torque = mast_response(offset=0.02)
    fit = fit_actuator(T, position, torque, cutoff=60.0, law=Coulomb() + Viscous() + Offset())
    assert fit.values[-1] == pytest.approx(0.02, abs=5.0 * fit.standard_deviation[-1])
    assert fit.relative_error < 0.05
    assert fit.count < T.size


def five_bar_response() -> tuple[Array, Array, Array, Array]:
    """The velocity multi-profile of figure 4.4 up to 3700 rpm, sampled every 7 ms."""
    profile = velocity_multiprofile()
    t = np.arange(0.0, profile.duration, 7e-3)
    return t, *(x[:, 0] for x in profile(t))


TABLE_4_1 = np.array([five_bar.MOTOR_INERTIA, five_bar.MOTOR_COULOMB, five_bar.MOTOR_VISCOUS, five_bar.MOTOR_BETA])


@pytest.mark.parametrize("cutoff", [10.0, 20.0])
def test_table_4_1_by_variable_projection(cutoff: float) -> None:
    """All four numbers of the 5R actuators come back, beta too."""
    t, x, v, a = five_bar_response()
    J, fc, c, beta = TABLE_4_1
    noise = 0.02 * np.random.default_rng(5).standard_normal(t.size)
    fit = fit_actuator(
        t,
        counted(x, 2.0 * np.pi / 16384),
        J * a + c * v + fc * np.tanh(beta * v) + noise,
        cutoff=cutoff,
        law=Tanh() + Viscous(),
    )
    assert fit.names == ("inertia", "tanh.fc", "viscous.fv", "tanh.beta")
    np.testing.assert_allclose(fit.values[:3], TABLE_4_1[:3], rtol=5e-3)
    assert fit.values[3] == pytest.approx(beta, rel=0.08)
    assert np.all(np.abs(fit.values - TABLE_4_1) < 4.0 * fit.standard_deviation)
    again = ActuatorFit.from_dict(fit.to_dict())
    np.testing.assert_array_equal(again.values, fit.values)
    assert len(fit.plot().axes) == 2


def test_known_motion_needs_no_filter() -> None:
    t, x, v, a = five_bar_response()
    J, fc, c, beta = TABLE_4_1
    torque = J * a + c * v + fc * np.tanh(beta * v)
    fit = fit_actuator(t, x, torque, law=Tanh() + Viscous(), velocity=v, acceleration=a)
    np.testing.assert_allclose(fit.values, TABLE_4_1, rtol=1e-6)
    assert isinstance(fit, ActuatorFit)
    assert fit.friction(2.0) == pytest.approx(fc + 2.0 * c, rel=1e-6)


def fit(law: FrictionLaw | None = None, **changes: object) -> ActuatorFit:
    position, torque = mast_response()
    arguments = {"t": T, "position": position, "torque": torque, "cutoff": 60.0, "law": law, **changes}
    return fit_actuator(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cutoff": None}, "cutoff is missing"),
        ({"cutoff": -1.0}, "cutoff is -1"),
        ({"cutoff": 500.0}, "less than half the sampling frequency"),
        ({"torque": None}, "torque and current are not given"),
        ({"current": T}, "torque and current are both given"),
        ({"torque": None, "current": T}, "torque_constant is missing"),
        ({"torque": None, "current": T, "torque_constant": 0.0}, "torque_constant is 0"),
        ({"torque": T[:-1]}, "torque has the shape"),
        ({"torque": np.where(T > 1.0, T, np.inf)}, r"torque\[0\] is not a finite number"),
        ({"t": T[::-1]}, "evenly spaced"),
        ({"t": T**2}, "evenly spaced"),
        ({"velocity": T}, "velocity or acceleration is missing"),
        ({"position": np.zeros(T.size)}, "position does not move"),
        ({"position": 3.0 * T, "law": Coulomb() + Offset()}, "does not separate"),
        ({"law": Coulomb() + Coulomb()}, "does not separate coulomb.fc, coulomb2.fc;"),
        ({"law": Coulomb().using(fc=0.1)}, "law is a Friction"),
        ({"cutoff": 0.3}, "independent rows cannot support"),
    ],
)
def test_wrong_responses_of_an_actuator_are_one_sentence(changes: dict[str, object], words: str) -> None:
    with pytest.raises(DynidentError, match=words) as caught:
        fit(**changes)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
