"""`Program`: closed forms that share one graph, with their inputs, operation counts and values; exact base parameters.

    Izz_1R = Izz_1 + ia_1 + d2^2 m_2 + ...

With W1 the regressor columns of the leaders and W = W1 K all columns, K depends on the lengths only. It is computed
numerically and recognised, never guessed: K is found for random sets of lengths, each entry is fitted by polynomials of degree
0, 1, 2 in the lengths (and by them times gravity, or divided by a length or two), and a fit counts only when it also explains
sets of lengths that it has not seen. Coefficients close to a multiple of 1/12 become that fraction. An entry that no such
polynomial explains keeps its number for the robot's own geometry and is marked as not exact; when the robot's lengths are
special (columns that depend on each other for these lengths only) all entries stay numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Function, Graph, Node, evaluate_nodes, reachable, total
from dynident.mechanism.mechanism import Mechanism
from dynident.parallel import one_blas_thread

SHARED = ("phi", "beta", "geometry")  # arrays that are the same for all samples
COUNTED = ("+", "*", "/", "sin", "cos", "other")
_CLASS = {"add": "+", "sub": "+", "neg": "+", "mul": "*", "div": "/", "sin": "sin", "cos": "cos"}


@dataclass(frozen=True)
class Operations:
    """Number of operations of one evaluation."""

    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """All operations together."""
        return sum(self.counts.values())

    def __getitem__(self, kind: str) -> int:
        return self.counts.get(kind, 0)


@dataclass(frozen=True)
class Quantity:
    """One closed form: an array of expressions."""

    name: str  #: Name, as in ``inverse_dynamics``
    result: str  #: Name of the result, as in ``tau``
    shape: tuple[int, ...]  #: Its shape
    entries: tuple[Node, ...]  #: Its entries, row by row
    meaning: str  #: Meaning in one line


@dataclass(frozen=True, eq=False)
class Program:
    """Closed forms of a robot."""

    name: str  #: Name of the robot
    graph: Graph = field(repr=False)  #: Graph of the expressions; symbol ``q[3]`` is element 3 of array ``q``
    #: Input arrays: ``q``, ``v``, ``a``, ``tau`` (independent coordinates), ``phi`` (standard parameters), ``beta``
    #: (base parameters), ``geometry`` (lengths), each with the name of every element
    inputs: Mapping[str, tuple[str, ...]] = field(repr=False)
    #: The robot's own numbers for ``phi`` and ``geometry``
    values: Mapping[str, Array] = field(repr=False)
    quantities: Mapping[str, Quantity] = field(repr=False)  #: The closed forms
    regrouping: Regrouping | None = field(default=None, repr=False)  #: Base parameters, if ``base_regressor`` was requested

    def __getitem__(self, quantity: str) -> Quantity:
        try:
            return self.quantities[quantity]
        except KeyError:
            raise DynidentError(
                f"the program of '{self.name}' has no quantity '{quantity}'; it has {', '.join(self.quantities)}"
            ) from None

    def needed(self, quantity: str) -> tuple[str, ...]:
        """Return the input arrays that a quantity depends on."""
        used = {place(node.name)[0] for node in reachable(self[quantity].entries) if node.op == "symbol"}
        return tuple(name for name in self.inputs if name in used)

    # ---- counting ---------------------------------------------------------------------------------------------------

    def operations(self, *quantities: str) -> Operations:
        """Return the operations of one evaluation as generated: every shared sub-expression once."""
        names = quantities or tuple(self.quantities)
        nodes = reachable([entry for name in names for entry in self[name].entries])
        counts = dict.fromkeys(COUNTED, 0)
        for node in nodes:
            if node.op not in ("const", "symbol"):
                counts[_CLASS.get(node.op, "other")] += 1
        return Operations(MappingProxyType(counts))

    # ---- values -----------------------------------------------------------------------------------------------------

    def evaluate(self, quantity: str, **inputs: ArrayLike) -> Array:
        """Return the numbers of a closed form, computed by NumPy operation by operation."""
        form, given = self[quantity], self._given(quantity, inputs)
        samples = max((array.shape[0] for array in given.values()), default=1)
        result = np.empty((samples, len(form.entries)))
        columns = {f"{name}[{i}]": array[:, i] for name, array in given.items() for i in range(array.shape[1])}
        for j, column in enumerate(evaluate_nodes(form.entries, columns)):
            result[:, j] = column
        return result.reshape(samples, *form.shape)

    def compiled(self, quantity: str) -> Callable[..., Array]:
        """Return a closed form as machine code; it takes the arrays of `evaluate` by keyword, parameters and lengths once."""
        form, function = self[quantity], self.function(quantity)
        code = Compiled(function)

        def run(**inputs: ArrayLike) -> Array:
            given = self._given(quantity, inputs)
            counts = {name: array.shape[0] for name, array in given.items()}
            samples = max((counts[name] for name in function.inputs), default=1)
            for name, count in counts.items():
                if count != (samples if name in function.inputs else 1):
                    raise DynidentError(
                        f"'{name}' has {count} rows; compiled {quantity} of {samples} samples needs as many, shared arrays one"
                    )
            result = np.empty((samples, *form.shape))
            code(samples, {name: np.ascontiguousarray(array) for name, array in given.items()} | {form.result: result})
            return result

        return run

    def _given(self, quantity: str, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """Return the arrays that a quantity needs, (N, k) each; by default the robot's own."""
        given: dict[str, Array] = {}
        for name in self.needed(quantity):
            value = inputs.get(name, self.values.get(name))
            if value is None:
                raise DynidentError(f"{quantity} needs '{name}' ({len(self.inputs[name])} numbers); give it by keyword")
            array = np.atleast_2d(np.asarray(value, dtype=np.float64))
            if array.ndim != 2 or array.shape[1] != len(self.inputs[name]):
                raise DynidentError(
                    f"'{name}' has shape {np.shape(value)}; {quantity} of '{self.name}' needs {len(self.inputs[name])} columns"
                )
            given[name] = array
        return given

    def function(self, quantity: str, prefix: str = "") -> Function:
        """Return a closed form as a function of arrays, the input of printers and compiler."""
        form = self[quantity]
        sizes = {name: len(self.inputs[name]) for name in self.needed(quantity)}
        inputs = {name: size for name, size in sizes.items() if name not in SHARED}
        shared = {name: size for name, size in sizes.items() if name in SHARED}
        return Function(f"{prefix}{quantity}", inputs, {form.result: form.entries}, shared)

    def label(self, array: str, element: int) -> str:
        """Return the readable name of one input, as in ``q_elbow``."""
        own = self.inputs[array][element]
        return f"{array}_{own}" if array in ("q", "v", "a", "tau") else own


