"""Faults reported by the verdict: ``python -m benchmarks.faults [DATA] [--half tune|final|real|loops|loops-final]``.

Every fault of `benchmarks.fault_kinds` is planted into healthy robots, which are then identified and judged with default
settings. Robots of the parts "final", "real" and "loops-final" are for the final count only: nothing is tuned to them.

A fault without a new finding is harmless if the model is good on clean logs. It is undetectable if another physically possible
robot makes the faulty efforts as well as one makes the clean efforts, within the noise (`benchmarks.possible`), unless the
signals show it without a robot. It is invalid if the verdict of the healthy log fails too, so that nothing wrong is validated.
Otherwise it is silent.
"""

from __future__ import annotations

import argparse
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks.fault_kinds import HEALTHY, KINDS, Kind, Subject, recorded
from benchmarks.fault_recipes import RECIPES
from benchmarks.possible import excess

Array = NDArray[np.float64]
NOTHING: Array = np.zeros(0)
ABSOLUTE = 0.003  # of a joint's effort: smaller differences do not count
HARMLESS = 1.5  # times the error of the clean model on clean held-out data
#: Phrases of messages for faults that the data cannot distinguish from the one named first.
ALIKE = {"clock": "A clock whose seconds are", "gravity": "or whether efforts contain only", "zero": "or the zero of"}
#: Findings that doubt the model without naming a fault.
DOUBTS = ("misfit", "description", "negative_terms")
#: Causes that the signals show without a robot: nothing hides them.
SIGNALS = frozenset(("nan", "gap", "stuck", "clipped", "quantised", "outliers", "lost_rows", "held", "check efforts"))
#: True findings of recorded logs: all joints of Gen3 make two steps at once, and its efforts jump for three samples then.
TRUE = {"Gen3": ("lost_rows", "outliers")}


@dataclass(frozen=True)
class Outcome:
    """Result of a case: codes of the findings in their order, and the relative errors of joints."""

    codes: tuple[str, ...]
    sentences: tuple[str, ...]
    ok: bool  # no check fails
    own: Array = field(default_factory=lambda: NOTHING)  # held-out error of every joint on the faulty log
    noise: Array = field(default_factory=lambda: NOTHING)  # noise of the held-out residuals
    true: Array = field(default_factory=lambda: NOTHING)  # held-out error on the clean log
    excess: Array = field(default_factory=lambda: NOTHING)  # errors of the nearest possible robot over those of the clean log
    limit: Array = field(default_factory=lambda: NOTHING)  # of these ratios, within the noise

    @property
    def undetectable(self) -> bool:
        """Whether another possible robot makes the faulty efforts."""
        return bool(self.excess.size and np.all(self.excess <= self.limit))

    def told(self, healthy: Outcome, causes: tuple[str, ...]) -> list[tuple[str, str]]:
        """Return the findings that the healthy log does not have, and failed checks if there are none."""
        known = (healthy.codes, healthy.sentences)
        found = zip(self.codes, self.sentences, strict=True)
        return [(code, text) for code, text in found if text not in known[1] and (code not in known[0] or code in causes)]


