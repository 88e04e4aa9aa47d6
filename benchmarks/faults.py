"""Faults reported by the verdict: ``python -m benchmarks.faults [DATA] [--half tune|final|real|loops]``.

Every fault of `benchmarks.fault_kinds` is planted into healthy robots, which are then identified and judged with default
settings. Robots of the parts "final", "real" and "loops" are for the final count only: nothing is tuned to them.
"""

from __future__ import annotations

import argparse
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks.fault_kinds import HEALTHY, KINDS, Apply, Subject, recorded
from benchmarks.fault_recipes import RECIPES
from dynident.identify.base import base_parameters
from dynident.identify.regression.logs import dead_efforts, prepared_for
from dynident.identify.regression.rows import Rows
from dynident.signals.matching import match
from dynident.validate.diagnosis.left_out import left_out_errors
from dynident.validate.diagnosis.sample import Sample

Array = NDArray[np.float64]
NOTHING: Array = np.zeros(0)
ABSOLUTE = 0.003  # of a joint's effort: smaller differences do not count
HARMLESS = 1.5  # times the error of the clean model on clean held-out data
#: Phrases of messages for faults that the data cannot distinguish from the one named first.
ALIKE = {"clock": "A clock whose seconds are", "gravity": "or whether efforts contain only", "zero": "or the zero of"}
EXPLAINED = 1.15  # times the clean error on its own held-out data: another physical robot explains the faulty log equally well


@dataclass(frozen=True)
class Outcome:
    """Result of a case: codes of the findings in their order, and the errors of joints."""

    codes: tuple[str, ...]
    sentences: tuple[str, ...]
    ok: bool
    own: Array = field(default_factory=lambda: NOTHING)  # held-out error of every joint on the faulty log
    true: Array = field(default_factory=lambda: NOTHING)  # held-out error on the clean log
    flexible: Array = field(default_factory=lambda: NOTHING)  # error of left-out stretches with arbitrary friction


def run(subject: Subject, apply: Apply, joint: int, clean: Sequence[di.Log] = ()) -> Outcome:
    """Identify a spoiled robot and return the findings of the verdict."""
    seed = zlib.crc32(subject.name.encode())
    try:
        spoiled = apply(subject, joint, np.random.default_rng(seed))
        done = di.identify(spoiled.robot, spoiled.train, spoiled.test)
    except di.DynidentError as error:
        return Outcome((f"refused: {error}",), (str(error),), False)
    found = [finding for finding in done.verdict.findings if finding.severity != "info"]
    own = np.max([score.metrics.relative_per_joint for score in done.scores if not score.training], axis=0)
    try:  # a reported fault needs no test of harm
        scores = [] if found else [done.fit.score(log, True) for log in clean]
        true = np.max([score.metrics.relative_per_joint for score in scores], axis=0) if scores else NOTHING
    except di.DynidentError:
        true = NOTHING
    failed = [
        (f"check {check.name}", check.sentence)
        for check in done.verdict.checks
        if not check.ok and check.name != "new_motion"  # the logs of a robot may repeat one motion
    ]
    said = [(finding.kind, finding.sentence) for finding in found] or failed
    codes, sentences = tuple(code for code, _ in said), tuple(text for _, text in said)
    return Outcome(codes, sentences, done.verdict.ok, own, true, NOTHING if said or subject.robot.loops else _flexible(spoiled))


def _flexible(subject: Subject) -> Array:
    """Return the relative errors of left-out stretches with bodies of any size and any friction of speed and load."""
    log, robot = subject.train[0], subject.robot
    matched = match(robot, log)
    rows, base = Rows(matched.mechanism, "gls"), base_parameters(matched.mechanism)
    prepared = prepared_for(rows, matched.log, {})
    sample = Sample.of(rows, base.columns, prepared.motion, prepared.effort, None, dead_efforts(prepared))
    errors = left_out_errors(sample.equations(sample.motion), sample.effort, sample.motion)
    return np.asarray(np.sqrt(errors.sum(axis=0) / np.sum(sample.effort**2, axis=0)))


