"""Write notebooks/*.ipynb and notebooks/*.md from notebooks/*.py: executed, with small pictures. Run it when one changes.

A script is cells: comments at the margin are text, everything else is code; a blank line before and after text parts them.
"""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

HERE = Path(__file__).resolve().parent / "notebooks"
ORDER = ("first_fit", "what_torques_show", "excitation", "virtual_robot", "payload")
# Figures of dynident know no pyplot: a notebook shows them by this. Warnings would name folders of this machine.
SETUP = """
import io as _io, warnings as _warnings
from matplotlib.figure import Figure as _Figure
def _png(figure):
    memory = _io.BytesIO()
    figure.savefig(memory, format="png", dpi=72)
    return memory.getvalue()
get_ipython().display_formatter.formatters["image/png"].for_type(_Figure, _png)
_warnings.simplefilter("ignore")
"""


def cells(text: str) -> list[tuple[str, str]]:
    """Return ("text" or "code", content) of every cell of a script."""
    found: list[tuple[str, str]] = []
    for block in re.split(r"\n\n(?=# )|(?<=\n)\n(?=# )", text.strip()):
        lines = block.split("\n")
        count = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
        if count:
            found.append(("text", "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[:count])))
        code = "\n".join(lines[count:]).strip("\n")
        if code:
            found.append(("code", code))
    return found


def executed(name: str) -> Any:
    """Return the notebook of a script with its outputs."""
    parts = cells((HERE / f"{name}.py").read_text(encoding="utf-8"))
    make = {"text": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    book = nbformat.v4.new_notebook(cells=[make["code"](SETUP), *(make[kind](content) for kind, content in parts)])
    NotebookClient(book, timeout=600, kernel_name="python3").execute()
    book.cells = book.cells[1:]
    for i, cell in enumerate(book.cells):
        cell.id, cell.metadata = f"cell{i}", {}
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [output for output in cell.outputs if output.output_type != "stream" or output.name == "stdout"]
            for output in cell.outputs:
                _small(output)
    book.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return book


def _small(output: Any) -> None:
    """Keep few colours of a picture, and no text beside a picture or a table."""
    if "execution_count" in output:
        output.execution_count = None
    data = output.get("data", {})
    if "image/png" in data:
        drawn = Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).convert("RGB")
        memory = io.BytesIO()
        drawn.quantize(64, dither=Image.Dither.NONE).save(memory, format="png", optimize=True)
        data["image/png"] = base64.b64encode(memory.getvalue()).decode("ascii")
        data["text/plain"] = "<Figure>"


def page(name: str, book: Any) -> str:
    """Return the notebook as a page of the documentation; its pictures are written beside it."""
    lines: list[str] = []
    count = 0
    for cell in book.cells:
        if cell.cell_type == "markdown":
            lines += [cell.source, ""]
            continue
        lines += ["```python", cell.source, "```", ""]
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                count += 1
                picture = f"{name}_{count}.png"
                (HERE / picture).write_bytes(base64.b64decode(data["image/png"]))
                lines += [f"![{name.replace('_', ' ')}, picture {count}]({picture})", ""]
            elif "text/html" in data:
                lines += ["```{raw} html", re.sub(r"<style.*?</style>", "", data["text/html"], flags=re.S).strip(), "```", ""]
            else:
                text = output.get("text", "") or data.get("text/plain", "")
                lines += ["```none", text.rstrip(), "```", ""]
    lines.insert(2, f"{{download}}`The notebook <{name}.ipynb>` of this page can be run.\n")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    for old in (*HERE.glob("*.png"), *HERE.glob("*.ipynb"), *HERE.glob("*.md")):
        old.unlink()
    for each in ORDER:
        made = executed(each)
        nbformat.write(made, HERE / f"{each}.ipynb")
        (HERE / f"{each}.md").write_text(page(each, made), encoding="utf-8")