def run(subject: Subject, fault: Kind, joint: int, healthy: Outcome | None = None) -> Outcome:
    """Identify a spoiled robot and return the findings of the verdict.

    Failed checks follow the findings. If nothing is new compared with a `healthy` one, also the errors of the model on the
    clean logs.
    """

    def spoil(healthy: Subject) -> Subject:
        return fault.apply(healthy, joint, np.random.default_rng(zlib.crc32(subject.name.encode())))

    try:
        spoiled = spoil(subject)
        done = di.identify(spoiled.robot, spoiled.train, spoiled.test)
    except di.DynidentError as error:
        return Outcome((f"refused: {error}",), (str(error),), False)
    found = [(finding.kind, finding.sentence) for finding in done.verdict.findings if finding.severity != "info"]
    failed = [
        (f"check {check.name}", check.sentence)
        for check in done.verdict.checks
        if not check.ok and check.name != "new_motion"  # the logs of a robot may repeat one motion
    ]
    codes, sentences = zip(*found, *failed, strict=True) if found or failed else ((), ())
    outcome = Outcome(codes, sentences, not failed, _errors(done), _noise(done))
    if healthy is not None and outcome.told(healthy, fault.causes):
        return outcome
    if healthy is not None and not SIGNALS & set(fault.causes):
        noise = np.max(healthy.noise) if subject.robot.loops else healthy.noise  # equations of loops mix the channels
        ratios, limits = excess(subject, spoil, noise)
        outcome = replace(outcome, excess=ratios, limit=limits)
    try:
        scores = [done.fit.score(log, True) for log in subject.test]
    except di.DynidentError:
        return outcome
    return replace(outcome, true=np.max([_relative(score) for score in scores], axis=0))


def _relative(score: di.Score) -> Array:
    """Return the error of every joint over the standard deviation of its efforts, which an offset does not change."""
    return np.asarray(np.sqrt(np.mean((score.measured - score.predicted) ** 2, axis=0)) / np.std(score.measured, axis=0))


def _errors(done: di.report.Identification) -> Array:
    """Return the held-out errors of the joints; none for a robot that is not physically possible."""
    if not all(check.ok for check in done.verdict.checks if check.name in ("passivity", "possible_bodies")):
        return NOTHING
    return np.asarray(np.max([_relative(s) for s in done.scores if not s.training], axis=0))


def _noise(done: di.report.Identification) -> Array:
    """Return the noise of the held-out efforts: floor of the verdict or, if larger, second differences of residuals."""
    each = [
        np.mean(np.diff(s.measured - s.predicted, 2, axis=0) ** 2, axis=0) / 6.0 / np.var(s.measured, axis=0)
        for s in done.scores
        if not s.training
    ]
    return np.asarray(np.maximum(np.sqrt(np.min(each, axis=0)), done.verdict.noise_floor or 0.0))


def judged(outcome: Outcome, healthy: Outcome, causes: tuple[str, ...], named: tuple[str, ...]) -> str:
    """Return the rating of an outcome, one word; the sentence must have one of the names `named`."""
    if said := outcome.told(healthy, causes):
        code, sentence = said[0]
        if code.startswith("refused"):
            return "refused"
        right = not named or any(name in sentence for name in named)
        if code in causes and right:
            return "right"
        if any(phrase in sentence for cause in causes if (phrase := ALIKE.get(cause))) and right:
            return "equal"
        return "failed" if code.startswith("check") else "warned"
    if outcome.true.shape == healthy.own.shape and np.all(outcome.true <= HARMLESS * healthy.own + ABSOLUTE):
        return "harmless"
    if outcome.undetectable:
        return "undetectable"
    return "SILENT" if outcome.ok or healthy.ok else "invalid"  # the healthy log validates nothing either


def names_of(subject: Subject, joint: int) -> tuple[str, ...]:
    """Return the names of a channel: of the joint, or of a motor and the joints that it drives."""
    channel = subject.train[0].joints[joint]
    return (channel, *(name for motor in subject.robot.actuators if motor.name == channel for name in motor.coupling))


