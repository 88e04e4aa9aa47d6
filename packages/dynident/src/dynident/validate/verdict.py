"""The verdict on a model: checks with values, limits and sentences.

A held-out log may differ from the model by a gain, a unit or a sign:

    measured_j = k_j predicted_j + e_j,      k_j = <measured_j, predicted_j> / <predicted_j, predicted_j>

The factor explains a residual if at most a tenth of its square sum remains, at most half of that with a constant instead, and
no more than the noise of the training. With hundreds of rows for one number, noise does not pass; errors of the model, lack
of excitation and payloads are not proportional to the whole effort. If efforts hardly vary, a factor cannot be distinguished
from a constant, such as friction of a motion in one direction.

A nonlinear friction law feeds energy into the motion if f(v) sign(v) < -3 sigma_f at some speed, with
sigma_f^2 = g^T cov g,  g = df / d parameters of the law.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.files import to_json
from dynident.friction.law import Friction, State, dissipation
from dynident.friction.terms import term_of
from dynident.pages import number, percent
from dynident.results import Result, Tabular
from dynident.signals.quality import Finding

if TYPE_CHECKING:
    from dynident.identify.fit import Fit
    from dynident.identify.score import Metrics, Score

# Limits that a usable rigid-body model meets; they are stated in every verdict.
REPEATED = 0.5  # repeated share of the motion above which a log shows repeatability only
RELATIVE_LIMIT = 0.15
GAP_LIMIT = 2.0
EXACT = 0.002  # relative error below which ratios of errors are not meaningful
JOINT_LIMIT = 0.5  # of a joint's own effort, if the error exceeds its noise ...
NOISE_LIMIT = 2.0  # ... that is, above this number of standard deviations of its residuals
COVERAGE_LIMIT = 0.85
FREE_LIMIT = 1.3  # error over that of least squares alone
OPEN_LIMIT = 0.10  # of the effort: largest contribution of parameter uncertainty
CONDITION_LIMIT = 1e3
SHARE_GOOD_LIMIT = 0.25
SHARES = ("held_out_error", "new_motion", "coverage", "leverage", "precision")  # stated in per cent
SIGN_LIMIT = 3.0  # standard deviations below zero of a wrong sign
# Relative error for a warning, that of usual torque measurements; ratio to the noise with 95 % of the squared error besides
MISFIT, MANY_TIMES = 0.02, 4.5
COMPUTED = 1e-4  # relative error of the description: no sensor of efforts is that accurate
MEAN = 0.8  # mean of |v| over its root mean square, as for normal or sinusoidal motions
FEEDS = 5.0  # deviations of a significantly negative friction power


# Remedy of a failed check, by its name.
NEXT = {
    "held_out_error": "check units, signs and gains of the efforts, and that log and description match; for large residuals "
    "near standstill use --friction auto",
    "gains": "compare gain, unit and sign of the efforts with those of the training log; friction may also have changed with "
    "temperature or wear",
    "generalisation": "record a richer motion (dynident excite designs one) and fit both logs together",
    "joints": "check sign, gain and unit of the effort of these joints; if it is small, record more load or speed",
    "coverage": "try another friction law (--friction auto) or fit more logs",
    "against_description": "do not use this fit: check that log and description belong to the same robot, tool and payload",
    "against_least_squares": "check the description's masses and the load; compare with --estimator wls",
    "new_motion": "record another motion, such as one that dynident excite designs with another seed, and validate on it",
    "leverage": "add a log that moves like the held-out one to the training data",
    "suspicions": "correct the data as the finding says and fit again, or accept it by its code (accept=, --accept)",
    "efforts": "record the efforts of these joints; otherwise their parameters rest on the description",
    "condition": "record a motion that dynident excite designs, or keep essential parameters only (--essential 10)",
    "excitation": "move the joints that excite these parameters (dynident excite designs such a motion)",
    "precision": "record a longer or richer motion; more repetitions lower the standard deviations",
    "passivity": "align efforts and positions in time, check the signs of the efforts, or add the missing term (--terms)",
    "possible_bodies": "use --recovery physical, or state known values (--mass, --total-mass, --centre)",
}


@dataclass(frozen=True)
class Check:
    """One condition of a verdict."""

    name: str  #: Short name
    ok: bool  #: True when the limit is met
    value: float  #: Number
    limit: float  #: Its limit
    sentence: str  #: The finding in words
    derived: ClassVar[tuple[str, ...]] = ("next_step",)

    @property
    def next_step(self) -> str:
        """Remedy of a failed check; empty if it passed."""
        return "" if self.ok else NEXT.get(self.name, "")

    @property
    def shown(self) -> tuple[str, str]:
        """Value and limit as in the sentence: shares in per cent, empty if nothing is counted."""
        if self.name in SHARES:
            return percent(self.value), percent(self.limit)
        if self.value == 0.0 and self.limit == 0.0:
            return "none", "none"
        return number(self.value, 3), number(self.limit, 3)


@dataclass(frozen=True, eq=False)
class Verdict(Tabular, Result):
    """All checks of a fit."""

    robot: str  #: Name of the robot
    validated: bool  #: True when at least one held-out log with a new motion was scored
    checks: tuple[Check, ...]  #: Checks
    scores: tuple[dict[str, Any], ...]  #: Metrics of every scored log
    findings: tuple[Finding, ...] = ()  #: Faults of the training logs and warnings about them, the likeliest cause first
    accepted: tuple[str, ...] = ()  #: Codes of findings accepted by the user
    #: Relative noise of the training efforts in the band of the fit, if the logs show it
    noise_floor: float | None = None
    derived: ClassVar[tuple[str, ...]] = ("ok",)

    @property
    def ok(self) -> bool:
        """True when the model was validated and every check passed."""
        return self.validated and all(check.ok for check in self.checks)

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        if not self.validated:
            return "REPEATABILITY ONLY" if any(not entry["training"] for entry in self.scores) else "NOT VALIDATED"
        return "validated and all checks passed" if self.ok else "some checks failed"

    def summary(self) -> str:
        """Return the verdict as text, one line per check."""
        lines = [f"verdict: {self.headline}"]
        for check in self.checks:
            lines.append(f"  [{'ok' if check.ok else '!!'}] {check.sentence}")
            lines += [f"       next: {check.next_step}"] if check.next_step else []
        return "\n".join([*lines, *self.remarks()])

    def remarks(self) -> list[str]:
        """Return warnings, which do not fail a check, and accepted findings, one line each with its code."""
        warned = [f for f in self.findings if f.severity == "warning" and f.kind not in self.accepted]
        waived = [f for f in self.findings if f.kind in self.accepted]
        return [
            *(f"  warning ({f.kind}): {f.sentence}" for f in warned),
            *(f"  accepted ({f.kind}): {f.sentence}" for f in waived),
        ]

    def _columns(self) -> dict[str, Any]:
        """One row per check."""
        names = ("name", "ok", "value", "limit", "sentence", "next_step")
        return {name.replace("_", " "): [getattr(check, name) for check in self.checks] for name in names}

    def _view(self) -> dict[str, Any]:
        values, limits = zip(*(check.shown for check in self.checks), strict=True) if self.checks else ((), ())
        return {**self._columns(), "value": values, "limit": limits}

    def _head(self) -> str:
        return self.summary().partition("\n")[0]


def judge(fit: Fit, scores: Sequence[Score] = (), accept: Sequence[str] = ()) -> Verdict:
    """Check a fit and its held-out scores; the training logs are inspected if they are in memory.

    Parameters
    ----------
    fit : Fit
        Identified model.
    scores : sequence of Score
        Scores on logs; those on training data do not validate.
    accept : sequence of str
        Codes of findings that do not fail the verdict, such as "gain"; the verdict records them.

    Returns
    -------
    Verdict
        Checks with numbers and sentences.
    """
    from dynident.validate.diagnosis.inspection import FAULTS, findings_of, with_findings  # noqa: PLC0415 - rarely needed

    if unknown := sorted(set(accept) - set(FAULTS)):
        raise DynidentError(f"accept names {', '.join(unknown)}; codes of findings are {', '.join(sorted(FAULTS))}")
    held_out = [score for score in scores if not score.training]
    fit = with_findings(fit) if fit.data.logs else fit
    findings = findings_of(fit)
    floor = next((note.value for note in reversed(fit.notes) if note.kind == "noise_floor"), None)
    if any(finding.severity == "error" for finding in findings):  # a fault of the data contradicts friction terms, too
        findings = tuple(finding for finding in findings if finding.kind != "negative_terms")
    elif floor is not None:
        findings = (*findings, *_misfit(held_out, floor))
    findings = (*findings, *_computed(fit, scores))
    doubts = [f"{f.sentence} [{f.kind}]" for f in findings if f.severity == "error" and f.kind not in accept]
    checks = [*_predictions(fit, held_out), *_new_motion(held_out), *_data(fit, bool(held_out), doubts), *_model(fit)]
    scored = tuple(
        {
            "log": s.name,
            "training": s.training,
            "repeated": s.repeated,
            "coverage": s.coverage,
            "description_relative": s.description,
            "description_relative_per_joint": _described(s),
            "free_relative": s.free,
            "leverage": None if s.leverage is None else s.leverage.tolist(),
            "open_share": s.open_share,
            "all_samples_relative": s.all_samples.relative,
            **_numbers(s.metrics),
            **({} if s.motors is None else {"motors": _numbers(s.motors.metrics), "preload": s.preload}),
        }
        for s in scores
    )
    validated = any(s.repeated < REPEATED for s in held_out)
    return Verdict(fit.mechanism.name, validated, tuple(checks), scored, findings, tuple(accept), floor)


def _misfit(held_out: Sequence[Score], floor: float) -> tuple[Finding, ...]:
    """Return the warning about an error of which at most a twentieth of the square is noise, independent of its cause."""
    worst = max(held_out, key=lambda score: score.metrics.relative, default=None)
    if worst is None or (error := worst.metrics.relative) < max(MISFIT, MANY_TIMES * floor):
        return ()
    square = np.sum((worst.measured - worst.predicted) ** 2, axis=0)
    said = (
        f"{percent(1.0 - (floor / error) ** 2)} of the squared held-out error is not noise (error {percent(error)}, noise "
        f"{percent(floor)}), most of it in {worst.joints[square.argmax()]}; to improve the model try --friction auto, then "
        "check gain and filter of the efforts, geometry, flexibility, changing loads"
    )
    return (Finding("misfit", "effort", "warning", said, error / floor),)


def _computed(fit: Fit, scores: Sequence[Score]) -> tuple[Finding, ...]:
    """Return the warning about efforts that equal those of the untouched description."""
    error = min([fit.posterior.description_relative, *(score.description for score in scores)])
    said = f"the efforts equal the described torques to {100 * error:.1g} %, unlike measured ones; log measured efforts"
    return (Finding("computed", "effort", "warning", said, error),) if error < COMPUTED else ()


def _described(score: Score) -> list[float | None] | None:
    """Return the relative error of the untouched description per joint; None where efforts are zero."""
    if score.described is None:
        return None
    size, error = (np.linalg.norm(x, axis=0) for x in (score.measured, score.measured - score.described))
    return [float(e / s) if s > 0.0 and np.isfinite(e) else None for e, s in zip(error, size, strict=True)]


def _numbers(metrics: Metrics) -> dict[str, Any]:
    """Return metrics as stored in a verdict, without values that are not finite."""
    kept = {key: value for key, value in metrics.to_dict().items() if key != "kind" and not key.startswith("worst_")}
    return json.loads(to_json(kept))  # type: ignore[no-any-return]


def _check(name: str, value: float, limit: float, sentence: str, least: bool = False) -> Check:
    """Return a check that passes up to its limit, or with `least` from its limit on."""
    return Check(name, bool(value >= limit if least else value <= limit), float(value), limit, sentence)


def _predictions(fit: Fit, held_out: Sequence[Score]) -> list[Check]:
    """Return the checks of held-out logs: total and per-joint error, coverage, comparison with description and free fit."""
    if not held_out:
        return []
    worst = max(held_out, key=lambda score: score.metrics.relative)
    error = worst.metrics.relative
    checks = [
        _check(
            "held_out_error",
            error,
            RELATIVE_LIMIT,
            f"relative error on held-out data is {100 * error:.2f} % (limit {100 * RELATIVE_LIMIT:.0f} %)",
        )
    ]
    noise = dict(zip(fit.groups, fit.sigma, strict=True))
    blind = _blind(fit)
    trained = max(fit.training_relative, EXACT)
    bearable = 0.0 if blind else min(RELATIVE_LIMIT, GAP_LIMIT * trained)  # factors are sought for failed errors only
    factors = [
        gain_factors(score, np.array([noise[joint] for joint in score.joints])) if score.metrics.relative > bearable else {}
        for score in held_out
    ]
    checks += _gains(held_out, factors, blind)
    if blind:
        return checks  # a fit to positions alone has neither noise of efforts nor a training error
    # The next checks concern excitation and noise; a wrong gain must not fail them again.
    judged = [rescaled(score, own) for score, own in zip(held_out, factors, strict=True)]
    # Held-out data have the training error and the error of uncertain parameters, which has a separate limit.
    # Noise and errors of friction do not shrink with the efforts, other errors do: the training error is that of either.
    like = [max(trained, float(np.mean(fit.sigma**2) / max(float(np.mean(s.measured**2)), 1e-300)) ** 0.5) for s in judged]
    gap = max(s.metrics.relative / np.hypot(own, np.nan_to_num(s.open_share)) for s, own in zip(judged, like, strict=True))
    least = f" (at least {100 * EXACT:g} %)" if trained > fit.training_relative else ""
    less = " without that factor" if any(factors) else ""
    checks.append(
        _check(
            "generalisation",
            gap,
            GAP_LIMIT,
            f"held-out error{less} is {gap:.2f} times what training error{least} and parameter uncertainty predict "
            f"(limit {GAP_LIMIT:g})",
        )
    )
    checks.append(_joints(judged, noise))
    coverage = min(score.coverage for score in judged)
    checks.append(
        _check(
            "coverage",
            coverage,
            COVERAGE_LIMIT,
            f"{np.floor(1000 * coverage) / 10:.1f} % of held-out measurements{less} within two standard deviations "
            f"(limit {100 * COVERAGE_LIMIT:.0f} %, expected 95 %)",
            least=True,
        )
    )
    described = [score for score in held_out if score.description > 0.0]
    if described:
        # A true description is better than any fit: parameter errors due to noise are no contradiction (two deviations).
        free_of_noise = [max(s.metrics.relative**2 - 4.0 * np.nan_to_num(s.open_share) ** 2, 0.0) ** 0.5 for s in described]
        ratio, score = max(
            ((error / max(s.description, EXACT), s) for error, s in zip(free_of_noise, described, strict=True)),
            key=lambda pair: pair[0],
        )
        checks.append(
            _check(
                "against_description",
                ratio,
                1.0,
                f"held-out error {100 * score.metrics.relative:.2f} %, description {100 * score.description:.2f} %",
            )
        )
    compared = [score for score in held_out if score.free > 0.0]
    if compared and fit.posterior.scales:
        # An error below the training error is no contradiction, even if that of least squares is smaller.
        ratio, score = max(
            ((s.metrics.relative / max(s.free, fit.training_relative), s) for s in compared), key=lambda pair: pair[0]
        )
        checks.append(
            _check(
                "against_least_squares",
                ratio,
                FREE_LIMIT,
                f"held-out error {100 * score.metrics.relative:.2f} %, unconstrained least squares {100 * score.free:.2f} % "
                f"(limit {FREE_LIMIT:g} times)",
            )
        )
    known = [(s, s.leverage) for s in held_out if s.leverage is not None and np.any(np.isfinite(s.leverage))]
    if known:
        leverage, where = max(
            ((float(np.nanmax(h)), s.joints[int(np.nanargmax(h))]) for s, h in known), key=lambda pair: pair[0]
        )
        left_open = max(s.open_share for s, _ in known)
        checks.append(
            _check(
                "leverage",
                left_open,
                OPEN_LIMIT,
                f"parameter uncertainty is {100 * left_open:.2g} % of the held-out effort (limit "
                f"{100 * OPEN_LIMIT:.0f} %), up to {leverage:.1f} times that of the training ({where})",
            )
        )
    return checks


def _new_motion(held_out: Sequence[Score]) -> list[Check]:
    """Return the check that a held-out log shows more than repeatability; none if all motions are new."""
    if all(score.repeated == 0.0 for score in held_out):
        return []
    newest = min(held_out, key=lambda score: score.repeated)
    again = [score for score in held_out if score.repeated > 0.0]
    repeated = [f"{100 * score.repeated:.0f} % of the motion of '{score.name}' repeats {score.repeats}" for score in again]
    proves = "" if newest.repeated < REPEATED else "; the errors show repeatability only, an error of the model repeats too"
    return [_check("new_motion", newest.repeated, REPEATED, f"{'; '.join(repeated)}{proves}")]


def _joints(scores: Sequence[Score], noise: Mapping[str, float]) -> Check:
    """Return the check of joints with errors that are large relative to their own effort and exceed noise."""
    bad: dict[str, float] = {}
    noisy: dict[str, float] = {}
    for score in scores:
        for j, (joint, share, rmse) in enumerate(
            zip(score.joints, score.metrics.relative_per_joint, score.metrics.rmse, strict=True)
        ):
            if share > JOINT_LIMIT and not _rests_within_band(score, j):
                found = bad if rmse > NOISE_LIMIT * noise[joint] else noisy
                found[joint] = max(float(share), found.get(joint, 0.0))

    def listed(joints: Mapping[str, float]) -> str:
        return ", ".join(f"{joint} {100 * share:.3g} %" for joint, share in joints.items())

    if bad:
        sentence = f"error of single joints against their own effort: {listed(bad)} (limit {100 * JOINT_LIMIT:.0f} %)"
    elif noisy:
        sentence = f"every joint is predicted but for noise, which is most of the effort of: {listed(noisy)}"
    else:
        sentence = "every joint is predicted"
    return _check("joints", float(len(bad)), 0.0, sentence)


def _rests_within_band(score: Score, j: int) -> bool:
    """Return whether most of a joint's error is at rest, within its band, and the joint is predicted in motion."""
    if score.resting is None or not score.resting[:, j].any():
        return False
    rests, error = score.resting[:, j], np.abs(score.measured - score.predicted)[:, j]
    if np.sum(error[rests] ** 2) < 0.5 * np.sum(error**2):
        return False
    moving = np.linalg.norm(error[~rests]) <= JOINT_LIMIT * np.linalg.norm(score.measured[~rests, j])
    return bool(moving and np.mean(error[rests] <= 2.0 * score.std[rests, j]) >= COVERAGE_LIMIT)


