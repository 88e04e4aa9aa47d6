"""Channels that froze or were cut off while the robot moved: what the log says there did not happen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.identify.specimen import Specimen
from dynident.signals import Log, Quality

Array = NDArray[np.float64]

MANY = 0.01  # of the moving samples at a limit: fewer do little harm
LARGER = 4.0  # times the squared residual elsewhere: a drive that really gives no more leaves no more than others
FEW = 5  # samples at a limit, to compare with


def false_channels(log: Log, quality: Quality, specimen: Specimen) -> tuple[str, ...]:
    """Return sentences about channels that keep a value while their joint moves, and efforts that were cut off.

    Efforts at a limit are true where the drive gives no more, and false where the recorder shows no more: there the residuals
    of the model that the other samples determine are larger.
    """
    found = [
        f"the {channel.partition(':')[0]} of {channel.partition(':')[2]} {sentence}; leave that stretch of time out"
        for channel, sentence in ((f.channel, f.sentence) for f in quality.of("stuck"))
        if channel.startswith(("position:", "effort:"))
    ]
    limited = [f.channel for f in quality.of("saturated") if f.value > MANY]
    for j, joint in enumerate(log.joints):
        if f"effort:{joint}" in limited and joint in specimen.names and _cut_off(log.t, log.effort[:, j], specimen, joint):
            found.append(
                f"the efforts of {joint} are cut off at their limit {np.nanmax(np.abs(log.effort[:, j])):.4g}, where other "
                "samples tell that more acted; record a wider range, or leave these stretches of time out"
            )
    return tuple(found)


def _cut_off(t: Array, effort: Array, specimen: Specimen, joint: str) -> bool:
    """Tell whether the residuals of a joint are larger where its effort is at a limit."""
    at_limit = (effort == np.nanmax(effort)) | (effort == np.nanmin(effort))
    cut = np.interp(specimen.motion.t, t, at_limit.astype(float)) > 0.0
    i, W = specimen.names.index(joint), specimen.equations(specimen.motion)
    A, y = W[i].T, specimen.effort[:, i]
    if np.sum(cut) < FEW or np.sum(~cut) < 2 * A.shape[1]:
        return False
    scale = np.linalg.norm(A, axis=0)
    A = A[:, scale > 0.0] / scale[scale > 0.0]
    x = np.linalg.lstsq(A[~cut], y[~cut], rcond=1e-9)[0]
    square = (y - A @ x) ** 2
    return bool(np.mean(square[cut]) > LARGER * np.mean(square[~cut]))
