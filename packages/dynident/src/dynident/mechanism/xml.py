"""XML of robot descriptions: safe reading, patching in place, and the folders of the files that it names.

Every malformed file, element or number becomes one clear error message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree.ElementTree import ParseError, TreeBuilder

import defusedxml.ElementTree
import numpy as np
from defusedxml.common import DefusedXmlException

from dynident.arrays import Array
from dynident.errors import DescriptionError, DescriptionWarning, warn
from dynident.files import read_regular
from dynident.mechanism.parameters import check_consistency

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from dynident.mechanism.elements import Body

Attributes: TypeAlias = "Element | Mapping[str, str]"
"""Source of attributes: an element, or its attributes merged with defaults."""

MAX_DEPTH = 400
"""Deepest nesting accepted: deeper than any robot, and within the recursion limit."""

MAX_BYTES = 20_000_000
"""Largest file accepted; the largest robot descriptions have about a hundredth."""

MAX_BODIES, MAX_ELEMENTS = 3_000, 200_000
"""Most links or bodies, and elements, of one file: ten times the largest robot, and read within seconds."""

LONGEST = 1_000
"""Characters of an error message about a file."""

LARGEST = 1e30
"""Largest number accepted: larger ones are implausible, and products of a few stay within floating point."""


@contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Prefix every `DescriptionError` raised inside with the file's name."""
    name = Path(path).name
    try:
        yield
    except DescriptionError as error:
        if type(error) is not DescriptionError or str(error).startswith(f"{name}: "):
            raise
        text = str(error)
        if len(text) > LONGEST:  # the message quotes a value of the file
            text = f"{text[: LONGEST - 300]} ... {text[-300:]}"
        raise DescriptionError(f"{name}: {text}") from error


def read_bytes(path: str | os.PathLike[str], what: str) -> bytes:
    """Return the content of a regular file after checking that it exists and is not empty."""
    file = Path(path)
    try:
        if "\0" in os.fspath(file):
            raise OSError("its name has a NUL character")
        data = read_regular(file, MAX_BYTES)
    except OSError as error:
        reason = "it is a folder" if file.name and _is_folder(file) else getattr(error, "strerror", None) or str(error)
        raise DescriptionError(f"cannot read {what} file '{file}': {reason}; give the path of a {what} file") from error
    if not data.strip():
        raise DescriptionError(f"{what} file '{file}' is empty; give a {what} file with a robot in it")
    return data


def parse_xml(data: bytes | str, root_tag: str) -> Element:
    """Return the root element of an XML text, refusing entity tricks and over-deep nesting."""
    try:
        root: Element = defusedxml.ElementTree.fromstring(data)
    except DefusedXmlException as error:
        raise DescriptionError(
            f"the file defines XML entities or outside references ({type(error).__name__}); remove its <!DOCTYPE>"
        ) from error
    except (ParseError, LookupError, ValueError) as error:  # unknown encodings raise the last two
        raise DescriptionError(f"the file is not well-formed XML ({error}); correct or re-export it") from error
    return checked_root(root, root_tag)


def check_encoding(data: bytes) -> None:
    """Refuse an encoding unknown to the parser, whose error could not be distinguished from those of our builder."""
    try:
        defusedxml.ElementTree.XMLParser().feed(data[:400])
    except (ParseError, DefusedXmlException):
        return  # reported when the whole file is read
    except (LookupError, ValueError) as error:
        raise DescriptionError(f"the file is not well-formed XML ({error}); correct or re-export it") from error


def checked_root(root: Element, root_tag: str) -> Element:
    """Return the root after removing its default namespace from tags and checking its tag, depth and size."""
    # A plain default namespace (<robot xmlns="...">) is not part of the tags' meaning.
    namespace = root.tag[: root.tag.index("}") + 1] if root.tag.startswith("{") else ""
    level, elements, bodies = [root], 1, 0
    for _ in range(MAX_DEPTH):
        if namespace:
            for element in level:
                element.tag = element.tag.removeprefix(namespace)
        level = [child for element in level for child in element]
        if not level:
            break
        elements += len(level)
        bodies += sum(element.tag.rpartition("}")[2] in ("link", "body") for element in level)
        if bodies > MAX_BODIES or elements > MAX_ELEMENTS:
            raise DescriptionError(
                f"the file has more than {MAX_BODIES} links or {MAX_ELEMENTS} elements; describe the robot by its limbs"
            )
    else:
        raise DescriptionError(f"elements are nested more than {MAX_DEPTH} deep; flatten the description")
    if root.tag != root_tag:
        hint = "give the file that includes it" if root.tag == "mujocoinclude" else "give another file"
        raise DescriptionError(f"the root element is <{root.tag}>, but <{root_tag}> is needed; {hint}")
    return root


