"""Expansion of a .xacro file: content(element, scope) returns the replacement of an element, texts and elements in order.

Every xacro element has one method. Input is never changed, so a macro's body is evaluated again at every call. The
language is that of ROS's package xacro, version 2; access beyond the robot's folder and Python code are refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from dynident.errors import DescriptionError
from dynident.mechanism.xacro.expressions import (
    FUNCTIONS,
    XACRO,
    Budget,
    ExpressionError,
    Function,
    Namespace,
    as_text,
    evaluate,
    names_in,
    refuse,
)
from dynident.mechanism.xacro.properties import Macro, Scope, argument_value, load_yaml, parameters, pieces, truth
from dynident.mechanism.xml import MAX_DEPTH, Folders, check_encoding, checked_root, read_bytes

MAX_INCLUDES, MAX_PARAMS = 20, 20_000
Handler: TypeAlias = "Callable[[Element, Scope, dict[str, str]], Content]"


def expand(
    path: str | os.PathLike[str],
    search: Sequence[str | os.PathLike[str]] = (),
    arguments: Mapping[str, object] | None = None,
) -> Element:
    """Expand a .xacro file without running any code from it."""
    expander = _Expander(Path(path), search, arguments or {})
    try:
        return checked_root(expander.document(), "robot")
    except RecursionError:
        raise DescriptionError("macros, properties or elements are nested too deep; does one of them use itself?") from None


def _required(node: Element, name: str) -> str:
    value = node.get(name)
    if value is None:
        raise DescriptionError(f"<{node.tag}> has no attribute '{name}'; add {name}=\"...\"")
    return value


class _Expander:
    """State of one expansion: budget, arguments, the files being read, and the depth of the elements."""

    def __init__(self, path: Path, search: Sequence[str | os.PathLike[str]], arguments: Mapping[str, object]) -> None:
        self.budget = Budget()
        self.folders = Folders(path, search, package=True)
        self.arguments = {name: str(value) for name, value in arguments.items()}
        self.files = [path.absolute()]
        self.loaded: dict[Path, Any] = {}
        self.depth = 0
        own: dict[str, Callable[..., Any]] = {
            "load_yaml": self.yaml,
            "abs_filename": lambda name: str(self.place(as_text(name))),
            "arg": lambda name: self.argument(as_text(name)),
        }
        functions = {name: Function(name, call, ours=True) for name, call in own.items()}
        self.functions = {
            "xacro": Namespace(names_in({**XACRO, **functions})),
            "load_yaml": functions["load_yaml"],
            "abs_filename": functions["abs_filename"],
        }
        self.elements: dict[str, Handler] = {
            "xacro:insert_block": self.insert_block,
            "xacro:include": self.include,
            "xacro:property": self.property,
            "xacro:macro": self.macro,
            "xacro:arg": self.arg,
            "xacro:element": self.element,
            "xacro:attribute": self.attribute,
            "xacro:if": self.condition,
            "xacro:unless": self.condition,
            "xacro:call": self.call_by_name,
        }

    def document(self) -> Element:
        """Return the expanded root."""
        root = parse(self.files[0], self.budget)
        scope = Scope(self.text)
        scope.values.update(self.functions)
        added: dict[str, str] = {}
        content = self.content(root, scope, added)
        # Last, because many packages write <robot name="$(arg name)"> before the argument has its default.
        return assembled(root.tag, {**self.attributes(root, scope), **added}, content)

    # ---- texts ------------------------------------------------------------------------------------------------------

    def text(self, text: str, scope: Scope) -> Any:
        """Return the value of a text: that of its only part, or the concatenation of its parts."""
        if "$" not in text:
            return text
        parts = list(pieces(text))
        values: list[Any] = []
        for kind, content in parts:
            shown = f"${{{content}}}" if kind == "expression" else f"$({content})"
            try:
                if kind == "text":
                    value: Any = content
                elif kind == "expression":
                    value = evaluate(as_text(self.text(content, scope)), scope.lookup, self.budget)
                else:
                    value = self.command(as_text(self.text(content, scope)))
                values.append(value if len(parts) == 1 else as_text(value))
            except ExpressionError as error:
                shown = shown if len(shown) < 100 else f"{shown[:97]}..."
                raise DescriptionError(f"{self.where()}'{shown}' {error}; {error.remedy}") from None
            self.budget.spend("characters", len(values[-1]) if isinstance(values[-1], str) else 1)
        return values[0] if len(parts) == 1 else "".join(values)

    def written(self, text: str, scope: Scope) -> str:
        """Return a text as written in the result."""
        try:
            written = as_text(self.text(text, scope))
        except ExpressionError as error:
            raise DescriptionError(f"{self.where()}'{text[:100]}' {error}; give a number or a text") from None
        self.budget.spend("characters", len(written) + 20)  # an empty text costs memory, too
        return written

    def where(self) -> str:
        """Return the included file being read, as the beginning of a sentence."""
        return f"in '{self.files[-1].name}': " if len(self.files) > 1 else ""

    def command(self, text: str) -> str:
        """Return the text of ``$(...)``."""
        match text.split():
            case ["arg", name]:
                return self.argument(name)
            case ["find", package]:
                if package not in self.folders.found:
                    self.budget.spend("included files")
                # A missing package may still be named: most such names are paths of meshes and settings that are not read.
                return str(self.folders.package(package) or f"package://{package}")
            case ["dirname"]:
                return str(self.files[-1].parent)
            case ["eval", *_]:
                return as_text(evaluate(text.strip().removeprefix("eval"), self.name_in_eval, self.budget))
            case ["env" | "optenv" | "anon" | "cwd" as name, *_]:
                return refuse(f"depends on this computer ($({name})), not on the robot")
            case _:
                raise ExpressionError("is not a command of xacro; known are $(arg), $(find), $(dirname) and $(eval)")

    def argument(self, name: str) -> str:
        """Return the value of an argument."""
        if name not in self.arguments:
            remedy = f"give it one with --arg {name}:=... (arguments=)"
            raise ExpressionError(f"uses the argument '{name}', which has no value", remedy)
        return self.arguments[name]

    def name_in_eval(self, name: str) -> Any:
        """Return the value of a name inside ``$(eval ...)``: an argument, converted to a number or truth value if possible."""
        if name in self.arguments:
            return argument_value(self.arguments[name])
        return {"true": True, "false": False}[name] if name in ("true", "false") else FUNCTIONS[name]

    def place(self, name: str) -> Path:
        """Return the path of a file named in the file being read."""
        if not name.startswith("package://"):
            return self.files[-1].parent / name
        package, _, rest = name.removeprefix("package://").partition("/")
        folder = self.folders.package(package)
        if folder is None:
            raise DescriptionError(
                f"{self.where()}package '{package}' is not found above the file, but '{rest[:100]}' in it is needed; "
                "name the folder that holds it with --search (search=[...])"
            )
        return folder / rest

    def yaml(self, name: Any) -> Any:
        """Return the content of a YAML file."""
        name = as_text(name)
        self.budget.spend("included files")
        path = self.folders.allowed(self.place(name), f"{self.where()}load_yaml: file '{name[:200]}'")
        if path not in self.loaded:
            self.loaded[path] = load_yaml(path, lambda text: evaluate(text, names_in(FUNCTIONS), self.budget), self.budget)
        return self.loaded[path]

    # ---- elements ---------------------------------------------------------------------------------------------------

    def plain(self, node: Element, scope: Scope) -> Element:
        """Return an element outside the xacro namespace, with its texts and content evaluated."""
        self.budget.spend("elements")
        attributes = self.attributes(node, scope)
        content = self.content(node, scope, attributes)
        return assembled(node.tag, attributes, content)

    def attributes(self, node: Element, scope: Scope) -> dict[str, str]:
        """Return the evaluated attributes of an element, without those of the xacro namespace."""
        return {name: self.written(value, scope) for name, value in node.attrib.items() if not name.startswith("xacro:")}

    def content(self, node: Element, scope: Scope, attributes: dict[str, str]) -> Content:
        """Return the evaluated texts and children of a node; <xacro:attribute> adds to `attributes`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise DescriptionError(f"macros and elements are nested more than {MAX_DEPTH} deep; does a macro call itself?")
        found: Content = [self.written(node.text, scope)] if node.text else []
        for child in node:
            found.extend(self.handler(child)(child, scope, attributes))
            if child.tail:
                found.append(self.written(child.tail, scope))
        self.depth -= 1
        return found

    def handler(self, node: Element) -> Handler:
        """Return the method that evaluates an element."""
        if not node.tag.startswith("xacro:"):
            return lambda node, scope, _: [self.plain(node, scope)]
        self.budget.spend("elements")
        return self.elements.get(node.tag, self.call)

    def condition(self, node: Element, scope: Scope, _: dict[str, str]) -> Content:
        """Evaluate <xacro:if> and <xacro:unless>."""
        text = _required(node, "value")
        met = truth(self.text(text, scope), f'{self.where()}<{node.tag} value="{text[:60]}">')
        return self.content(node, scope, {}) if met == (node.tag == "xacro:if") else []

    def element(self, node: Element, scope: Scope, attributes: dict[str, str]) -> Content:
        """Evaluate <xacro:element>: an element with a computed tag."""
        tag = self.written(_required(node, "xacro:name"), scope)
        renamed = Element(tag, {name: value for name, value in node.attrib.items() if name != "xacro:name"})
        if not tag or tag == "xacro:element":
            raise DescriptionError(f"<xacro:element> has the name '{tag}'; give the tag of the element")
        renamed.text, renamed[:] = node.text, node[:]
        return self.handler(renamed)(renamed, scope, attributes)

    def attribute(self, node: Element, scope: Scope, attributes: dict[str, str]) -> Content:
        """Evaluate <xacro:attribute>: one more attribute of the element around it."""
        name = self.written(_required(node, "name"), scope)
        if not name:
            raise DescriptionError("<xacro:attribute> has an empty name; give the name of the attribute")
        attributes[name] = self.written(_required(node, "value"), scope)
        return []

    def arg(self, node: Element, scope: Scope, _: dict[str, str]) -> Content:
        """Evaluate <xacro:arg>."""
        name, default = _required(node, "name"), _required(node, "default")
        if name not in self.arguments:
            self.arguments[name] = self.written(default, scope)
        return []

    def property(self, node: Element, scope: Scope, _: dict[str, str]) -> Content:
        """Evaluate <xacro:property>: a value, a default value, a block, or its removal."""
        name = self.written(_required(node, "name"), scope)
        if not name.isidentifier() or name.startswith("__"):
            raise DescriptionError(f"{self.where()}<xacro:property> has the name '{name[:60]}'; give letters, digits and _")
        value, default = node.get("value"), node.get("default")
        removed = truth(self.text(node.get("remove", "false"), scope), f'<xacro:property name="{name}" remove>')
        if (value is not None) + (default is not None) + removed > 1:
            raise DescriptionError(f'<xacro:property name="{name}"> has more than one of value, default and remove; keep one')
        if removed:
            scope.remove(name)
            return []
        if default is not None:
            if name in scope:
                return []
            value = default
        lazy = truth(self.text(node.get("lazy_eval", "true"), scope), f'<xacro:property name="{name}" lazy_eval>')
        target = scope
        match node.get("scope"):
            case "global":
                target, lazy = list(scope.upward())[-1], False
            case "parent":
                target, lazy = scope.parent or scope, False
                while target.is_namespace and not scope.is_namespace and target.parent is not None:
                    target = target.parent
        if value is None:
            target.blocks[f"**{name}"] = node
        else:
            target.set(name, value if lazy else self.text(value, scope), lazy)
        return []

    def insert_block(self, node: Element, scope: Scope, _: dict[str, str]) -> Content:
        """Evaluate <xacro:insert_block>: the content of a ``**`` block, or a ``*`` block as a whole."""
        name = _required(node, "name")
        block = scope.block(f"**{name}")
        if block is not None:
            return self.content(block, scope, {})
        block = scope.block(f"*{name}")
        if block is None:
            raise DescriptionError(f"{self.where()}<xacro:insert_block>: there is no block '{name[:60]}'; correct the name")
        return [self.plain(block, scope)]

    def include(self, node: Element, scope: Scope, _: dict[str, str]) -> Content:
        """Evaluate <xacro:include>: the content of another file, in a namespace if it has one."""
        name = self.written(_required(node, "filename"), scope)
        what = f"{self.where()}<xacro:include>: file '{name[:200]}'"
        if set(name) & set("*?["):
            raise DescriptionError(f"{what} has a wildcard; include every file by its name")
        self.budget.spend("included files")
        if len(self.files) > MAX_INCLUDES:
            raise DescriptionError(f"{what} is included more than {MAX_INCLUDES} deep; does a file include itself?")
        path = self.folders.allowed(self.place(name), what)
        inner = scope
        space = node.get("ns")
        if space:
            inner = Scope(self.text, parent=scope, is_namespace=True)
            scope.spaces[self.written(space, scope)] = inner
        if truth(node.get("optional", "false"), f"{what}: optional") and not os.path.exists(path):  # noqa: PTH110 - never raises
            return []
        self.files.append(self.place(name))
        try:
            root = parse(path, self.budget)
        except DescriptionError as error:
            raise DescriptionError(f"{what}: {error}") from error
        found = self.content(root, inner, {})
        self.files.pop()
        return found

    # ---- macros -----------------------------------------------------------------------------------------------------

    def macro(self, node: Element, scope: Scope, _: dict[str, str]) -> Content:
        """Evaluate <xacro:macro>: its definition."""
        name, params = _required(node, "name").removeprefix("xacro:"), node.get("params", "")
        if not name or "." in name or name == "call" or len(params) > MAX_PARAMS:
            raise DescriptionError(f"<xacro:macro> has the name '{name[:60]}'; give a name without dots, and short params")
        scope.macros[name] = Macro(node, parameters(params))
        return []

    def call_by_name(self, node: Element, scope: Scope, _: dict[str, str]) -> Content:
        """Evaluate <xacro:call>: a macro with a computed name."""
        renamed = Element(f"xacro:{self.written(_required(node, 'macro'), scope)}", node.attrib)
        del renamed.attrib["macro"]
        renamed.text, renamed[:] = node.text, node[:]
        return self.call(renamed, scope, {})

    def call(self, node: Element, scope: Scope, _: dict[str, str]) -> Content:
        """Return the body of a macro, evaluated with the call's parameters and blocks."""
        name = node.tag.removeprefix("xacro:")
        self.budget.spend("macro calls")
        found = scope.macro(name)
        if found is None:
            raise DescriptionError(f"{self.where()}<xacro:{name[:60]}>: there is no such macro; define or include it before")
        macro, home = found
        what = f"{self.where()}macro '{name}'"
        inner = Scope(self.text, parent=home)
        missing = dict(macro.parameters)
        self.budget.spend("steps of evaluation", len(missing))
        for key, value in node.attrib.items():
            if key not in missing:
                raise DescriptionError(
                    f"{what} has no parameter '{key[:60]}'; its parameters are: {' '.join(macro.parameters)}"
                )
            del missing[key]
            inner.set(key, self.text(value, scope), lazy=False)
        blocks = [part for part in self.content(node, scope, {}) if not isinstance(part, str)]
        for key in [key for key in missing if key.startswith("*")]:
            if not blocks:
                raise DescriptionError(f"{what} needs the block '{key}'; put an element into the call")
            del missing[key]
            inner.blocks[key] = blocks.pop(0)
        if blocks:
            raise DescriptionError(f"{what} has no use for the block <{blocks[0].tag}>; remove it from the call")
        for key, (forward, default) in missing.items():
            if forward and key in scope:
                inner.set(key, scope.lookup(key), lazy=False)
            elif default is not None:
                inner.set(key, self.text(default, scope), lazy=False)
            else:
                raise DescriptionError(f"{what} needs the parameter '{key}'; give it in the call")
        return self.content(macro.body, inner, {})


Content: TypeAlias = "list[Element | str]"
"""Texts and elements between the tags of an element."""


class _Builder(TreeBuilder):
    """Builds elements with ``xacro:`` tags as in the file, within the budget."""

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
    check_encoding(data)
    parser = defusedxml.ElementTree.DefusedXMLParser(target=_Builder(budget))
    try:
        parser.feed(data)
        root: Element = parser.close()
    except DefusedXmlException as error:
        raise DescriptionError(
            f"the file defines XML entities or outside references ({type(error).__name__}); remove its <!DOCTYPE>"
        ) from error
    except ParseError as error:
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
