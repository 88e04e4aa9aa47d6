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
        evaluate = FORMS.get(type(node))
        return evaluate(self, node, depth) if evaluate else refuse(f"uses Python's {type(node).__name__}")

    def _constant(self, node: ast.Constant, depth: int) -> Any:
        return checked(node.value, self.budget)

    def _name(self, node: ast.Name, depth: int) -> Any:
        return self._named(node.id)

    def _unary(self, node: ast.UnaryOp, depth: int) -> Any:
        compute = UNARY.get(type(node.op)) or refuse(f"uses Python's {type(node.op).__name__}")
        return compute(self.value(node.operand, depth))

    def _binary(self, node: ast.BinOp, depth: int) -> Any:
        compute = BINARY.get(type(node.op)) or refuse(f"uses Python's {type(node.op).__name__}")
        pair = self._paid((self.value(node.left, depth), self.value(node.right, depth)))
        return checked(compute(*pair), self.budget)

    def _and_or(self, node: ast.BoolOp, depth: int) -> Any:
        found: Any = None
        for part in node.values:
            found = self.value(part, depth)
            if bool(found) == isinstance(node.op, ast.Or):
                break
        return found

    def _compare(self, node: ast.Compare, depth: int) -> Any:
        found, old = True, self.value(node.left, depth)
        for compare, other in zip(node.ops, node.comparators, strict=True):
            new = self.value(other, depth)
            found, old = COMPARE[type(compare)](*self._paid((old, new))), new
            if not found:
                break
        return found

    def _if(self, node: ast.IfExp, depth: int) -> Any:
        return self.value(node.body if self.value(node.test, depth) else node.orelse, depth)

    def _list(self, node: ast.List, depth: int) -> Any:
        return checked([self.value(part, depth) for part in node.elts], self.budget)

    def _tuple(self, node: ast.Tuple, depth: int) -> Any:
        return checked(tuple([self.value(part, depth) for part in node.elts]), self.budget)

    def _dict(self, node: ast.Dict, depth: int) -> Any:
        if any(key is None for key in node.keys):
            refuse("uses Python's Dict")
        pairs = [
            (self.value(k, depth), self.value(v, depth)) for k, v in zip(node.keys, node.values, strict=True) if k is not None
        ]
        return checked(dict(pairs), self.budget)

    def _subscript(self, node: ast.Subscript, depth: int) -> Any:
        return self._item(self.value(node.value, depth), node.slice, depth)

    def _dot(self, node: ast.Attribute, depth: int) -> Any:
        return self._attribute(self.value(node.value, depth), node.attr)

    def _called(self, node: ast.Call, depth: int) -> Any:
        return checked(self._call(node.func, node.args, node.keywords, depth), self.budget)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, depth: int) -> Any:
        found: list[Any] = []
        self._loop(node.elt, node.generators, found, depth)
        return checked(found, self.budget)

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


FORMS: dict[type[ast.expr], Callable[[_Walk, Any, int], Any]] = {
    ast.Constant: _Walk._constant,
    ast.Name: _Walk._name,
    ast.UnaryOp: _Walk._unary,
    ast.BinOp: _Walk._binary,
    ast.BoolOp: _Walk._and_or,
    ast.Compare: _Walk._compare,
    ast.IfExp: _Walk._if,
    ast.List: _Walk._list,
    ast.Tuple: _Walk._tuple,
    ast.Dict: _Walk._dict,
    ast.Subscript: _Walk._subscript,
    ast.Attribute: _Walk._dot,
    ast.Call: _Walk._called,
    ast.ListComp: _Walk._comprehension,
    ast.GeneratorExp: _Walk._comprehension,
}
"""What may stand in an expression; everything else of Python is refused."""
