"""Base class of tables: `to_frame()` for pandas and a view for notebooks, both from the columns."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.errors import missing_extra

if TYPE_CHECKING:
    import pandas as pd

ROWS = 60  # of a view
SHORT = 24  # characters of a cell that is not broken


class Tabular:
    """Base of what users see as a table; a class says its columns, and what a notebook shows if that is something else."""

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns by name."""
        raise NotImplementedError

    def _view(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns that a notebook shows."""
        return self._columns()

    def _head(self) -> str:
        """Return the line above them."""
        return repr(self)

    def to_frame(self) -> pd.DataFrame:
        """Return the table for pandas."""
        try:
            import pandas as pd  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise missing_extra("pandas", "pandas", "a table for pandas") from error
        return pd.DataFrame(dict(self._columns()))

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        columns = self._view()
        rows = list(zip(*columns.values(), strict=True))
        head = "".join(f'<th style="padding:0 .6em">{html.escape(name)}</th>' for name in columns)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:ROWS])
        rest = f"<div>... {len(rows) - ROWS} more rows</div>" if len(rows) > ROWS else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div><strong>{html.escape(self._head())}</strong>{table}{rest}</div>"


def _cell(value: object) -> str:
    """Return a cell: numbers to the right, texts to the left, short ones (names, units) on one line."""
    text = _text(value)
    side = "right" if isinstance(value, int | float | np.number) and not isinstance(value, bool) else "left"
    wrap = ";white-space:nowrap" if len(text) <= SHORT else ""
    return f'<td style="text-align:{side}{wrap};padding:0 .6em">{html.escape(text)}</td>'


def _text(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.5g}" if isinstance(value, float | np.floating) else str(value)
