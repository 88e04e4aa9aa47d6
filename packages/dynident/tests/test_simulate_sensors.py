"""The recorder: noise of the stated size, whole counts, clocks that jitter, samples that get lost, all by the seed."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.drive.drive import counted
from dynident.errors import DynidentError
from dynident.simulate import Sensors
from dynident.simulate.record import STREAMS, Noise, at_times, kept_rows, means, sample_times


def test_streams_are_independent_and_repeat() -> None:
    first, again, other = Noise(3), Noise(3), Noise(4)
    draws = {name: first.normal(name, 200) for name in STREAMS}
    for name, values in draws.items():
        assert np.array_equal(values, again.normal(name, 200))
        assert not np.array_equal(values, other.normal(name, 200))
    table = np.array(list(draws.values()))
    assert np.abs(np.corrcoef(table) - np.eye(len(table))).max() < 0.35


def test_a_seed_sequence_is_not_used_up() -> None:
    seed = np.random.SeedSequence(1)
    assert Noise(seed).uniform("loop") == Noise(seed).uniform("loop")
    assert seed.n_children_spawned == 0


def test_noise_has_its_deviation_and_no_noise_leaves_the_array() -> None:
    noise, zero = Noise(0), np.zeros((20000, 2))
    values = noise.added("position", zero, np.array([0.5, 0.0]))
    assert values[:, 0].std() == pytest.approx(0.5, rel=0.02)
    assert not values[:, 1].any()
    assert noise.added("position", zero, np.zeros(2)) is zero


@pytest.mark.parametrize("thin", [1, 2, 3, 8])
@pytest.mark.parametrize("before", [0, 1, 4])
def test_means_are_integrals_of_held_rows(thin: int, before: int) -> None:
    rng, half = np.random.default_rng(thin), -(-thin // 2)
    values, early = rng.normal(size=(5 * thin + 1, 2)), rng.normal(size=(before, 2))
    rows = np.concatenate([early[max(0, before - half) :], values])
    edges = np.arange(len(rows)) - min(before, half)
    middle = np.arange(6) * thin
    begin, end = np.maximum(middle - thin / 2, edges[0]), np.minimum(middle + thin / 2, edges[-1])
    for mean, column in zip(means(values, thin, early).T, rows.T, strict=True):
        area = np.concatenate([[0.0], np.cumsum(column[:-1])])
        assert mean == pytest.approx((np.interp(end, edges, area) - np.interp(begin, edges, area)) / (end - begin), abs=1e-13)


def test_quantised_values_are_whole_counts() -> None:
    values = np.linspace(-1.0, 1.0, 997)[:, None].repeat(2, axis=1)
    out = counted(values, np.array([0.01, 0.0]))
    assert np.abs(out[:, 0] / 0.01 - np.round(out[:, 0] / 0.01)).max() < 1e-9
    assert np.abs(out[:, 0] - values[:, 0]).max() <= 0.005 + 1e-12
    assert np.array_equal(out[:, 1], values[:, 1])


def test_a_clock_jitters_in_its_stamps_or_in_its_sampling() -> None:
    t = np.arange(1000) * 1e-3
    late = Sensors(jitter=1e-4)
    taken, stamped = sample_times(late, t, Noise(0))
    assert np.array_equal(taken, t)
    assert np.std(stamped - t) == pytest.approx(1e-4, rel=0.1)
    wild = Sensors(jitter=1.0, clock="sampling")
    taken, stamped = sample_times(wild, t, Noise(0))
    assert np.array_equal(taken, stamped)
    assert np.all(np.diff(stamped) > 0.0)
    assert sample_times(Sensors(), t, Noise(0))[1] is t


def test_signals_between_samples_are_cubic_with_rates_and_linear_without() -> None:
    t = np.arange(0.0, 1.0001, 0.1)
    cubic = (2.0 * t**3 - t)[:, None]
    when = np.linspace(0.0, 1.0, 57)
    exact = 2.0 * when**3 - when
    assert np.allclose(at_times(t, cubic, (6.0 * t**2 - 1.0)[:, None], when)[:, 0], exact, atol=1e-12)
    assert np.allclose(at_times(t, cubic, None, when)[:, 0], np.interp(when, t, cubic[:, 0]))
    held = at_times(t, cubic, None, np.array([-1.0, 2.0]))
    assert held[:, 0].tolist() == [cubic[0, 0], cubic[-1, 0]]


def test_lost_samples_have_their_share_and_never_are_the_ends() -> None:
    kept = kept_rows(Sensors(dropped=0.1), 20000, Noise(0))
    assert 1.0 - kept.mean() == pytest.approx(0.1, abs=0.01)
    assert kept[0]
    assert kept[-1]
    assert kept_rows(Sensors(), 10, Noise(0)).all()


def test_wrong_settings_are_refused_in_one_sentence(subtests: pytest.Subtests) -> None:
    for options, sentence in [
        ({"position_noise": -1.0}, "position_noise = -1.0"),
        ({"velocity_noise": np.nan}, "velocity_noise = nan"),
        ({"effort_noise": "much"}, "not an array of real numbers"),
        ({"effort_noise": [[1.0]]}, "shape"),
        ({"effort": "torque"}, "it is one of motor_current"),
        ({"side": "tool"}, "it is one of motor, joint"),
        ({"delay": -0.1}, "delay = -0.1"),
        ({"jitter": [1.0, 2.0]}, "give one for all channels"),
        ({"clock": "sundial"}, "it is one of stamps"),
        ({"dropped": 1.0}, "below 1"),
        ({"dropped": 5}, "below 1"),
        ({"averaged": 1}, "must be True or False"),
        ({"missing": "zero"}, "it is one of rows"),
        ({"temperature_noise": np.inf}, "temperature_noise = inf"),
    ]:
        with subtests.test(str(sentence)):
            with pytest.raises(DynidentError, match=sentence) as caught:
                Sensors(**options)  # type: ignore[arg-type]
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", [-1, 1.5, "one", True])
def test_a_seed_is_a_whole_number(seed: object) -> None:
    with pytest.raises(DynidentError, match="whole number"):
        Noise(seed)  # type: ignore[arg-type]


def test_too_many_lost_samples_are_refused() -> None:
    with pytest.raises(DynidentError, match="lower it or record longer"):
        kept_rows(Sensors(dropped=0.99), 10, Noise(0))
