"""One self-contained HTML page with tables and figures of reproductions."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from dynident import pages
from dynident.errors import require
from dynident.files import write_atomic
from dynident_lab.figures import data_address, figure
from dynident_papers.reproduce.registry import KINDS, REASONS, Reproduction, Table, cells_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST, DOTS = 300_000, 110  # characters of a vector drawing, above which a bitmap is smaller; dots per inch
NARROW = 9.0  # inches: figures below it are not stretched to the width of the page
NO_BREAK = "\u00a0"
HEADERS = ("", "ours", "published", "difference", "kind", "why they differ")


def _table(table: Table) -> pages.Html:
    rows = []
    for row in table.rows:
        name, ours, known, off, reason = cells_of(row)
        name = f"{row.name} [{row.unit.replace(' ', NO_BREAK)}]" if row.unit else name
        mark: object = pages.badge(off, "ok") if off == "agrees" else off
        rows.append((name, ours, known, mark, "" if row.published is None else row.kind, reason))
    reasons = any(row[5] for row in rows)
    kept = [0, 1, *((2, 3, 4) if table.compared else ()), *((5,) if reasons else ())]
    headers = [HEADERS[i] if i < 5 or table.compared else "remark" for i in kept]
    numeric = range(1, 4 if table.compared else 2)
    shown = [[row[i] for i in kept] for row in rows]
    return pages.table(headers, shown, table.title, numeric=numeric, wide=(len(kept) - 1,) if reasons else ())


def _figure(caption: str, drawn: Figure) -> pages.Html:
    address = data_address(drawn)
    if len(address) > LARGEST:
        buffer = io.BytesIO()
        drawn.savefig(buffer, format="png", dpi=DOTS)
        address = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return figure(address, caption, caption, "narrow" if drawn.get_figwidth() < NARROW else "")


def _section(found: Reproduction) -> pages.Html:
    parts: list[object] = [pages.tag("p", found.source, class_="note")]
    parts += [_table(table) for table in found.tables]
    parts += [_figure(caption, draw()) for caption, draw in found.figures.items()]
    if found.notes:
        parts.append(pages.bullets(found.notes))
    return pages.section(found.name, f"{found.name}: {found.title}", *parts)


def _overview(results: Sequence[Reproduction], failed: Mapping[str, str]) -> pages.Html:
    rows: list[tuple[object, ...]] = []
    for found in results:
        agreeing, judged = found.agreeing
        link = pages.tag("a", found.name, href=f"#{found.name}")
        others = [len(found.of_kind(kind)) or "" for kind in ("round trip", "virtual")]
        rows.append((link, found.title, found.source, f"{agreeing} of {judged}" if judged else "", *others))
    rows += [(name, f"could not be made: {why}", "", "", "", "") for name, why in failed.items()]
    headers = ("name", "what", "source", "derived: agree", "round trip", "virtual")
    parts = [_documents(results), pages.table(headers, rows, "all reproductions", numeric=(3, 4, 5), short=(0,))]
    return pages.section("overview", "Overview", *parts, pages.bullets([f"{kind}: {what}" for kind, what in KINDS.items()]))


def _documents(results: Sequence[Reproduction]) -> pages.Html:
    """Return the numbers of derived and of agreeing values of every document."""
    rows = []
    for document in dict.fromkeys(found.source.strip("[").split(",")[0].split("]")[0] for found in results):
        mine = [found for found in results if found.source.strip("[").startswith(document)]
        agreeing, judged = (sum(found.agreeing[i] for found in mine) for i in (0, 1))
        others = [sum(len(found.of_kind(kind)) for found in mine) for kind in ("round trip", "virtual")]
        reasons = [sum(found.reasons[heading] for found in mine) for heading in reversed(REASONS.values())]
        rows.append((document, sum((judged, *others)), judged, agreeing, *others, sum(reasons), *reasons))
    kinds = ("derived", "derived and agree", "round trip", "virtual")
    headers = ("document", "numbers", *kinds, "differ", *reversed(REASONS.values()))
    return pages.table(headers, rows, "published numbers by document", numeric=range(1, 11))


def write_page(path: str | os.PathLike[str], results: Sequence[Reproduction], failed: Mapping[str, str] | None = None) -> Path:
    """Write reproductions as one self-contained HTML page.

    Parameters
    ----------
    path : path-like
        HTML file.
    results : sequence of Reproduction
        Reproductions to show.
    failed : mapping of str to str, optional
        Names of failed reproductions, and the reasons.

    Returns
    -------
    pathlib.Path
        The file.
    """
    for found in results:
        require(found, Reproduction, "an entry of results")
    agreeing, judged = (sum(found.agreeing[i] for found in results) for i in (0, 1))
    lead = (
        f"{agreeing} of {judged} derived numbers agree to all printed digits. Every number that differs has a reason that a "
        "test verifies; if the cause is not known, the page says so and states what was tried."
        if judged
        else "No published number was derived here."
    )
    header = pages.join([pages.tag("h1", "Published tables and figures, computed again"), pages.tag("p", lead, class_="lead")])
    sections = [("overview", "Overview", _overview(results, failed or {}))]
    for robot, members in groupby(results, lambda found: found.name.partition("-")[0]):
        parts = list(members)
        sections.append(
            (parts[0].name, "five-bar" if robot == "five" else robot, pages.join(_section(found) for found in parts))
        )
    footer = pages.tag("p", ", ".join(filter(None, ("dynident", pages.date()))))
    return write_atomic(path, pages.page("Published tables, computed again", header, sections, footer))