def text_attribute(element: Attributes, attribute: str, where: str) -> str:
    """Return a text attribute after checking that it is present and not empty."""
    text = (element.get(attribute) or "").strip()
    if not text:
        raise DescriptionError(f"{where} has no attribute '{attribute}'; add {attribute}=\"...\"")
    return text


def parse_numbers(text: str, count: int | None, what: str, finite: bool = True) -> Array:
    """Return the numbers of a blank-separated text."""
    need = {None: "numbers", 1: "one number"}.get(count, f"{count} numbers")
    try:
        if "_" in text:  # float() reads 1_0 as 10
            raise ValueError
        values = np.array([float(word) for word in text.split()], dtype=np.float64)
    except ValueError:
        raise DescriptionError(f"{what} is '{_short(text)}'; give {need} separated by blanks") from None
    if count is not None and values.size != count:
        raise DescriptionError(f"{what} is '{_short(text)}' ({values.size} numbers); give {need}")
    if np.any(np.isnan(values)) or (finite and not np.all(np.isfinite(values))):
        raise DescriptionError(f"{what} is '{_short(text)}'; give finite numbers")
    if np.any(np.abs(values[np.isfinite(values)]) > LARGEST):
        raise DescriptionError(f"{what} is '{_short(text)}'; give numbers below {LARGEST:g}")
    return values


def _short(text: str) -> str:
    return text if len(text) < 80 else text[:77] + "..."


def numbers(element: Attributes | None, attribute: str, count: int, default: Any, where: str) -> Array:
    """Return the numbers of an attribute, or the default when element or attribute is absent."""
    text = None if element is None else element.get(attribute)
    if text is None:
        if default is None:
            raise DescriptionError(f"{where} has no attribute '{attribute}'; add {attribute}=\"...\" ({count} numbers)")
        return np.array(default, dtype=np.float64)
    return parse_numbers(text, count, f"{where}: {attribute}")


def number(element: Attributes | None, attribute: str, default: float | None, where: str, finite: bool = True) -> float:
    """Return the number of an attribute, or the default when element or attribute is absent."""
    text = None if element is None else element.get(attribute)
    if text is None:
        if default is None:
            raise DescriptionError(f"{where} has no attribute '{attribute}'; add {attribute}=\"...\" (one number)")
        return default
    return float(parse_numbers(text, 1, f"{where}: {attribute}", finite)[0])


def unique_name(wanted: str, taken: Callable[[str], bool]) -> str:
    """Return `wanted`, with a number appended if the name is taken."""
    name, count = wanted, 2
    while taken(name):
        name, count = f"{wanted}_{count}", count + 1
    return name


def quoted(names: Iterable[str], most: int = 8) -> str:
    """Return names in quotes, separated by commas, at most the first `most`."""
    every = [f"'{name}'" for name in names]
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + rest


def warn_description(sentence: str) -> None:
    """Warn with a `DescriptionWarning` placed at the user's call."""
    warn(sentence, DescriptionWarning)


def warn_of_impossible(bodies: Iterable[Body], source: str) -> None:
    """Warn of bodies of a file with physically inconsistent inertia."""
    found = [check_consistency(b.inertia, b.name) for b in bodies if b.inertia is not None and np.any(b.inertia)]
    wrong = [verdict.sentence for verdict in found if not verdict.ok]
    if wrong:
        warn_description(f"{source}: {'; '.join(wrong)}; the numbers are used as a prior anyway")


_ATTRIBUTE = re.compile(rb"""([^\s=/>"']+)\s*=\s*("[^"]*"|'[^']*')""")


class _SpanBuilder(TreeBuilder):
    """Tree builder that records the byte where each element's start tag and end tag begin."""

    def __init__(self) -> None:
        super().__init__()
        self.parser: Any = None
        self.starts: dict[Element, int] = {}
        self.ends: dict[Element, int] = {}

    def start(self, tag: Any, attrs: Any, /) -> Any:
        element = super().start(tag, attrs)
        self.starts[element] = self.parser.CurrentByteIndex
        return element

    def end(self, tag: str, /) -> Any:
        element = super().end(tag)
        self.ends[element] = self.parser.CurrentByteIndex
        return element


