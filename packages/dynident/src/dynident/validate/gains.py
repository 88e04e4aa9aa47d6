"""Efforts of a held-out log that are a constant times what the model says: a gain, a unit or a sign that changed.

    measured_j = k_j predicted_j + e_j,      k_j = <measured_j, predicted_j> / <predicted_j, predicted_j>

The factor explains a residual where it leaves at most a tenth of its squares, at most half of what a constant would leave, and
no more than the noise of the training. With hundreds of rows for one number no noise does that; what is missing in a model, was
not excited or is carried is not proportional to the whole effort. Of efforts that hardly vary a factor and a constant, such as
friction of a motion in one direction, cannot be told apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dynident.identify.score import Score

LEFT = 0.1  # of the squares of a residual that an explained one may leave
BESIDE = 0.5  # of the squares that a constant would leave
NOISE = 2.0  # standard deviations of the training's residuals that it may leave
LEAST = 0.05  # smallest distance of a factor from one
ALIKE = 0.02  # spread of factors that are called one
ENOUGH = 30  # rows


def gain_factors(score: Score, noise: NDArray[np.float64]) -> dict[str, float]:
    """Return the factors on measured efforts that explain the residuals, by joint; none where they do not."""
    found = {}
    for joint, m, p, s in zip(score.joints, score.measured.T, score.predicted.T, noise, strict=True):
        size, before = float(p @ p), float(np.sum((m - p) ** 2))
        if m.size < ENOUGH or size == 0.0 or before <= m.size * (NOISE * np.nan_to_num(s)) ** 2:
            continue
        k = float(m @ p) / size
        after = float(np.sum((m - k * p) ** 2))
        noisy = np.isfinite(s) and after > m.size * (NOISE * k * s) ** 2
        little = after <= min(LEFT * before, BESIDE * m.size * float(np.var(m - p)))
        if abs(k - 1.0) >= LEAST and k != 0.0 and little and not noisy:
            found[joint] = k
    return found


def told(factors: dict[str, float], joints: tuple[str, ...]) -> str:
    """Return the factors in words, one where all joints share it."""
    values = np.array(list(factors.values()))
    if len(factors) == len(joints) > 1 and np.ptp(values) <= ALIKE * abs(values.mean()):
        return f"the measured efforts of all joints are {values.mean():.3g} times those of the model"
    listed = ", ".join(f"{joint} {k:.3g}" for joint, k in factors.items())
    return f"measured efforts are a constant times those of the model: {listed}"


def rescaled(score: Score, factors: dict[str, float]) -> Score:
    """Return the score with the factors taken out of the measured efforts."""
    from dynident.identify.score import evaluate  # noqa: PLC0415 - whoever has a score has loaded it

    if not factors:
        return score
    measured = score.measured / np.array([factors.get(joint, 1.0) for joint in score.joints])
    return replace(
        score,
        measured=measured,
        metrics=evaluate(measured, score.predicted, score.joints, score.t),
        coverage=float(np.mean(np.abs(measured - score.predicted) <= 2.0 * score.std)),
    )
