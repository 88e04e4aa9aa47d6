"""Reproductions of published tables and figures: each is a function of this package, found by its name and run on request.

difference = ours - published;   a row agrees when |difference| is at most half a unit of the last printed digit

Every published number has a kind. Only derived numbers count as agreement. A number of any kind that differs has a reason with
an experiment, a function that returns whether it holds, which the tests run: with the cause removed, the number moves to the
printed one; or two printed numbers cannot both hold; or the printed number is within what a quantity that is not printed
allows; or settings fitted to the printed numbers explain more numbers than there are settings (`REASONS`). Otherwise the
reason begins with "not explained" and states the findings.
"""

from __future__ import annotations

import difflib
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache, wraps
from importlib import import_module
from itertools import repeat
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.pages import number
from dynident.results import Frozen, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOT_SCRIPTS = ("registry", "page", "drawing")
KINDS = {
    "derived": "computed from the document's data with its procedure",
    "round trip": "a printed number was put in and comes back",
    "virtual": "our simulated machine or model replaces theirs",
}
UNEXPLAINED = "not explained"
REASONS = {  # words in a reason: its heading in tables
    UNEXPLAINED: "not explained",
    "contradicts itself": "print contradicts itself",
    "depends on": "depends on unprinted data",
    "fitted": "settings fitted to more numbers",
    "": "cause tested",
}
COARSE = 0.05  # relative difference above which a number that rounds to a printed one shows the difference


