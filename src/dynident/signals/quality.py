"""What is wrong with a log: general rules that look at the signals only, and report in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynident.errors import require
from dynident.signals.log import Log

if TYPE_CHECKING:
    from dynident.signals.checks import View
    from dynident.signals.resample import Piece

KINDS = (
    "irregular_clock",
    "gap",
    "nan",
    "still",
    "dead",
    "stuck",
    "saturated",
    "quantised",
    "unit_suspect",
    "delayed",
    "too_slow_rate",
)
SEVERITIES = ("info", "warning", "error")


@dataclass(frozen=True)
class Finding:
    """One thing found in a log.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    channel : str
        "time", or quantity and joint as "effort:arm_5_joint"
    severity : {"info", "warning", "error"}
        "info" is dealt with by `prepare`; "warning" may spoil a fit; "error" will.
    sentence : str
        What was seen, with the number, and what to do.
    value : float
        The number the decision rests on (s, steps, ratio or fraction).
    """

    kind: str
    channel: str
    severity: str
    sentence: str
    value: float


@dataclass(frozen=True)
class Quality:
    """All findings of one log.

    Parameters
    ----------
    name : str
        Name of the log.
    findings : tuple of Finding
        What was found, in the order of the checks.
    """

    name: str
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing worse than "info" was found."""
        return all(f.severity == "info" for f in self.findings)

    def of(self, kind: str) -> tuple[Finding, ...]:
        """Return the findings of one kind.

        Parameters
        ----------
        kind : str
            One of `KINDS`.

        Returns
        -------
        tuple of Finding
            Those of this kind.
        """
        return tuple(f for f in self.findings if f.kind == kind)

    def summary(self) -> str:
        """Return the findings as text. One line per finding."""
        if not self.findings:
            return f"log '{self.name}': nothing suspicious"
        lines = [f"  {f.severity:8}{f.kind:16}{f.channel}: {f.sentence}" for f in self.findings]
        return "\n".join([f"log '{self.name}': {len(self.findings)} findings", *lines])

    def to_dict(self) -> dict[str, object]:
        """Return the findings as plain values, for JSON. `name`, `ok` and the list `findings`."""
        return {
            "name": self.name,
            "ok": self.ok,
            "findings": [
                {"kind": f.kind, "channel": f.channel, "severity": f.severity, "sentence": f.sentence, "value": f.value}
                for f in self.findings
            ],
        }


def diagnose(log: Log) -> Quality:
    """Look for bad clocks, holes, dead, stuck, saturated, delayed channels and wrong units.

    Parameters
    ----------
    log : Log
        What was measured.

    Returns
    -------
    Quality
        Findings; an empty one says that nothing looked suspicious, not that the log is right.
    """
    from dynident.signals.resample import Piece  # noqa: PLC0415  (scipy)

    require(log, Log, "log")
    return examine(log, Piece(log))[0]


def examine(log: Log, piece: Piece) -> tuple[Quality, View | None]:
    """Return the findings of a log and the view they rest on, for those who differentiate it next."""
    from dynident.signals import checks  # noqa: PLC0415  (scipy)

    findings = checks.clock(log) + checks.missing(log)
    if len(log) < checks.FEWEST or np.isfinite(log.position).mean() <= 0.5:
        return Quality(log.name, tuple(findings)), None
    view = checks.View(log, piece)
    findings += checks.constant(view) + checks.saturated(view) + checks.quantised(view)
    findings += checks.units(view) + checks.delayed(view) + checks.rate(view)
    return Quality(log.name, tuple(findings)), view if view.usable else None
