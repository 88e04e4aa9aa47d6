"""Messages of the library in terms of the command line: ``--cutoff`` instead of ``cutoff=``."""

from __future__ import annotations

import re
from contextvars import ContextVar

#: The running command, as typed.
COMMAND: ContextVar[str] = ContextVar("command", default="")
#: Options of the running command.
OPTIONS: ContextVar[frozenset[str]] = ContextVar("options", default=frozenset())
#: Arguments of the library whose option has another name; other packages add theirs.
OTHER_NAMES = {"units": "unit", "tolerance": "rank-tolerance"}
_PHRASES = (
    # both are named already: rate= (--rate); standstill=0.1 (--standstill 0.1); --search (search=[...]); joints=, --joints
    (r"\b[a-z_]+=[\w.+-]* \((?:commands: )?(--[a-z-]+(?: [\w.+-]+)?)\)", r"\1"),
    (r"(--[a-z-]+(?: \S+)?) \([a-z_]+=[^ )]*\)", r"\1"),
    (r"\b[a-z_]+=, (--[a-z-]+)", r"\1"),
    (r"\b[a-z_]+=True in Python, (--[a-z-]+)", r"\1"),
    (r"schema=\{'(\w+)': \[?\.{3}\]?(?:, [^}]*)?\}(?: or a TOML file)?(?: \(--schema\))?", r"the key '\1' of a --schema file"),
    (r"robot\.lock\([^)]*\) \((--lock [^)]*)\)", r"\1"),
    (r"schema= with", "a --schema file with"),
    (r"units=\{'(\w+)': '(\w+)'\}", r"--unit \1=\2"),
    (
        r"give unit 'deg' or 'mm' \(or position_side='motor'\)",
        "give --unit position=deg or position=mm (or position_side in --schema)",
    ),
    (r"\(((?:position=(?:deg|mm|counts)|time=ms))\)", r"(--unit \1)"),
    (r" \(with_gravity\)", " (--gravity)"),
    (r" \(gravity=True\)", " (--tilt)"),
    (r"\(gain=-1\)", "(--gain, -1 for these and 1 for the others)"),
    (r" \(and (\d+) more, see \.quality\.summary\(\)\)", r" (and \1 more)"),
    (r"see Fit\.observability\(\)", "see the observability in the report"),
    (r"give it as \(samples, 3, 3\) or one \(3, 3\), or --rpy", "give --rpy"),
    (r"give rotation=None", "leave --rpy out"),
    (r"VirtualRobot\(step=([^)]*)\)", r"--step \1"),
    (r", give its motion as instruments=, or use instruments='periods' with period=", ", or give --period"),
)


def in_options(text: str) -> str:
    """Return a sentence in which options of the running command replace arguments of the library."""
    known = OPTIONS.get()
    if not known:
        return text
    for pattern, words in _PHRASES:
        text = re.sub(pattern, words, text)

    def option(match: re.Match[str]) -> str:
        name = "--" + OTHER_NAMES.get(match[1], match[1]).replace("_", "-")
        return f"{name} {match[2] or ''}".rstrip() if name in known else match[0]

    # A name followed by nothing, a quoted word or a number; a word after an option is its value.
    return re.sub(r"(?<![\w.'\"/-])(?<!--unit )([a-z_]+)=(?:'?([\w.+-]+)'?)?(?![\w{\[(=@'])", option, text)
