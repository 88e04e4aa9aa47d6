"""Error metrics, each defined once and used by every score, table and report.

e = tau - tau_hat  (N, n)
rmse_j     = sqrt(mean_t e_j^2)                           [N m or N], per joint
relative   = ||e|| / ||tau||                              over all joints; per joint with that joint's rows only
nrms_j     = rmse_j / (max tau_j - min tau_j)             per joint
r2_j       = 1 - sum e_j^2 / sum (tau_j - mean tau_j)^2   per joint
worst      = the largest |e_j| / rms(tau_j), with its joint and time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.results import Result

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Metrics(Result):
    """Errors of predicted against measured efforts (definitions at the top of this module).

    Parameters
    ----------
    joints : tuple of str
        Channels.
    rmse, relative_per_joint, nrms, r2 : ndarray, (n,)
        Per channel.
    relative : float
        ||e|| / ||tau|| over all channels.
    worst_error : float
        Largest absolute error [N m or N] of the worst sample.
    worst_joint : str
        Its channel.
    worst_time : float
        Its time [s].
    samples : int
        N.
    """

    joints: tuple[str, ...]
    rmse: Array
    relative_per_joint: Array
    nrms: Array
    r2: Array
    relative: float
    worst_error: float
    worst_joint: str
    worst_time: float
    samples: int
    derived = ("worst",)

    def __post_init__(self) -> None:
        for label in ("rmse", "relative_per_joint", "nrms", "r2"):
            if not self.joints or np.shape(getattr(self, label)) != (len(self.joints),):
                raise DynidentError(f"{label} has the shape {np.shape(getattr(self, label))}; give one number per channel")

    @property
    def worst(self) -> dict[str, Any]:
        """The worst sample: its error, joint and time."""
        return {"error": self.worst_error, "joint": self.worst_joint, "time": self.worst_time}

    def summary(self) -> str:
        """Return the metrics as a text table, one line per joint."""
        width = max(len(j) for j in self.joints)
        lines = [f"relative error {100 * self.relative:.2f} % over {self.samples} samples"]
        lines += [f"{'joint':<{width}}  {'RMSE':>10}  {'relative':>9}  {'NRMS':>8}  {'R2':>8}"]
        for i, joint in enumerate(self.joints):
            lines.append(
                f"{joint:<{width}}  {self.rmse[i]:>10.4g}  {100 * self.relative_per_joint[i]:>8.2f}%  "
                f"{100 * self.nrms[i]:>7.2f}%  {self.r2[i]:>8.4f}"
            )
        lines.append(f"worst sample: {self.worst_joint} at t = {self.worst_time:.3f} s, error {self.worst_error:.4g}")
        return "\n".join(lines)


def evaluate(
    measured: ArrayLike,
    predicted: ArrayLike,
    joints: tuple[str, ...],
    t: ArrayLike | None = None,
    used: NDArray[np.bool_] | None = None,
) -> Metrics:
    """Compare predicted with measured efforts.

    Parameters
    ----------
    measured, predicted : array_like, (N, n)
        Efforts [N m or N].
    joints : tuple of str
        Names of the n channels.
    t : array_like (N,), optional
        Time of the samples [s]; sample numbers when omitted.
    used : ndarray of bool (N, n), optional
        Samples that count; all when omitted.

    Returns
    -------
    Metrics
        All metrics.
    """
    tau, hat = np.asarray(measured, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if tau.shape != hat.shape or tau.ndim != 2 or tau.shape[1] != len(joints) or not tau.size:
        raise DynidentError(
            f"metrics: measured {tau.shape} and predicted {hat.shape} must both be (samples, {len(joints)}) and not empty"
        )
    if not (np.all(np.isfinite(tau)) and np.all(np.isfinite(hat))):
        raise DynidentError("metrics: measured or predicted efforts are not finite; clean the log first")
    time = np.arange(tau.shape[0], dtype=np.float64) if t is None else np.asarray(t, dtype=np.float64)
    counted = np.ones(tau.shape, dtype=bool) if used is None else used
    if counted.shape != tau.shape or not counted.any():
        raise DynidentError(f"metrics: no sample counts, or used has shape {counted.shape} and not {tau.shape}")
    e = np.where(counted, tau - hat, 0.0)
    kept = np.where(counted, tau, 0.0)
    spread = np.max(tau, axis=0, where=counted, initial=-np.inf) - np.min(tau, axis=0, where=counted, initial=np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):  # a channel that is zero throughout has no relative error
        count = np.sum(counted, axis=0)
        rms = np.sqrt(np.sum(kept**2, axis=0) / count)
        rmse = np.sqrt(np.sum(e**2, axis=0) / count)
        variance = np.sum(np.where(counted, tau - np.sum(kept, axis=0) / count, 0.0) ** 2, axis=0)
        per_joint = np.where(rms > 0, rmse / rms, np.nan)
        nrms = np.where(spread > 0, rmse / spread, np.nan)
        r2 = np.where(variance > 0, 1.0 - np.sum(e**2, axis=0) / variance, np.nan)
        weighted = np.abs(e) / np.where(rms > 0, rms, np.inf)
    total = float(np.linalg.norm(kept))
    row, column = np.unravel_index(int(np.argmax(weighted)), e.shape)
    relative = float(np.linalg.norm(e)) / total if total > 0 else float("nan")
    worst, samples = float(abs(e[row, column])), int(counted.any(axis=1).sum())
    return Metrics(joints, rmse, per_joint, nrms, r2, relative, worst, joints[column], float(time[row]), samples)
