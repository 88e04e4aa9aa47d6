"""Small drawings that need no script: bars in SVG."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.pages import Html, escape, percent, tag

ROW, BAR, LEFT, LENGTH, RIGHT = 34, 13, 170, 560, 90
LONGEST = 1.5  # share at which bars end


def paired_bars(rows: Sequence[tuple[str, float, float]], names: tuple[str, str], caption: str) -> Html:
    """Return two bars per row, as shares: before (orange) and after (blue)."""
    finite = [x for _, *pair in rows for x in pair if np.isfinite(x)]
    if not finite:
        return Html()
    top = min(max(finite), LONGEST)  # a description may be wrong by thousands of per cent
    height = ROW * len(rows)
    parts = []
    for i, (name, *pair) in enumerate(rows):
        y = ROW * i + 2
        short = name if len(name) <= 22 else name[:21] + "\N{HORIZONTAL ELLIPSIS}"
        parts.append(Html(f'<text x="{LEFT - 8}" y="{y + 17}" text-anchor="end">{escape(short)}</text>'))
        for k, (value, kind) in enumerate(zip(pair, ("bar before", "bar"), strict=True)):
            if not np.isfinite(value):
                continue
            width = max(LENGTH * min(value / top, 1.0) if top > 0.0 else 0.0, 1.0)
            beyond = " \N{RIGHTWARDS ARROW}" if value > top else ""
            above = y + BAR * k
            bar = f'<rect class="{kind}" x="{LEFT}" y="{above}" width="{width:.1f}" height="{BAR - 1}" rx="1.5"/>'
            text = f'<text class="light" x="{LEFT + width + 6:.1f}" y="{above + 10}">{percent(value, 1)}{beyond}</text>'
            parts += [Html(bar), Html(text)]
    size = f'viewBox="0 0 {LEFT + LENGTH + RIGHT} {height}" width="{LEFT + LENGTH + RIGHT}" height="{height}"'
    svg = Html(f'<svg {size} role="img" aria-label="{escape(caption)}">{"".join(parts)}</svg>')
    return tag("figure", svg, tag("figcaption", f"{caption} Above {names[0]}, below {names[1]}."))
