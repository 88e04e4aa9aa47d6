"""A fit as JSON: every number exact, and checked when it is read (files are cut, edited, mixed up)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError, DynidentWarning, IdentificationError, warn
from dynident.identify.base import BaseParameters, base_parameters
from dynident.identify.posterior.posterior import Posterior
from dynident.identify.regression.factor import RowGroup
from dynident.identify.regression.regression import Regression
from dynident.identify.regression.rows import check_projection
from dynident.mechanism.force import Force
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.sidecar import own_parts, with_own_parts
from dynident.results import array_of, current_kind, stored
from dynident.signals.held_out import is_whole
from dynident.signals.preparation import prepare
from dynident.signals.quality import Finding, read_notes

if TYPE_CHECKING:
    from dynident.identify.fit import Fit

LARGEST = 1e100  # squares and products of such numbers stay finite
NUMBERS = ("start", "end", "cutoff", "bandwidth")
KIND = "dynident.identify.Fit"
SCHEMA = 3  # version of the file; 1, without a number, lacks the factors of the regression data; up to 2 notes are sentences
BELIEF: tuple[str, ...] = ("free", "unconstrained", "free_relative", "description_relative", "standard_std", "determined")
BELIEF += ("scales", "inflation", "training_std", "marginal_std", "calibration", "growing", "training_columns", "speeds")
BELIEF += ("before",)
#: Required fields, optional fields and optional fields of "belief"; arrays are checked where their sizes are known.
FIELDS: dict[str, Any] = {
    **dict.fromkeys(("covariance", "combinations", "projection", "standard_provenance"), Any),
    **dict.fromkeys(("robot", "estimator"), str),
    **dict.fromkeys(("joints", "leaders", "terms"), list[str]),
    **dict.fromkeys(("condition", "training_relative"), float | None),
    **dict.fromkeys(("sigma", "standard_parameters", "options"), dict[str, Any]),
    **dict.fromkeys(("base_parameters", "sources"), list[dict[str, Any]]),
    "fingerprint": Array,
    "rows": int,
    "notes": list[Any],
}
OPTIONAL: dict[str, Any] = {
    **dict.fromkeys(("mechanism", "belief"), dict[str, Any] | None),
    **dict.fromkeys(("friction", "forces", "factors"), list[dict[str, Any]]),
    "joint_terms": dict[str, list[str]],
    "loads": dict[str, str],
}
IN_BELIEF: dict[str, Any] = {
    **dict.fromkeys(("free_relative", "description_relative"), float | None),
    **dict.fromkeys(("scales", "speeds"), dict[str, float] | None),
    "determined": list[bool] | None,
}


def fit_content(fit: Fit) -> dict[str, Any]:
    """Return the content of the file of a fit."""
    own = any(not isinstance(force, Force) for force in fit.mechanism.forces)
    opaque = own or any(coupling.function is not None for coupling in fit.mechanism.couplings)
    return {
        "schema": SCHEMA,
        "robot": fit.mechanism.name,
        "mechanism": None if opaque else fit.mechanism,
        "joints": list(fit.mechanism.joint_names),
        **own_parts(fit.mechanism),
        "leaders": list(fit.base.leaders),
        "loads": _loads_of(fit.mechanism),
        "fingerprint": fit.base.fingerprint().tolist(),
        "estimator": fit.estimator,
        "rows": fit.rows,
        "condition": fit.condition,
        "training_relative": fit.training_relative,
        "base_parameters": [asdict(row) for row in fit.observability()],
        "covariance": fit.covariance,
        "combinations": fit.posterior.combinations,
        "sigma": dict(zip(fit.groups, fit.sigma.tolist(), strict=True)),
        "standard_parameters": fit.standard.to_dict(),
        "standard_provenance": fit.standard.provenance,
        "consistency": [asdict(c) for c in fit.consistency()],
        "sources": [dict(s) for s in fit.sources],
        "options": dict(fit.options),
        "notes": [asdict(note) for note in fit.notes],
        "projection": fit.projection,
        "factors": [
            {
                "joint": group.name,
                "columns": group.columns,
                "R": group.R,
                "count": group.count,
                "independence": group.independence,
            }
            for group in fit.data.groups
        ],
        "belief": {name: x.tolist() if isinstance(x := getattr(fit.posterior, name), np.ndarray) else x for name in BELIEF}
        | {"undetermined": [asdict(row) for row in fit.undetermined()]},
    }


def _other_gravity(robot: Mapping[str, Any] | None, mechanism: Mechanism) -> str:
    """Return a phrase with the gravity of the fit if it differs from the robot's."""
    if robot is None or "gravity" not in robot:
        return ""
    found = array_of(robot["gravity"], "gravity")
    if found.shape != (3,) or np.allclose(found, mechanism.gravity, atol=1e-9):
        return ""
    return f"; gravity of the fit is {','.join(f'{x:g}' for x in found)} (with_gravity)"


