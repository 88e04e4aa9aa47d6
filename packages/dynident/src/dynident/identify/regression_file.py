"""Evidence as an .npz file: factors, stretches of time, and what they belong to."""

from __future__ import annotations

import io
import json
import os
from typing import Any
from zipfile import is_zipfile

import numpy as np

from dynident.errors import DynidentError, IdentificationError
from dynident.files import read_regular
from dynident.identify.base import BaseParameters
from dynident.identify.factor import RowGroup
from dynident.identify.regression import Regression
from dynident.identify.regrouping import base_parameters
from dynident.identify.rows import check_projection
from dynident.mechanism.mechanism import Mechanism

MOST = 1 << 30  # bytes that the arrays of a file may fill; a robot of a hundred joints needs a tenth


def packed(regression: Regression) -> bytes:
    """Return evidence as the bytes of its file; `Regression.to_bytes` is the public way."""
    arrays: dict[str, Any] = {"columns": regression.base.columns, "fingerprint": regression.base.fingerprint()}
    for i, group in enumerate(regression.groups):
        arrays[f"R{i}"], arrays[f"columns{i}"], arrays[f"products{i}"] = group.R, group.columns, group.products
    about = {
        "format": "dynident-regression-2",
        "parameters": list(regression.mechanism.parameters.names),
        "groups": [
            [group.name, group.count, group.independence, list(group.counts), list(group.phases)] for group in regression.groups
        ],
        "sources": [dict(source) for source in regression.sources],
        "options": dict(regression.options),
        "notes": list(regression.notes),
        "projection": regression.projection if isinstance(regression.projection, str) else list(regression.projection),
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8), **arrays)
    return buffer.getvalue()


def load_regression(
    path: str | os.PathLike[str] | bytes, mechanism: Mechanism, known: BaseParameters | None = None
) -> Regression:
    """Read what `packed` made, or its file; `Regression.load` and `Regression.from_bytes` are the public ways."""
    what = "the bytes" if isinstance(path, bytes) else f"'{os.fspath(path)}'"
    try:
        content = io.BytesIO(path if isinstance(path, bytes) else read_regular(path, MOST))
        if not is_zipfile(content):
            raise IdentificationError(f"{what} is not a Regression file: it is no npz archive, or was cut short")
        content.seek(0)
        with np.load(content, allow_pickle=False) as data:
            size = sum(entry.file_size for entry in data.zip.infolist())
            if size > MOST:
                raise IdentificationError(f"{what} would unpack to {size >> 20} MB; no evidence is that large")
            about = json.loads(bytes(data["about"]).decode())
            if about.get("format") != "dynident-regression-2":
                raise IdentificationError(f"{what} is not a Regression file")
            groups = tuple(
                RowGroup(
                    name,
                    data[f"columns{i}"],
                    data[f"R{i}"],
                    int(count),
                    float(independence),
                    data[f"products{i}"],
                    *(tuple(each) for each in stretches),  # counts, and phases since 0.3
                )
                for i, (name, count, independence, *stretches) in enumerate(about["groups"])
            )
            columns, fingerprint = data["columns"], data["fingerprint"]
            names, sources, options, notes = (about[key] for key in ("parameters", "sources", "options", "notes"))
            projection = check_projection(about["projection"])
    except DynidentError:
        raise
    except Exception as error:  # a damaged archive fails in a hundred ways, Python's tokenizer among them
        why = getattr(error, "strerror", None) or f"it is damaged or something else ({type(error).__name__})"
        raise IdentificationError(f"cannot read {what} as a Regression: {why}; save the evidence again") from error
    if tuple(names) != mechanism.parameters.names:
        raise IdentificationError(f"{what} belongs to another robot than '{mechanism.name}': parameter names differ")
    if columns.ndim != 1 or columns.dtype.kind not in "iu" or not np.isin(columns, np.arange(len(names))).all():
        raise IdentificationError(f"cannot read {what} as a Regression: its columns are no parameters of the robot")
    base = known or base_parameters(mechanism, order=[mechanism.parameters.names[c] for c in columns])
    if not np.array_equal(base.columns, columns) or not base.fits(fingerprint):
        raise IdentificationError(
            f"{what} belongs to another robot than '{mechanism.name}': its geometry, gravity or terms differ"
        )
    return Regression(base, groups, tuple(sources), options, tuple(notes), projection)
