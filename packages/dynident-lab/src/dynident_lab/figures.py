"""Figures inside HTML pages, as embedded vector pictures."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dynident.pages import Html, escape, tag

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA_DPI = 144  # resolution of rasterised lines inside a vector picture


def figure(address: str, alternative: str, caption: str = "", class_: str = "") -> Html:
    """Return an inline picture."""
    if not address.startswith("data:image/"):
        raise ValueError("a figure of a report must be inline: its address must start with data:image/")
    image = Html(f'<img src="{escape(address)}" alt="{escape(alternative)}">')
    return tag("figure", image, tag("figcaption", caption) if caption else "", class_=class_)


def per_second(unit: str) -> str:
    """Return the unit of the speed of a joint from the unit of its effort."""
    return "rad/s" if unit == "N m" else "m/s"


def data_address(figure: Figure) -> str:
    """Return a figure as a ``data:`` address of a vector picture."""
    import matplotlib as mpl  # noqa: PLC0415 - matplotlib is an extra

    buffer = io.BytesIO()
    style: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "dynident",
        "text.usetex": False,
        "font.sans-serif": ["DejaVu Sans"],
    }
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a replacement box in a label is harmless
        figure.savefig(buffer, format="svg", dpi=DATA_DPI, metadata={"Date": None, "Creator": None})
    # Percent-encoding keeps most characters of the drawing; base64 would add a third to all of them.
    text = " ".join(buffer.getvalue().decode("utf-8").splitlines())
    text = re.sub(r'(?<= d=")[^"]*', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), text)  # 1/100 point is sufficient
    return "data:image/svg+xml," + quote(text[text.index("<svg") :], safe=" =:/,;'()*!~+@$&?[]{}|^`")