@dataclass
class XmlPatch:
    """An XML text with pending changes."""

    data: bytes  # The text, in an encoding that contains ASCII
    root_tag: str  # Tag the root must have
    root: Element = field(init=False)
    _starts: dict[Element, int] = field(init=False, repr=False)
    _ends: dict[Element, int] = field(init=False, repr=False)
    _edits: list[tuple[int, int, bytes]] = field(default_factory=list, init=False, repr=False)
    _opened: dict[Element, list[bytes]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_encoding(self.data)
        builder = _SpanBuilder()
        parser = defusedxml.ElementTree.XMLParser(target=builder)
        builder.parser = parser.parser
        try:
            parser.feed(self.data)
            root = parser.close()
        except (ParseError, DefusedXmlException) as error:
            raise DescriptionError(f"the file is not well-formed XML ({error}); correct or re-export it") from error
        self.root = checked_root(root, self.root_tag)
        self._starts, self._ends = builder.starts, builder.ends
        # UTF-16 has zero bytes in every tag.
        if b"\0" in self.data or any(self.data[begin : begin + 1] != b"<" for begin in self._starts.values()):
            raise DescriptionError("the file is not in UTF-8 or another ASCII encoding; save it as UTF-8")

    def __contains__(self, element: Element) -> bool:
        return element in self._starts

    def _start_tag(self, element: Element) -> tuple[int, int]:
        """Return first byte and one past the last byte of the start tag."""
        begin = at = self._starts[element]
        quote = b""
        while True:
            char = self.data[at : at + 1]
            if quote:
                quote = b"" if char == quote else quote
            elif char in (b'"', b"'"):
                quote = char
            elif char == b">":
                return begin, at + 1
            at += 1

    def _attribute(self, element: Element, name: str) -> tuple[int, int, int] | None:
        """Return the positions of an attribute, of its quoted value, and of its end."""
        begin, end = self._start_tag(element)
        for match in _ATTRIBUTE.finditer(self.data, begin, end):
            if match.group(1) == name.encode():
                return match.start(), match.start(2), match.end()
        return None

    def set(self, element: Element, name: str, value: str) -> None:
        """Set an attribute; a new one follows the others."""
        if element.get(name) == value:
            return
        found = self._attribute(element, name)
        if found is not None:
            self._edits.append((found[1] + 1, found[2] - 1, _ascii(value)))
            return
        begin, end = self._start_tag(element)
        body = self.data[begin:end].rstrip(b">").rstrip(b"/")
        at = begin + len(body.rstrip())
        self._edits.append((at, at, _ascii(f' {name}="{value}"')))

    def remove(self, element: Element, name: str) -> None:
        """Remove an attribute and the blanks before it."""
        found = self._attribute(element, name)
        if found is not None:
            begin = found[0]
            while self.data[begin - 1 : begin].isspace():
                begin -= 1
            self._edits.append((begin, found[2], b""))

    def insert(self, element: Element, text: str, last: bool = False) -> None:
        """Insert children into an element, on separate lines if its children are on separate lines."""
        begin, end = self._start_tag(element)
        if self.data[:end].endswith(b"/>"):
            self._opened.setdefault(element, []).append(_ascii(text))
            return
        line = self.data[self.data.rfind(b"\n", 0, begin) + 1 : begin]
        if last:
            at = self._ends[element]
            # Before the blanks in front of the end tag, behind the last child.
            while self.data[at - 1 : at].isspace():
                at -= 1
        else:
            at = end
        inner = re.match(rb"(\r?\n[ \t]*)<", self.data[end:])
        if inner:
            blanks = inner.group(1)
        else:
            newline = b"\r\n" if b"\r\n" in self.data else b"\n"
            blanks = newline + line + b"  " if not line.strip() and b"\n" in self.data[end : self._ends[element]] else b""
        self._edits.append((at, at, blanks + _ascii(text)))

    def result(self) -> bytes:
        """Return the text with all changes applied."""
        edits = list(self._edits)
        for element, texts in self._opened.items():
            _, end = self._start_tag(element)
            slash = end - 2
            tag = re.match(rb"<([^\s/>]+)", self.data[self._starts[element] : end])
            name = tag.group(1) if tag else element.tag.encode()
            edits.append((slash, end, b">" + b"".join(texts) + b"</" + name + b">"))
        parts, at = [], 0
        # Stable by position: several insertions at one place keep their order.
        for begin, stop, text in sorted(edits, key=lambda edit: edit[:2]):
            parts += [self.data[at:begin], text]
            at = stop
        return b"".join([*parts, self.data[at:]])


def _ascii(text: str) -> bytes:
    return text.encode("ascii", "xmlcharrefreplace")  # valid in every encoding that contains ASCII


def exact(*values: float) -> str:
    """Return numbers as text that restores the same floats."""
    return " ".join(repr(float(value)) for value in values)


MAX_MANIFEST = 100_000
"""Bytes of a package.xml that are read."""


class Folders:
    """The folders a description may read from."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        search: Sequence[str | os.PathLike[str]] = (),
        package: bool = False,
    ) -> None:
        # A description may be a link into a workspace: the folders of link and target are both permitted.
        try:
            places = {Path(path).absolute().parent, Path(path).resolve().parent}
        except (OSError, RuntimeError, ValueError) as error:  # loops of links, NUL characters
            raise DescriptionError(f"{str(path)!r} cannot be found ({error}); give the path of a robot file") from None
        self.search = [_folder(folder) for folder in _listed(search)]
        self.above = [folder for place in places for folder in (place, *place.parents)]
        packages = [next((f for f in (p, *p.parents) if _package_name(f)), p) for p in places] if package else []
        self.found: dict[str, Path | None] = {}
        self.roots = [folder.resolve() for folder in (*places, *packages, *self.search)]

    def allowed(self, target: Path, what: str) -> Path:
        """Return the resolved path of a file that may be read; `what` names it in the refusal."""
        try:
            real = target.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise DescriptionError(f"{what} cannot be found ({error}); correct the name") from None
        if any(real.is_relative_to(root) for root in self.roots):
            return real
        raise DescriptionError(
            f"{what} is outside the robot's folder; move it there, or name its folder with --search (search=[...])"
        )

    def package(self, name: str) -> Path | None:
        """Return the folder of a ROS package, found by name without running code; reading from it is then permitted."""
        if not re.fullmatch(r"[A-Za-z0-9][\w-]{0,200}", name):
            raise DescriptionError(f"'{name[:60]}' is not a name of a package; give letters, digits, _ and -")
        if name not in self.found:
            self.found[name] = next((folder for folder in self._candidates(name) if _is_folder(folder)), None)
            if (folder := self.found[name]) is not None:
                self.roots.append(folder.resolve())
        return self.found[name]

    def _candidates(self, name: str) -> Iterator[Path]:
        for folder in self.search:
            if folder.name == name or _package_name(folder) == name:
                yield folder
            yield from (folder / name, folder / "share" / name)
        for folder in self.above:
            if _package_name(folder) == name:
                yield folder
            if _package_name(folder / name) == name:  # a neighbour in the same workspace
                yield folder / name
        for folder in self.above:
            # Without a manifest the name decides, but never for the home folder or its parents, which are no packages.
            if folder.name == name and folder.parent != Path(folder.anchor) and not _home().is_relative_to(folder):
                yield folder


def _home() -> Path:
    return Path(os.path.expanduser("~")).absolute()  # noqa: PTH111 - Path.home raises where there is none


def _listed(search: Sequence[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
    folders = [search] if isinstance(search, str | os.PathLike) else search
    if not isinstance(folders, Sequence) or not all(isinstance(folder, str | os.PathLike) for folder in folders):
        raise DescriptionError(f"search is {search!r}; give a list of folders")
    return list(folders)


def _folder(path: str | os.PathLike[str]) -> Path:
    folder = Path(path).absolute()
    if not _is_folder(folder):
        raise DescriptionError(f"search path '{path}' is not a folder; give a folder that exists")
    return folder


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _package_name(folder: Path) -> str:
    """Return the name in a folder's package.xml, or an empty string."""
    manifest = folder / "package.xml"
    try:
        if not manifest.is_file():
            return ""
        with manifest.open("rb") as stream:
            text = stream.read(MAX_MANIFEST).decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
    found = re.search(r"<name>\s*([\w.-]+)\s*</name>", text)
    return found[1] if found else ""
