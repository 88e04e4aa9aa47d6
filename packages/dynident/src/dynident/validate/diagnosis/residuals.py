"""Efforts that a model of the other samples does not explain: saturated, or changed by an external force.

Both appear in the residuals of least squares on a sample of a log, iterated without the affected samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.signals.quality import Finding
from dynident.validate.diagnosis.left_out import weighted
from dynident.validate.diagnosis.sample import Sample, fault

NEAR, BELOW = 0.97, 0.91  # of the 99th percentile of the effort: saturation accumulates samples above the first, ...
MANY, HEAP = 0.03, 2.0  # ... at least this share, and more than between the two by this factor (1.3 for a sine)
EXCESS = 3.0  # RMS residuals of the other samples by which the model exceeds the limit, ...
EXPLAINED = 0.2  # of the effort: largest residual of the other samples, ...
ALWAYS = 0.9  # ... in this part of the samples at the limit
LARGE, LARGEST = 6.0, 12.0  # robust deviations of the residuals in a contact, and at its peak
SHORT, LONG, MOST = 0.04, 1.0, 0.1  # [s] a contact, and the part of the log that all of them may take
WORTH = 0.5  # share of the squared residuals in contacts
SHARE = 0.1  # of the RMS effort, at the peak
PASSES = 3


def clipped(sample: Sample) -> list[Finding]:
    """Return the findings about joints with saturated, possibly noisy efforts."""
    W, found = sample.equations(sample.motion), list[Finding]()
    for i, name in enumerate(sample.names):
        y = sample.effort[:, i]
        top = float(np.percentile(np.abs(y), 99.0))
        cut = np.abs(y) > NEAR * top
        below = (np.abs(y) > BELOW * top) & ~cut
        unknowns = np.count_nonzero(np.any(W[i], axis=1))
        if top == 0.0 or cut.mean() < MANY or cut.sum() < HEAP * below.sum() or np.sum(~cut) < 2 * unknowns:
            continue
        kept = np.ones_like(sample.effort)
        kept[cut, i] = 0.0
        x, _ = weighted(W * kept.T[:, None], sample.effort * kept)
        wanted = W[i].T @ x
        rest = float(np.sqrt(np.mean((y - wanted)[~cut] ** 2)))
        more = ((wanted - y) * np.sign(y))[cut]
        explained = rest < EXPLAINED * float(np.sqrt(np.mean(y**2)))
        if explained and np.mean(more) > EXCESS * rest and np.mean(more > 0.0) > ALWAYS:
            said = f"the efforts of {name} saturate near their limit {top:.4g}; record a wider range, or exclude these segments"
            found.append(fault("clipped", f"effort:{name}", said, top))
    return found


def contacts(sample: Sample) -> list[tuple[float, float]]:
    """Return the stretches of time [s] with external forces.

    Residuals of a moving joint exceed `LARGE` robust deviations for a while and `LARGEST` at the peak. Friction errors
    recur at every reversal; contacts are rare, and have most of the squared residuals.
    """
    W, effort, t = sample.equations(sample.motion), sample.effort, sample.motion.t
    if W.shape[1] > 0.25 * len(t):
        return []
    kept, wide = np.ones(len(t), dtype=bool), float(np.median(np.diff(t)))
    found: list[tuple[float, float]] = []
    speed = np.sqrt(np.mean(sample.motion.v**2, axis=0))
    for _ in range(PASSES):
        x, _ = weighted(W * kept, effort * kept[:, None])
        error = effort - np.einsum("nbt,b->tn", W, x)
        sigma = 1.4826 * np.median(np.abs(error), axis=0)
        size = np.sqrt(np.mean(effort**2, axis=0))
        used = (sigma > 0.0) & (size > 0.0)
        z = np.abs(error[:, used]) / sigma[used]
        moving = np.abs(sample.motion.v[:, used]) > 0.1 * speed[used]
        high = np.any((z > LARGE) & (np.abs(error[:, used]) > 0.5 * SHARE * size[used]), axis=1)
        found = []
        for first, last in _runs(high, t):
            own = slice(first, last)
            forward = sample.motion.v[own][:, used] > 0.0
            onwards = forward.all(axis=0) | ~forward.any(axis=0)  # low-passed friction of a reversal looks like a contact
            peak = (z[own] > LARGEST) & (np.abs(error[own][:, used]) > SHARE * size[used]) & moving[own] & onwards
            if SHORT <= t[last - 1] - t[first] <= LONG and peak.any():
                found.append((float(t[first] - wide), float(t[last - 1] + wide)))
        inside = np.zeros(len(t), dtype=bool)
        for start, end in found:
            inside |= (t >= start) & (t <= end)
        if np.array_equal(inside, ~kept):
            break
        kept = ~inside
    share = np.max(np.sum(error[inside] ** 2, axis=0)[used] / np.sum(error**2, axis=0)[used], initial=0.0)
    return found if share > WORTH and inside.mean() < MOST else []


def _runs(high: NDArray[np.bool_], t: Array) -> list[tuple[int, int]]:
    """Return the runs of marked samples; those closer than `SHORT` are one."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], high.astype(np.int8), [0]]))).reshape(-1, 2)
    runs: list[tuple[int, int]] = []
    for first, last in edges:
        if runs and t[first] - t[runs[-1][1] - 1] < SHORT:
            runs[-1] = (runs[-1][0], int(last))
        else:
            runs.append((int(first), int(last)))
    return runs


def contact_finding(name: str, found: list[tuple[float, float]], duration: float) -> Finding:
    """Return the warning about excluded contacts."""
    listed = ", ".join(f"{start:.2f} to {end:.2f} s" for start, end in found[:5]) + (" ..." if len(found) > 5 else "")
    total = sum(end - start for start, end in found)
    said = (
        f"log '{name}' has {len(found)} external contacts ({listed}; {total / duration:.1%} of the time, residuals above "
        f"{LARGEST:g} robust deviations), which are excluded; avoid contacts while recording"
    )
    return Finding("contact", "effort", "warning", said, total)
