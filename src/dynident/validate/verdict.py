"""The verdict: can this model be trusted, as checks with numbers, limits and sentences, for people and machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dynident.errors import require
from dynident.friction import term_of
from dynident.results import Result

if TYPE_CHECKING:
    from dynident.identify import Fit, Score

# Limits that a usable rigid-body model meets; they are stated in every verdict.
RELATIVE_LIMIT = 0.15
GAP_LIMIT = 2.0
CONDITION_LIMIT = 1e3
SHARE_GOOD_LIMIT = 0.25


@dataclass(frozen=True)
class Check:
    """One thing that was checked.

    Parameters
    ----------
    name : str
        Short name.
    ok : bool
        True when the limit is met.
    value, limit : float
        Number and limit.
    sentence : str
        The finding in words.
    """

    name: str
    ok: bool
    value: float
    limit: float
    sentence: str


@dataclass(frozen=True, eq=False)
class Verdict(Result):
    """All checks of a fit.

    Parameters
    ----------
    robot : str
        Name of the robot.
    validated : bool
        True when at least one held-out log was scored.
    checks : tuple of Check
        What was checked.
    scores : tuple of dict
        Metrics of every scored log.
    """

    robot: str
    validated: bool
    checks: tuple[Check, ...]
    scores: tuple[dict[str, Any], ...]
    derived: ClassVar[tuple[str, ...]] = ("ok",)

    @property
    def ok(self) -> bool:
        """True when the model was validated and every check passed."""
        return self.validated and all(check.ok for check in self.checks)

    def summary(self) -> str:
        """Return the verdict as text, one line per check.

        Returns
        -------
        str
            Text.
        """
        head = "validated and all checks passed" if self.ok else "NOT VALIDATED" if not self.validated else "some checks failed"
        return "\n".join([f"verdict: {head}", *(f"  [{'ok' if c.ok else '!!'}] {c.sentence}" for c in self.checks)])


def judge(fit: Fit, scores: Sequence[Score] = ()) -> Verdict:
    """Check a fit and its held-out scores.

    Parameters
    ----------
    fit : Fit
        Identified model.
    scores : sequence of Score
        Scores on logs; those on training data do not validate.

    Returns
    -------
    Verdict
        Checks with numbers and sentences.
    """
    from dynident.identify import Fit  # noqa: PLC0415 - whoever has a fit has loaded it

    require(fit, Fit, "fit")
    held_out = [score for score in scores if not score.training]
    checks = []
    if held_out:
        worst = max(score.metrics.relative for score in held_out)
        checks.append(
            Check(
                "held_out_error",
                worst <= RELATIVE_LIMIT,
                worst,
                RELATIVE_LIMIT,
                f"relative error on held-out data is {100 * worst:.2f} % (limit {100 * RELATIVE_LIMIT:.0f} %)",
            )
        )
        gap = worst / fit.training_relative if fit.training_relative > 0 else 1.0
        checks.append(
            Check(
                "generalisation",
                gap <= GAP_LIMIT,
                gap,
                GAP_LIMIT,
                f"held-out error is {gap:.2f} times the training error (limit {GAP_LIMIT:g}; more means too little excitation)",
            )
        )
    checks.append(
        Check(
            "condition",
            fit.condition <= CONDITION_LIMIT,
            fit.condition,
            CONDITION_LIMIT,
            f"condition number of the scaled regression is {fit.condition:.3g} (limit {CONDITION_LIMIT:g})",
        )
    )
    table = fit.observability()
    hidden = [row.name for row in table if row.verdict == "not excited"]
    listed = ", ".join(hidden[:6]) + (" ..." if len(hidden) > 6 else "")
    checks.append(
        Check(
            "excitation",
            not hidden,
            float(len(hidden)),
            0.0,
            f"{len(hidden)} base parameters are not excited by the data: {listed}"
            if hidden
            else "all base parameters are excited",
        )
    )
    good = sum(row.verdict == "good" for row in table) / len(table)
    checks.append(
        Check(
            "precision",
            good >= SHARE_GOOD_LIMIT,
            good,
            SHARE_GOOD_LIMIT,
            f"{100 * good:.0f} % of the base parameters are known to 10 % or better "
            f"(at least {100 * SHARE_GOOD_LIMIT:.0f} % wanted)",
        )
    )
    negative = [row.name for row in table if row.verdict == "good" and row.value < 0.0]
    friction = [name for name in negative if (term := term_of(name)) and term.friction and term.passive]
    checks.append(
        Check(
            "passivity",
            not friction,
            float(len(friction)),
            0.0,
            f"friction feeds energy into the robot: {', '.join(friction)} are negative"
            if friction
            else "friction takes energy out",
        )
    )
    impossible = [c.name for c in fit.consistency() if not c.ok]
    checks.append(
        Check(
            "possible_bodies",
            not impossible,
            float(len(impossible)),
            0.0,
            f"standard parameters of {', '.join(impossible)} are physically impossible (use recovery='physical')"
            if impossible
            else "every body is physically possible",
        )
    )
    scored = tuple(
        {
            "log": s.name,
            "training": s.training,
            "coverage": s.coverage,
            "all_samples_relative": s.all_samples.relative,
            **s.metrics.to_dict(),
        }
        for s in scores
    )
    return Verdict(fit.mechanism.name, bool(held_out), tuple(checks), scored)