def _gains(held_out: Sequence[Score], factors: Sequence[dict[str, float]], blind: bool) -> list[Check]:
    """Return the check of factors on efforts that explain the errors of held-out logs; empty without factors."""
    if not any(factors):
        return []
    cause = "a gain that differs from " + ("the simulated loop" if blind else "the training, or a unit, or a sign")
    sentences = [
        f"{gain_sentence(own, score.joints)}: {cause} explains more than nine tenths of the squared error on '{score.name}'"
        for score, own in zip(held_out, factors, strict=True)
        if own
    ]
    largest = max(abs(k - 1.0) for own in factors for k in own.values())
    return [_check("gains", largest, LEAST, "; ".join(sentences))]


def _blind(fit: Fit) -> bool:
    """Return whether only positions were fitted."""
    return any(source.get("effort_kind") == "none" for source in fit.sources)


def _efforts(fit: Fit, held_out: bool) -> Check:
    """Return the check that all joints have fitted efforts; without any, only a held-out log can show the scale."""
    if _blind(fit):
        tested = "the held-out efforts test that scale" if held_out else "no log with efforts tests that scale"
        sentence = (
            "no efforts were fitted: masses, inertias and friction have the scale of the gains of drives and controller, and "
            f"{tested}"
        )
        return Check("efforts", held_out, float(len(fit.equations.names)), 0.0, sentence)
    unused = [name for name in fit.equations.names if name not in fit.groups]
    return _check(
        "efforts",
        float(len(unused)),
        0.0,
        f"no usable efforts of {', '.join(unused)}: what only they show rests on the description"
        if unused
        else "all joints have usable efforts",
    )


