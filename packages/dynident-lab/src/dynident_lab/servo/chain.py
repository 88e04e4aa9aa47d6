"""Transfer functions, state space and modes of a drive: the exact linear dynamics of its chain [Roldan2017, section 3.2.2].

tau_d is the torque that the mechanism requires, so it has a minus sign; printed transfer functions have no sign
(TF1d = theta_load / torque ON the load), the sign is in the summing block and in the input column of the state space.

Polynomials are built from the free ends, x the angle and T the torque required by all masses beyond, both times the factors
g = c s + k of the shafts passed:

    x_i = g_i x_{i+1} + T_{i+1},        T_i = g_i T_{i+1} + (J_i s^2 + b_i s) x_i,        x_N = 1

This is the recursion of [Roldan2017, section 3.2.2] (the printed eq. 3.22 repeats 3.21) without subtraction: all terms are
positive, so coefficients are exact to rounding, and the two poles of the rigid motion are exactly zero. The modal form has
frequencies, decays, mass-normalised shapes and the sum of residues [Roldan2017, eqs. 3.24-3.25].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, Complex
from dynident.checks import choice, number, numbers
from dynident.drive import Chain, Drive, Motor
from dynident.drive.drive import linear_drive
from dynident.errors import DescriptionError, DynidentError, IdentificationError
from dynident.results import Result
from dynident_lab.servo.linear import StateSpace, TransferFunction


@dataclass(frozen=True, eq=False)
class Modes(Result):
    """Modes ``theta_i / tau_j = sum_m shapes[m, i] shapes[m, j] / (s^2 + decay_m s + omega_m^2)``, the rigid one first."""

    omega: Array  # Undamped natural frequencies [rad/s], rising; the first is zero
    decay: Array  # ``2 xi omega`` [1/s]
    shapes: Array  # One mode per row, ``shapes J shapes^T = 1`` [1/sqrt(kg m^2)]
    coupling: float = 0.0

    def __post_init__(self) -> None:
        """Check that the array shapes match."""
        shape = np.shape(self.shapes)
        n = shape[0] if len(shape) == 2 else 0
        if n == 0 or shape != (n, n) or np.shape(self.omega) != (n,) or np.shape(self.decay) != (n,):
            raise DynidentError(
                f"Modes: omega has shape {np.shape(self.omega)}, decay {np.shape(self.decay)} and shapes {shape}; "
                "give (n,), (n,) and (n, n)"
            )

    @property
    def frequency(self) -> Array:
        """Undamped natural frequencies, (n,) [Hz]."""
        return np.asarray(self.omega / (2.0 * np.pi))

    @property
    def damping_ratio(self) -> Array:
        """Ratio xi of each mode, (n,); NaN for the rigid motion."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(self.omega > 0.0, self.decay / (2.0 * self.omega), np.nan))

    def residues(self, output: int = 0, input: int = 0) -> Array:
        """Residues of a receptance."""
        count = self.shapes.shape[1]
        for what, mass in (("output", output), ("input", input)):
            if not -count <= mass < count:
                raise DynidentError(f"modes: {what} is {mass}; the masses are 0 (rotor) to {count - 1} (load)")
        return np.asarray(self.shapes[:, output] * self.shapes[:, input])

    def response(self, frequency: ArrayLike, output: int = 0, input: int = 0) -> Complex:
        """Receptance as the sum of the modes."""
        s = 2j * np.pi * numbers(frequency, "frequency")[..., None]
        return np.asarray(np.sum(self.residues(output, input) / (s * (s + self.decay) + self.omega**2), axis=-1))


def free_modes(inertias: Sequence[float], stiffness: Sequence[float], damping: Array) -> Modes:
    """Return the modes of a chain of masses.

    Singular values of ``sqrt(k) (difference) / sqrt(J)`` are the natural frequencies, not their squares, so small ones keep
    full precision; the rigid motion is known in advance.
    """
    root = np.sqrt(np.asarray(inertias, dtype=np.float64))
    rigid = root / np.linalg.norm(root)
    omega, shapes = np.zeros(1), rigid[None, :]
    if len(stiffness):
        twist = np.sqrt(np.asarray(stiffness))[:, None] * np.diff(np.eye(root.size), axis=0) / root
        _, values, vectors = np.linalg.svd(twist, full_matrices=False)
        omega = np.concatenate([omega, values[::-1]])
        shapes = np.vstack([shapes, vectors[::-1]])
    shapes = shapes / root
    shapes *= np.where(shapes[:, :1] < 0.0, -1.0, 1.0)  # the rotor moves forward in every mode
    modal = shapes @ damping @ shapes.T
    own = np.diag(modal)
    largest = float(own.max())
    own = np.sqrt(np.where(own > 1e-12 * largest, own, largest))  # only viscous friction damps the rigid motion
    between = np.abs(modal - np.diag(np.diag(modal)))
    coupling = float(np.max(between / np.outer(own, own))) if largest > 0.0 else 0.0
    return Modes(omega, np.diag(modal).copy(), shapes, coupling)


