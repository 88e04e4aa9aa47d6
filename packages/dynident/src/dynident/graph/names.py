"""Names that any language accepts: letters, digits and underscores, from whatever a joint is called."""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Iterable

# Words of C, and what generated code uses itself; Python's own words come from `keyword`.
RESERVED = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|register|"
    "restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while|bool|true|false|"
    "main|sin|cos|sqrt|exp|log|tanh|pow|atan2|floor|fabs|math|np|numpy"
)

LONGEST = 100  # letters of an identifier


def identifier(name: str) -> str:
    """Return a legal C and Python identifier for a name."""
    text = re.sub(r"[\s\-./:]+", "_", name)
    text = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"u{ord(c):04x}" for c in text)
    text = re.sub(r"_+", "_", text).strip("_")
    if not text or text[0].isdigit():
        text = f"n{text}" if text else "unnamed"
    if len(text) > LONGEST:  # it names files too
        text = f"{text[: LONGEST - 9]}_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return f"{text}_" if RESERVED.fullmatch(text) or keyword.iskeyword(text) else text


def identifiers(names: Iterable[str]) -> tuple[str, ...]:
    """Return identifiers that also differ from each other, whatever their case."""
    used: set[str] = set()
    result = []
    for name in names:
        plain = label = identifier(name)
        count = 2
        while label.lower() in used:
            label, count = f"{plain}_{count}", count + 1
        used.add(label.lower())
        result.append(label)
    return tuple(result)


def comment(text: str) -> str:
    """Return text that may stand in a comment of C, Python or LaTeX."""
    line = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    return line.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace('"""', "'''").replace("??", "?")