def _data(fit: Fit, held_out: bool, doubts: Sequence[str]) -> list[Check]:
    """Return the checks of the training data: suspicions, joints without efforts, condition, excitation, precision."""
    checks = [
        _check("suspicions", float(len(doubts)), 0.0, "; ".join(doubts) if doubts else "no fault of the data is suspected")
    ]
    checks.append(_efforts(fit, held_out))
    if fit.posterior.scales:  # the prior determines the rest: judged by the remaining uncertainty
        return checks
    checks.append(
        _check(
            "condition",
            fit.condition,
            CONDITION_LIMIT,
            f"condition number of the scaled regression is {fit.condition:.3g} (limit {CONDITION_LIMIT:g})",
        )
    )
    table = fit.observability()
    hidden = [row.name for row in table if row.verdict == "not excited"]
    listed = ", ".join(hidden[:6]) + (" ..." if len(hidden) > 6 else "")
    checks.append(
        _check(
            "excitation",
            float(len(hidden)),
            0.0,
            f"{len(hidden)} base parameters are not excited: {listed}" if hidden else "all base parameters are excited",
        )
    )
    good = sum(row.verdict == "good" for row in table) / len(table)
    checks.append(
        _check(
            "precision",
            good,
            SHARE_GOOD_LIMIT,
            f"{100 * good:.0f} % of the base parameters are known to 10 % or better "
            f"(at least {100 * SHARE_GOOD_LIMIT:.0f} % wanted)",
            least=True,
        )
    )
    return checks


