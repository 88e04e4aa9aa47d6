"""A closed-loop proof as text: errors and efforts of every controller, with published numbers for comparison."""

from __future__ import annotations

import numpy as np

from dynident_lab.testbench.tracking_result import ALONE, CATALOGUE, Published, TrackingProof, rms

WHERE = {
    "joint": "largest (rms) tracking error",
    "encoder": "the same as encoders on the motors see it",
}


def table(proof: TrackingProof, published: Published | None = None, efforts: Published | None = None) -> str:
    """Return errors and efforts as text."""
    lines = [f"robot '{proof.robot}': {proof.how}", *(f"note: {note}" for note in proof.notes)]
    places = [place for place in proof.places if place != "tool"]
    for place in places:
        # Published errors are encoder errors.
        lines += [*([""] if place != places[0] else []), *_errors(proof, place, published if place == places[-1] else None)]
    for name in proof.controllers:
        if name not in (ALONE, CATALOGUE):
            lines += ["", *_efforts(proof, name, efforts)]
    limited = [f"'{t.controller}' on '{t.motion}' {100 * t.saturated:.2g} %" for t in proof.trials if t.saturated > 0.0]
    return "\n".join([*lines, *(["at a limit of the drives: " + ", ".join(limited)] if limited else [])])


def _errors(proof: TrackingProof, place: str, published: Published | None) -> list[str]:
    """Return the lines of the errors at one place; with a column of the tool after those of the joints."""
    milli = ", ".join(dict.fromkeys(f"m{unit}" for unit in proof.units))
    tool = place == "joint" and "tool" in proof.places
    columns = [place, "tool"] if tool else [place]
    lines = [_row(f"{WHERE[place]} [{milli}]", [*proof.actuators, *(["tool [mm]"] if tool else [])])]
    for i, motion in enumerate(proof.motions):
        lines.append(motion)
        for name in proof.controllers:
            errors = np.hstack([proof.trial(name, motion).errors(column) for column in columns])
            pairs = zip(1e3 * np.abs(errors).max(axis=0), 1e3 * rms(errors), strict=True)
            lines.append(_row(f"  {name}", [f"{a:.3g} ({b:.2g})" for a, b in pairs]))
        for name in proof.controllers[1:]:
            lower = np.hstack([proof.reduction(name, where=column)[i] for column in columns])
            lines.append(_row(f"  lower with {name} [%]", [f"{100 * x:.1f}" for x in lower]))
        lines += _printed(published, i, "g")
    return lines


def _efforts(proof: TrackingProof, controller: str, published: Published | None) -> list[str]:
    """Return the lines of the effort shares with one model."""
    lines = [_row(f"rms effort [{proof.effort_unit}], {controller}", list(proof.actuators))]
    for i, motion in enumerate(proof.motions):
        model, feedback = proof.trial(controller, motion).shares
        ratio = proof.effort_ratios(controller)[i]
        rows = (("model's share", model), ("feedback's share", feedback), ("ratio", ratio))
        lines += [motion, *(_row(f"  {name}", [f"{x:.3g}" for x in values]) for name, values in rows)]
        lines += _printed(published, i, ".3g")
    return lines


def _printed(numbers: Published | None, motion: int, form: str) -> list[str]:
    found = [(name, rows[motion]) for name, rows in (numbers or {}).items() if motion < len(rows)]
    return [_row(f"  published: {name}", [format(x, form) for x in row]) for name, row in found]


def _row(name: str, cells: list[str]) -> str:
    fitting = [cell if len(cell) < 19 else f"…{cell[-17:]}" for cell in cells]  # the end of a long name distinguishes joints
    return f"{name:<46}" + "".join(f"{cell:>19}" for cell in fitting)
