"""Expressions of xacro: evaluate("2*pi*r", names) walks the syntax tree and computes only what is listed in functions.py.

Nothing is compiled, no attribute of a Python object is read, and no function is called but those of the lists.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from dynident.errors import DynidentError
from dynident.mechanism.xacro.functions import (
    BINARY,
    COMPARE,
    MAX_ITEMS,
    MAX_NESTING,
    METHODS,
    UNARY,
    Budget,
    ExpressionError,
    Function,
    Namespace,
    checked,
    items,
    refuse,
)

MAX_EXPRESSION = 4_000
"""Characters of one expression."""


@lru_cache(maxsize=512)
def _parsed(text: str) -> ast.expr:
    if len(text) > MAX_EXPRESSION:
        raise ExpressionError(f"has more than {MAX_EXPRESSION} characters")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ExpressionError(f"is no expression ({getattr(error, 'msg', None) or 'too long or too deep'})") from None


def evaluate(text: str, lookup: Callable[[str], Any], budget: Budget) -> Any:
    """Return the value of an expression; `lookup` gives the value of a name or raises KeyError."""
    try:
        return _Walk(lookup, budget).value(_parsed(text.strip()), 0)
    except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError, MemoryError) as error:
        if isinstance(error, DynidentError):
            raise
        reason = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
        if isinstance(error, KeyError):
            reason = f"there is no {reason}"
        raise ExpressionError(f"cannot be computed ({reason})") from None


@dataclass
class _Walk:
    """One evaluation; `local` are the names of comprehensions."""

    lookup: Callable[[str], Any]
    budget: Budget
    local: dict[str, Any] = field(default_factory=dict)

    def value(self, node: ast.expr, depth: int) -> Any:
        """Return the value of a node."""
        if depth > MAX_NESTING:
            raise ExpressionError(f"is nested more than {MAX_NESTING} deep")
        depth += 1
        self.budget.spend("steps of evaluation")
        found: Any = None
        match node:
            case ast.Constant(value=constant):
                found = checked(constant, self.budget)
            case ast.Name(id=name):
                found = self._named(name)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in UNARY:
                found = UNARY[type(op)](self.value(operand, depth))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                pair = self._paid((self.value(left, depth), self.value(right, depth)))
                found = checked(BINARY[type(op)](*pair), self.budget)
            case ast.BoolOp(op=op, values=parts):
                for part in parts:
                    found = self.value(part, depth)
                    if bool(found) == isinstance(op, ast.Or):
                        break
            case ast.Compare(left=left, ops=ops, comparators=others):
                found, old = True, self.value(left, depth)
                for compare, other in zip(ops, others, strict=True):
                    new = self.value(other, depth)
                    found, old = COMPARE[type(compare)](*self._paid((old, new))), new
                    if not found:
                        break
            case ast.IfExp(test=test, body=body, orelse=orelse):
                found = self.value(body if self.value(test, depth) else orelse, depth)
            case ast.List(elts=parts):
                found = checked([self.value(part, depth) for part in parts], self.budget)
            case ast.Tuple(elts=parts):
                found = checked(tuple([self.value(part, depth) for part in parts]), self.budget)
            case ast.Dict(keys=keys, values=parts) if all(key is not None for key in keys):
                pairs = [
                    (self.value(k, depth), self.value(v, depth)) for k, v in zip(keys, parts, strict=True) if k is not None
                ]
                found = checked(dict(pairs), self.budget)
            case ast.Subscript(value=owner, slice=index):
                found = self._item(self.value(owner, depth), index, depth)
            case ast.Attribute(value=owner, attr=name):
                found = self._attribute(self.value(owner, depth), name)
            case ast.Call(func=function, args=arguments, keywords=keywords):
                found = checked(self._call(function, arguments, keywords, depth), self.budget)
            case ast.ListComp(elt=element, generators=loops) | ast.GeneratorExp(elt=element, generators=loops):
                found = []
                self._loop(element, loops, found, depth)
                checked(found, self.budget)
            case _:
                refuse(f"uses Python's {type(getattr(node, 'op', node)).__name__}")
        return found

    def _paid(self, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return operands after paying for those that take long to go through."""
        for operand in operands:
            if isinstance(operand, list | tuple | dict):
                checked(operand, self.budget)
            elif isinstance(operand, str):
                self.budget.spend("steps of evaluation", len(operand) // 100)
        return operands

    def _named(self, name: str) -> Any:
        if name.startswith("__"):
            refuse(f"uses the name '{name}'")
        if name in self.local:
            return self.local[name]
        try:
            return self.lookup(name)
        except KeyError:
            raise ExpressionError(f"uses '{name}', which is not defined") from None

    def _attribute(self, owner: Any, name: str) -> Any:
        """Return what stands behind a dot: an entry of a dictionary or namespace, never an attribute of an object."""
        if isinstance(owner, Namespace | dict) and not name.startswith("__"):
            try:
                return owner[name] if isinstance(owner, dict) else owner.lookup(name)
            except KeyError:
                raise ExpressionError(f"uses '.{name}', which does not exist") from None
        return refuse(f"uses '.{name}' of a {type(owner).__name__}")

    def _item(self, owner: Any, index: ast.expr, depth: int) -> Any:
        if not isinstance(owner, list | tuple | dict | str):
            refuse(f"takes an item of a {type(owner).__name__}")
        if isinstance(index, ast.Slice):
            bounds = [None if part is None else self.value(part, depth) for part in (index.lower, index.upper, index.step)]
            return checked(operator.getitem(owner, slice(*bounds)), self.budget)
        return owner[self.value(index, depth)]

    def _call(self, function: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword], depth: int) -> Any:
        owner: Any = None
        target: Any = None
        method: Callable[..., Any] | None = None
        if isinstance(function, ast.Attribute):
            owner = self.value(function.value, depth)
            method = METHODS.get(type(owner), {}).get(function.attr)
            if method is None:
                target = self._attribute(owner, function.attr)
        else:
            target = self.value(function, depth)
        if method is None and not isinstance(target, Function):
            refuse("calls what is no function of xacro")
        if any(keyword.arg is None for keyword in keywords):
            refuse("uses **")
        values = [self.value(argument, depth) for argument in arguments]
        named = {keyword.arg or "": self.value(keyword.value, depth) for keyword in keywords}
        if method is None:
            return target.call(*self._paid(tuple(values)), **named)
        if not isinstance(owner, dict):  # what is listed of a dictionary is paid as a result
            self._paid((owner,))
        return method(owner, *self._paid(tuple(values)), **named)

    def _loop(self, element: ast.expr, loops: list[ast.comprehension], found: list[Any], depth: int) -> None:
        """Append the values of a comprehension."""
        if not loops:
            found.append(self.value(element, depth))
            return
        if len(found) > MAX_ITEMS or depth > MAX_NESTING:
            raise ExpressionError(f"makes a list of more than {MAX_ITEMS} items")
        first, *rest = loops
        outer = dict(self.local)
        for item in items(self.value(first.iter, depth)):
            self._bind(first.target, item)
            if all(self.value(test, depth) for test in first.ifs):
                self._loop(element, rest, found, depth + 1)
        self.local = outer

    def _bind(self, target: ast.expr, item: Any) -> None:
        if isinstance(target, ast.Name):
            self.local[target.id] = item
        elif isinstance(target, ast.Tuple) and len(target.elts) == len(parts := items(item)):
            for name, part in zip(target.elts, parts, strict=True):
                self._bind(name, part)
        else:
            raise ExpressionError("cannot give the items of its loop these names")
