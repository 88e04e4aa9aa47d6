"""A motion as the messages of its points: select, speed, duration, markers [Pagani2022, Appendix A].

streamer     0, 1, 2, ...
downloader   -1, 1, 2, ..., -3; a motion of less than three points repeats its last
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.link import messages as m
from dynident.link.messages import Message
from dynident.mechanics import Motion

Array = NDArray[np.float64]

MINIMUM = 3  # points of a download


def trajectory_messages(motion: Motion, limits: Array, *, download: bool = False, full: bool = True) -> list[Message]:
    """Return the messages of a motion."""
    t = motion.t - motion.t[0]
    step = float(t[-1] - t[-2]) if len(motion) > 1 else 0.01
    extra = max(0, MINIMUM - len(motion)) if download else 0
    at = np.concatenate([t, t[-1] + step * np.arange(1, extra + 1)])
    last, out = len(at) - 1, []
    for k, when in enumerate(at):
        i = min(k, len(motion) - 1)
        number = k
        if download:
            number = m.START_DOWNLOAD if k == 0 else m.END if k == last else k
        q, v, a = tuple(motion.q[i]), tuple(motion.v[i]), tuple(motion.a[i])
        if full:
            valid = m.TIME | m.POSITION | m.VELOCITY | m.ACCELERATION
            out.append(Message(m.JOINT_TRAJ_PT_FULL, sequence=number, valid=valid, time=float(when), q=q, v=v, a=a))
        else:
            duration = float(when - at[k - 1]) if k else 0.0
            speed = m.critical_velocity(v, limits)
            out.append(Message(m.JOINT_TRAJ_PT, sequence=number, q=q, velocity=speed, duration=duration))
    return out
