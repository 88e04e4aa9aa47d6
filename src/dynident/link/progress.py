"""What a campaign tells while it runs: samples to listeners, its progress to whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dynident.link.messages import Samples


class Listener(Protocol):
    """Anything that wants the samples as they come: monitor, estimator, MCAP file."""

    def feed(self, host: float, samples: Samples) -> None:
        """Take samples.

        Parameters
        ----------
        host : float
            Clock of the host at their arrival [s since 1970].
        samples : Samples
            What was measured.
        """


@dataclass(frozen=True, eq=False)
class Progress:
    """Where a campaign is.

    Parameters
    ----------
    what : str
        "cycle", "approach", "rest", "waiting", "paused", "no connection", "disk full".
    done, total : int
        Cycles.
    motion, duration : float
        Time in the running motion and its length [s].
    left : float
        Estimated rest of the campaign [s, host].
    samples : Samples or None
        The newest.
    acknowledged, gaps : int
        Samples on the disk, gaps in their counter.
    text : str
        One sentence, when there is something to say.
    """

    what: str
    done: int
    total: int
    motion: float = 0.0
    duration: float = 0.0
    left: float = 0.0
    samples: Samples | None = None
    acknowledged: int = 0
    gaps: int = 0
    text: str = ""