def _model(fit: Fit) -> list[Check]:
    """Return the checks of the parameters: signs by their deviations, physically consistent bodies."""
    if fit.standard_std is not None:
        found = list(zip(fit.standard.names, fit.standard.values, fit.standard_std, strict=True))
    else:
        found = list(zip(fit.base.names, fit.values, np.where(fit.solved, fit.std, np.inf), strict=True))
    negative = [
        f"{name} {value:.3g} +- {std:.2g}"
        for name, value, std in found
        if (term := term_of(name)) and term.passive and value < -SIGN_LIMIT * std and value < 0.0
    ]
    negative += feeding_laws(fit, SIGN_LIMIT)
    checks = [
        _check(
            "passivity",
            float(len(negative)),
            0.0,
            f"friction or rotor terms are significantly negative: {', '.join(negative)} (a delay, a wrong sign, a "
            "missing term?)"
            if negative
            else "friction dissipates energy and rotor inertias are positive",
        )
    ]
    impossible = [c.name for c in fit.consistency() if not c.ok]
    checks.append(
        _check(
            "possible_bodies",
            float(len(impossible)),
            0.0,
            f"standard parameters of {', '.join(impossible)} are physically impossible"
            if impossible
            else "every body is physically consistent",
        )
    )
    return checks


LEFT = 0.1  # largest remaining share of the square sum of an explained residual
BESIDE = 0.5  # largest share of the square sum that remains with a constant
NOISE = 2.0  # largest remainder in standard deviations of the training residuals
LEAST = 0.05  # smallest distance of a factor from one
ALIKE = 0.02  # spread of factors that count as one
ENOUGH = 30  # rows


