"""One self-contained HTML page with tables and figures of reproductions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from dynident import pages
from dynident.errors import require
from dynident.figures import data_address
from dynident.files import write_atomic
from dynident.reproduce.registry import Reproduction, Table, cells_of

HEADERS = ("", "ours", "published", "difference", "why they differ")


def _table(table: Table) -> pages.Html:
    rows = []
    for row in table.rows:
        name, ours, known, off, reason = cells_of(row)
        mark: object = pages.badge(off, "ok") if row.agrees else off
        rows.append((name, ours, known, mark, reason))
    reasons = any(row.reason for row in table.rows)
    shown = rows if reasons else [row[:4] for row in rows]
    return pages.table(HEADERS if reasons else HEADERS[:4], shown, table.title, numeric=(1, 2, 3), wide=(4,))


def _section(found: Reproduction) -> pages.Html:
    parts: list[object] = [pages.tag("p", found.source, class_="note")]
    parts += [_table(table) for table in found.tables]
    parts += [pages.figure(data_address(draw()), caption, caption) for caption, draw in found.figures.items()]
    if found.notes:
        parts.append(pages.bullets(found.notes))
    return pages.section(found.name, f"{found.name}: {found.title}", *parts)


def _overview(results: Sequence[Reproduction], failed: Mapping[str, str]) -> pages.Html:
    rows: list[tuple[object, ...]] = []
    for found in results:
        agreeing, judged = found.agreeing
        link = pages.tag("a", found.name, href=f"#{found.name}")
        largest = max((abs(row.relative) for row in found.rows if row.relative is not None), default=None)
        rows.append((link, found.title, found.source, f"{agreeing} of {judged}" if judged else "", pages.percent(largest)))
    rows += [(name, f"could not be made: {why}", "", "", "") for name, why in failed.items()]
    headers = ("name", "what", "source", "agree to all printed digits", "largest difference")
    return pages.section("overview", "Overview", pages.table(headers, rows, numeric=(3, 4), short=(0,)))


def write_page(path: str | os.PathLike[str], results: Sequence[Reproduction], failed: Mapping[str, str] | None = None) -> Path:
    """Write reproductions as one HTML page that loads nothing.

    Parameters
    ----------
    path : path-like
        HTML file.
    results : sequence of Reproduction
        What to show.
    failed : mapping of str to str, optional
        Names of those that could not be made, and why.

    Returns
    -------
    pathlib.Path
        The file.
    """
    for found in results:
        require(found, Reproduction, "an entry of results")
    agreeing, judged = (
        (sum(counts) for counts in zip(*(found.agreeing for found in results), strict=True)) if results else (0, 0)
    )
    lead = (
        f"{agreeing} of {judged} published numbers agree to all printed digits; where ours differ, the reason is beside them."
    )
    header = pages.join([pages.tag("h1", "Published tables and figures, computed again"), pages.tag("p", lead, class_="lead")])
    sections = [("overview", "Overview", _overview(results, failed or {}))]
    sections += [(found.name, found.name, _section(found)) for found in results]
    footer = pages.tag("p", f"dynident, {pages.date()}")
    return write_atomic(path, pages.page("Published tables, computed again", header, sections, footer))
