"""Joints that follow others, linearly or by any smooth function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.results import Frozen


@dataclass(frozen=True, eq=False)
class Coupling(Frozen):
    """A joint that follows others: q_joint = sum_i ratio_i q_i + offset (URDF `<mimic>` is the case of one).

    With a function it follows them in any smooth way, q_joint = function(q_1, q_2, ...) + offset.

    Parameters
    ----------
    joint : str
        The joint that follows (one coordinate).
    of : mapping of str to float, or sequence of str
        Ratio for each joint it follows; just their names, in the order of the function's columns, with a function.
    offset : float
        Constant [rad or m].
    function : callable, optional
        ``function(x)`` with x (N, k) returns (N,); it must be analytic (sin, sqrt, ... of NumPy), since it is
        differentiated by complex steps unless the next two are given.
    gradient : callable, optional
        ``gradient(x)`` returns (N, k).
    hessian : callable, optional
        ``hessian(x)`` returns (N, k, k).
    """

    joint: str
    of: Mapping[str, float]
    offset: float = 0.0
    function: Callable[[Array], Array] | None = None
    gradient: Callable[[Array], Array] | None = None
    hessian: Callable[[Array], Array] | None = None

    def __post_init__(self) -> None:
        of = self.of if isinstance(self.of, Mapping) else dict.fromkeys(self.of, 1.0)
        if not of or not all(np.isfinite(r) for r in of.values()) or not np.isfinite(self.offset):
            raise DescriptionError(f"coupling of joint '{self.joint}' is {dict(of)} + {self.offset}; give finite ratios")
        object.__setattr__(self, "of", MappingProxyType({k: float(v) for k, v in of.items()}))

    def value_at(self, held: Mapping[str, float]) -> float:
        """Return q_joint where everything that it follows is held."""
        if self.function is None:
            return self.offset + sum(ratio * held[name] for name, ratio in self.of.items())
        return float(self.evaluate(np.array([[held[name] for name in self.of]]))[0][0])

    def holding(self, held: Mapping[str, float]) -> Coupling:
        """Return the coupling to the joints that still move, with the others held."""
        free = {name: ratio for name, ratio in self.of.items() if name not in held}
        if len(free) == len(self.of):
            return self
        if self.function is None:
            shift = sum(ratio * held[name] for name, ratio in self.of.items() if name in held)
            return Coupling(self.joint, free, self.offset + shift)
        moving = [i for i, name in enumerate(self.of) if name in free]
        rest = np.array([held.get(name, 0.0) for name in self.of])

        def whole(x: Array) -> Array:
            full = np.tile(rest.astype(x.dtype), (len(x), 1))  # complex steps pass through
            full[:, moving] = x
            return full

        f, g, h = self.function, self.gradient, self.hessian
        return Coupling(
            self.joint,
            free,
            self.offset,
            lambda x: f(whole(x)),
            None if g is None else lambda x: g(whole(x))[:, moving],
            None if h is None else lambda x: h(whole(x))[:, moving][:, :, moving],
        )

    def evaluate(self, x: Array) -> tuple[Array, Array, Array]:
        """Return value, gradient and Hessian of a coupling with a function."""
        if self.function is None:
            raise DescriptionError(f"coupling of joint '{self.joint}' has no function; it is linear")
        value = np.asarray(self.function(x), dtype=np.float64)
        if value.shape != x.shape[:1]:
            raise DescriptionError(
                f"coupling of joint '{self.joint}': its function returns shape {value.shape} for {x.shape[0]} samples; "
                f"it must return ({x.shape[0]},)"
            )
        gradient = self._slope(x)
        if self.hessian is not None:
            return value + self.offset, gradient, np.asarray(self.hessian(x), dtype=np.float64)
        step = 1e-5
        columns = [(self._slope(x + step * e) - self._slope(x - step * e)) / (2.0 * step) for e in np.eye(x.shape[1])]
        second = np.stack(columns, axis=2)
        return value + self.offset, gradient, 0.5 * (second + np.swapaxes(second, 1, 2))

    def _slope(self, x: Array) -> Array:
        if self.gradient is not None:
            return np.asarray(self.gradient(x), dtype=np.float64)
        assert self.function is not None
        tiny = 1e-30
        try:
            slopes = [np.imag(self.function(x + 1j * tiny * e)) / tiny for e in np.eye(x.shape[1])]
        except TypeError as error:
            raise DescriptionError(
                f"coupling of joint '{self.joint}' cannot be differentiated ({error}); use analytic NumPy functions, or give "
                "gradient= and hessian="
            ) from error
        gradient = np.stack(slopes, axis=1)
        check = 1e-6
        rough = [(self.function(x + check * e) - self.function(x - check * e)) / (2 * check) for e in np.eye(x.shape[1])]
        if not np.allclose(gradient, np.stack(rough, axis=1), rtol=1e-4, atol=1e-4 * max(1.0, float(np.max(np.abs(gradient))))):
            raise DescriptionError(
                f"coupling of joint '{self.joint}' is not differentiable by complex steps (abs, conj or comparisons in it?); "
                "give gradient= and hessian="
            )
        return gradient


def linear_map(couplings: Sequence[Coupling], tree: Sequence[str]) -> tuple[Array, Array]:
    """Return G and g0 with q_tree = G q + g0, q being the coordinates that follow no others; rows of functions are zero."""
    following = {c.joint: c for c in couplings}
    curved = {c.joint for c in couplings if c.function is not None}
    free = [name for name in tree if name not in following]
    index = {name: i for i, name in enumerate(free)}
    unit = np.eye(len(free))
    rows: dict[str, tuple[Array, float]] = {name: (unit[index[name]], 0.0) for name in free}
    waiting = {name: c for name, c in following.items() if name not in curved}
    rows |= {name: (np.zeros(len(free)), 0.0) for name in curved}  # filled in along a motion
    while waiting:
        ready = [name for name, coupling in waiting.items() if all(other in rows for other in coupling.of)]
        if not ready:
            raise DescriptionError(f"couplings of {', '.join(waiting)} follow each other in a circle; break it")
        for name in ready:
            coupling = waiting.pop(name)
            row, offset = np.zeros(len(free)), coupling.offset
            for other, ratio in coupling.of.items():
                row, offset = row + ratio * rows[other][0], offset + ratio * rows[other][1]
            rows[name] = (row, offset)
    matrix = np.array([rows[name][0] for name in tree]).reshape(len(tree), len(free))
    return matrix, np.array([rows[name][1] for name in tree])