@dataclass(frozen=True)
class Row(Frozen):
    """One number, ours and the published one.

    Parameters
    ----------
    name : str
        Name of the number.
    ours : float or str
        Computed number.
    published : float or str, optional
        As printed; None where the source prints none.
    unit : str
        Unit of both.
    reason : str
        Reason of a difference.
    kind : str
        One of `KINDS`; the kind of the reproduction when empty.
    """

    name: str
    ours: float | str
    published: float | str | None = None
    unit: str = ""
    reason: str = ""
    kind: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus published; None unless both are numbers."""
        if isinstance(self.ours, str) or isinstance(self.published, str) or self.published is None:
            return None
        return float(self.ours) - float(self.published)

    @property
    def relative(self) -> float | None:
        """Difference as a share of the published number; None if the latter is zero or missing."""
        if self.difference is None or not self.published or isinstance(self.published, str):
            return None
        return self.difference / abs(float(self.published))

    @property
    def agrees(self) -> bool | None:
        """True when ours rounds to the printed number; None without a printed number."""
        if self.published is None:
            return None
        if self.difference is None:
            return self.ours == self.published
        known = float(self.published)
        printed = 0 if known.is_integer() else Decimal(repr(known)).as_tuple().exponent
        return abs(self.difference) <= 0.5 * 10.0 ** int(printed) * (1.0 + 1e-9)


@dataclass(frozen=True)
class Table(Result):
    """Rows that belong together.

    Parameters
    ----------
    title : str
        Title of the table.
    rows : tuple of Row
        Rows.
    """

    title: str
    rows: tuple[Row, ...]

    @classmethod
    def of(
        cls,
        title: str,
        names: Sequence[str],
        ours: Sequence[Any] | NDArray[Any],
        published: Sequence[Any] | NDArray[Any] | None = None,
        unit: str | Sequence[str] = "",
        reason: str | Sequence[str] = "",
        kind: str = "",
    ) -> Table:
        """Return a table from columns; one reason for all differing rows."""
        units = repeat(unit, len(names)) if isinstance(unit, str) else unit
        reasons = repeat("", len(names)) if isinstance(reason, str) else reason
        printed = repeat(None, len(names)) if published is None else published
        rows = [
            Row(name, _plain(own), None if known is None else _plain(known), u, why, kind)
            for name, own, known, u, why in zip(names, ours, printed, units, reasons, strict=True)
        ]
        if isinstance(reason, str):
            rows = [replace(row, reason=reason) if row.agrees is False else row for row in rows]
        return cls(title, tuple(rows))

    @property
    def compared(self) -> bool:
        """True when a row has a published number."""
        return any(row.published is not None for row in self.rows)

    def summary(self) -> str:
        """Return the table as text.

        Returns
        -------
        str
            One line per row.
        """
        if not self.compared:
            width = max((len(cells_of(row)[0]) for row in self.rows), default=0)
            found = (cells_of(row) for row in self.rows)
            return "\n".join(
                [self.title, *(f"  {name:<{width}}  {ours:>12}  {why}".rstrip() for name, ours, _, _, why in found)]
            )
        kinds = ["", *(row.kind if row.published is not None else "" for row in self.rows)]
        cells = [("", "ours", "published", "difference", ""), *(cells_of(row) for row in self.rows)]
        widths = [max(len(line[i]) for line in cells) for i in range(4)]
        lines = []
        for (name, ours, known, off, reason), kind in zip(cells, kinds, strict=True):
            line = f"  {name:<{widths[0]}}  {ours:>{widths[1]}}  {known:>{widths[2]}}  {off:>{widths[3]}}"
            lines.append(f"{line}  {kind:<10}  {reason}".rstrip())
        return "\n".join([self.title, *lines])


def _plain(value: Any) -> float | str:
    """Return a cell as a Python number or text."""
    if isinstance(value, str):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DynidentError(f"a cell of a table is a {type(value).__name__}; give a number or a text") from None


def _digits(value: float | str | None) -> int:
    """Return the number of significant digits of a published number."""
    return 0 if value is None or isinstance(value, str) else len(Decimal(repr(float(value))).normalize().as_tuple().digits)


def cells_of(row: Row) -> tuple[str, str, str, str, str]:
    """Return name with unit, ours, published, difference and reason as text; only differing numbers have a reason."""
    name = f"{row.name} [{row.unit}]" if row.unit else row.name
    digits = max(_digits(row.published), 4)
    shown = [x if isinstance(x, str) else number(x, n) for x, n in ((row.ours, digits + 1), (row.published, digits))]
    share = "" if row.relative is None else f" ({'+' if row.relative > 0.0 else ''}{number(100.0 * row.relative, 2)} %)"
    close = bool(row.agrees) and abs(row.relative or 0.0) <= COARSE
    if row.published is None:
        off = ""
    elif row.agrees:
        off = ("agrees" if row.kind == "derived" else "same") if close else f"rounds to it{share}"
    else:
        off = "differs" if row.difference is None else f"{number(row.difference, 3)}{share}"
    return name, shown[0], shown[1], off, "" if close else row.reason


def nearer(rows: Sequence[Row], without: Sequence[float] | NDArray[Any]) -> bool:
    """Return whether removing a cause at least halves the difference of every differing number."""
    moved = [replace(row, ours=float(value)) for row, value in zip(rows, without, strict=True)]
    return all(
        bool(new.agrees) or 2.0 * abs(new.difference or 0.0) <= abs(row.difference or 0.0)
        for row, new in zip(rows, moved, strict=True)
        if not row.agrees
    )


@dataclass(frozen=True, eq=False)
class Reproduction(Result):
    """Result of a reproduction; its file holds everything but the figures.

    Parameters
    ----------
    tables : tuple of Table
        Our and the published numbers.
    figures : mapping of str to callable
        Captions and functions without arguments that return a matplotlib figure, such as the `plot` of a result.
    notes : tuple of str
        Notes on the comparison.
    experiments : mapping of str to callable
        Reasons of numbers that differ, and functions without arguments that return whether each holds.
    name, title, source : str
        Filled in by the registry: the name of the reproduction, its title, and where it is printed.
    """

    tables: tuple[Table, ...] = ()
    figures: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    experiments: Mapping[str, Callable[[], bool]] = field(default_factory=dict)
    name: str = ""
    title: str = ""
    source: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows of all tables."""
        return tuple(row for table in self.tables for row in table.rows)

    def of_kind(self, kind: str) -> list[Row]:
        """Return the rows with a published number of one kind."""
        return [row for row in self.rows if row.published is not None and row.kind == kind]

    @property
    def agreeing(self) -> tuple[int, int]:
        """Number of derived values that agree to all printed digits, and number of derived values."""
        judged = [bool(row.agrees) for row in self.of_kind("derived")]
        return sum(judged), len(judged)

    @property
    def differing(self) -> list[Row]:
        """Rows of any kind that do not round to the published number."""
        return [row for row in self.rows if row.agrees is False]

    @property
    def unexplained(self) -> list[Row]:
        """Differing rows with unknown cause."""
        return [row for row in self.differing if row.reason.startswith(UNEXPLAINED)]

    @property
    def reasons(self) -> dict[str, int]:
        """Number of differing rows by heading of `REASONS`."""
        found = dict.fromkeys(REASONS.values(), 0)
        for row in self.differing:
            found[next(heading for words, heading in REASONS.items() if words in row.reason)] += 1
        return found

    @property
    def untested(self) -> list[Row]:
        """Differing rows whose reason has no experiment; not allowed in a registered reproduction."""
        return [row for row in self.differing if row.reason not in self.experiments]

    def summary(self) -> str:
        """Return title, tables and notes as text."""
        lines = [f"{self.name}: {self.title} ({self.source})"]
        agreeing, judged = self.agreeing
        if judged:
            lines.append(f"{agreeing} of {judged} derived numbers agree to all printed digits")
        lines += [f"{len(self.of_kind(k))} numbers: {k}, {KINDS[k]}" for k in ("round trip", "virtual") if self.of_kind(k)]
        if self.differing:
            lines.append(f"{len(self.differing)} numbers differ, {len(self.unexplained)} of them for a cause that is not known")
        lines += [f"\n{table.summary()}" for table in self.tables]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def plot(self, figure: str | None = None) -> Figure:
        """Draw a figure by its caption, the first when omitted."""
        if not self.figures:
            raise DynidentError(f"'{self.name}' has tables only; there is nothing to plot")
        wanted = next(iter(self.figures)) if figure is None else figure
        if wanted not in self.figures:
            raise DynidentError(f"'{self.name}' has no figure '{wanted}'; it has {', '.join(map(repr, self.figures))}")
        return self.figures[wanted]()  # type: ignore[no-any-return]

    def _content(self) -> dict[str, Any]:
        content = super()._content()
        del content["figures"], content["experiments"]  # functions, available by running it again
        return content


