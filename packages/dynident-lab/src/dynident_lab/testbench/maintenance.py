"""Maintenance: comparison of the friction of a joint with that of a healthy one at this temperature [Pagani2022, section 5.2].

    r = f_measured / f_expected(temperature or warm-up) - 1        test effect + cycle effect + fault

A fault of 30 % is masked by the 70 % between a cold and a hot joint, so the temperature is compensated first. The residuals
of healthy tests give the spread within and between tests, and from it the distribution of the largest residual of a whole
new test: the probability of a false alarm is stated per test, not per point, and holds for any number of healthy
tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.results import Result
from dynident_lab.testbench.compensation import Compensation
from dynident_lab.testbench.history import FrictionHistory

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Number of simulated healthy tests for the threshold.
DRAWS = 40000
#: Probability of detecting a fault of the stated detectable size.
POWER = 0.9
#: Number of redrawn tests for the standard deviation of a change.
REDRAWN = 400
#: Day-to-day spread assumed where only one healthy test is known; it affects the size of a change only.
DAY = 0.02


@dataclass(frozen=True, eq=False)
class Maintenance(Result):
    """Result of a check of one test."""

    history: FrictionHistory  # The test
    expected: Array  # Friction of a healthy joint
    residual: Array  # Relative difference
    alarm: bool  # Whether the test differs from those of a healthy joint
    probability: float  # Probability of a residual this large of a healthy joint in a test of this length
    false_alarm: float  # Probability of a false alarm of the detector, per test
    threshold: float  # Residual (mean over the window) that raises the alarm
    detectable: float  # Smallest fault, as a share of the friction, detected with a probability of 90 %
    size: float  # Most likely change of the friction
    size_std: float  # Its standard deviation
    onset: float  # Time of the change [s]
    notes: tuple[str, ...] = ()  # Limitations of the result

    def summary(self) -> str:
        """Return the result as a few lines of text."""
        h = self.history
        state = (
            f"ALARM: friction changed by {100 * self.size:+.1f} +- {100 * self.size_std:.1f} % at {self.onset / 60:.3g} min"
            if self.alarm
            else f"no fault found (a change of {100 * self.detectable:.2g} % would be found in 9 of 10 tests)"
        )
        chance = (
            f"probability for a healthy joint {self.probability:.2g}; false alarms in {100 * self.false_alarm:g} % of tests"
        )
        return "\n".join(
            [f"joint {h.joint} of {h.robot}, {h.name}: {state}", f"  {chance}", *(f"  note: {n}" for n in self.notes)]
        )

    def plot(self) -> Figure:
        """Draw measured and expected friction, and the residual with its threshold, in two panels."""
        from dynident.figures import BLUE, INK, MUTED, ORANGE, finish, label, new_figure  # noqa: PLC0415

        figure = new_figure(7.6, 4.8)
        above, below = figure.add_axes((0.1, 0.47, 0.87, 0.45)), figure.add_axes((0.1, 0.11, 0.87, 0.25))
        t = self.history.t / 60.0
        above.plot(t, self.history.friction, "o", color=INK, markersize=3.5, label="measured")
        above.plot(t, self.expected, color=BLUE, linewidth=1.3, label="expected for a healthy joint")
        above.legend(frameon=False, fontsize=8)
        below.axhspan(-100 * self.threshold, 100 * self.threshold, color="#EEF1F3", zorder=0)
        below.plot(t, 100 * self.residual, "o-", color=ORANGE if self.alarm else BLUE, markersize=3.5, linewidth=0.8)
        for axes in (above, below):
            if self.alarm:
                axes.axvline(self.onset / 60.0, color=MUTED, linestyle="--", linewidth=0.9)
        title = f"{label(self.history.joint)}, {label(self.history.name)}: {'alarm' if self.alarm else 'no fault found'}"
        finish(above, "", f"friction [{self.history.unit}]", title)
        finish(below, "time since the cold start [min]", "residual [%]", "grey: within the threshold")
        return figure


class FaultDetector:
    """Compares tests with healthy ones after compensation of the temperature.

    Parameters
    ----------
    compensation : Compensation
        Expected friction of a healthy joint: `MeasuredTemperature()`, `ThermalPrediction(model)`, `WarmupTime()`, or
        `NoCompensation()` for comparison.
    false_alarm : float
        Probability of a false alarm per test, at least 0.001.
    window : int
        Number of points averaged before the comparison: more points detect smaller faults, but later.
    """

    def __init__(self, compensation: Compensation, *, false_alarm: float = 0.01, window: int = 3) -> None:
        self.compensation = compensation
        self.false_alarm = false_alarm
        self.window = window

    def fit(self, baseline: Sequence[FrictionHistory]) -> FaultDetector:
        """Determine the spread of healthy tests.

        Parameters
        ----------
        baseline : sequence of FrictionHistory
            Healthy tests of the joint, preferably five on different days.

        Returns
        -------
        FaultDetector
            The detector, with the spread ``within_`` and ``between_`` of relative residuals.
        """
        if not 1e-3 <= self.false_alarm < 0.5:
            raise DynidentError(f"false_alarm = {self.false_alarm} must be between 0.001 and 0.5 per test")
        if self.window < 1:
            raise DynidentError(f"window = {self.window} must be 1 point or more")
        points = sum(len(h) for h in baseline)
        if points < len(baseline) + 4:
            raise DynidentError(
                f"the fault detector has {len(baseline)} healthy tests with {points} points; give at least 5 points, better "
                "5 tests of 10"
            )
        self.compensation.fit(baseline)
        rest = [self._residual(h)[1] for h in baseline]
        sizes = np.array([r.size for r in rest], dtype=np.float64)
        self.tests_, self.points_ = len(rest), int(sizes.sum())
        self.within_free_ = self.points_ - self.tests_
        self.within_ = float(np.sqrt(sum(float(np.sum((r - r.mean()) ** 2)) for r in rest) / self.within_free_))
        self.size_ = float((sizes.sum() - np.sum(sizes**2) / sizes.sum()) / max(self.tests_ - 1, 1)) if self.tests_ > 1 else 0.0
        means = np.array([r.mean() for r in rest])
        self.mean_square_ = float(sizes @ (means - sizes @ means / sizes.sum()) ** 2 / max(self.tests_ - 1, 1))
        self.between_ = float(np.sqrt(max(self.mean_square_ - self.within_**2, 0.0) / self.size_)) if self.size_ else 0.0
        return self

    def _residual(self, history: FrictionHistory) -> tuple[Array, Array]:
        expected = self.compensation.expected(history)
        if np.any(expected == 0.0):
            raise DynidentError(f"the expected friction of '{history.name}' is zero; choose a speed with friction")
        return expected, np.asarray(history.friction / expected - 1.0)

    def _healthy(self, count: int, width: int) -> tuple[Array, Array]:
        """Return, for simulated healthy tests, the largest |window mean| and the mean of one window.

        The spreads are drawn from their fiducial distribution given the healthy tests, so that few of them widen
        the threshold instead of increasing the false alarms.
        """
        rng = np.random.default_rng(20)
        within, between = self._spreads(rng, DRAWS)
        if self.tests_ == 1:
            between = np.zeros(DRAWS)
        # The mean of the baseline is uncertain, too, and common to all points of the new test.
        shared = np.sqrt(between * (1.0 + 1.0 / self.tests_) + within / self.points_) * rng.standard_normal(DRAWS)
        largest, first = np.zeros(DRAWS), np.zeros(DRAWS)
        total = np.cumsum(np.vstack([np.zeros(DRAWS), np.sqrt(within) * rng.standard_normal((count, DRAWS))]), axis=0)
        for k in range(width, count + 1):
            mean = shared + (total[k] - total[k - width]) / width
            largest = np.maximum(largest, np.abs(mean))
            first = mean if k == width else first
        return largest, first

    def check(self, history: FrictionHistory) -> Maintenance:
        """Compare one test with the healthy ones.

        Parameters
        ----------
        history : FrictionHistory
            The test, at the same speed.

        Returns
        -------
        Maintenance
            Alarm, probability, size and onset of the change, and the detectable size.
        """
        if not hasattr(self, "within_"):
            raise DynidentError("the fault detector has no healthy tests; call fit first")
        expected, r = self._residual(history)
        width = min(self.window, r.size)
        means = np.convolve(r, np.ones(width) / width, mode="valid")
        largest, one = self._healthy(r.size, width)
        threshold = float(np.quantile(largest, 1.0 - self.false_alarm))
        peak = float(np.abs(means).max())
        probability = float((1 + np.count_nonzero(largest >= peak)) / (DRAWS + 1))
        size, onset = self._step(r)
        std = self._deviation(history, r, size, onset)
        notes = []
        if self.tests_ == 1:
            notes.append("only one healthy test: day-to-day variation is unknown, so false alarms are more frequent")
            if peak > threshold:
                notes.append(f"the deviation of the change assumes a day-to-day variation of {100.0 * DAY:g} %")
        outside = getattr(self.compensation, "outside", None)
        if outside is not None and (sentence := outside(history)):
            notes.append(sentence)
        return Maintenance(
            history,
            expected,
            r,
            bool(peak > threshold),
            probability,
            self.false_alarm,
            threshold,
            float(threshold + np.quantile(one, POWER)),
            size,
            std,
            float(history.t[onset]),
            tuple(notes),
        )

    def _step(self, r: Array) -> tuple[float, int]:
        """Return size and first point of the most likely step in the residuals."""
        w, b, n = max(self.within_**2, 1e-12), (self.between_ if self.tests_ > 1 else DAY) ** 2, r.size
        shrink = b / (w + n * b)  # inverse of w 1 + b 11^T is (1 - shrink 11^T) / w
        best = (-np.inf, 0.0, 0)
        for k in range(n):
            m = n - k
            information = (m - shrink * m * m) / w
            score = (r[k:].sum() - shrink * m * r.sum()) / w
            gain = score**2 / information
            if gain > best[0]:
                best = (gain, score / information, k)
        return float(best[1]), best[2]

    def _deviation(self, history: FrictionHistory, r: Array, size: float, onset: int) -> float:
        """Return half the 68 % range of a step's size over redrawn tests, each compared with redrawn healthy ones.

        Redrawn are the spreads themselves, as for the threshold, and with them the noise and the levels of test and healthy
        tests. A fault multiplies them as it does the friction, and `gain` is above 1 where more friction also heats more.
        """
        rng, n = np.random.default_rng(21), r.size
        gain = (self._residual(replace(history, friction=1.01 * history.friction))[1] - r) / (0.01 * (1.0 + r))
        step = 1.0 + size * (np.arange(n) >= onset)
        sizes = []
        for within, between in zip(*self._spreads(rng, REDRAWN), strict=True):
            level = np.sqrt(between * (1.0 + 1.0 / self.tests_) + within / self.points_) * rng.standard_normal()
            drawn = step * (1.0 + gain * level) * (1.0 + np.sqrt(within) * rng.standard_normal(n)) - 1.0
            sizes.append(self._step(drawn)[0])
        low, high = np.quantile(sizes, (0.16, 0.84))
        return float(0.5 * (high - low))

    def _spreads(self, rng: np.random.Generator, count: int) -> tuple[Array, Array]:
        """Return draws of the variances within and between tests from their fiducial distribution given the healthy tests."""
        within = self.within_**2 * self.within_free_ / rng.chisquare(self.within_free_, count)
        if self.tests_ == 1:
            return within, np.full(count, DAY**2)
        square = self.mean_square_ * (self.tests_ - 1) / rng.chisquare(self.tests_ - 1, count)
        return within, np.maximum(square - within, 0.0) / self.size_