def gain_factors(score: Score, noise: Array) -> dict[str, float]:
    """Return the factors on measured efforts that explain the residuals, by joint; empty if they do not."""
    found = {}
    for joint, m, p, s in zip(score.joints, score.measured.T, score.predicted.T, noise, strict=True):
        size, before = float(p @ p), float(np.sum((m - p) ** 2))
        if m.size < ENOUGH or size == 0.0 or before <= m.size * (NOISE * np.nan_to_num(s)) ** 2:
            continue
        k = float(m @ p) / size
        after = float(np.sum((m - k * p) ** 2))
        noisy = np.isfinite(s) and after > m.size * (NOISE * k * s) ** 2
        little = after <= min(LEFT * before, BESIDE * m.size * float(np.var(m - p)))
        if abs(k - 1.0) >= LEAST and k != 0.0 and little and not noisy:
            found[joint] = k
    return found


def gain_sentence(factors: dict[str, float], joints: tuple[str, ...]) -> str:
    """Return the factors as a sentence, with one number if all joints share it."""
    values = np.array(list(factors.values()))
    if len(factors) == len(joints) > 1 and np.ptp(values) <= ALIKE * abs(values.mean()):
        return f"the measured efforts of all joints are {values.mean():.3g} times those of the model"
    listed = ", ".join(f"{joint} {k:.3g}" for joint, k in factors.items())
    return f"measured efforts are a constant times those of the model: {listed}"


