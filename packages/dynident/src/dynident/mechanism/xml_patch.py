"""Changing numbers inside an XML file and nothing else: every other byte stays as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError, TreeBuilder

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from dynident.errors import DescriptionError
from dynident.mechanism.xml import checked_root

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_ATTRIBUTE = re.compile(rb"""([^\s=/>"']+)\s*=\s*("[^"]*"|'[^']*')""")


class _SpanBuilder(TreeBuilder):
    """Tree builder that notes the byte where each element's start tag and end tag begin."""

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
    """An XML text with changes waiting to be made."""

    data: bytes  # The text, in an encoding that contains ASCII
    root_tag: str  # Tag the root must have
    root: Element = field(init=False)
    _starts: dict[Element, int] = field(init=False, repr=False)
    _ends: dict[Element, int] = field(init=False, repr=False)
    _edits: list[tuple[int, int, bytes]] = field(default_factory=list, init=False, repr=False)
    _opened: dict[Element, list[bytes]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        builder = _SpanBuilder()
        parser = defusedxml.ElementTree.XMLParser(target=builder)
        builder.parser = parser.parser
        try:
            parser.feed(self.data)
            root = parser.close()
        except (ParseError, DefusedXmlException, LookupError, ValueError) as error:
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

    def _is_empty(self, element: Element) -> bool:
        return self.data[: self._start_tag(element)[1]].endswith(b"/>")

    def _attribute(self, element: Element, name: str) -> tuple[int, int, int] | None:
        """Return where an attribute begins, where its quoted value begins, and where it ends."""
        begin, end = self._start_tag(element)
        for match in _ATTRIBUTE.finditer(self.data, begin, end):
            if match.group(1) == name.encode():
                return match.start(), match.start(2), match.end()
        return None

    def set(self, element: Element, name: str, value: str) -> None:
        """Give an attribute a value, after the others when it is new."""
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
        """Put new children into an element, on lines of their own where its children stand on lines."""
        begin, end = self._start_tag(element)
        if self._is_empty(element):
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
        """Return the text with all changes made."""
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
    return text.encode("ascii", "xmlcharrefreplace")  # right in every encoding that contains ASCII


def exact(*values: float) -> str:
    """Return numbers as text that reads back to the same floats."""
    return " ".join(repr(float(value)) for value in values)
