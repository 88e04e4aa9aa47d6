"""Self-contained HTML pages: one style sheet and small builders of elements.

Plain text is always escaped; only `Html`, made by these builders, passes unchanged.
"""

from __future__ import annotations

import base64
import hashlib
import html as standard
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

# No external resources and no script but the page's own (identified by its checksum) are permitted, whatever the content.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

LONG_TITLE = 20  # characters above which the title of a column is broken: names of users' files stand there

SPACES = "\n\t\N{NO-BREAK SPACE}\N{THIN SPACE}"


class Html(str):
    """Text that is already HTML."""

    __slots__ = ()


def escape(text: object) -> Html:
    """Return text as HTML: markup becomes visible characters, control characters become a replacement sign."""
    if isinstance(text, Html):
        return text
    return Html(standard.escape(printable(str(text)), quote=True))


def printable(text: str) -> str:
    """Return text without characters that UTF-8 cannot encode or that could disguise a name."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in SPACES else "\N{REPLACEMENT CHARACTER}" for c in text)


def join(parts: Iterable[object], between: str = "\n") -> Html:
    """Return parts, escaped unless `Html`, one after the other; nothing for None, but zeros are kept."""
    return Html(between.join(text for part in parts if (text := "" if part is None else escape(part))))


def tag(name: str, *content: object, **attributes: str) -> Html:
    """Return an element."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items() if value)
    return Html(f"<{name}{written}>{join(content, '')}</{name}>")


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    caption: str = "",
    numeric: Iterable[int] = (),
    wide: Iterable[int] = (),
    short: Iterable[int] = (),
    foot: Sequence[object] = (),
) -> Html:
    """Return a table whose first column heads its rows."""
    right, long_, unbroken = frozenset(numeric), frozenset(wide), frozenset(short)

    def kind(column: int) -> str:
        return "num" if column in right else "wide" if column in long_ else "short" if column in unbroken else ""

    def line(cells: Sequence[object]) -> Html:
        first = tag("th", cells[0], scope="row", class_=kind(0))
        return tag("tr", first, *(tag("td", cell, class_=kind(i)) for i, cell in enumerate(cells[1:], 1)))

    def title(column: int, text: str) -> Html:
        kinds = ("num" if column in right else "", "long" if len(text) > LONG_TITLE else "")
        return tag("th", text, scope="col", class_=" ".join(filter(None, kinds)))

    head = tag("tr", *(title(i, text) for i, text in enumerate(headers)))
    body = join(line(row) for row in rows)
    parts = [tag("caption", caption) if caption else "", tag("thead", head), tag("tbody", body)]
    if foot:
        parts.append(tag("tfoot", line(foot)))
    return tag("div", tag("table", *parts), class_="scroll")


def section(anchor: str, title: str, *content: object) -> Html:
    """Return a section with a heading and an anchor."""
    return tag("section", tag("h2", title), join(content), id=anchor)


def details(summary: str, *content: object, opened: bool = False) -> Html:
    """Return collapsible content."""
    inside = join([tag("summary", summary), *content])
    return Html(f"<details{' open' if opened else ''}>{inside}</details>")


def bullets(lines: Iterable[object]) -> Html:
    """Return a list of lines."""
    return tag("ul", *(tag("li", line) for line in lines), class_="plain")


def badge(text: str, kind: str = "") -> Html:
    """Return a short word on a coloured background; the word alone carries the meaning."""
    return tag("span", text, class_=f"badge {kind}".strip())


def number(value: float | None, digits: int = 4) -> str:
    """Return a number to `digits` significant digits; a dash for None."""
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
    text = f"{value:.{digits}g}"
    if "e" in text and 1.0 <= abs(value) < 1e6:
        text = f"{float(text):.0f}"
    return text.replace("-", "\N{MINUS SIGN}")


def percent(value: float | None, decimals: int = 2) -> str:
    """Return a share in per cent; a dash for None."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    return f"{100.0 * value:.{decimals}f} %".replace("-", "\N{MINUS SIGN}")


def several(count: int, noun: str) -> str:
    """Return a number with its noun, as in "1 log" or "3 logs"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def date() -> str:
    """Return the date, or that of $SOURCE_DATE_EPOCH if set, so that the same inputs give the same bytes."""
    try:
        when = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "")), UTC)
    except (ValueError, OverflowError, OSError):
        when = datetime.now(UTC)
    return when.strftime("%Y-%m-%d %H:%M UTC")


@cache
def style() -> str:
    """Return the style sheet of all pages."""
    return (resources.files("dynident") / "assets" / "page.css").read_text(encoding="utf-8")


def page(
    title: str,
    header: Html,
    sections: Sequence[tuple[str, str, Html]],
    footer: Html,
    script: str = "",
    data: Mapping[str, Any] | None = None,
) -> Html:
    """Return the whole document; the script finds `data` as JSON in an element and is permitted by its checksum."""
    links = (tag("li", tag("a", short, href=f"#{anchor}")) for anchor, short, _ in sections)
    policy, live = POLICY, ""
    if script:
        checksum = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
        policy += f"; script-src 'sha256-{checksum}'"
        live = f'<script type="application/json" id="data">{_inert(data or {})}</script>\n<script>{script}</script>'
    head = join(
        [
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            tag("title", title),
            Html(f"<style>{style()}</style>"),
        ]
    )
    chip = '<button type="button" id="{}" class="chip" hidden>{}</button>'
    theme = Html(f"<li>{chip.format('theme', 'dark')} {chip.format('print', 'PDF')}</li>") if script else ""
    navigation = Html(f'<nav aria-label="Sections"><ul>{join([*links, theme])}</ul></nav>')
    body = join(
        [tag("header", header), navigation, tag("main", join(part for *_, part in sections)), tag("footer", footer), Html(live)]
    )
    return Html(f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n')


def _inert(data: Mapping[str, Any]) -> str:
    """Return JSON that cannot end the element that contains it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