def rescaled(score: Score, factors: dict[str, float]) -> Score:
    """Return the score with measured efforts divided by the factors."""
    from dynident.identify.score import evaluate  # noqa: PLC0415 - loaded already when there is a score

    if not factors:
        return score
    measured = score.measured / np.array([factors.get(joint, 1.0) for joint in score.joints])
    return replace(
        score,
        measured=measured,
        metrics=evaluate(measured, score.predicted, score.joints, score.t),
        coverage=float(np.mean(np.abs(measured - score.predicted) <= 2.0 * score.std)),
    )


SPEED = 3.0  # of the RMS speed in training: largest speed at which a law is checked
ELSE = 1.0  # rad/s or m/s, if a fit lacks its speeds
ROOM_TEMPERATURE = 20.0  # degree Celsius, at which temperature-dependent laws are checked


def feeding_joints(fit: Fit) -> tuple[Finding, ...]:
    """Return the finding about joints whose friction significantly adds energy.

    The mean power of friction fv v + fc sign(v) at the speeds of the training data is linear in both; if it is significantly
    negative, effort or position is inverted, for any load of the joint.
    """
    found = []
    names, covariance = list(fit.base.names), fit.covariance
    values = fit.values if fit.posterior.unconstrained is None else fit.posterior.unconstrained
    terms = {name: name.split("_", 1) for name in names if name.startswith(("fv_", "fc_"))}
    for joint in dict.fromkeys(owner for _, owner in terms.values()):
        own = {symbol: names.index(name) for name, (symbol, owner) in terms.items() if owner == joint}
        speed = fit.posterior.speeds.get(joint, 0.0)
        if speed <= 0.0 and len(own) < 2:
            continue
        # At an unknown speed, such as that of a motor that drives two joints, both terms must feed energy.
        weight = np.array([[{"fv": speed, "fc": MEAN}[symbol] for symbol in own]]) if speed > 0.0 else np.eye(2)
        at = list(own.values())
        power, variance = weight @ values[at], np.diag(weight @ covariance[np.ix_(at, at)] @ weight.T)
        deviation = np.sqrt(np.maximum(variance, 0.0))
        if np.all(power < -FEEDS * deviation) and np.all(deviation > 0.0):
            found.append(joint)
    if not found:
        return ()
    said = (
        f"friction of {', '.join(found)} feeds energy significantly: efforts or positions of "
        f"{'these joints look' if len(found) > 1 else 'this joint look'} inverted (gain=-1), or one is late"
    )
    return (Finding("sign", ",".join(f"effort:{joint}" for joint in found), "error", said),)