def stored_parts(data: Mapping[str, Any], mechanism: Mechanism | None) -> tuple[Regression, Posterior, tuple[Finding, ...]]:
    """Return the stored fields of a fit, for `Fit.from_dict`."""
    if not isinstance(data, Mapping) or ("kind" in data and current_kind(str(data["kind"])) != KIND):
        raise IdentificationError("this is not a fit written by dynident ('kind' names another class)")
    if data.get("schema", 1) not in range(1, SCHEMA + 1):
        raise IdentificationError(
            f"this fit was written by a newer dynident (schema {data['schema']}, known up to {SCHEMA}); update dynident"
        )
    try:
        given = {name: stored(data, name, hint, "fit") for name, hint in FIELDS.items()}
        given |= {name: stored(data, name, hint, "fit") for name, hint in OPTIONAL.items() if name in data}
        belief = given.get("belief") or {}
        known = {name: stored(belief, name, hint, "belief") for name, hint in IN_BELIEF.items() if name in belief}
        rows = [(stored(row, "value", float, "row"), stored(row, "verdict", str, "row")) for row in given["base_parameters"]]
        notes = read_notes(given["notes"])
    except DynidentError as error:
        raise IdentificationError(f"this is not a fit written by dynident: {error}") from error
    if mechanism is None:
        if given.get("mechanism") is None:
            why = (
                "contains Python functions, which no file can store"
                if "mechanism" in data
                else "is not stored by older versions"
            )
            raise IdentificationError(f"robot '{given['robot']}' {why}; give the mechanism, as in load(path, mechanism)")
        mechanism = Mechanism.from_dict(given["mechanism"])
    if "factors" not in given:
        warn(
            f"the fit of robot '{given['robot']}' was written by an older dynident: it predicts and scores, but its regression "
            "data are missing; identify again to refit it or to add data",
            DynidentWarning,
        )
    moving = with_own_parts(mechanism, given)
    moving = moving if moving.loops else moving.keep(given["joints"])
    moving, base = _stored_base(moving, given["leaders"], given.get("loads", {}))
    if list(base.leaders) != given["leaders"] or not base.fits(given["fingerprint"]):
        raise IdentificationError(
            f"the fit of robot '{given['robot']}' does not belong to robot '{mechanism.name}': "
            f"geometry, gravity or terms differ{_other_gravity(given.get('mechanism'), mechanism)}"
        )
    verdicts, b = [verdict for _, verdict in rows], base.rank
    groups, p = tuple(given["sigma"]), len(moving.parameters)
    missing = [name for name in moving.parameters.names if name not in given["standard_parameters"]]
    if missing:
        raise IdentificationError(f"this fit is incomplete: standard parameter '{missing[0]}' is missing; identify again")

    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("free", "unconstrained", "marginal_std", "before"), (b,)),
        **dict.fromkeys(("inflation", "training_std", "calibration", "growing"), (len(groups),)),
        "standard_std": (p,),
        "training_columns": (len(groups), b),
    }
    believed = {key: _stored_numbers(belief[key], shape, key) for key, shape in shapes.items() if belief.get(key) is not None}
    E = array_of(given["combinations"], "combinations")
    standard = [given["standard_parameters"][name] for name in moving.parameters.names]
    posterior = Posterior(
        values=_stored_numbers([value for value, _ in rows], (b,), "base_parameters"),
        covariance=_stored_numbers(given["covariance"], (b, b), "covariance"),
        standard=moving.parameters.replace(
            _stored_numbers(standard, (p,), "standard_parameters"), str(given["standard_provenance"])
        ),
        solved=np.array([v not in ("dropped", "not excited") for v in verdicts]),
        active=np.array([v != "dropped" for v in verdicts]),
        combinations=_stored_numbers(E, (*E.shape[:1], b), "combinations"),
        sigma=_stored_sigma(list(given["sigma"].values())),
        condition=float("inf") if given["condition"] is None else given["condition"],
        estimator=given["estimator"],
        training_relative=float("nan") if given["training_relative"] is None else given["training_relative"],
        free_relative=known.get("free_relative") or float("nan"),
        description_relative=known.get("description_relative") or float("nan"),
        determined=_stored_flags(known.get("determined"), p, "determined"),
        scales=known.get("scales") or {},
        speeds=known.get("speeds") or {},
        **believed,
    )
    regression = Regression(
        base,
        _stored_factors(given, groups, b),
        tuple(_stored_source(source) for source in given["sources"]),
        _stored_options(given["options"]),
        projection=check_projection(given["projection"]),
    )
    return regression, posterior, notes


