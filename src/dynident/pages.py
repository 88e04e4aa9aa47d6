"""Self-contained HTML pages: one style sheet and small builders of elements.

Plain text is escaped always; only `Html`, made by these builders, passes unchanged.
"""

from __future__ import annotations

import base64
import hashlib
import html as standard
import math
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

# Nothing may be loaded and no script may run, whatever gets into the page (`page` may allow one, by its hash).
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


def several(count: int, noun: str) -> str:
    """Return a number with its noun, as in "1 log" or "3 logs"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def date() -> str:
    """Return the time of writing, or $SOURCE_DATE_EPOCH for reproducible pages."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else datetime.now(UTC)
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def page(title: str, header: Html, sections: Sequence[tuple[str, str, Html]], footer: Html, script: str = "") -> Html:
    """Return the whole document; a script of ours is the only one that may run, because the policy names its hash."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"{POLICY}; script-src 'sha256-{digest}'" if script else POLICY
    links = (tag("li", tag("a", short, href=f"#{anchor}")) for anchor, short, _ in sections)
    head = join(
        [
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            tag("title", title),
            Html(f"<style>{CSS}</style>"),
        ]
    )
    navigation = Html(f'<nav aria-label="Sections"><ul>{join(links)}</ul></nav>')
    body = join([tag("header", header), navigation, tag("main", join(part for *_, part in sections)), tag("footer", footer)])
    run = f"\n<script>{script}</script>" if script else ""
    return Html(f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}{run}\n</body>\n</html>\n')


# System fonts, light and printable.
CSS = """
:root { --ink:#1f2933; --muted:#5b6770; --line:#dde3e8; --soft:#f5f7f9; --blue:#0072b2; --ok:#00694c; --ok-soft:#e4f3ee;
  --bad:#a63d00; --bad-soft:#fbece4; --mid:#7a5300; --mid-soft:#fdf3dc; }
* { box-sizing:border-box; }
html { scroll-behavior:smooth; scroll-padding-top:3.4rem; }
body { margin:0; color:var(--ink); background:#fff; line-height:1.5; font-size:15px;
  font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif; }
header, main, footer { max-width:1120px; margin:0 auto; padding:0 1.5rem; }
header { padding-top:1.8rem; }
h1 { font-size:1.7rem; margin:0 0 .2rem; font-weight:650; overflow-wrap:anywhere; }
h2 { font-size:1.25rem; margin:2.6rem 0 .6rem; padding-bottom:.3rem; border-bottom:1px solid var(--line); font-weight:650; }
h3 { font-size:1.02rem; margin:1.6rem 0 .4rem; font-weight:650; overflow-wrap:anywhere; }
p { margin:.5rem 0; max-width:78ch; }
.lead, .note, caption, figcaption, footer { color:var(--muted); }
.lead { margin:0; }
.note { font-size:.9rem; }
nav { position:sticky; top:0; z-index:2; background:#fffffff5; border-bottom:1px solid var(--line); margin-top:1.4rem; }
nav ul { max-width:1120px; margin:0 auto; padding:.55rem 1.5rem; list-style:none;
  display:flex; flex-wrap:wrap; gap:.2rem 1.1rem; }
nav a { color:var(--muted); text-decoration:none; font-size:.86rem; }
nav a:hover, nav a:focus { color:var(--blue); text-decoration:underline; }
.banner { margin:1.2rem 0 .9rem; padding:.9rem 1.1rem; border-left:6px solid; border-radius:4px; }
.banner strong { display:block; font-size:1.15rem; }
.banner p { margin:.1rem 0 0; max-width:none; }
.banner.ok { background:var(--ok-soft); border-color:var(--ok); }
.banner.mid { background:var(--mid-soft); border-color:#e69f00; }
.banner.bad { background:var(--bad-soft); border-color:var(--bad); }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(165px,1fr)); gap:.7rem; margin:0; padding:0; }
.cards div { background:var(--soft); border:1px solid var(--line); border-radius:6px; padding:.6rem .8rem; }
.cards dt { font-size:.8rem; color:var(--muted); }
.cards dd { margin:0; font-size:1.35rem; font-weight:620; font-variant-numeric:tabular-nums; }
.cards dd small { display:block; font-size:.78rem; font-weight:400; color:var(--muted); line-height:1.3; }
.scroll { overflow-x:auto; margin:.6rem 0 1rem; }
table { border-collapse:collapse; width:100%; font-size:.88rem; }
caption { text-align:left; padding:.1rem 0 .35rem; font-size:.86rem; }
th, td { padding:.3rem .6rem; border-bottom:1px solid var(--line); text-align:left; vertical-align:top;
  overflow-wrap:break-word; }
thead th { background:var(--soft); font-weight:600; border-bottom:1px solid #c3ccd3; white-space:nowrap; }
tbody th { font-weight:500; }
tfoot td, tfoot th { font-weight:620; border-top:1px solid #c3ccd3; }
.num { text-align:right; font-variant-numeric:tabular-nums; white-space:nowrap; }
.short { white-space:nowrap; }
td.wide { min-width:22rem; }
code, .mono { font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; font-size:.82rem; overflow-wrap:anywhere; }
.badge { display:inline-block; padding:0 .5em; border-radius:3px; font-size:.8rem; white-space:nowrap; background:var(--soft);
  color:var(--muted); border:1px solid var(--line); }
.badge.ok { background:var(--ok-soft); color:var(--ok); border-color:#b5ddd0; }
.badge.mid { background:var(--mid-soft); color:var(--mid); border-color:#f0dca6; }
.badge.bad { background:var(--bad-soft); color:var(--bad); border-color:#efc9b6; }
.map td, .map thead th { text-align:center; padding:.22rem .35rem; }
.map thead th:first-child { text-align:left; }
.map td.alone { background:#cfe6f4; } .map td.combined { background:#eef5fa; } .map td.never { color:#8a949c; }
.map { width:auto; }
.legend span { margin-right:1.2rem; }
figure { margin:.8rem 0 1.4rem; }
figure img { display:block; width:100%; height:auto; }
figure.narrow { max-width:720px; }
figcaption { font-size:.86rem; }
details { margin:.7rem 0; }
summary { cursor:pointer; font-weight:600; padding:.25rem 0; }
ul.plain { padding-left:1.2rem; margin:.4rem 0; } ul.plain li { margin:.15rem 0; overflow-wrap:anywhere; }
footer { margin-top:3rem; padding-top:.8rem; padding-bottom:2rem; border-top:1px solid var(--line); font-size:.85rem; }
@media print {
  nav { display:none; } body { font-size:10.5pt; } header, main, footer { max-width:none; padding:0; }
  figure, tr, .cards div, .banner { break-inside:avoid; } h2, h3 { break-after:avoid; } .scroll { overflow:visible; }
  .short { white-space:nowrap; }
td.wide { min-width:0; } details::details-content { content-visibility:visible; block-size:auto; }
  * { print-color-adjust:exact; -webkit-print-color-adjust:exact; }
}
"""
