"""Small builders of HTML. Plain text is escaped always; only `Html`, made by these builders, passes unchanged."""

from __future__ import annotations

import html as standard
import math
from collections.abc import Iterable, Sequence

# Nothing may be loaded and no script may run, whatever gets into the page.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


SPACES = "\n\t\N{NO-BREAK SPACE}\N{THIN SPACE}"


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(text: object) -> Html:
    """Return text as HTML: markup becomes visible characters, control characters a replacement sign."""
    if isinstance(text, Html):
        return text
    # Surrogates cannot be written as UTF-8; control and direction marks could hide what a name says.
    shown = (c if c.isprintable() or c in SPACES else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    return Html(standard.escape("".join(shown), quote=True))


def join(parts: Iterable[object], between: str = "\n") -> Html:
    """Return parts, escaped unless `Html`, one after the other."""
    return Html(between.join(escape(part) for part in parts if part))


def tag(name: str, *content: object, **attributes: str) -> Html:
    """Return an element."""
    written = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items() if value)
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

    head = tag("tr", *(tag("th", text, scope="col", class_="num" if i in right else "") for i, text in enumerate(headers)))
    body = join(line(row) for row in rows)
    parts = [tag("caption", caption) if caption else "", tag("thead", head), tag("tbody", body)]
    if foot:
        parts.append(tag("tfoot", line(foot)))
    return tag("div", tag("table", *parts), class_="scroll")


def section(anchor: str, title: str, *content: object) -> Html:
    """Return a section with a heading and an anchor."""
    return tag("section", tag("h2", title), join(content), id=anchor)


def figure(address: str, alternative: str, caption: str = "", class_: str = "") -> Html:
    """Return an inline picture."""
    if not address.startswith("data:image/"):
        raise ValueError("a figure of a report must be inline: its address must start with data:image/")
    image = Html(f'<img src="{escape(address)}" alt="{escape(alternative)}">')
    return tag("figure", image, tag("figcaption", caption) if caption else "", class_=class_)


def details(summary: str, *content: object, opened: bool = False) -> Html:
    """Return content that can be folded away."""
    inside = join([tag("summary", summary), *content])
    return Html(f"<details{' open' if opened else ''}>{inside}</details>")


def bullets(lines: Iterable[object]) -> Html:
    """Return a list of lines."""
    return tag("ul", *(tag("li", line) for line in lines), class_="plain")


def badge(text: str, kind: str = "") -> Html:
    """Return a short word on a coloured ground; the word alone carries the meaning."""
    return tag("span", text, class_=f"badge {kind}".strip())


def number(value: float | None, digits: int = 4) -> str:
    """Return a number to so many significant digits; a dash when there is none."""
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
    text = f"{value:.{digits}g}"
    if "e" in text and 1.0 <= abs(value) < 1e6:
        text = f"{float(text):.0f}"
    return text.replace("-", "\N{MINUS SIGN}")


def percent(value: float | None, decimals: int = 2) -> str:
    """Return a share in per cent; a dash when there is none."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    return f"{100.0 * value:.{decimals}f} %".replace("-", "\N{MINUS SIGN}")


def page(title: str, style: str, header: Html, sections: Sequence[tuple[str, str, Html]], footer: Html) -> Html:
    """Return the whole document."""
    links = (tag("li", tag("a", short, href=f"#{anchor}")) for anchor, short, _ in sections)
    head = join(
        [
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            tag("title", title),
            Html(f"<style>{style}</style>"),
        ]
    )
    navigation = Html(f'<nav aria-label="Sections"><ul>{join(links)}</ul></nav>')
    body = join([tag("header", header), navigation, tag("main", join(part for *_, part in sections)), tag("footer", footer)])
    return Html(f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n')
