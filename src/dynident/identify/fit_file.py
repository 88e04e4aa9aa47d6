"""A fit as JSON: every number exact, and checked when it comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError, IdentificationError
from dynident.identify.fit import Fit
from dynident.identify.rows import check_projection
from dynident.identify.stored import loads_of, stored_base, stored_flags, stored_numbers, stored_options, stored_source
from dynident.mechanism import Force, Mechanism, own_parts, with_own_parts
from dynident.results import array_of

Array = NDArray[np.float64]


def fit_content(fit: Fit) -> dict[str, Any]:
    """Return what the file of a fit holds."""
    own = any(not isinstance(force, Force) for force in fit.mechanism.forces)
    opaque = own or any(coupling.function is not None for coupling in fit.mechanism.couplings)
    return {
        "robot": fit.mechanism.name,
        "mechanism": None if opaque else fit.mechanism,
        "joints": list(fit.mechanism.joint_names),
        **own_parts(fit.mechanism),
        "leaders": list(fit.base.leaders),
        "loads": loads_of(fit.mechanism),
        "fingerprint": fit.base.fingerprint().tolist(),
        "estimator": fit.estimator,
        "rows": fit.rows,
        "condition": fit.condition,
        "training_relative": fit.training_relative,
        "base_parameters": [asdict(row) for row in fit.observability()],
        "covariance": fit.covariance,
        "combinations": fit.combinations,
        "sigma": dict(zip(fit.groups, fit.sigma.tolist(), strict=True)),
        "standard_parameters": fit.standard.to_dict(),
        "standard_provenance": fit.standard.provenance,
        "consistency": [asdict(c) for c in fit.consistency()],
        "sources": [dict(s) for s in fit.sources],
        "options": dict(fit.options),
        "notes": list(fit.notes),
        "projection": fit.projection if isinstance(fit.projection, str) else list(fit.projection),
        "belief": {
            "free": None if fit.free is None else fit.free.tolist(),
            "free_relative": fit.free_relative,
            "description_relative": fit.description_relative,
            "standard_std": None if fit.standard_std is None else fit.standard_std.tolist(),
            "determined": None if fit.determined is None else fit.determined.tolist(),
            "undetermined": [asdict(row) for row in fit.undetermined()],
            "scales": dict(fit.scales),
            "inflation": None if fit.inflation is None else fit.inflation.tolist(),
            "training_std": None if fit.training_std is None else fit.training_std.tolist(),
            "training_parts": None if fit.training_parts is None else fit.training_parts.tolist(),
            "speeds": dict(fit.speeds),
        },
    }


def fit_from_dict(data: Mapping[str, Any], mechanism: Mechanism | None) -> Fit:
    """Return the fit of what a file holds; `Fit.from_dict` is the public way."""
    try:
        if not isinstance(data, Mapping) or data.get("kind", "identify.Fit") != "identify.Fit":
            raise IdentificationError("this is not a fit written by dynident ('kind' is not identify.Fit)")
        if mechanism is None:
            if data["mechanism"] is None:
                raise IdentificationError(f"robot '{data['robot']}' has functions that no file holds; give the mechanism")
            mechanism = Mechanism.from_dict(data["mechanism"])
        rows, moving = data["base_parameters"], with_own_parts(mechanism, data)
        moving = moving if moving.loops else moving.keep(data["joints"])
        moving, base = stored_base(moving, data["leaders"], data.get("loads", {}))
        if list(base.leaders) != data["leaders"] or not base.fits(data["fingerprint"]):
            raise IdentificationError(
                f"the fit of robot '{data['robot']}' does not belong to robot '{mechanism.name}': "
                "geometry, gravity or terms differ"
            )
        verdicts, b, belief = [row["verdict"] for row in rows], base.rank, dict(data.get("belief") or {})
        groups, p = tuple(data["sigma"]), len(moving.parameters)

        def numbers(key: str, size: int) -> Array | None:
            return None if belief.get(key) is None else stored_numbers(belief[key], (size,), key)

        E = array_of(data["combinations"], "combinations")
        return Fit(
            base=base,
            values=stored_numbers([row["value"] for row in rows], (b,), "base_parameters"),
            covariance=stored_numbers(data["covariance"], (b, b), "covariance"),
            solved=np.array([v not in ("dropped", "not excited") for v in verdicts]),
            active=np.array([v != "dropped" for v in verdicts]),
            combinations=stored_numbers(E, (len(E), b), "combinations"),
            groups=groups,
            sigma=stored_numbers(list(data["sigma"].values()), (len(data["sigma"]),), "sigma"),
            rows=int(data["rows"]),
            condition=float("inf") if data["condition"] is None else float(data["condition"]),
            standard=moving.parameters.replace(
                stored_numbers(
                    [data["standard_parameters"][name] for name in moving.parameters.names],
                    (len(moving.parameters),),
                    "standard_parameters",
                ),
                str(data["standard_provenance"]),
            ),
            estimator=str(data["estimator"]),
            sources=tuple(stored_source(source) for source in data["sources"]),
            options=stored_options(data["options"]),
            notes=tuple(str(note) for note in data["notes"]),
            training_relative=float("nan") if data["training_relative"] is None else float(data["training_relative"]),
            projection=check_projection(data["projection"]),
            free=numbers("free", b),
            free_relative=float(belief.get("free_relative") or np.nan),
            description_relative=float(belief.get("description_relative") or np.nan),
            standard_std=numbers("standard_std", p),
            determined=stored_flags(belief.get("determined"), p, "determined"),
            scales={str(name): float(value) for name, value in dict(belief.get("scales") or {}).items()},
            inflation=numbers("inflation", len(groups)),
            training_std=numbers("training_std", len(groups)),
            training_parts=numbers("training_parts", len(groups)),
            speeds={str(name): float(value) for name, value in dict(belief.get("speeds") or {}).items()},
        )
    except DynidentError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise IdentificationError(f"this is not a fit written by dynident: {type(error).__name__} {error}") from error
