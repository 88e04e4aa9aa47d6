"""Sentences in files that hold no more than numbers: where these come from, and which of them the data do not determine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from dynident.files import visible, write_atomic
from dynident.graph.names import comment


def remark(path: Path, lines: Sequence[str]) -> Path:
    """Write sentences into a file of results as comments of its language, at its end."""
    begin, end = {".urdf": ("<!-- ", " -->"), ".xml": ("<!-- ", " -->"), ".py": ("# ", "")}.get(path.suffix, ("/* ", " */"))
    plain = [" ".join(visible(line).split()) for line in lines]  # names of a file's joints must not end the comment
    safe = [comment(line) if begin == "/* " else re.sub("-(?=-)", "- ", line) for line in plain]
    text = path.read_text(encoding="utf-8").rstrip("\n")
    return write_atomic(path, "\n".join([text, *(f"{begin}{line}{end}" for line in safe), ""]))
