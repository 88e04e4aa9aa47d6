"""Elements of a .xacro file: read with their prefixes, within the budget, and put together again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from dynident.errors import DescriptionError
from dynident.mechanism.xacro.functions import Budget
from dynident.mechanism.xml import MAX_DEPTH, read_bytes

Content: TypeAlias = "list[Element | str]"
"""What stands between the tags of an element."""


class _Builder(TreeBuilder):
    """Builds elements whose tags carry the prefix ``xacro:`` as in the file, within the budget."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self.budget, self.prefixes, self.depth = budget, {"": ""}, 0

    def start_ns(self, prefix: str, uri: str) -> None:
        if uri.rstrip("/").endswith("xacro") and prefix != "xacro":
            raise DescriptionError(f"the prefix of xacro is '{prefix}'; write xmlns:xacro=\"...\" and <xacro:...>")
        self.prefixes[uri] = f"{prefix}:" if prefix else ""

    def _named(self, name: str) -> str:
        uri, _, local = name.rpartition("}")
        return self.prefixes.get(uri[1:], "") + local

    def start(self, tag: str, attrs: Any) -> Any:
        self.budget.spend("elements")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise DescriptionError(f"elements are nested more than {MAX_DEPTH} deep; flatten the description")
        return super().start(self._named(tag), {self._named(name): value for name, value in attrs.items()})

    def end(self, tag: str) -> Any:
        self.depth -= 1
        return super().end(self._named(tag))


def parse(path: Path, budget: Budget) -> Element:
    """Return the root of a .xacro file."""
    data = read_bytes(path, "xacro")
    budget.spend("characters", len(data))
    parser = defusedxml.ElementTree.DefusedXMLParser(target=_Builder(budget))
    try:
        parser.feed(data)
        root: Element = parser.close()
    except DefusedXmlException as error:
        raise DescriptionError(
            f"the file defines XML entities or outside references ({type(error).__name__}); remove its <!DOCTYPE>"
        ) from error
    except (ParseError, LookupError) as error:
        raise DescriptionError(f"the file is not well-formed XML ({error}); correct it") from error
    except ValueError as error:
        if isinstance(error, DescriptionError):
            raise
        raise DescriptionError(f"the file is not well-formed XML ({error}); correct it") from error
    return root


def assembled(tag: str, attributes: dict[str, str], content: Content) -> Element:
    """Return an element with this content; blank texts are left out."""
    element, texts = Element(tag, attributes), list[str]()

    def write() -> None:
        text = "".join(texts)
        texts.clear()
        if not text.strip():
            return
        if len(element):
            element[-1].tail = text
        else:
            element.text = text

    for part in content:
        if isinstance(part, str):
            texts.append(part)
        else:
            write()
            element.append(part)
    write()
    return element