def place(symbol: str) -> tuple[str, int]:
    """Return array and element of a symbol such as ``q[3]``."""
    array, number = symbol[:-1].split("[")
    return array, int(number)


Monomial = tuple[int, ...]
"""Exponent of every symbol of the geometry."""

# Within a body the classical independent set of a revolute joint comes first, as in `identify.base`.
BODY_ORDER = ("Ixx", "Ixy", "Ixz", "Iyz", "Izz", "mx", "my", "Iyy", "mz", "m")
TOLERANCE = 3e-5  # as in `identify.base`: the resolution of torques, not rounding error
AGREEMENT = 1e-7  # of a recognised coefficient on lengths it was not fitted to
UNSEEN = 8  # sets of lengths reserved for that check


@dataclass(frozen=True)
class Coefficient:
    """One entry of K as a polynomial of the lengths."""

    terms: tuple[tuple[float, Monomial], ...]  # Factor and exponents of every term
    symbols: tuple[str, ...]  # Names of the lengths
    exact: bool = True  # False for a number that holds for the robot's own lengths only

    def node(self, graph: Graph) -> Node:
        """Return the coefficient as an expression of a graph."""
        parts = []
        for factor, powers in self.terms:
            above, below = graph.const(factor), graph.one
            for length, power in zip(graph.symbols("geometry", len(powers)), powers, strict=True):
                for _ in range(abs(power)):
                    above, below = (above * length, below) if power > 0 else (above, below * length)
            parts.append(above / below)
        return total(parts) if parts else graph.zero

    def __str__(self) -> str:
        return _joined([(factor, _monomial(powers, self.symbols)) for factor, powers in self.terms])


