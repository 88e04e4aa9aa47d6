"""Zone tuning [Ellis2004; Roldan2017, section 2.2.1.4]: gains found from step responses of any machine.

1. all gains zero;  2. raise kp as far as there is neither overshoot nor instability;  3. raise ki until the overshoot is
2 to 4 %;  4. use kd only when the response is too slow without it. In a cascade the inner loop is tuned first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import number, numbers
from dynident.errors import DynidentError
from dynident.results import Result


class Gains(NamedTuple):
    """Gains of one loop.

    Parameters
    ----------
    kp, ki, kd : float
        Proportional, integral and derivative gain.
    """

    kp: float
    ki: float = 0.0
    kd: float = 0.0


Step = Callable[[Gains], tuple[ArrayLike, ArrayLike]]


@dataclass(frozen=True)
class Trial:
    """One tested step response."""

    gains: Gains  # With these gains
    zone: Literal["proportional", "integral", "derivative"]  # The gain that was raised
    stable: bool  # Whether the response settled
    overshoot: float  # Peak above the end value (proportional zone) or above the command (integral zone), as a share of it
    rise_time: float  # Time until the response first passes 90 % of its end value [s]; infinite when it does not


@dataclass(frozen=True)
class ZoneTuning(Result):
    """Tuned gains and the steps of their search."""

    gains: Gains  # The gains
    overshoot: float  # Overshoot with them
    rise_time: float  # Rise time with them [s]
    history: tuple[Trial, ...]  # All tested step responses, in order
    note: str  # Reason for the limit of the gains


class _Tuner:
    def __init__(self, step: Step, target: float) -> None:
        self.step, self.target, self.history = step, target, list[Trial]()

    def __call__(self, gains: Gains, zone: Literal["proportional", "integral", "derivative"]) -> Trial:
        t, y = (np.atleast_1d(numbers(x, "response")) for x in self.step(gains))
        if t.ndim != 1 or t.shape != y.shape or t.size < 10:
            raise DynidentError(f"the step response has shapes {t.shape} and {y.shape}; return t and y of ten samples or more")
        trial = Trial(gains, zone, *_judge(t, y / self.target, zone == "integral"))
        self.history.append(trial)
        return trial

    def largest(self, trial: Callable[[float], Trial], start: float, allowed: float, tolerance: float) -> tuple[float, bool]:
        """Return the largest value whose trial is stable with at most the allowed overshoot, and whether a limit was met."""

        def good(value: float) -> bool:
            found = trial(value)
            return found.stable and found.overshoot <= allowed

        low = start
        while not good(low):
            low *= 0.5
            if low < 1e-9 * start:
                raise DynidentError(
                    f"no gain down to {low:.3g} gives a stable step without overshoot; check the sign and the step"
                )
        high = low
        for _ in range(40):
            high *= 2.0
            if not good(high):
                break
            low = high
        else:
            return low, False
        while high > (1.0 + tolerance) * low:
            middle = np.sqrt(low * high)
            low, high = (middle, high) if good(middle) else (low, middle)
        return float(low), True


def zone_tuning(
    simulate_step: Step,
    *,
    start: float = 1.0,
    target: float = 1.0,
    integral: bool = True,
    overshoot: tuple[float, float] = (0.02, 0.04),
    quiet: float = 1e-3,
    rise_time: float | None = None,
    tolerance: float = 0.02,
) -> ZoneTuning:
    """Return gains found by zone tuning.

    Parameters
    ----------
    simulate_step : callable
        ``simulate_step(gains)`` applies a step with ``gains.kp, gains.ki, gains.kd`` and returns t (N,) and y (N,).
    start : float
        First proportional gain to try.
    target : float
        Height of the commanded step.
    integral : bool
        False leaves ki at zero, as for a position loop around a velocity loop.
    overshoot : tuple of float
        Wanted range of the overshoot with ki, as shares of the step.
    quiet : float
        Overshoot that counts as none while kp is raised.
    rise_time : float, optional
        Rise time that is needed [s]; kd is used when it is not reached without.
    tolerance : float
        Relative accuracy of the gains.

    Returns
    -------
    ZoneTuning
        Gains and every trial.

    Examples
    --------
    >>> import numpy as np
    >>> from dynident_papers.servo import zone_tuning
    >>> def step(gains):  # PI on 1 / (0.1 s + 1), with a first-order drive of 5 ms
    ...     t, y, drive, total, out = np.arange(2000) * 1e-3, 0.0, 0.0, 0.0, []
    ...     for _ in t:
    ...         e = 1.0 - y
    ...         total += e * 1e-3
    ...         drive += (gains.kp * e + gains.ki * total - drive) * 0.2
    ...         y += (drive - y) * 0.01
    ...         out.append(y)
    ...     return t, out
    >>> found = zone_tuning(step)
    >>> 0.02 <= found.overshoot <= 0.04
    True
    """
    if not callable(simulate_step):
        raise DynidentError(f"simulate_step is a {type(simulate_step).__name__}; give a function of the gains")
    first, height = number("zone tuning: start", start, above=0.0), number("zone tuning: target", target)
    if height == 0.0 or not 0.0 < tolerance < 1.0:
        raise DynidentError(
            f"zone tuning: target = {height} and tolerance = {tolerance}; give a target that is not zero and a tolerance "
            "between 0 and 1"
        )
    least, most = (number("zone tuning: overshoot", x) for x in overshoot)
    if not 0.0 <= quiet < most or not 0.0 < least < most:
        raise DynidentError(f"zone tuning: overshoot {overshoot} and quiet {quiet}; give 0 < least < most and quiet below most")
    tuner = _Tuner(simulate_step, height)
    kp, met = tuner.largest(lambda x: tuner(Gains(x), "proportional"), first, quiet, tolerance)
    note = "kp at the limit of overshoot" if met else "kp stopped after 40 doublings without overshoot"
    kd = 0.0
    if rise_time is not None and tuner(Gains(kp), "proportional").rise_time > rise_time:
        kp, kd, note = _with_derivative(tuner, kp, quiet, tolerance, rise_time)
    ki = 0.0
    if integral:
        duration = float(np.ptp(numbers(simulate_step(Gains(kp, 0.0, kd))[0], "response")))
        scale = kp / max(duration, 1e-12)
        aim = 0.5 * (least + most)
        ki, met = tuner.largest(lambda x: tuner(Gains(kp, x, kd), "integral"), scale, aim, tolerance)
        note += "" if met else "; ki stopped after 40 doublings below the required overshoot"
    last = tuner(Gains(kp, ki, kd), "integral" if integral else "proportional")
    return ZoneTuning(last.gains, last.overshoot, last.rise_time, tuple(tuner.history), note)


def _with_derivative(tuner: _Tuner, kp: float, quiet: float, tolerance: float, rise_time: float) -> tuple[float, float, str]:
    """Raise kd, then kp again, until the response is fast enough or kd has no effect."""
    quickest = tuner(Gains(kp), "derivative")
    best, lead = (kp, 0.0), 0.02 * min(quickest.rise_time, tuner.history[0].rise_time)
    for _ in range(12):
        share = lead  # kd = share kp: a lead time [s]
        found, _ = tuner.largest(lambda x: tuner(Gains(x, 0.0, share * x), "derivative"), best[0], quiet, tolerance)  # noqa: B023
        trial = tuner(Gains(found, 0.0, share * found), "derivative")
        if trial.rise_time > quickest.rise_time:
            break
        best, quickest, lead = (found, share * found), trial, 1.5 * lead
        if trial.rise_time <= rise_time:
            return *best, "kd used to reach the rise time"
    return *best, f"the rise time {rise_time:g} s is not reached: {quickest.rise_time:.4g} s with kd"


def zone_tune_cascade(
    stages: Sequence[tuple[str, Callable[[Gains, Mapping[str, Gains]], tuple[ArrayLike, ArrayLike]], Mapping[str, float]]],
) -> dict[str, ZoneTuning]:
    """Return the gains of a cascade, tuned loop by loop from the inside out."""
    found: dict[str, ZoneTuning] = {}
    for name, step, options in stages:
        inner = {key: result.gains for key, result in found.items()}
        found[name] = zone_tuning(lambda gains, step=step, inner=inner: step(gains, inner), **options)  # type: ignore[arg-type,misc]
    return found


def _judge(t: Array, y: Array, to_command: bool) -> tuple[bool, float, float]:
    """Return whether a step response settles, its overshoot and its rise time."""
    if not np.all(np.isfinite(y)) or np.abs(y).max() > 1e3:
        return False, float("inf"), float("inf")
    tail, before = y[(3 * y.size) // 4 :], y[y.size // 2 : (3 * y.size) // 4]
    creeping = bool(np.all(np.diff(tail) >= 0.0) or np.all(np.diff(tail) <= 0.0))
    end = 1.0 if to_command else float(tail[-1] if creeping else tail.mean())
    if end == 0.0:
        return True, 0.0, float("inf")
    # A loop at its stability limit oscillates: its last quarter has the same amplitude as the previous one.
    swing = float(np.ptp(tail))
    ringing = not creeping and swing > 0.02 * abs(end) and swing >= 0.9 * float(np.ptp(before))
    over = max(0.0, float(np.max(y * np.sign(end))) / abs(end) - 1.0)
    passed = np.flatnonzero(y * np.sign(end) >= 0.9 * abs(end))
    return not ringing, over, float(t[passed[0]] - t[0]) if passed.size else float("inf")