def _polynomials(chain: Chain) -> tuple[list[Array], list[Array], Array]:
    """Return angles from the motor's end and from the load's end, one polynomial per mass, and the denominator."""
    left, _ = _sweep(chain, range(len(chain)))
    right, torque = _sweep(chain, range(len(chain) - 1, -1, -1))
    return left, right[::-1], torque


def _sweep(chain: Chain, order: range) -> tuple[list[Array], Array]:
    angle, torque, angles = np.array([1.0]), np.array([0.0]), []
    for place, mass in enumerate(order):
        if place:
            near = min(mass, mass - order.step)
            shaft = chain.damping[near], chain.stiffness[near]
            angle = np.polyadd(np.polymul(shaft, angle), torque)
            torque = np.polymul(shaft, torque)
        torque = np.polyadd(torque, np.polymul((chain.inertias[mass], chain.viscous[mass], 0.0), angle))
        angles.append(angle)
    return angles, torque


def _shafts(chain: Chain, first: int, last: int) -> Array:
    """Product of c s + k of the shafts between two masses."""
    product = np.array([1.0])
    for shaft in zip(chain.damping[first:last], chain.stiffness[first:last], strict=True):
        product = np.polymul(product, shaft)
    return product


def _mass(chain: Chain, what: str, index: int) -> int:
    if isinstance(index, bool) or not isinstance(index, int | np.integer) or not -len(chain) <= index < len(chain):
        raise DescriptionError(f"chain: {what} is {index!r}; the masses are 0 (rotor) to {len(chain) - 1} (load)")
    return int(index) % len(chain)


def receptance(chain: Chain, output: int = 0, input: int = 0) -> TransferFunction:
    """Angle of one mass per torque on another, ``theta_output / tau_input``."""
    i, j = _mass(chain, "output", output), _mass(chain, "input", input)
    first, last = min(i, j), max(i, j)
    left, right, denominator = _polynomials(chain)
    numerator = np.polymul(np.polymul(left[first], right[last]), _shafts(chain, first, last))
    return TransferFunction(tuple(numerator), tuple(denominator), f"theta_{i} / tau_{j}")


def transmissibility(chain: Chain, output: int = -1, reference: int = 0) -> TransferFunction:
    """Angle of a mass per angle of another, with the torque beyond the reference."""
    i, j = _mass(chain, "output", output), _mass(chain, "reference", reference)
    left, right, _ = _polynomials(chain)
    angles = right if i >= j else left
    numerator = np.polymul(angles[i], _shafts(chain, min(i, j), max(i, j)))
    return TransferFunction(tuple(numerator), tuple(angles[j]), f"theta_{i} / theta_{j}")


def transfer_functions(chain: Chain) -> dict[str, TransferFunction]:
    """Transfer functions by the names of [Roldan2017, eqs. 3.7-3.12], for any number of masses."""
    found = {
        "TF1": receptance(chain, 0, 0),
        "TF2": transmissibility(chain, -1, 0),
        "TF1d": receptance(chain, -1, -1),
        "TF2d": transmissibility(chain, 0, -1),
    }
    return {name: replace(function, name=f"{name} = {function.name}") for name, function in found.items()}


def state_space(chain: Chain) -> StateSpace:
    """Continuous state space: states and outputs are all angles, then all speeds.

    Inputs are ``tau_m`` on the rotor and ``tau_d``, the torque that the mechanism requires of the load (with a minus sign).
    """
    n = len(chain)
    A, B, _ = linear_drive(chain, Motor(1.0), voltage=False)
    names = (*(f"theta_{i}" for i in range(n)), *(f"omega_{i}" for i in range(n)))
    return StateSpace(A, B, np.eye(2 * n), np.zeros((2 * n, 2)), ("tau_m", "tau_d"), names)


