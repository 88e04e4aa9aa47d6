"""Modal test: from a measured frequency response to natural frequency, damping and residue, and to the actuator's numbers.

Accelerance of a free structure, s = j 2 pi f:

    A(s) = rigid + sum_m residue_m s^2 / (s^2 + 2 xi_m omega_m s + omega_m^2) + upper s^2

Peaks give the start, a rational least-squares fit (Sanathanan and Koerner) the poles, and joint Gauss-Newton steps the final
values with their covariance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, Complex
from dynident.checks import choice, number, whole
from dynident.errors import DynidentError, IdentificationError
from dynident.results import Result
from dynident_lab.checks import samples
from dynident_lab.servo import TwoMass
from dynident_lab.servo.chain import two_mass

if TYPE_CHECKING:
    from matplotlib.figure import Figure


KINDS = {"accelerance": 0, "mobility": 1, "receptance": 2}
"""Measured quantity per force or torque, and the power of s that makes it an acceleration."""
ROUNDS = 20  # of the rational fit, which converges in about five
REWEIGHTED = 3  # fits with weights from the magnitude of the fit before
LINES = 1000  # of a figure without measured ones
FLOOR = 1e-3  # of the median magnitude: no analyser resolves an anti-resonance deeper than that


@dataclass(frozen=True, eq=False)
class ModalFit(Result):
    """Result of `fit_modal`."""

    names: tuple[str, ...]  # ``f_1, ..., xi_1, ..., residue_1, ..., rigid, upper``
    values: Array
    covariance: Array  # Covariance of the values; noise is estimated from the residual
    modes: int  # Number of modes
    error: float  # RMS of the residual, relative to the weights (to the measured magnitude by default)

    def __post_init__(self) -> None:
        p = len(self.names)
        whole("ModalFit: modes", self.modes, least=1)
        if np.shape(self.values) != (p,) or np.shape(self.covariance) != (p, p) or p < 3 * self.modes:
            raise DynidentError(
                f"ModalFit: {self.modes} modes need {3 * self.modes} names or more, as many values and a square covariance; "
                f"there are {p} names and values of shape {np.shape(self.values)}"
            )

    def summary(self) -> str:
        """Numbers with their standard deviations, one per line."""
        rows = zip(self.names, self.values, self.standard_deviation, strict=True)
        lines = [f"{name:>12} {value: .6g} ± {deviation:.2g}" for name, value, deviation in rows]
        return "\n".join([f"modal fit, modes: {self.modes}, relative error: {self.error:.3g} RMS", *lines])

    def plot(self, frequency: ArrayLike | None = None, frf: ArrayLike | None = None, kind: str = "accelerance") -> Figure:
        """Draw the fitted response over the measured one."""
        from dynident.figures import BLUE, MUTED, finish, new_figure  # noqa: PLC0415 - matplotlib is an extra

        if frequency is None and frf is not None:
            raise DynidentError("frf is given without frequency; give the lines [Hz] at which it was measured")
        f = np.geomspace(0.5 * self.frequency.min(), 2.0 * self.frequency.max(), LINES)
        f = f if frequency is None else samples("frequency", frequency)
        curves = [(self.response(f, kind), BLUE, "-", "fit")]
        if frf is not None:
            curves.insert(0, (np.asarray(frf), MUTED, ".", "measured"))
        figure = new_figure(8.0, 4.8)
        above, below = figure.add_axes((0.1, 0.42, 0.87, 0.5)), figure.add_axes((0.1, 0.11, 0.87, 0.24))
        for y, colour, style, name in curves:
            above.semilogy(f, np.abs(y), style, color=colour, markersize=3.0, linewidth=1.0, label=name)
            below.plot(f, np.rad2deg(np.angle(y)), style, color=colour, markersize=3.0, linewidth=1.0)
        above.legend(frameon=False, fontsize=8)
        finish(above, "", kind, ", ".join(f"{x:.5g} Hz" for x in self.frequency))
        finish(below, "frequency [Hz]", "phase [deg]", "")
        return figure

    @property
    def standard_deviation(self) -> Array:
        """Standard deviations of the values, (p,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def frequency(self) -> Array:
        """Natural frequencies, (modes,) [Hz]."""
        return self.values[: self.modes]

    @property
    def damping_ratio(self) -> Array:
        """Damping ratios, (modes,)."""
        return self.values[self.modes : 2 * self.modes]

    @property
    def residue(self) -> Array:
        """Residues, (modes,) [1/kg or 1/(kg m^2)]."""
        return self.values[2 * self.modes : 3 * self.modes]

    def value(self, name: str) -> float:
        """One number."""
        if name in ("rigid", "upper") and name not in self.names:
            return 0.0
        if name not in self.names:
            raise DynidentError(f"the modal fit has no '{name}'; it has {', '.join(self.names)}")
        return float(self.values[self.names.index(name)])

    def response(self, frequency: ArrayLike, kind: str = "accelerance") -> Complex:
        """Fitted frequency response."""
        s = 2j * np.pi * samples("frequency", frequency)[:, None]
        omega = 2.0 * np.pi * self.frequency
        terms = self.residue * s**2 / (s**2 + 2.0 * self.damping_ratio * omega * s + omega**2)
        line = s[:, 0]
        return np.asarray((terms.sum(axis=1) + self.value("rigid") + self.value("upper") * line**2) / line ** _power(kind))

    def stiffness(self, inertia: float, mode: int = 0) -> tuple[float, float]:
        """Stiffness of the shaft from a known inertia, ``k = (2 pi f_n)^2 J``, and its standard deviation."""
        J = number("modal fit: inertia", inertia, above=0.0, unit="kg m^2")
        if not -self.modes <= whole("mode", mode) < self.modes:
            raise DynidentError(f"mode is {mode}; the fit has {self.modes} modes, numbered from 0")
        f, deviation = float(self.frequency[mode]), float(self.standard_deviation[: self.modes][mode])
        return (2.0 * np.pi * f) ** 2 * J, 8.0 * np.pi**2 * f * deviation * J

    def two_mass(self, at: str = "load", ratio: float = 1.0) -> TwoMass:
        """Inertias, stiffness and damping of a two-mass actuator from its driving-point response."""
        if self.modes != 1 or "rigid" not in self.names:
            raise IdentificationError(
                f"two masses have one mode and a rigid motion, but {self.modes} modes were fitted "
                f"{'with' if 'rigid' in self.names else 'without'} the rigid motion; use fit_modal(..., modes=1, rigid=True)"
            )
        pick = [self.names.index(name) for name in ("f_1", "xi_1", "residue_1", "rigid")]
        return two_mass(self.values[pick], self.covariance[np.ix_(pick, pick)], at, ratio)


def fit_modal(
    frequency: ArrayLike,
    frf: ArrayLike,
    *,
    kind: str = "accelerance",
    modes: int = 1,
    rigid: bool = True,
    upper: bool = True,
    deviation: ArrayLike | None = None,
    start: ArrayLike | None = None,
) -> ModalFit:
    """Fit modes to a measured frequency response, for example of a hammer test."""
    f = samples("frequency", frequency)
    if f[0] <= 0.0 or (np.diff(f) <= 0.0).any():
        raise DynidentError("frequency must rise and be above zero; sort the lines and leave out 0 Hz")
    whole("modes", modes, least=1)
    H = _lines(frf, f.size)
    count = 3 * modes + int(rigid) + int(upper)
    if 2 * f.size < 2 * count:
        raise IdentificationError(f"{f.size} lines cannot support {count} numbers; give at least {count} lines or fewer modes")
    unit = 2.0 * np.pi * _guess(f, H, modes, start)
    scale = float(np.exp(np.mean(np.log(unit))))
    s: Complex = np.asarray(2j * np.pi * f / scale, dtype=np.complex128)
    accelerance = H * (s * scale) ** _power(kind)
    size = float(np.median(np.abs(accelerance)))
    A: Complex = np.asarray(accelerance / size, dtype=np.complex128)
    weight = 1.0 / np.abs(A)
    if deviation is not None:
        spread = samples("deviation", deviation, f.size) / np.abs(H)
        if (spread <= 0.0).any():
            raise DynidentError(f"deviation[{int(np.argmin(spread))}] is not above zero; give the noise of each line")
        weight = weight * np.median(spread) / spread
    poles = _rational(s, A, weight, unit / scale, rigid, upper)
    for _ in range(1 if deviation is not None else REWEIGHTED):
        x, jacobian, error, fitted = _refine(s, A, weight, poles, rigid, upper)
        poles = (x[:modes], x[modes : 2 * modes])
        if deviation is None:  # noise in the weights would bias the residues; the fitted magnitude has no noise
            weight = 1.0 / np.maximum(np.abs(fitted), FLOOR)
    omega, delta = x[:modes], x[modes : 2 * modes]
    if (omega * scale < 2.0 * np.pi * f[0]).any() or (omega * scale > 2.0 * np.pi * f[-1]).any():
        raise IdentificationError(
            f"the fitted resonances {np.round(omega * scale / (2.0 * np.pi), 3).tolist()} Hz are outside the measured band "
            f"{f[0]:g} to {f[-1]:g} Hz; fit fewer modes, widen the band or give start"
        )
    # From scaled (omega, delta = xi omega, residues, rigid, upper) to the numbers of the result.
    values = np.concatenate([omega * scale / (2.0 * np.pi), delta / omega, size * x[2 * modes :]])
    change = np.diag(np.concatenate([np.full(modes, scale / (2.0 * np.pi)), 1.0 / omega, np.full(count - 2 * modes, size)]))
    change[np.arange(modes, 2 * modes), np.arange(modes)] = -delta / omega**2
    if upper:
        values[-1] /= scale**2
        change[-1, -1] /= scale**2
    norm = np.linalg.norm(jacobian, axis=0)
    inverse = np.linalg.pinv(jacobian / norm) / norm[:, None]
    freedom = max(2 * f.size - count, 1)
    covariance = change @ (inverse @ inverse.T) @ change.T * (error**2 * f.size / freedom)
    order = np.argsort(values[:modes])
    order = np.concatenate([order, order + modes, order + 2 * modes, np.arange(3 * modes, count)])
    numbered = [f"{name}_{m + 1}" for name in ("f", "xi", "residue") for m in range(modes)]
    names = (*numbered, *(["rigid"] if rigid else []), *(["upper"] if upper else []))
    return ModalFit(names, values[order], covariance[np.ix_(order, order)], int(modes), error)


def _power(kind: str) -> int:
    return KINDS[choice("kind", kind, KINDS)]


def _lines(frf: ArrayLike, count: int) -> Complex:
    try:
        H = np.asarray(frf, dtype=np.complex128)
    except (TypeError, ValueError) as error:
        raise DynidentError(f"frf is not an array of complex numbers ({error}); give one per line") from error
    if H.shape != (count,):
        raise DynidentError(f"frf has the shape {H.shape}, but there are {count} lines; give one complex number per line")
    if not np.isfinite(H).all():
        raise DynidentError(f"frf[{int(np.argmin(np.isfinite(H)))}] is not finite; leave the line out")
    if (H == 0.0).any():
        raise DynidentError(f"frf[{int(np.argmax(H == 0.0))}] is zero; leave the line out")
    return H


def _guess(f: Array, H: Complex, modes: int, start: ArrayLike | None) -> Array:
    """Natural frequencies to start from: given, or the highest local maxima, at least a few lines apart."""
    if start is not None:
        given = samples("start", start, modes)
        if (given < f[0]).any() or (given > f[-1]).any():
            raise DynidentError(f"start is {given.tolist()} Hz; give frequencies within the band {f[0]:g} to {f[-1]:g} Hz")
        return given
    height = np.abs(H)
    inner = np.flatnonzero((height[1:-1] >= height[:-2]) & (height[1:-1] >= height[2:])) + 1
    chosen: list[int] = []
    for line in inner[np.argsort(-height[inner])]:
        if all(abs(line - other) > 3 for other in chosen) and len(chosen) < modes:
            chosen.append(int(line))
    if len(chosen) < modes:
        raise IdentificationError(
            f"the response has {len(chosen)} peaks between {f[0]:g} and {f[-1]:g} Hz, but {modes} modes are asked for; "
            "fit fewer modes or give start"
        )
    return np.sort(f[chosen])


def _rational(s: Complex, A: Complex, weight: Array, omega: Array, rigid: bool, upper: bool) -> tuple[Array, Array]:
    """Poles (omega, delta) from A D = N, linear in the coefficients, divided by the previous D."""
    modes = omega.size
    denominator = np.array([1.0])
    for w in omega:
        denominator = np.polymul(denominator, [1.0, 0.02 * w, w**2])
    powers = np.arange(0 if rigid else 2, 2 * modes + (3 if upper else 1))
    basis = s[:, None] ** np.arange(2 * modes)
    for _ in range(ROUNDS):
        w = weight / np.abs(np.polyval(denominator, s))
        rows = w[:, None] * np.hstack([A[:, None] * basis, -(s[:, None] ** powers)])
        right = -w * A * s ** (2 * modes)
        rows, right = np.vstack([rows.real, rows.imag]), np.concatenate([right.real, right.imag])
        norm = np.linalg.norm(rows, axis=0)
        solution = np.linalg.lstsq(rows / norm, right, rcond=None)[0] / norm
        denominator, old = np.concatenate([[1.0], solution[: 2 * modes][::-1]]), denominator
        if np.allclose(denominator, old, rtol=1e-10, atol=0.0):
            break
    roots = np.roots(denominator)
    roots = roots[roots.imag > 0.0]
    inside = roots[(np.abs(roots) > abs(s[0])) & (np.abs(roots) < abs(s[-1]))]
    if inside.size != modes:  # real poles or poles outside the band: keep the peaks, with one per cent of damping
        return omega, 0.01 * omega
    inside = inside[np.argsort(np.abs(inside))]
    return np.abs(inside), -inside.real


def _columns(s: Complex, omega: Array, delta: Array, rigid: bool, upper: bool) -> tuple[Complex, Complex]:
    """Columns of the linear numbers, and the denominators of the modes."""
    below = s[:, None] ** 2 + 2.0 * delta * s[:, None] + omega**2
    parts = [s[:, None] ** 2 / below]
    if rigid:
        parts.append(np.ones((s.size, 1), dtype=np.complex128))
    if upper:
        parts.append(s[:, None] ** 2)
    return np.hstack(parts), below


def _refine(
    s: Complex, A: Complex, weight: Array, poles: tuple[Array, Array], rigid: bool, upper: bool
) -> tuple[Array, Array, float, Complex]:
    """All numbers (omega, delta, residues, rigid, upper) by Gauss-Newton; Jacobian, RMS error and response at the solution."""
    from scipy.optimize import least_squares  # noqa: PLC0415 - scipy is loaded on first use

    modes = poles[0].size

    def stack(z: Complex) -> Array:
        weighted = (weight * z.T).T
        return np.concatenate([weighted.real, weighted.imag])

    def residual(x: Array) -> Array:
        columns, _ = _columns(s, x[:modes], x[modes : 2 * modes], rigid, upper)
        return stack(columns @ x[2 * modes :] - A)

    def jacobian(x: Array) -> Array:
        omega, delta = x[:modes], x[modes : 2 * modes]
        columns, below = _columns(s, omega, delta, rigid, upper)
        bend = -columns[:, :modes] / below * x[2 * modes : 3 * modes]
        return stack(np.hstack([bend * 2.0 * omega, bend * 2.0 * s[:, None], columns]))

    columns, _ = _columns(s, *poles, rigid, upper)
    linear = np.linalg.lstsq(stack(columns), stack(A), rcond=None)[0]
    first = np.concatenate([*poles, linear])
    done = least_squares(residual, first, jacobian, method="lm", x_scale="jac", xtol=1e-14, ftol=1e-14, gtol=1e-14)
    columns, _ = _columns(s, done.x[:modes], done.x[modes : 2 * modes], rigid, upper)
    return done.x, jacobian(done.x), float(np.sqrt(2.0 * np.mean(done.fun**2))), columns @ done.x[2 * modes :]
