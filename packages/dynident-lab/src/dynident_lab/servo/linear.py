"""Linear models of drives: state spaces with exact sampling behind a zero-order hold, and transfer functions.

Transfer functions consist of two polynomials; they are evaluated, drawn, and converted to python-control.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, Complex
from dynident.checks import number, numbers, row
from dynident.control.tick import Plant
from dynident.errors import DescriptionError, DynidentError, missing_extra
from dynident_lab.servo.bode import Bode, plot_bode

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class StateSpace:
    """``x' = A x + B u, y = C x + D u``, where x' is the derivative, or the next sample when `cycle` is above zero."""

    A: Array  # State matrix
    B: Array  # Input matrix
    C: Array  # Output matrix
    D: Array  # Feedthrough matrix
    inputs: tuple[str, ...] = ()  # Names of u; numbered if not given
    outputs: tuple[str, ...] = ()  # Names of y; numbered if not given
    cycle: float = 0.0  # Sampling time [s]; zero for continuous time

    def __post_init__(self) -> None:
        for name in "ABCD":
            object.__setattr__(self, name, np.atleast_2d(numbers(getattr(self, name), f"state space: {name}")))
        n, m, p = self.A.shape[0], self.B.shape[1], self.C.shape[0]
        for name, shape in {"A": (n, n), "B": (n, m), "C": (p, n), "D": (p, m)}.items():
            if getattr(self, name).shape != shape:
                raise DescriptionError(f"state space: {name} has the shape {getattr(self, name).shape}; it must be {shape}")
        object.__setattr__(self, "cycle", number("state space: cycle", self.cycle, least=0.0, unit="s"))
        object.__setattr__(self, "inputs", tuple(self.inputs) or tuple(f"u{i}" for i in range(m)))
        object.__setattr__(self, "outputs", tuple(self.outputs) or tuple(f"y{i}" for i in range(p)))
        if len(self.inputs) != m or len(self.outputs) != p:
            raise DescriptionError(
                f"state space: {len(self.inputs)} inputs and {len(self.outputs)} outputs are named, but there are {m} and {p}"
            )

    @property
    def poles(self) -> Complex:
        """Eigenvalues of A."""
        return np.asarray(np.linalg.eigvals(self.A), dtype=np.complex128)

    def response(self, frequency: ArrayLike) -> Complex:
        """Frequency response."""
        s = 2j * np.pi * np.atleast_1d(numbers(frequency, "frequency"))
        place = np.exp(s * self.cycle) if self.cycle > 0.0 else s
        pencil = place[:, None, None] * np.eye(len(self.A)) - self.A
        return np.asarray(self.C @ np.linalg.solve(pencil, np.broadcast_to(self.B, (len(s), *self.B.shape))) + self.D)

    def discretise(self, cycle: float) -> StateSpace:
        """Exact model at sampling times with inputs held in between, ``exp([[A, B], [0, 0]] cycle)``."""
        if self.cycle > 0.0:
            raise DynidentError(f"the model is sampled already, every {self.cycle:g} s; discretise the continuous one")
        h = number("cycle", cycle, above=0.0, unit="s")
        A, B = Plant(self.A, self.B, self.C, self.D).held(h)
        return StateSpace(A, B, self.C, self.D, self.inputs, self.outputs, h)

    def simulate(self, u: ArrayLike, start: ArrayLike | None = None) -> Array:
        """Outputs of a sampled model."""
        if self.cycle == 0.0:
            raise DynidentError("the model is continuous; call discretise(cycle) before simulate")
        rows = numbers(u, "u")
        rows = rows[:, None] if rows.ndim == 1 else rows
        n, m = self.B.shape
        if rows.ndim != 2 or rows.shape[1] != m:
            raise DynidentError(f"u has the shape {rows.shape}; give (samples, {m})")
        x = np.zeros(n) if start is None else numbers(start, "start")
        if x.shape != (n,):
            raise DynidentError(f"start has the shape {x.shape}; give {n} numbers")
        states = np.empty((len(rows), n))
        push = rows @ self.B.T
        for k in range(len(rows)):
            states[k] = x
            x = self.A @ x + push[k]
        return np.asarray(states @ self.C.T + rows @ self.D.T)

    def to_control(self) -> Any:
        """Return the python-control system, continuous or sampled with the same cycle."""
        control = import_control("a state space for python-control")
        return control.StateSpace(
            self.A, self.B, self.C, self.D, self.cycle, inputs=list(self.inputs), outputs=list(self.outputs)
        )


@dataclass(frozen=True)
class TransferFunction:
    """Ratio of two polynomials in s, highest power first."""

    numerator: tuple[float, ...]  # Coefficients; leading zeros are dropped
    denominator: tuple[float, ...]  # Coefficients; leading zeros are dropped
    name: str = ""  # Meaning, as in "theta_m / tau_m"

    def __post_init__(self) -> None:
        for part in ("numerator", "denominator"):
            coefficients = np.trim_zeros(np.array(row(f"transfer function: {part}", getattr(self, part))), "f")
            object.__setattr__(self, part, tuple(coefficients.tolist()) or (0.0,))
        if self.denominator == (0.0,):
            raise DescriptionError(f"transfer function '{self.name}': the denominator is zero; give a polynomial that is not")

    def __call__(self, s: ArrayLike) -> Complex:
        """Return the value at complex frequencies."""
        place = np.asarray(s, dtype=np.complex128)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.polyval(self.numerator, place) / np.polyval(self.denominator, place))

    def response(self, frequency: ArrayLike) -> Complex:
        """Frequency response ``H(j 2 pi f)``."""
        return self(2j * np.pi * numbers(frequency, "frequency"))

    @property
    def poles(self) -> Complex:
        """Zeros of the denominator [rad/s], sorted by size; those at s = 0 are exact."""
        return _roots(self.denominator)

    @property
    def zeros(self) -> Complex:
        """Zeros of the numerator [rad/s], sorted by size."""
        return _roots(self.numerator)

    @property
    def rate(self) -> TransferFunction:
        """Transfer function of the time derivative, ``s H(s)``; a factor s is cancelled exactly."""
        name = f"d/dt {self.name}" if self.name else ""
        if self.denominator[-1] == 0.0:
            return TransferFunction(self.numerator, self.denominator[:-1], name)
        return TransferFunction((*self.numerator, 0.0), self.denominator, name)

    def __mul__(self, other: TransferFunction | float) -> TransferFunction:
        """Return the series of two transfer functions, or a scaled one."""
        if isinstance(other, TransferFunction):
            numerator = np.polymul(self.numerator, other.numerator)
            denominator = np.polymul(self.denominator, other.denominator)
            name = " * ".join(part for part in (self.name, other.name) if part)
            return TransferFunction(tuple(numerator), tuple(denominator), name)
        if isinstance(other, int | float):
            return TransferFunction(tuple(other * c for c in self.numerator), self.denominator, self.name)
        return NotImplemented

    __rmul__ = __mul__

    def bode(self, frequency: ArrayLike) -> Bode:
        """Magnitude and phase."""
        f = numbers(frequency, "frequency")
        if f.ndim != 1 or f.size == 0 or not (np.isfinite(f).all() and f[0] > 0.0 and (np.diff(f) > 0.0).all()):
            raise DynidentError(
                "frequency of a Bode diagram must increase and be above zero; give a one-dimensional array in Hz"
            )
        return Bode(f, self.response(f), name=self.name)

    def plot(self, frequency: ArrayLike, *others: TransferFunction) -> Figure:
        """Draw the Bode diagram."""
        return plot_bode([function.bode(frequency) for function in (self, *others)])

    def to_control(self) -> Any:
        """Return the continuous python-control system."""
        control = import_control("a transfer function for python-control")
        return control.TransferFunction(list(self.numerator), list(self.denominator))


def import_control(purpose: str) -> Any:
    """Return the package python-control; without it the error names the missing extra."""
    try:
        import control  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise missing_extra("control", "control", purpose) from error
    return control


def _roots(polynomial: tuple[float, ...]) -> Complex:
    """Return roots with exact zeros; scaling s to their geometric mean handles coefficients over many decades."""
    kept = np.trim_zeros(np.array(polynomial), "b")
    origin = np.zeros(len(polynomial) - kept.size, dtype=np.complex128) if kept.size else np.zeros(0, dtype=np.complex128)
    degree = kept.size - 1
    if degree < 1:
        return origin
    scale = float(np.exp((np.log(abs(kept[-1])) - np.log(abs(kept[0]))) / degree))
    roots = scale * np.roots(kept * scale ** np.arange(degree, -1, -1.0) / (kept[0] * scale**degree))
    return np.concatenate([origin, roots[np.lexsort((roots.imag, np.abs(roots)))]])