def modes(chain: Chain) -> Modes:
    """Modal form, the rigid motion first: frequencies, decays and mass-normalised shapes."""
    twist = np.diff(np.eye(len(chain)), axis=0)
    damping = twist.T @ (np.array(chain.damping)[:, None] * twist) + np.diag(chain.viscous)
    return free_modes(chain.inertias, chain.stiffness, damping)


def resonances(chain: Chain) -> Array:
    """Undamped natural frequencies of the free chain, without the rigid motion."""
    return modes(chain).frequency[1:]


def anti_resonances(chain: Chain, mass: int = 0) -> Array:
    """Undamped frequencies at which a driven mass stands still: the natural frequencies of the chain with this mass held."""
    held = _mass(chain, "mass", mass)
    twist = np.sqrt(chain.stiffness)[:, None] * np.diff(np.eye(len(chain)), axis=0) / np.sqrt(chain.inertias)
    return np.sort(np.linalg.svd(np.delete(twist, held, axis=1), compute_uv=False)) / (2.0 * np.pi)


def electric(motor: Motor) -> TransferFunction:
    """Transfer function of the winding, ``i / (V - K_E omega) = 1 / (L s + R)`` [A/V] (eq. 3.2)."""
    if motor.resistance == 0.0 and motor.inductance == 0.0:
        raise DescriptionError("motor: resistance and inductance are 0; give one of them for the winding's transfer function")
    return TransferFunction((1.0,), (motor.inductance, motor.resistance), "i / (V - E)")


def speed_per_voltage(drive: Drive) -> TransferFunction:
    """Speed of the rotor per voltage with back-EMF, without friction and backlash.

    ``K_t Z / (L s + R + K_t K_E Z)`` with Z the speed of the rotor per torque [rad/s per V].
    """
    winding, mechanics = electric(drive.motor), receptance(drive.chain, 0, 0).rate
    numerator = drive.motor.torque_constant * np.array(mechanics.numerator)
    denominator = np.polymul(winding.denominator, mechanics.denominator)
    denominator = np.polyadd(denominator, drive.motor.emf_constant * numerator)
    return TransferFunction(tuple(numerator), tuple(denominator), "omega / V")


@dataclass(frozen=True, eq=False)
class TwoMass:
    """Inertias, stiffness and damping of a two-mass actuator, at the motor side."""

    values: Array  # J1, J2 [kg m^2], k [N m/rad], c [N m s/rad]
    covariance: Array  # Covariance of the values

    names = ("J1", "J2", "k", "c")

    @property
    def standard_deviation(self) -> Array:
        """Standard deviations of the values, (4,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def chain(self) -> Chain:
        """The chain; a damping made negative by noise becomes zero."""
        J1, J2, k, c = self.values.tolist()
        return Chain((J1, J2), (k,), (max(c, 0.0),))


def two_mass(modal: Array, covariance: Array, at: str = "load", ratio: float = 1.0) -> TwoMass:
    """Return the two masses whose driving-point response has one mode and a rigid motion.

    At the measured mass ``1/J_near = residue + rigid`` and ``1/(J1 + J2) = rigid``; then ``k = omega^2 J1 J2 / (J1 + J2)``
    and ``c = 2 xi omega J1 J2 / (J1 + J2)``.
    """
    choice("at", at, ("load", "motor"))
    scale = number("modal fit: ratio", ratio) ** 2
    if scale == 0.0:
        raise DynidentError("modal fit: ratio is 0; give the motor angle per unit of the measured coordinate")
    _, _, residue, rigid = modal.tolist()
    if rigid <= 0.0 or residue <= 0.0:
        raise IdentificationError(
            f"the fit (rigid = {rigid:.3g}, residue = {residue:.3g}) does not describe two masses; check kind, sign, and "
            "that lines reach well below the resonance"
        )

    def masses(x: Any) -> Any:
        f, xi, part, whole = x
        near, total = 1.0 / (part + whole) / scale, 1.0 / whole / scale
        far, omega = total - near, 2.0 * np.pi * f
        effective = near * far / total
        first, last = (far, near) if at == "load" else (near, far)
        return np.array([first, last, omega**2 * effective, 2.0 * xi * omega * effective])

    values = masses(modal)
    # Derivatives by a complex step: exact, as the formulas are rational.
    tiny = 1e-30
    slope = np.stack([masses(modal + 1j * tiny * unit).imag / tiny for unit in np.eye(4)], axis=1)
    return TwoMass(values, slope @ covariance @ slope.T)
