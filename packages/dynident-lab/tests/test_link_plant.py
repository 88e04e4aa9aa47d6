"""The plant behind a controller: chunk after chunk it is one run, and a rest cools it as its thermal models say."""

from __future__ import annotations

import numpy as np
import pytest
from warm_robots import warm_arm6

import dynident as di
from dynident.errors import DynidentError, LinkError
from dynident_lab.link import Plant
from dynident_lab.link.plant import PlantProcess
from dynident_lab.link.setpoints import on_ticks, sampled, standing

PERIOD = 0.004


def motion(count: int) -> di.Motion:
    t = np.arange(count + 1) * PERIOD
    w = np.array([1.0, 1.3, 0.7, 2.0, 1.5, 3.0])
    phase = np.outer(t, w)
    return di.Motion(t, 0.3 * (1 - np.cos(phase)), 0.3 * w * np.sin(phase), 0.3 * w**2 * np.cos(phase))


def part(whole: di.Motion, first: int, last: int) -> di.Motion:
    rows = slice(first, last + 1)
    return di.Motion(whole.t[rows] - whole.t[first], whole.q[rows], whole.v[rows], whole.a[rows])


def test_chunk_after_chunk_is_one_run() -> None:
    """State, loops, friction, warmth and noise are carried over: the pieces are the whole, positions to the last bit."""
    machine, wanted = warm_arm6(), motion(400)
    whole = Plant(machine, q=wanted.q[0], period=PERIOD, seed=1).advance(wanted)
    ticks, step = round(PERIOD / machine.step), machine.step
    for cut in (50, 80):
        plant = Plant(machine, q=wanted.q[0], period=PERIOD, seed=1)
        known = on_ticks(wanted, step)
        pieces = [plant.advance(sampled(known, k * ticks, (k + cut) * ticks, step)) for k in range(0, 400, cut)]
        found = [np.concatenate(signal) for signal in zip(*pieces, strict=True)]
        np.testing.assert_array_equal(found[0], whole[0])
        np.testing.assert_allclose(found[2], whole[2], rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(found[3], whole[3], rtol=0.0, atol=2e-3)  # each second's mean power


def test_temperatures_go_on_between_chunks_and_cool_at_rest() -> None:
    machine = warm_arm6(noise=False)
    plant = Plant(machine, period=PERIOD)
    plant.q = plant.coordinates
    wanted = motion(500)
    for first in range(0, 500, 100):
        *_, heat = plant.advance(part(wanted, first, first + 100))
    warm = heat[-1]
    assert np.all(warm > machine.ambient)
    single = machine.simulate(wanted, log_cycle=PERIOD).log.temperature
    np.testing.assert_allclose(warm - machine.ambient, single[-1] - machine.ambient, rtol=0.15)
    *_, cooled = plant.rest(36_000.0)
    np.testing.assert_allclose(cooled[0], machine.ambient, atol=1e-3)


def test_the_same_seed_gives_the_same_samples() -> None:
    machine, wanted = warm_arm6(), motion(50)
    first, second = (Plant(machine, period=PERIOD, seed=7).advance(wanted) for _ in range(2))
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_process_of_its_own_simulates_the_same() -> None:
    machine, wanted = warm_arm6(), motion(50)
    plant = Plant(machine, period=PERIOD, seed=7)
    apart = PlantProcess(machine, None, PERIOD, 7)
    try:
        np.testing.assert_array_equal(apart.coordinates, plant.coordinates)
        for one, two in zip(apart.advance(wanted), plant.advance(wanted), strict=True):
            np.testing.assert_array_equal(one, two)
        assert apart.still == plant.still
        with pytest.raises(DynidentError):
            apart.advance(motion(0))  # its sentence comes from the other process
        np.testing.assert_array_equal(apart.rest(3600.0)[3], plant.rest(3600.0)[3])
        for _ in range(5):  # the process is asked once per second, and knows all of the rest before the next motion
            apart.rest(0.3), plant.rest(0.3)
        here = standing(plant.coordinates, 0.1)
        for one, two in zip(apart.advance(here), plant.advance(here), strict=True):
            np.testing.assert_array_equal(one, two)
        last = apart.rest(0.0)
    finally:
        apart.close()
    with pytest.raises(LinkError, match="process of the simulation has ended"):
        apart.advance(wanted)
    np.testing.assert_array_equal(apart.rest(1.0)[0], last[0])  # the samples stand still


def test_a_start_of_another_size_is_one_sentence() -> None:
    with pytest.raises(LinkError, match="has 6 coordinates"):
        Plant(warm_arm6(), [0.0, 0.0])