def judged(outcome: Outcome, healthy: Outcome, causes: tuple[str, ...], named: tuple[str, ...]) -> str:
    """Return the rating of an outcome, one word."""
    said = [
        (code, sentence)
        for code, sentence in zip(outcome.codes, outcome.sentences, strict=True)
        if code not in healthy.codes or code in causes  # findings of the healthy log are not about the fault
    ]
    if said:
        code, sentence = said[0]
        if code.startswith("refused"):
            return "refused"
        if code in causes and all(name in sentence for name in named):
            return "right"
        if any(phrase in sentence for cause in causes if (phrase := ALIKE.get(cause))) and all(x in sentence for x in named):
            return "equal"
        return "failed" if code.startswith("check") else "warned"
    same = outcome.own.shape == healthy.own.shape
    if outcome.true.shape == healthy.own.shape and np.all(outcome.true <= HARMLESS * healthy.own + ABSOLUTE):
        return "harmless"
    alike = outcome.flexible.shape == healthy.flexible.shape
    explained = (same and np.all(outcome.own <= EXPLAINED * healthy.own + ABSOLUTE)) or (
        alike and np.all(outcome.flexible <= EXPLAINED * healthy.flexible + ABSOLUTE)
    )
    return "undetectable" if not causes or explained else "SILENT"


def main() -> None:
    """Run the cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, help="folder of the shared logs")
    parser.add_argument("--half", choices=("tune", "final", "real", "loops"), default="tune")
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
    healthy = {subject.name: run(subject, HEALTHY["as recorded"], 0) for subject in subjects}
    for subject in subjects if not options.only else ():
        for name, apply in HEALTHY.items():
            outcome = run(subject, apply, 0) if name != "as recorded" else healthy[subject.name]
            total["healthy"] += 1
            word = "healthy"
            if outcome.codes:  # a failed check is not a false alarm: no fault is named
                word = "failed" if outcome.codes[0].startswith("check") else "ACCUSED"
                listed = accused if word == "ACCUSED" else refuted
                listed.append(f"{subject.name}, {name}: {outcome.codes} {outcome.sentences[:1]}")
            if options.show:
                print(f"{word:12s} {name} | {subject.name} | {outcome.codes}", flush=True)
    for name in () if options.healthy else chosen:
        fault = kinds[name]
        for subject in (subject for subject in subjects if fault.suits(subject)):
            joint = zlib.crc32(f"{subject.name} {name}".encode()) % len(subject.train[0].joints)
            outcome = run(subject, fault.apply, joint, subject.test)
            named = (subject.train[0].joints[joint],) if fault.joint else ()
            word = judged(outcome, healthy[subject.name], fault.causes, named)
            table[name][subject.name] = word
            total[word] += 1
            if options.show:
                said = f"{outcome.codes[0]}: {outcome.sentences[0][:150]}" if outcome.codes else ""
                errors = f"own {_text(outcome.own)}, true {_text(outcome.true)}, clean {_text(healthy[subject.name].own)}"
                print(f"{word:12s} {name} | {subject.name}, joint {joint + 1} | {errors} | {said}", flush=True)
    _print(table, [subject.name for subject in subjects])
    reported = sum(total[word] for word in ("right", "equal", "warned", "failed", "refused", "SILENT"))
    print(f"\n{sum(total.values()) - total['healthy']} cases of {len(chosen)} faults, {time.process_time() - start:.0f} CPU s")
    for word in ("right", "equal", "warned", "failed", "refused", "SILENT", "harmless", "undetectable"):
        print(f"  {word:14s}{total[word]:4d}")
    if reported:
        share = 100 * (total["right"] + total["equal"] + total["refused"]) / reported
        print(f"  right cause first: {share:.0f} % of what can be detected and does harm")
    print(f"healthy logs accused: {len(accused)} of {total['healthy']}")
    for text in accused:
        print(f"  {text}")
    print(f"healthy logs whose model fails a check: {len(refuted)}")
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