# ---- the registry --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """An available reproduction."""

    name: str  # See `Reproduction`
    title: str  # See `Reproduction`
    source: str  # See `Reproduction`
    seconds: float  # Approximate duration on an idle machine
    run: Callable[[], Reproduction]  # Computes the result


_ENTRIES: dict[str, Entry] = {}


def reproduction(
    name: str, title: str, source: str, seconds: float = 1.0, kind: str = "derived"
) -> Callable[[Callable[[], Reproduction]], Callable[[], Reproduction]]:
    """Register, without a run, a function that has no arguments and returns a `Reproduction`; add name, title and source.

    The source is a key of docs/references.md with table or figure, such as ``[Rodriguez2002, Table 6]``. The `kind`, one of
    `KINDS`, is the default of its rows.
    """
    if kind not in KINDS:
        raise DynidentError(f"reproduction '{name}': kind is {kind!r}; it is one of {', '.join(KINDS)}")

    def register(function: Callable[[], Reproduction]) -> Callable[[], Reproduction]:
        @wraps(function)
        def run() -> Reproduction:
            found = function()
            tables = tuple(
                replace(table, rows=tuple(replace(row, kind=row.kind or kind) for row in table.rows)) for table in found.tables
            )
            found = replace(found, tables=tables, name=name, title=title, source=source)
            for row in found.untested:
                raise DynidentError(f"reproduction '{name}': '{row.name}' differs; give its reason as an experiment")
            return found

        known = _ENTRIES.get(name)
        if known is not None and _place(known.run) != _place(function):  # a notebook cell may register the same function again
            raise DynidentError(f"there are two reproductions '{name}', {_place(known.run)} and {_place(function)}; rename one")
        _ENTRIES[name] = Entry(name, title, source, seconds, run)
        return run

    return register


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


@cache
def _scripts() -> None:
    """Import every script of this package, which registers its reproductions."""
    package = import_module("dynident_papers.reproduce")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in NOT_SCRIPTS:
            import_module(f"dynident_papers.reproduce.{module.name}")


def entries() -> tuple[Entry, ...]:
    """Return all available reproductions, sorted by name."""
    _scripts()
    return tuple(_ENTRIES[name] for name in sorted(_ENTRIES, key=_natural))


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a key that sorts table-2 before table-10."""
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in name.split("-")]


def names() -> tuple[str, ...]:
    """Return the names of all reproductions, such as ``cft-table-6``."""
    return tuple(entry.name for entry in entries())


def _printed(source: str) -> set[tuple[str, str]]:
    """Return the tables, figures and equations named in a source, as ("fig", "4.8"); ranges are expanded."""
    kinds = {"T": "table", "F": "fig", "f": "fig", "e": "eq", "(": "eq"}
    listed = re.findall(r"(Table|Fig|figure|eq)s?\.? ((?:\d+(?:\.\d+)?(?:, | and | to |-)?)+)", source)
    listed += [("(", " to ".join(filter(None, pair))) for pair in re.findall(r"\((\d+)\)(?:(?:-| to )\((\d+)\))?", source)]
    found = set()
    for kind, text in listed:
        for part in re.split(r", | and ", text):
            ends = re.findall(r"\d+(?:\.\d+)?", part)
            if ends:
                chapter, last = ends[0].rpartition(".")[:2], int(ends[-1].rpartition(".")[2])
                numbers = range(int(ends[0].rpartition(".")[2]), last + 1)
                found |= {(kinds[kind[0]], "".join(chapter) + str(k)) for k in numbers}
    return found


def _made_with(name: str) -> Entry | None:
    """Return the reproduction that includes a table, figure or equation; None if there is none."""
    asked = re.fullmatch(r"(.+)-(table|fig|eq)-(\d+)(?:-(\d+))?", name)
    if asked is None:
        return None
    prefix, kind, *number = asked.groups()
    own = [entry for entry in entries() if entry.name.startswith(f"{prefix}-")]
    documents = {entry.source.split(",")[0] for entry in own}
    others = [entry for entry in entries() if entry not in own and entry.source.split(",")[0] in documents]
    wanted = (kind, ".".join(filter(None, number)))
    return next((entry for entry in own + others if wanted in _printed(entry.source)), None)


def entry_of(name: str) -> Entry:
    """Return the entry of a name."""
    _scripts()
    if name not in _ENTRIES:
        made_with = _made_with(name)
        if made_with is not None:
            return made_with
        near = difflib.get_close_matches(name, _ENTRIES, n=3, cutoff=0.5) or [x for x in _ENTRIES if name[:3] == x[:3]][:3]
        hint = f"the nearest are {', '.join(near)}" if near else "see  dynident reproduce --list"
        raise DynidentError(f"there is no reproduction '{name}'; {hint}")
    return _ENTRIES[name]


def reproduce(name: str) -> Reproduction:
    """Compute a published table or figure again, by its name such as ``cft-table-6``."""
    return entry_of(name).run()
