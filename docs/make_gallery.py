"""Write gallery.md and gallery/*.png: every example of examples/ with its picture. Run it when an example changes."""

from __future__ import annotations

import importlib
import io
import sys
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
ORDER = (
    "serial_arm",
    "mjcf_model",
    "dh_table",
    "closed_loop",
    "payload",
    "friction_temperature",
    "one_log",
    "excitation",
    "virtual_robot",
    "computed_torque",
    "scissor",
)
HEAD = """# Gallery

Eleven programs of one page, each with the picture that it draws. They are in `examples/`, and the tests run all of them. Run one
with `python examples/serial_arm.py`: it prints its result and writes the picture into the current folder. `two_links.py` is the
machine that four of them share. `python docs/make_gallery.py` draws this page again.
"""


def picture(name: str) -> None:
    """Run an example and save its figure, small: drawings need few colours."""
    memory = io.BytesIO()
    importlib.import_module(name).main().savefig(memory, dpi=100)
    drawn = Image.open(memory).convert("RGB").quantize(96, dither=Image.Dither.NONE)
    drawn.save(DOCS / "gallery" / f"{name}.png", optimize=True)


def entry(name: str) -> str:
    """Return the part of the page about one example."""
    title, _, rest = (importlib.import_module(name).__doc__ or "").strip().partition(":")
    sentence = rest.strip()[:1].upper() + rest.strip()[1:]
    code = f"```{{literalinclude}} ../examples/{name}.py\n:language: python\n:lines: 3-\n```"
    return f"\n## {title}\n\n{sentence}\n\n![{title}](gallery/{name}.png)\n\n{code}\n"


def page() -> str:
    """Return the text of gallery.md."""
    return HEAD + "".join(entry(name) for name in ORDER)


if __name__ == "__main__":
    sys.path.insert(0, str(EXAMPLES))
    (DOCS / "gallery").mkdir(exist_ok=True)
    for example in ORDER:
        picture(example)
    (DOCS / "gallery.md").write_text(page(), encoding="utf-8")