@dataclass(frozen=True, eq=False)
class Regrouping:
    """Base parameters beta = K phi with coefficients in closed form."""

    columns: tuple[int, ...]  # Standard parameters that lead the combinations
    parameters: tuple[str, ...]  # Names of all standard parameters
    coefficients: tuple[dict[int, Coefficient], ...]  # Entries of K that are not zero, by standard parameter
    nodes: tuple[tuple[Node, ...], ...]  # K as expressions

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each base parameter: the leader's name, with suffix R if others are regrouped into it."""
        rows = zip(self.columns, self.coefficients, strict=True)
        return tuple(self.parameters[c] + ("R" if len(row) > 1 else "") for c, row in rows)

    @property
    def rank(self) -> int:
        """Number of base parameters b."""
        return len(self.columns)

    @property
    def exact(self) -> bool:
        """Whether every coefficient was recognised."""
        return all(entry.exact for row in self.coefficients for entry in row.values())

    @property
    def expressions(self) -> tuple[str, ...]:
        """Each base parameter as a sum, as in ``Izz_1R = Izz_1 + ia_1 + d2^2 m_2``."""
        lines = []
        for name, leader, row in zip(self.names, self.columns, self.coefficients, strict=True):
            parts: list[tuple[float, str]] = [(1.0, self.parameters[leader])]
            for j, entry in row.items():
                if j == leader:
                    continue
                if len(entry.terms) == 1:
                    factor, powers = entry.terms[0]
                    label = _monomial(powers, entry.symbols)
                    parts.append((factor, f"{label} {self.parameters[j]}".strip()))
                else:
                    parts.append((1.0, f"({entry}) {self.parameters[j]}"))
            lines.append(f"{name} = {_joined(parts)}")
        return tuple(lines)


def regroup(program: Program, mechanism: Mechanism, columns: Sequence[int] | None = None) -> Regrouping:
    """Find the base parameters of a derived regressor."""
    with one_blas_thread():  # many small systems: threads would make them several times slower
        return _regroup(program, mechanism, columns)


