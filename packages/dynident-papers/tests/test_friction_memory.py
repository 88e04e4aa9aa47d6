"""Dahl's law and generalised Maxwell slip: against their definitions, and what every law with memory keeps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import test_friction_dynamic as memory
import test_friction_new_law as compiled
import test_simulate_friction as simulated
from scipy.integrate import solve_ivp
from test_friction_dynamic import sweep

from dynident.errors import DescriptionError
from dynident.friction import DynamicLaw, LuGre
from dynident_papers.friction import Dahl, GeneralisedMaxwellSlip

GMS = GeneralisedMaxwellSlip(
    stiffness=(4e4, 2e4, 5e3), share=(0.5, 0.3, 0.2), fc=1.0, fs=1.5, vs=0.01, attraction=50.0, damping=(3.0, 2.0, 1.0), fv=0.4
)
DAHL = Dahl(sigma0=1e5, fc=1.0, fv=0.4)
LAWS = [DAHL, Dahl(1e5, 1.0, exponent=1.5), Dahl(1e5, 1.0, exponent=0.5), GMS]
SOFT = [
    Dahl(1e4, 1.2, fv=0.3),
    GeneralisedMaxwellSlip((6e3, 4e3), (0.6, 0.4), 1.0, 1.4, 0.05, 40.0, (3.0, 2.0), fv=0.2),
]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "claim",
    [
        memory.test_stiff_bristles_and_wild_signals_stay_within_bounds,
        memory.test_small_motions_are_elastic,
        memory.test_no_motion_no_change,
        memory.test_a_simulation_can_be_cut_anywhere,
        lambda law: memory.test_constant_speed_settles_on_the_static_law(law, 0.012),
        lambda law: memory.test_constant_speed_settles_on_the_static_law(law, -0.2),
    ],
)
def test_what_every_law_with_memory_keeps(claim, law: DynamicLaw) -> None:
    claim(law)


@pytest.mark.parametrize("law", [DAHL, GMS])
def test_a_closed_loop_of_presliding_takes_energy(law: DynamicLaw) -> None:
    memory.test_a_closed_loop_of_presliding_takes_energy(law)


@pytest.mark.parametrize("law", SOFT)
def test_a_simulated_machine_follows_the_law(law: DynamicLaw) -> None:
    simulated.test_dynamic_laws_follow_their_own_simulation(law)
    simulated.test_bristles_hold_a_force_below_breakaway(law)
    compiled.test_a_simulation_calls_the_step_in_its_own_loop(law)


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_dahl_is_exact_whatever_the_step(exponent: float) -> None:
    law = Dahl(sigma0=1e5, fc=1.0, exponent=exponent)
    t = np.array([0.0, 0.01, 0.02, 0.03])
    v = np.array([0.0, 2e-3, -1e-3, -4e-3])

    def rate(s: float, z: np.ndarray) -> np.ndarray:
        speed = np.interp(s, t, v)
        gap = 1.0 - np.sign(speed) * law.sigma0 * z / law.fc
        return speed * np.abs(gap) ** exponent * np.sign(gap)

    z, oracle = np.zeros(1), [0.0]
    for a, b in itertools.pairwise(t):
        z = solve_ivp(rate, (a, b), z, method="Radau", rtol=1e-10, atol=1e-16, max_step=1e-4).y[:, -1]
        oracle.append(z[0])
    ours = law.simulate(t, v).state[:, 0]
    np.testing.assert_allclose(law.sigma0 * ours, law.sigma0 * np.array(oracle), atol=1e-6)
    fine = np.linspace(0.0, 0.03, 3001)
    np.testing.assert_allclose(law.simulate(fine, np.interp(fine, t, v)).state[::1000, 0], ours, rtol=1e-9, atol=1e-18)


def gms_by_definition(law: GeneralisedMaxwellSlip, t: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Explicit steps of the printed equations, small enough to be true."""
    k, share = np.array(law.stiffness), np.array(law.share)
    z, slips, way = np.zeros(k.size), np.zeros(k.size, dtype=bool), 0.0
    states = [z.copy()]
    for i in range(1, t.size):
        dt, speed = t[i] - t[i - 1], 0.5 * (v[i] + v[i - 1])
        if np.sign(speed) != way:
            slips[:] = False
            way = np.sign(speed)
        g = law.fc + (law.fs - law.fc) * np.exp(-((abs(speed) / law.vs) ** law.exponent))
        pull = way * law.attraction * (share - way * k * z / g) / k
        z = z + dt * np.where(slips, pull, speed)
        slips |= way * k * z >= share * g
        states.append(z.copy())
    return np.array(states)


def test_maxwell_slip_agrees_with_its_definition() -> None:
    fine = np.linspace(0.0, 0.3, 60001)
    expected = gms_by_definition(GMS, fine, sweep(fine))[::200]
    t = fine[::200]
    ours = GMS.simulate(t, sweep(t)).state[:, :3]
    assert np.abs((ours - expected) @ np.array(GMS.stiffness)).max() < 5e-3 * GMS.fs


def test_maxwell_slip_remembers_and_lugre_forgets() -> None:
    """An inner loop that closes at its turning point leaves no trace (non-local memory); LuGre creeps away."""
    turning = np.array([0.0, 5e-5, -2e-5, 1e-5, -2e-5])
    t = np.arange(5) * 1.0
    fine = np.linspace(0.0, 4.0, 40001)
    v = np.gradient(np.interp(fine, t, turning), fine)
    kinks = [20000, 40000]
    quiet = GeneralisedMaxwellSlip((4e4, 2e4, 5e3), (0.5, 0.3, 0.2), fc=1.0, fs=1.0, vs=0.01, attraction=1e6)
    inner = quiet.simulate(fine, v).state[kinks, :3]
    np.testing.assert_allclose(inner[0], inner[1], atol=1e-8)
    forgetful = LuGre(1e5, 0.0, 1.0, 1.0, 0.01).simulate(fine, v).force[kinks]
    assert abs(forgetful[1] - forgetful[0]) > 1e-3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Dahl(1.0, float("nan")), "fc = nan"),
        (lambda: GeneralisedMaxwellSlip((1.0,), (0.5,), 1.0, 1.0, 0.1, 1.0), "add to 0.5"),
        (lambda: GeneralisedMaxwellSlip((1.0,), (0.5, 0.5), 1.0, 1.0, 0.1, 1.0), "1 stiffnesses, 2 shares"),
    ],
)
def test_bad_numbers_are_refused(make, words: str) -> None:
    with pytest.raises(DescriptionError, match=words):
        make()
