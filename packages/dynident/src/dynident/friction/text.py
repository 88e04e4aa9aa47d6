"""Friction laws as text, such as ``asymmetric(tanh + viscous)``.

A law is named by its `name` or by its class; other packages register theirs in the group `dynident.friction`. Options are
numbers, tuples of numbers, None or laws. The text is never executed as code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from dynident.errors import DescriptionError, DynidentError
from dynident.friction import laws
from dynident.friction.law import FrictionLaw, Sum
from dynident.plugins import FRICTION, entries, load
from dynident.results import stored_fields


def _subclasses(of: Any) -> Iterator[type[FrictionLaw]]:
    for law in of.__subclasses__():
        yield law
        yield from _subclasses(law)


def _known() -> dict[str, type[FrictionLaw]]:
    """Return all laws by name and by class, including those defined by the program."""
    assert laws  # imported to register its laws
    found: dict[str, type[FrictionLaw]] = {}
    for law in _subclasses(FrictionLaw):
        if is_dataclass(law) and not law.__name__.startswith("_") and law is not Sum:
            found |= {law.__name__: law} | ({law.name: law} if isinstance(law.name, str) else {})
    return found


def _class(name: str) -> type[FrictionLaw] | None:
    """Return the law of a name, which may come from another package, or None."""
    found = _known().get(name)
    if found is None and name in entries(FRICTION):
        found = load(FRICTION, name)
        if found is not None and not (isinstance(found, type) and issubclass(found, FrictionLaw) and is_dataclass(found)):
            raise DescriptionError(f"plug-in '{name}' is not a friction law; it must be a dataclass derived from FrictionLaw")
    return found


def law_of(text: str | FrictionLaw) -> FrictionLaw:
    """Return the friction law that `text` names, such as ``"stribeck + viscous"``; a law itself is returned as it is.

    Examples
    --------
    >>> law_of("tanh + viscous").parameters
    ('tanh.fc', 'viscous.fv', 'tanh.beta')
    """
    if isinstance(text, FrictionLaw):
        return text
    if not isinstance(text, str) or len(text) > 1000:
        raise DescriptionError(f"a friction law is {text!r}; give a text such as 'stribeck + viscous'")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise _no_law(text, getattr(error, "msg", None) or str(error)) from None
    return _law(tree, text)


def _no_law(text: str, why: str) -> DescriptionError:
    return DescriptionError(f"'{text}' is not a friction law ({why}); write it as in 'stribeck + viscous'")


def _law(part: ast.expr, text: str) -> FrictionLaw:
    match part:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _law(left, text) + _law(right, text)
        case ast.Name(id=name) if _class(name):
            return _law(ast.Call(part, [], []), text)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords) if law := _class(name):
            known = [each.name for each in fields(law) if each.init]  # type: ignore[arg-type] # every law is a dataclass
            options = dict(zip(known, (_option(argument, text) for argument in arguments), strict=False))
            for keyword in keywords:
                if keyword.arg not in known or keyword.arg in options:
                    raise _no_law(text, f"{name} has no option '{keyword.arg}', or it is given twice")
                options[keyword.arg] = _option(keyword.value, text)
            if len(arguments) > len(known):
                raise _no_law(text, f"{name} has {len(known)} options")
            try:
                stored_fields(law, options, name)
            except DynidentError as error:
                raise _no_law(text, str(error).partition(";")[0]) from None
            return law(**options)
    names = sorted({str(law.name) for law in _known().values() if isinstance(law.name, str)} | set(entries(FRICTION)))
    raise DescriptionError(f"'{ast.unparse(part)[:60]}' in '{text}' is not a friction law; known laws are {', '.join(names)}")


def _option(part: ast.expr, text: str) -> Any:
    match part:
        case ast.Constant(value=value) if value is None or isinstance(value, int | float):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if isinstance(value, int | float):
            return -value
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return tuple(_option(item, text) for item in parts)
    return _law(part, text)


def law_text(law: FrictionLaw) -> str:
    """Return the text of a law, which `law_of` reads back."""
    if isinstance(law, Sum):
        return " + ".join(law_text(member) for member in law.members)
    if not is_dataclass(law):
        raise DescriptionError(f"the law '{law.name}' is not a dataclass, so it has no text; make it a frozen dataclass")
    options = []
    for option in fields(law):
        value = getattr(law, option.name)
        default = option.default_factory() if option.default_factory is not MISSING else option.default
        if value != default:
            options.append(f"{option.name}={law_text(value) if isinstance(value, FrictionLaw) else repr(value)}")
    return law.name + (f"({', '.join(options)})" if options else "")


def reference_temperature(law: FrictionLaw) -> float | None:
    """Return the first temperature at which parameters of a law hold [degree Celsius]; None for a law without one."""
    if hasattr(law, "reference"):
        return float(law.reference)
    own = getattr(law, "law", None)
    inner = law.members if isinstance(law, Sum) else (own,) if isinstance(own, FrictionLaw) else ()
    return next((found for member in inner if (found := reference_temperature(member)) is not None), None)