def feeding_laws(fit: Fit, doubt: float) -> list[str]:
    """Return the joints whose identified law feeds energy into the motion by more than `doubt` deviations, in words."""
    found = []
    for joint, friction in fit.friction.items():
        speed = SPEED * fit.posterior.speeds.get(joint, 0.0) or ELSE
        held = {"q": 0.0, "tau": 0.0, "T": ROOM_TEMPERATURE}
        at = {name: value for name, value in held.items() if name in friction.law.looks_at}
        check = dissipation(friction, speed, **at)
        if not check.dissipative and check.lowest < -doubt * _deviation(fit, joint, friction, check.at, at):
            found.append(f"the law of {joint} pushes with {-check.lowest:.3g} at {check.at:.3g}")
    return found


def _deviation(fit: Fit, joint: str, friction: Friction, v: float, held: dict[str, float]) -> float:
    """Return the standard deviation of a law's friction at a velocity."""
    state = State(np.array([v]), *(None if name not in held else np.array([held[name]]) for name in ("q", "tau", "T")))
    slope = friction(state, "parameters")[0]
    places = {name: i for i, name in enumerate(fit.base.leaders)}
    own = [places.get(f"{label}_{joint}") for label in friction.law.parameters]
    g = np.zeros(fit.base.rank)
    for value, place in zip(slope, own, strict=True):
        if place is not None:
            g[place] = value
    covariance = np.where(np.isfinite(fit.covariance), fit.covariance, 0.0)
    return float(np.sqrt(max(float(g @ covariance @ g), 0.0)))
