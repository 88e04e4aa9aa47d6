"""When a search ends: at a time, or after a number of steps, which does not depend on the load of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

import numpy as np


@dataclass
class Budget:
    """What a search may spend: time until `deadline` of the monotonic clock [s], and `steps`, of which `spent` are taken."""

    deadline: float = np.inf
    steps: float = np.inf
    spent: int = 0

    def spend(self) -> bool:
        """Take one step if time and steps allow it; return whether they did."""
        if self.over:
            return False
        self.spent += 1
        return True

    @property
    def over(self) -> bool:
        """Whether time or steps are used up."""
        return self.spent >= self.steps or monotonic() > self.deadline
