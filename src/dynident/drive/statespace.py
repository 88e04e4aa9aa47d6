"""Linear state-space models, and their exact sampling behind a zero-order hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.drive.checks import number
from dynident.drive.transfer import import_control
from dynident.errors import DescriptionError, DynidentError

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class StateSpace:
    """``x' = A x + B u, y = C x + D u``, where x' is the derivative, or the next sample when `cycle` is above zero.

    Parameters
    ----------
    A, B, C, D : array_like, (n, n), (n, m), (p, n), (p, m)
        Matrices.
    inputs, outputs : tuple of str
        Names of u and y; numbered if not given.
    cycle : float
        Sampling time [s]; zero is continuous.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    cycle: float = 0.0

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
        """Frequency response.

        Parameters
        ----------
        frequency : array_like, (N,)
            f [Hz].

        Returns
        -------
        ndarray of complex, (N, p, m)
            ``C (s - A)^-1 B + D`` at s = j 2 pi f, or at ``z = exp(j 2 pi f cycle)``.
        """
        s = 2j * np.pi * np.atleast_1d(numbers(frequency, "frequency"))
        place = np.exp(s * self.cycle) if self.cycle > 0.0 else s
        pencil = place[:, None, None] * np.eye(len(self.A)) - self.A
        return np.asarray(self.C @ np.linalg.solve(pencil, np.broadcast_to(self.B, (len(s), *self.B.shape))) + self.D)

    def discretise(self, cycle: float) -> StateSpace:
        """Exact model at sampling times with inputs held in between, ``exp([[A, B], [0, 0]] cycle)``.

        Parameters
        ----------
        cycle : float
            Sampling time [s].

        Returns
        -------
        StateSpace
            Sampled model; exact at any damping and any cycle.
        """
        from scipy.linalg import expm, matrix_balance  # noqa: PLC0415 - scipy is loaded on first use

        if self.cycle > 0.0:
            raise DynidentError(f"the model is sampled already, every {self.cycle:g} s; discretise the continuous one")
        h = number("cycle", cycle, above=0.0, unit="s")
        n, m = self.B.shape
        block = np.zeros((n + m, n + m))
        block[:n, :n], block[:n, n:] = self.A, self.B
        # Angles and speeds differ by the resonance's 6000 rad/s; balancing by powers of two keeps that out of the rounding.
        balanced, (scale, _) = matrix_balance(block * h, permute=False, separate=True)
        held = expm(balanced) * scale[:, None] / scale[None, :]
        return StateSpace(held[:n, :n], held[:n, n:], self.C, self.D, self.inputs, self.outputs, h)

    def simulate(self, u: ArrayLike, start: ArrayLike | None = None) -> Array:
        """Outputs of a sampled model.

        Parameters
        ----------
        u : array_like, (N, m)
            Inputs, one row per cycle.
        start : array_like, (n,), optional
            First state; zero if not given.

        Returns
        -------
        ndarray, (N, p)
            Outputs at the same times.
        """
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
        """Return the python-control system.

        Returns
        -------
        control.StateSpace
            Continuous, or sampled with the same cycle.
        """
        control = import_control("a state space for python-control")
        return control.StateSpace(
            self.A, self.B, self.C, self.D, self.cycle, inputs=list(self.inputs), outputs=list(self.outputs)
        )
