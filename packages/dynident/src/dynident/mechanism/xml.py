"""Reading XML safely: every malformed file, element or number becomes one clear sentence."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree.ElementTree import ParseError

import defusedxml.ElementTree
import numpy as np
from defusedxml.common import DefusedXmlException

from dynident.arrays import Array
from dynident.errors import DescriptionError, DescriptionWarning, warn
from dynident.files import read_regular

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Attributes: TypeAlias = "Element | Mapping[str, str]"
"""What attributes are read from: an element, or its attributes merged with defaults."""

MAX_DEPTH = 400
"""Deepest nesting accepted: far beyond any robot, and below what recursion over elements can bear."""

MAX_BYTES = 20_000_000
"""Largest file accepted; the largest robot descriptions have about a hundredth."""

MAX_BODIES, MAX_ELEMENTS = 3_000, 200_000
"""Most links or bodies, and elements, of one file: ten times the largest robot, and read within seconds."""

LONGEST = 1_000
"""Characters of a sentence about a file."""

LARGEST = 1e30
"""Largest number accepted: no robot has one, and products of a few stay within floating point."""


@contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the file's name in front of every `DescriptionError` raised inside."""
    name = Path(path).name
    try:
        yield
    except DescriptionError as error:
        if type(error) is not DescriptionError or str(error).startswith(f"{name}: "):
            raise
        text = str(error)
        if len(text) > LONGEST:  # it shows a value of the file
            text = f"{text[: LONGEST - 300]} ... {text[-300:]}"
        raise DescriptionError(f"{name}: {text}") from error


def read_bytes(path: str | os.PathLike[str], what: str) -> bytes:
    """Return the content of a regular file that must exist and not be empty."""
    file = Path(path)
    try:
        data = read_regular(file, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = "it is a folder" if file.name and _is_dir(file) else getattr(error, "strerror", None) or str(error)
        raise DescriptionError(f"cannot read {what} file '{file}': {reason}; give the path of a {what} file") from error
    if not data.strip():
        raise DescriptionError(f"{what} file '{file}' is empty; give a {what} file with a robot in it")
    return data


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


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
    """Return a text attribute that must be there and not be empty."""
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
    """Return `wanted`, with a number behind it when that name is taken."""
    name, count = wanted, 2
    while taken(name):
        name, count = f"{wanted}_{count}", count + 1
    return name


def quoted(names: Iterable[str], most: int = 8) -> str:
    """Return names in quotes, separated by commas, the first few of them."""
    every = [f"'{name}'" for name in names]
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + rest


def warn_description(sentence: str) -> None:
    """Warn with a `DescriptionWarning` placed at the user's call."""
    warn(sentence, DescriptionWarning)
