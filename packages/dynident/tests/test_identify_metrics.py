from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dynident
from dynident.errors import DynidentError
from dynident.files import to_json
from dynident.identify import evaluate
from dynident.identify.prediction import _resting
from dynident.identify.regression.factor import shares

MEASURED = np.array([[3.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, -1.0]])
PREDICTED = np.array([[2.0, 1.0], [-1.0, 2.0], [1.0, -1.0], [3.0, -1.0]])


def test_by_hand():
    m = evaluate(MEASURED, PREDICTED, ("a", "b"), [0.0, 0.1, 0.2, 0.3])
    # errors: a (1, 0, 0, -2), b (0, -1, 0, 0); |tau|^2: a 12, b 4
    np.testing.assert_allclose(m.rmse, [np.sqrt(5 / 4), np.sqrt(1 / 4)])
    assert m.relative == pytest.approx(np.sqrt(6 / 16))
    np.testing.assert_allclose(m.relative_per_joint, [np.sqrt(5 / 12), np.sqrt(1 / 4)])
    np.testing.assert_allclose(m.nrms, [np.sqrt(5 / 4) / 4, 0.5 / 2])
    np.testing.assert_allclose(m.r2, [1 - 5 / 8, 1 - 1 / 4])  # a has the mean 1, b the mean 0
    assert (m.worst_joint, m.worst_error, m.worst_time, m.samples) == ("a", 2.0, 0.3, 4)  # 2/sqrt(3) against 1/1
    assert evaluate(MEASURED, PREDICTED, ("a", "b")).worst_time == 3.0


def test_a_perfect_model():
    m = evaluate(MEASURED, MEASURED, ("a", "b"))
    assert m.relative == 0.0
    assert np.all(m.rmse == 0.0)
    assert np.all(m.r2 == 1.0)


def test_a_silent_channel_has_no_relative_error():
    tau = MEASURED * [1.0, 0.0]
    m = evaluate(tau, PREDICTED, ("a", "b"))
    assert np.isfinite(m.relative)
    assert np.isnan(m.relative_per_joint[1])
    assert m.worst_joint == "a"
    assert np.isnan(m.to_dict()["r2"][1])
    nothing = evaluate(0 * tau, PREDICTED, ("a", "b"))
    assert np.isnan(nothing.relative) and json.loads(to_json(nothing.to_dict()))["relative"] is None


def test_text_and_numbers_agree():
    m = evaluate(MEASURED, PREDICTED, ("a", "b"))
    text = m.summary()
    assert f"relative error {100 * m.relative:.2f} % over 4 samples" in text
    assert f"{m.rmse[0]:.4g}" in text
    assert "worst sample: a" in text
    data = m.to_dict()
    assert data["rmse"] == m.rmse.tolist()
    assert data["worst"] == {"error": 2.0, "joint": "a", "time": 3.0}


@pytest.mark.parametrize(
    ("measured", "predicted", "joints", "message"),
    [
        (np.ones((4, 2)), np.ones((4, 3)), ("a", "b"), r"\(4, 2\) and predicted \(4, 3\)"),
        (np.ones(4), np.ones(4), ("a",), "must both be"),
        (np.ones((0, 1)), np.ones((0, 1)), ("a",), "not empty"),
        (np.ones((4, 2)), np.ones((4, 2)), ("a",), r"\(samples, 1\)"),
        (np.full((4, 1), np.nan), np.ones((4, 1)), ("a",), "not finite"),
    ],
)
def test_wrong_input(measured, predicted, joints, message):
    with pytest.raises(DynidentError, match=message):
        evaluate(measured, predicted, joints)


def test_metrics_are_defined_once():
    """No other file of the library computes an RMSE, R2 or NRMS of its own."""
    source = Path(dynident.__file__).parent
    defining = [path.name for path in source.rglob("*.py") if "rmse = " in path.read_text() or "nrms = " in path.read_text()]
    assert defining == ["score.py"]


def test_friction_near_standstill_may_be_anything_within_its_limits():
    """Its variance is that of a uniform distribution between -fc and fc, or what the data say if that is more."""
    posterior = SimpleNamespace(speeds={"joint": 1.0})
    fit = SimpleNamespace(mechanism=SimpleNamespace(loops=(), coordinate_names=("joint",)), posterior=posterior)
    drawn = np.var(np.linspace(-3.0, 3.0, 100_001))
    v, known = np.array([[0.0], [0.0], [5.0]]), np.array([[0.0], [7.0], [7.0]])
    np.testing.assert_allclose(_resting(fit, v, np.full((3, 1), 3.0), known), [[drawn], [7.0], [0.0]], rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("rise", [0.0, 3.0])
def test_the_variance_at_rest_is_told_from_that_in_motion(rise):
    """The variance is 1 + rise w, where w is 1 at rest and 0 in motion; the shares are of its mean."""
    rng = np.random.default_rng(1)
    w = np.repeat([0.0, 0.5, 1.0], 4000)
    square = (1.0 + rise * w) * rng.normal(size=w.size) ** 2
    sums = [float(w.size), *(float(np.sum(x)) for x in (w, w * w, square, square * w))]
    halves = [{"resting": {"joint": [0.5 * x for x in sums]}}] * 2
    mean = 1.0 + 0.5 * rise
    np.testing.assert_allclose(shares(halves, "joint"), (1.0 / mean, rise / mean), rtol=0.1)
    assert shares(halves, "other") == (1.0, 0.0)