def main() -> None:
    """Run the cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, help="folder of the shared logs")
    parser.add_argument("--half", choices=("tune", "final", "real", "loops", "loops-final"), default="tune")
    parser.add_argument("--only", action="append", help="fault, or the beginning of its name; several times")
    parser.add_argument("--robot", action="append", help="robot, or the beginning of its name; several times")
    parser.add_argument("--healthy", action="store_true", help="the healthy logs alone")
    parser.add_argument("--show", action="store_true", help="print every case when it is done")
    parser.add_argument("--recipes", action="store_true", help="the faults of an external tester instead")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kinds = RECIPES if options.recipes else KINDS
    chosen = [name for name in kinds if not options.only or any(name.startswith(own) for own in options.only)]
    table: dict[str, dict[str, str]] = {name: {} for name in chosen}
    total, accused, refuted, start = Counter[str](), list[str](), list[str](), time.process_time()
    subjects = [
        subject
        for subject in recorded(options.data, options.half)
        if not options.robot or any(subject.name.startswith(own) for own in options.robot)
    ]
    healthy = {subject.name: run(subject, Kind("", HEALTHY["as recorded"], ()), 0) for subject in subjects}
    for subject in subjects if not options.only else ():
        for name, apply in HEALTHY.items():
            outcome = run(subject, Kind("", apply, ()), 0) if name != "as recorded" else healthy[subject.name]
            total["healthy"] += 1
            word = "healthy"
            if outcome.codes:  # a failed check or a doubt is no false alarm: no fault is named
                known = (*DOUBTS, *TRUE.get(subject.name, ()))
                doubts = [code for code in outcome.codes if code.startswith("check") or code in known]
                word = "doubted" if len(doubts) == len(outcome.codes) else "ACCUSED"
                listed = accused if word == "ACCUSED" else refuted
                listed.append(f"{subject.name}, {name}: {outcome.codes} {outcome.sentences[:1]}")
            if options.show:
                print(f"{word:12s} {name} | {subject.name} | {outcome.codes}", flush=True)
    for name in () if options.healthy else chosen:
        fault = kinds[name]
        for subject in (subject for subject in subjects if fault.suits(subject)):
            joint = zlib.crc32(f"{subject.name} {name}".encode()) % len(subject.train[0].joints)
            outcome = run(subject, fault, joint, healthy[subject.name])
            named = names_of(subject, joint) if fault.joint else ()
            word = judged(outcome, healthy[subject.name], fault.causes, named)
            table[name][subject.name] = word
            total[word] += 1
            if options.show:
                first = next(iter(outcome.told(healthy[subject.name], fault.causes)), None)
                said = f"{first[0]}: {first[1][:150]}" if first else ""
                clean = healthy[subject.name]
                errors = f"own {_text(outcome.own)}, true {_text(outcome.true)}, clean {_text(clean.own)}"
                errors += f", nearest robot {_text(outcome.excess)}, limit {_text(outcome.limit)}" if not first else ""
                print(f"{word:12s} {name} | {subject.name}, joint {joint + 1} | {errors} | {said}", flush=True)
    _print(table, [subject.name for subject in subjects])
    reported = sum(total[word] for word in ("right", "equal", "warned", "failed", "refused", "SILENT"))
    print(f"\n{sum(total.values()) - total['healthy']} cases of {len(chosen)} faults, {time.process_time() - start:.0f} CPU s")
    for word in ("right", "equal", "warned", "failed", "refused", "SILENT", "harmless", "undetectable", "invalid"):
        print(f"  {word:14s}{total[word]:4d}")
    if reported:
        share = 100 * (total["right"] + total["equal"] + total["refused"]) / reported
        print(f"  right cause first: {share:.0f} % of what can be detected and does harm")
    print(f"healthy logs accused: {len(accused)} of {total['healthy']}")
    for text in accused:
        print(f"  {text}")
    print(f"healthy logs whose model is doubted: {len(refuted)}")
    for text in refuted:
        print(f"  {text}")


def _text(errors: Array) -> str:
    return " ".join(f"{100 * error:.1f}" for error in errors)


def _print(table: dict[str, dict[str, str]], robots: Sequence[str]) -> None:
    width = max((len(name) for name in table), default=0)
    for i, name in enumerate(robots):
        print(f"{chr(ord('A') + i)} = {name}")
    print(" " * width, *(f"{chr(ord('A') + i):12s}" for i in range(len(robots))))
    for name, row in table.items():
        print(f"{name:{width}s}", *(f"{row.get(robot, '-'):12s}" for robot in robots))


if __name__ == "__main__":
    main()