def _stored_numbers(values: Any, shape: tuple[int, ...], what: str) -> Array:
    """Return stored numbers as an array after checking their shape and that none is missing."""
    array: Array = array_of(values, what)
    if array.shape != shape or not np.all(np.abs(array) < LARGEST):  # NaN is not smaller either
        raise IdentificationError(
            f"this fit is incomplete: '{what}' needs {' x '.join(map(str, shape))} finite numbers; identify again"
        )
    return array


def _stored_factors(data: Mapping[str, Any], joints: Sequence[str], rank: int) -> tuple[RowGroup, ...]:
    """Return the factors of a file; a file without factors holds only its number of equations."""
    if "factors" not in data:
        share = data["rows"] // max(len(joints), 1)
        counts = [data["rows"] - share * (len(joints) - 1), *[share] * (len(joints) - 1)][: len(joints)]
        columns = np.arange(rank)
        return tuple(
            RowGroup(joint, columns, np.zeros((0, rank + 1)), count) for joint, count in zip(joints, counts, strict=True)
        )
    if len(data["factors"]) != len(joints):
        raise IdentificationError(f"this fit is incomplete: it has {len(data['factors'])} factors; identify again")
    found = []
    for joint, table in zip(joints, data["factors"], strict=True):
        columns = array_of(stored(table, "columns", Any, "factor"), "factors", np.int64)
        R = array_of(stored(table, "R", Any, "factor"), "factors")
        count, independence = stored(table, "count", int, "factor"), stored(table, "independence", float, "factor")
        known = columns.ndim == 1 and np.all((columns >= 0) & (columns < rank)) and R.shape[1:] == (columns.size + 1,)
        if table.get("joint") != joint or not known or not np.all(np.abs(R) < LARGEST):
            raise IdentificationError(f"this fit is incomplete: the factor of joint '{joint}' is damaged; identify again")
        found.append(RowGroup(joint, columns, R, count, independence))
    if data["rows"] != sum(group.count for group in found):
        raise IdentificationError("this fit is incomplete: 'rows' is not the number of its equations; identify again")
    return tuple(found)


def _stored_sigma(values: list[Any]) -> Array:
    """Return the deviations of the efforts; NaN for all where none were fitted."""
    if values and np.isnan(array_of(values, "sigma")).all():
        return np.full(len(values), np.nan)
    return _stored_numbers(values, (len(values),), "sigma")


def _stored_flags(values: list[bool] | None, size: int, what: str) -> NDArray[np.bool_] | None:
    """Return stored yes-or-no values after checking that none is missing; None where none were stored."""
    if values is None:
        return None
    if len(values) != size:
        raise IdentificationError(f"this fit is incomplete: '{what}' needs {size} values, true or false; identify again")
    return np.array(values, dtype=bool)


def _stored_source(record: dict[str, Any]) -> dict[str, Any]:
    """Return the stored record of a log after checking that it can be compared with other logs."""
    for key in ("sha256", *NUMBERS):
        value = record.get(key)
        number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST
        if not isinstance(value, str) if key == "sha256" else not number:
            raise IdentificationError(f"this fit is incomplete: '{key}' of one of its sources is {value!r}; identify again")
    for joint, sums in stored({"resting": {}} | record, "resting", dict[str, Any], "source").items():
        _stored_numbers(sums, (5,), f"resting of {joint}")
    stored({"slowest": []} | record, "slowest", Array, "source")
    if "motion" in record and not is_whole(record["motion"]):
        raise IdentificationError("this fit is incomplete: the fingerprint of one of its sources is damaged; identify again")
    for key in ("cutoff", "bandwidth"):
        if record[key] <= 0.0:
            raise IdentificationError(f"this fit is incomplete: '{key}' of one of its sources is {record[key]}; identify again")
    return record


def _stored_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the stored options of the preparation after checking that all of them exist."""
    known = inspect.signature(prepare).parameters
    unknown = [name for name in options if name not in known]
    if unknown:
        raise IdentificationError(f"the fit has unknown options: {', '.join(unknown)}; update dynident or identify again")
    return options


def _loads_of(mechanism: Mechanism) -> dict[str, str]:
    """Return the bodies with separate parameters, such as payloads, and the links that carry them."""
    apart = {body.name for body in mechanism.bodies if body.separate}
    return {joint.child: joint.parent for joint in mechanism.joints if joint.child in apart}


def _stored_base(mechanism: Mechanism, leaders: list[str], loads: dict[str, str]) -> tuple[Mechanism, BaseParameters]:
    """Return the robot with the separate loads of a fit, and the base parameters with the leaders of the fit."""
    known = _loads_of(mechanism)
    for name, carrier in loads.items():
        if name not in known:
            mechanism = mechanism.with_payload(1.0, body=carrier, name=name, separate=True)
    base = base_parameters(mechanism, order=leaders)
    if loads and base.rank < len(leaders):  # runs with and without load separated them
        base = base_parameters(mechanism, order=leaders, removable=tuple(loads))
    return mechanism, base
