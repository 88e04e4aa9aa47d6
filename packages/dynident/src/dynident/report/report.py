"""`write_report`: a fit, its scores and its verdict as one self-contained HTML page; `Identification`: the three combined."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynident import __version__
from dynident.errors import DescriptionError, DynidentWarning, MissingExtraError, warn
from dynident.files import write_atomic
from dynident.identify.fit import Fit
from dynident.identify.score import Score
from dynident.mechanism.describe import effort_units
from dynident.mechanism.files import is_mjcf, is_patched
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters
from dynident.outputs import output_set
from dynident.pages import escape, page
from dynident.report import embed, model, sections
from dynident.results import Result, Tabular
from dynident.validate.verdict import Verdict, judge


def write_report(
    path: str | os.PathLike[str],
    fit: Fit,
    scores: Sequence[Score] = (),
    verdict: Verdict | None = None,
    truth: Mapping[str, float] | Parameters | None = None,
    command: str = "",
) -> Path:
    """Write one HTML page with the information needed to judge an identified model.

    The page is one self-contained file: style, data and a small script are inside, and its content-security policy permits
    no other script. Curves can be zoomed and switched off, the robot moves along the log, tables sort. Figures for papers
    are drawn by ``fit.plot()`` and ``score.plot()``.

    Parameters
    ----------
    path : path-like
        File to write, as in "report.html".
    fit : Fit
        Identified model.
    scores : sequence of Score
        Scores on held-out logs, and on training data, shown as such; without held-out ones the page says NOT VALIDATED.
    verdict : Verdict, optional
        Checks; ``judge(fit, scores)`` when omitted.
    truth : mapping or Parameters, optional
        True standard parameters of a simulated robot, to compare with.
    command : str
        Command that produced the fit, for the head of the page.

    Examples
    --------
    >>> write_report("report.html", fit, [fit.score(other_log)])  # doctest: +SKIP
    """
    verdict = verdict or judge(fit, scores)
    shown = sorted(scores, key=lambda score: score.training)
    drawing = embed.scene(fit.mechanism, fit.standard)
    units = effort_units(fit.mechanism)
    embedded = [*shown, *(score.motors for score in shown if score.motors is not None)]
    most = embed.samples_per_signal(embedded)
    logs = [embed.log_data(score, [units.get(name, "N m or N") for name in score.joints], most) for score in embedded]
    drawn = []
    for i, score in enumerate(shown):
        logs[i]["motion"] = embed.motion(fit, score) if drawing is not None else None
        drawn += [i] if logs[i]["motion"] is not None else []
    weak = model.weak_directions(fit)
    data = {
        "logs": logs,
        "scene": drawing,
        "parameters": model.parameter_data(fit, truth),
        "truth": None if truth is None else model.truth_data(fit, truth),
        "singular": None if weak is None else embed.clean(weak[0]),
        "covariance": model.covariance_data(fit),
    }
    parts = [
        ("verdict", "Verdict", sections.checks(verdict)),
        *([("robot", "Robot", sections.robot(fit, shown, drawn))] if drawn else []),
        ("predictions", "Predictions", sections.predictions(fit, shown)),
        ("residuals", "Residuals", sections.residuals(fit, shown)),
        ("parameters", "Parameters", model.parameters(fit)),
        *([("truth", "Truth", model.against_truth(fit, truth))] if truth is not None else []),
        ("observability", "Observability", model.observability(fit)),
        *([("laws", "Laws and forces", model.laws_and_forces(fit))] if fit.mechanism.own_columns else []),
        ("conditioning", "Conditioning", model.conditioning(fit)),
        ("bodies", "Consistency", model.bodies(fit)),
        ("quality", "Data quality", sections.quality(shown)),
        ("preparation", "Preparation", sections.preparation(fit, shown)),
        ("provenance", "Provenance", sections.provenance(fit, shown)),
    ]
    title = f"{fit.mechanism.name} - dynamic identification report"
    footer = escape(f"Written by dynident {__version__}. This page is self-contained: it loads nothing.")
    return write_atomic(path, page(title, sections.headline(fit, verdict, command), parts, footer, embed.script(), data))


File = str | os.PathLike[str]


KNOWN_WELL = 0.1  # relative standard deviation
SERIOUS = ("suspicions", "gains", "against_description", "held_out_error")  # failed checks that usually cause the others
MOST_FAILED = 3  # failed checks of a summary


@dataclass(frozen=True, eq=False)
class Identification(Tabular, Result):
    """Result of the identification of a robot."""

    fit: Fit  #: The identified model
    scores: tuple[Score, ...]  #: On the held-out logs, then on the training logs
    verdict: Verdict  #: Whether it can be trusted
    held_out: str = ""  #: Description of the held-out data

    def __repr__(self) -> str:
        errors = [f"'{score.name}' {100 * score.metrics.relative:.2f} %" for score in self.scores if not score.training]
        held_out = f"held out: {', '.join(errors)}" if errors else "NOT VALIDATED"
        return f"Identification({self.fit.mechanism.name}: {held_out}; fit, scores, verdict; report(path) writes the page)"

    @property
    def robot(self) -> Mechanism:
        """The robot with its identified parameters."""
        return self.fit.model

    def summary(self) -> str:
        """Return errors, verdict and failed checks in a few lines; `fit.summary` has the parameters."""
        fit, verdict = self.fit, self.verdict
        rank = {name: i for i, name in enumerate(SERIOUS)}
        failed = sorted((check for check in verdict.checks if not check.ok), key=lambda check: rank.get(check.name, len(rank)))
        head = {True: "VALIDATED", False: "SOME CHECKS FAILED"}[verdict.ok] if verdict.validated else verdict.headline
        passed = len(verdict.checks) - len(failed)
        count = f"{passed} checks passed" if not failed else f"{len(failed)} of {len(verdict.checks)} checks failed"
        lines = [self._data(), "", *self._numbers(), "", f"{head} ({count})"]
        for check in failed[:MOST_FAILED]:
            lines += [f"  {check.sentence}", *([f"    -> {check.next_step}"] if check.next_step else [])]
        if len(failed) > MOST_FAILED:
            lines.append(f"  more failed checks: {', '.join(check.name for check in failed[MOST_FAILED:])}")
        lines += [*verdict.remarks(), *(note.sentence for note in fit.notes if note.kind == "refit")]
        return "\n".join(lines)

    def _data(self) -> str:
        """Return robot, logs and the held-out part."""
        sources = [source for source in self.fit.sources if "name" in source]
        names = list(dict.fromkeys(str(source["name"]) for source in sources))
        seconds = sum(float(source["end"]) - float(source["start"]) for source in sources)
        logs = names[0] if len(names) == 1 else f"{len(names)} logs"
        kinds = ", ".join(dict.fromkeys(str(source["effort_kind"]).replace("_", " ") for source in sources))
        joints = len(self.fit.groups)
        used = f" \u00b7 {logs} ({seconds:.1f} s, {joints} {'joint' if joints == 1 else 'joints'}, {kinds})" if sources else ""
        return f"{self.fit.mechanism.name}{used} \u00b7 held out: {self.held_out or 'nothing'}"

    def _numbers(self) -> list[str]:
        """Return errors, coverage, the worst joint and the number of well-known parameters."""
        fit, rows = self.fit, list[str]()
        held_out = [score for score in self.scores if not score.training]
        shown = max(held_out or self.scores, key=lambda score: score.metrics.relative, default=None)
        if shown is not None:
            described = f"{100 * shown.description:.3g} %  ->  " if np.isfinite(shown.description) else ""
            meaning = "description -> identified; " if described else ""
            free = f"     ({meaning}least squares {100 * shown.free:.3g} %)" if np.isfinite(shown.free) else ""
            name = "held-out error" if held_out else "training error"
            rows.append(f"  {name}   {described}{100 * shown.metrics.relative:.3g} %{free}")
            if (floor := self.verdict.noise_floor) is not None:
                times = shown.metrics.relative / floor
                rows.append(
                    f"  noise floor      {100 * floor:.3g} % of the training efforts; the error is {times:.1f} times that"
                )
            if np.isfinite(shown.coverage):
                rows.append(f"  coverage         {100 * shown.coverage:.0f} % of samples within two standard deviations")
            own = shown if shown.motors is None else shown.motors  # with loops, motors are measured
            share = own.metrics.relative_per_joint
            if np.isfinite(share).any():
                worst = int(np.nanargmax(share))
                rows.append(f"  worst joint      {own.joints[worst]}, {100 * share[worst]:.3g} % of its own effort")
        known = int(np.sum(fit.relative_std <= KNOWN_WELL))
        dropped = f", {len(fit.removals)} dropped" if fit.removals else ""
        return [*rows, f"  parameters       {fit.base.rank} base parameters, {known} known to 10 % or better{dropped}"]

    def plot(self) -> Any:
        """Draw measured and predicted efforts of the first log, preferably a held-out one."""
        return self.scores[0].plot()

    def report(self, path: File = "report.html", command: str = "") -> Path:
        """Write the HTML report; `command` is shown at its head."""
        return write_report(path, self.fit, self.scores, self.verdict, command=command)

    def write(
        self,
        folder: File,
        source: File | None = None,
        search: Sequence[File] = (),
        arguments: Mapping[str, object] | None = None,
        sidecar: File | None = None,
        command: str = "",
    ) -> list[Path]:
        """Write fit.json, verdict.json, report.html and the identified robot as one set; return the files.

        The robot is a copy of `source`, its URDF or MJCF file (`search` and `arguments` as in `read_robot`); a sidecar, which
        keeps the comments of `sidecar`, holds the content that the format cannot express. Other robots are written as
        identified.json. A failed part costs a warning: a format that cannot hold the parameters, a report without its extra.
        """
        folder = Path(folder)
        with output_set(folder, ("fit.json", "identified.*", "report.html", "verdict.json")) as staged:
            self.fit.save(staged / "fit.json")
            self.verdict.save(staged / "verdict.json")
            patched = source is not None and is_patched(source)
            name = (
                f"identified{'.json' if source is None or not patched else Path(source).suffix if is_mjcf(source) else '.urdf'}"
            )
            try:
                if patched and source is not None:
                    self.fit.write_description(source, staged / name, search, arguments, sidecar)
                else:
                    self.robot.save(staged / name)
            except DescriptionError as error:
                stale = "; the report in the folder belongs to an earlier fit" if (folder / name).exists() else ""
                warn(f"{name} is not written: {error}{stale}", DynidentWarning)
            try:
                self.report(staged / "report.html", command)
            except MissingExtraError as error:
                warn(f"no report is written: {error}", DynidentWarning)
            return [folder / path.name for path in sorted(staged.iterdir())]

    def _columns(self) -> Any:
        return self.fit._columns()

    def _head(self) -> str:
        return repr(self)