def _regroup(program: Program, mechanism: Mechanism, columns: Sequence[int] | None) -> Regrouping:
    n, p = program["regressor"].shape
    symbols = program.inputs.get("geometry", ())
    own = np.array(program.values.get("geometry", np.zeros(0)))
    rng = np.random.default_rng(0)
    samples = max(50, -(-3 * p // n))
    W, size = _regressor(program, own[None], samples, rng)
    leaders = _leaders(W[0] / size, mechanism) if columns is None else _checked(columns, p, mechanism)
    K, _ = _solve(W, leaders)
    if not np.isfinite(K).all():
        raise DynidentError(f"columns {leaders} include parameters that no torque of '{mechanism.name}' depends on; omit those")
    table = [{int(j): _constant(K[0, i, j], symbols) for j in np.flatnonzero(row)} for i, row in enumerate(K[0])]
    if symbols:
        seen = {node.name for node in reachable(program["regressor"].entries) if node.op == "symbol"}
        used = {name for i, name in enumerate(symbols) if f"geometry[{i}]" in seen}
        families = list(_families(symbols, used))
        sets = max(len(family) for family in families) + UNSEEN + 4
        lengths = rng.uniform(0.4, 1.2, (sets, len(symbols))) * rng.choice([-1.0, 1.0], (sets, len(symbols)))
        random_W, _ = _regressor(program, lengths, max(24, -(-2 * p // n)), rng)
        random_K, rest = _solve(random_W, leaders)
        generic = rest < 1e-8
        table = _recognise(random_K, K[0], lengths, families, symbols) if generic else table
    graph = program.graph
    nodes = tuple(tuple(row[j].node(graph) if j in row else graph.zero for j in range(p)) for row in table)
    return Regrouping(tuple(leaders), mechanism.parameters.names, tuple(table), nodes)


def _checked(columns: Sequence[int], p: int, mechanism: Mechanism) -> list[int]:
    chosen = [int(c) for c in columns]
    if len(set(chosen)) != len(chosen) or not all(0 <= c < p for c in chosen):
        raise DynidentError(f"columns are {chosen}; name each of the {p} parameters of '{mechanism.name}' at most once")
    return chosen


def _regressor(program: Program, lengths: Array, samples: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return regressors (sets, samples n, p) at random states, and the size of their columns."""
    n, p = program["regressor"].shape
    sets = lengths.shape[0]
    inputs = {key: rng.uniform(-s, s, (sets * samples, n)) for key, s in (("q", np.pi), ("v", 3.0), ("a", 10.0))}
    if lengths.shape[1]:
        inputs["geometry"] = np.repeat(lengths, samples, axis=0)
    W = program.evaluate("regressor", **inputs).reshape(sets, samples * n, p)
    size = np.sqrt(np.max(np.sum(W**2, axis=1), axis=0))
    return W, np.where(size > TOLERANCE * np.max(size), size, np.inf)


def _leaders(W: Array, mechanism: Mechanism) -> list[int]:
    """Return the columns that are independent of those before them, in the preferred order; columns have unit length."""
    symbols = [name.split("_")[0] for name in mechanism.parameters.names[:10]]
    bodies = len(mechanism.tree.bodies)
    order = [10 * body + symbols.index(symbol) for body in range(bodies) for symbol in BODY_ORDER]
    Q = np.zeros((W.shape[0], 0))
    kept: list[int] = []
    for c in [*order, *range(10 * bodies, W.shape[1])]:
        w = W[:, c]
        for _ in range(2):
            w = w - Q @ (Q.T @ w)
        length = float(np.linalg.norm(w))
        if length > TOLERANCE:
            Q = np.column_stack([Q, w / length])
            kept.append(c)
    return kept


def _solve(W: Array, leaders: Sequence[int]) -> tuple[Array, float]:
    """Return K (sets, b, p) with W = W1 K, and the largest relative residual of a column."""
    size = np.linalg.norm(W, axis=1, keepdims=True)
    visible = size > 1e-10 * np.max(size, axis=2, keepdims=True)  # smaller columns are rounding errors of zero columns
    scaled = np.where(visible, W / np.where(visible, size, 1.0), 0.0)
    K = np.empty((W.shape[0], len(leaders), W.shape[2]))
    worst = 0.0
    for k, (x, length) in enumerate(zip(scaled, size[:, 0], strict=True)):
        B = np.linalg.lstsq(x[:, leaders], x, rcond=None)[0]
        worst = max(worst, float(np.max(np.abs(x - x[:, leaders] @ B), initial=0.0)))
        B[np.abs(B) < 1e-9] = 0.0
        K[k] = B * (length / length[list(leaders)][:, None])
        K[k][:, list(leaders)] = np.eye(len(leaders))
    return K, worst


def _families(symbols: Sequence[str], used: Container[str]) -> Iterator[list[Monomial]]:
    """Yield sets of monomials to try, simplest first; lengths before the first joint appear in no torque."""
    count = len(symbols)
    lengths = [i for i, name in enumerate(symbols) if name not in ("g", "g0") and name in used]

    def monomial(up: Sequence[int], down: Sequence[int] = ()) -> Monomial:
        powers = [0] * count
        for i in up:
            powers[i] += 1
        for i in down:
            powers[i] -= 1
        return tuple(powers)

    gravity = [i for i, name in enumerate(symbols) if name in ("g", "g0")]
    for extra in ([], gravity) if gravity else ([],):
        for degree in (0, 1, 2):
            yield [monomial([*extra, *up]) for up in combinations_with_replacement(lengths, degree)]
    for down in (1, 2):
        for up in range(3):
            if len(lengths) <= 6 or up + down <= 2:
                pairs = [
                    monomial(a, b)
                    for b in combinations_with_replacement(lengths, down)
                    for a in combinations_with_replacement(lengths, up)
                    if not set(a) & set(b)
                ]
                if pairs:
                    yield pairs


def _recognise(
    K: Array, own: Array, lengths: Array, families: Sequence[list[Monomial]], symbols: tuple[str, ...]
) -> list[dict[int, Coefficient]]:
    """Return the polynomials behind all entries of K (sets, b, p), or the numbers of `own` where there is no polynomial."""
    size = np.max(np.abs(K), axis=0)
    open_entries = [(int(i), int(j)) for i, j in np.argwhere(size > 1e-8)]
    found: dict[tuple[int, int], Coefficient] = {}
    for family in families:
        if not open_entries:
            break
        A = np.stack([np.prod(lengths ** np.array(powers, dtype=float), axis=1) for powers in family], axis=1)
        rows, columns = zip(*open_entries, strict=True)
        values = K[:, rows, columns]
        x = np.linalg.lstsq(A[:-UNSEEN], values[:-UNSEEN], rcond=None)[0]
        near = np.round(12.0 * x) / 12.0
        x = np.where(np.abs(x - near) < AGREEMENT * np.maximum(1.0, np.abs(x)), near, x)
        wrong = np.max(np.abs(A[-UNSEEN:] @ x - values[-UNSEEN:]), axis=0)
        for k, entry in enumerate(open_entries):
            if wrong[k] <= AGREEMENT * max(1.0, size[entry]):
                terms = tuple((float(c), m) for c, m in zip(x[:, k], family, strict=True) if c != 0.0)
                found[entry] = Coefficient(terms, symbols)
        open_entries = [entry for entry in open_entries if entry not in found]
    found |= {entry: _constant(float(own[entry]), symbols) for entry in open_entries}
    table: list[dict[int, Coefficient]] = [{} for _ in range(K.shape[1])]
    for (i, j), coefficient in sorted(found.items()):
        if coefficient.terms:
            table[i][j] = coefficient
    return table


def _constant(value: float, symbols: tuple[str, ...]) -> Coefficient:
    number = _fraction(float(value))
    return Coefficient(((number, (0,) * len(symbols)),) if number else (), symbols, not symbols)


def _fraction(value: float) -> float:
    """Return the nearest multiple of 1/12 if it is within the noise, else the number."""
    near = round(12.0 * value) / 12.0
    return near if abs(value - near) < 1e-7 * max(1.0, abs(value)) else float(value)


def _monomial(powers: Monomial, symbols: Sequence[str]) -> str:
    up = [f"{s}^{k}" if k > 1 else s for s, k in zip(symbols, powers, strict=True) if k > 0]
    down = [f"{s}^{-k}" if k < -1 else s for s, k in zip(symbols, powers, strict=True) if k < 0]
    text = " ".join(up)
    return f"{text or '1'}/{' '.join(down)}" if down else text


def _joined(parts: Sequence[tuple[float, str]]) -> str:
    """Return a sum with signs; factors of one are not written."""
    text = ""
    for factor, label in parts:
        size = abs(factor)
        near = Fraction(size).limit_denominator(12)
        number = str(near) if float(near) == size else f"{size:.6g}"
        body = label if number == "1" and label else f"{number} {label}".strip()
        body = body.replace(f"{number} 1/", f"{number}/") if body.startswith(f"{number} 1/") else body
        sign = "-" if factor < 0 else "+"
        text += f" {sign} {body}" if text else (f"-{body}" if factor < 0 else body)
    return text or "0"
