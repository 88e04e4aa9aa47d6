"""Rows of one's own: any linear model tau = Y phi as evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import IdentificationError
from dynident.identify.base import BaseParameters
from dynident.identify.factor import RowGroup, triangle
from dynident.identify.regrouping import base_parameters
from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]


def evidence_of_rows(
    Y: ArrayLike,
    tau: ArrayLike,
    names: Sequence[str],
    joints: Sequence[str],
    regressor: Callable[[Array, Array, Array], Array] | None,
    name: str,
    units: Sequence[str],
    independence: float,
) -> tuple[BaseParameters, tuple[RowGroup, ...]]:
    """Return parameters and factors of rows; `Regression.from_rows` is the public way."""
    rows, effort = own_rows(Y, tau, len(names))
    if not 0.0 < independence <= 1.0:
        raise IdentificationError(f"independence is {independence:g}; give independent rows per row, above 0 and up to 1")
    labels = tuple(joints) or tuple(f"joint_{i + 1}" for i in range(effort.shape[1]))
    if len(labels) != effort.shape[1]:
        raise IdentificationError(f"{len(labels)} joints are named but tau has {effort.shape[1]} columns; they must agree")
    robot = Mechanism.from_regressor(names, regressor, labels, name, units)
    base = replace(base_parameters(robot), seen=np.any(rows != 0.0, axis=0))
    groups = []
    for i, label in enumerate(labels):
        own = np.flatnonzero(base.seen[i])
        R = triangle(np.column_stack([rows[:, i, own], effort[:, i]]))
        groups.append(RowGroup(label, own, R, rows.shape[0], independence))
    return base, tuple(groups)


def own_rows(Y: ArrayLike, tau: ArrayLike, count: int) -> tuple[Array, Array]:
    """Return rows and efforts of one's own as (N, n, m) and (N, n) after checking them."""
    rows, effort = numbers(Y, "Y"), numbers(tau, "tau")
    rows = rows[:, None, :] if rows.ndim == 2 else rows
    effort = effort[:, None] if effort.ndim == 1 else effort
    if rows.ndim != 3 or rows.shape[:2] != effort.shape or rows.shape[2] != count:
        raise IdentificationError(
            f"Y has shape {np.shape(Y)} and tau {np.shape(tau)} for {count} names; give (N, n, {count}) and (N, n)"
        )
    if not rows.size:
        raise IdentificationError(
            f"Y has shape {np.shape(Y)}, so there is nothing to learn from; give at least one row and name"
        )
    for label, values in (("Y", rows), ("tau", effort)):
        if not np.isfinite(values).all():
            raise IdentificationError(
                f"{label} is not finite at sample {int(np.argwhere(~np.isfinite(values))[0][0])}; remove it"
            )
    return rows, effort
