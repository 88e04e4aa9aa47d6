"""Rotor, gears and load as a chain of masses joined by shafts: exact linear dynamics [Roldan2017, section 3.2.2].

    J x'' + c x' + k x = (tau_m, 0, ..., -tau_d)        J diagonal; c, k tridiagonal chains                  (3.13)

tau_d is the torque that the mechanism requires, so it enters with a minus sign; printed transfer functions carry no sign
(TF1d = theta_load / torque ON the load), the sign is in the summing block and in the input column of the state space.

Polynomials are built from the free ends, x the angle and T the torque that all masses beyond need, both times the g = c s + k
passed on the way:

    x_i = g_i x_{i+1} + T_{i+1},        T_i = g_i T_{i+1} + (J_i s^2 + b_i s) x_i,        x_N = 1

It is the recursion of [Roldan2017, section 3.2.2] (the printed eq. 3.22 repeats 3.21) without its subtraction: all terms are
positive, so coefficients are exact to rounding, and the two poles of the rigid motion are exactly zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.checks import choice, number, row
from dynident.drive.linear import StateSpace, TransferFunction
from dynident.drive.modes import Modes, free_modes
from dynident.errors import DescriptionError, DynidentError, IdentificationError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Chain:
    """A chain of n masses (rotor first, load last) and n - 1 shafts.

    Parameters
    ----------
    inertias : sequence of float, (n,)
        J of the masses [kg m^2].
    stiffness, damping : sequence of float, (n - 1,)
        k [N m/rad] and c [N m s/rad] of the shafts; damping is zero if not given.
    viscous : sequence of float, (n,)
        Friction b of each mass against the frame [N m s/rad]; zero if not given.
    """

    inertias: tuple[float, ...]
    stiffness: tuple[float, ...] = ()
    damping: tuple[float, ...] = ()
    viscous: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        J = row("chain: inertias", self.inertias, above=0.0)
        k = row("chain: stiffness", self.stiffness, above=0.0)
        c = row("chain: damping", self.damping, least=0.0) or (0.0,) * len(k)
        b = row("chain: viscous", self.viscous, least=0.0) or (0.0,) * len(J)
        if not J or len(k) != len(J) - 1 or len(c) != len(k) or len(b) != len(J):
            raise DescriptionError(
                f"chain: there are {len(J)} inertias, {len(k)} stiffnesses, {len(c)} dampings and {len(b)} viscous "
                "coefficients; n inertias need n - 1 shafts and n viscous coefficients"
            )
        for name, values in {"inertias": J, "stiffness": k, "damping": c, "viscous": b}.items():
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.inertias)

    def loaded(self, inertia: float) -> Chain:
        """Chain with more inertia on its last mass, as of a mechanism at one configuration.

        Parameters
        ----------
        inertia : float
            At the motor [kg m^2].

        Returns
        -------
        Chain
            The same shafts.
        """
        more = number("chain: inertia of the load", inertia, least=0.0, unit="kg m^2")
        return replace(self, inertias=(*self.inertias[:-1], self.inertias[-1] + more))

    @property
    def inertia_matrix(self) -> Array:
        """J, (n, n)."""
        return np.diag(self.inertias)

    @property
    def stiffness_matrix(self) -> Array:
        """k, (n, n)."""
        return _tridiagonal(self.stiffness)

    @property
    def damping_matrix(self) -> Array:
        """Dampings c of the shafts, and b on the diagonal, (n, n)."""
        return _tridiagonal(self.damping) + np.diag(self.viscous)

    @cached_property
    def _polynomials(self) -> tuple[list[Array], list[Array], Array]:
        """Angles seen from the motor's end and from the load's end, one polynomial per mass, and the denominator."""
        left, _ = self._sweep(range(len(self)))
        right, torque = self._sweep(range(len(self) - 1, -1, -1))
        return left, right[::-1], torque

    def _sweep(self, order: range) -> tuple[list[Array], Array]:
        angle, torque, angles = np.array([1.0]), np.array([0.0]), []
        for place, mass in enumerate(order):
            if place:
                near = min(mass, mass - order.step)
                shaft = self.damping[near], self.stiffness[near]
                angle = np.polyadd(np.polymul(shaft, angle), torque)
                torque = np.polymul(shaft, torque)
            torque = np.polyadd(torque, np.polymul((self.inertias[mass], self.viscous[mass], 0.0), angle))
            angles.append(angle)
        return angles, torque

    def _shafts(self, first: int, last: int) -> Array:
        """Product of c s + k of the shafts between two masses."""
        product = np.array([1.0])
        for shaft in zip(self.damping[first:last], self.stiffness[first:last], strict=True):
            product = np.polymul(product, shaft)
        return product

    def _mass(self, what: str, index: int) -> int:
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or not -len(self) <= index < len(self):
            raise DescriptionError(f"chain: {what} is {index!r}; the masses are 0 (rotor) to {len(self) - 1} (load)")
        return int(index) % len(self)

    def receptance(self, output: int = 0, input: int = 0) -> TransferFunction:
        """Angle of one mass per torque on another, ``theta_output / tau_input``.

        Parameters
        ----------
        output, input : int
            Masses, 0 is the rotor, -1 the load.

        Returns
        -------
        TransferFunction
            Exact, of the order 2 n; symmetric in output and input.
        """
        i, j = self._mass("output", output), self._mass("input", input)
        first, last = min(i, j), max(i, j)
        left, right, denominator = self._polynomials
        numerator = np.polymul(np.polymul(left[first], right[last]), self._shafts(first, last))
        return TransferFunction(tuple(numerator), tuple(denominator), f"theta_{i} / tau_{j}")

    def transmissibility(self, output: int = -1, reference: int = 0) -> TransferFunction:
        """Angle of a mass per angle of another, with the torque on the far side of the reference.

        Parameters
        ----------
        output, reference : int
            Masses, 0 is the rotor, -1 the load. No torque acts on the output or beyond it.

        Returns
        -------
        TransferFunction
            ``theta_output / theta_reference``: its poles are those of the chain with the reference held.
        """
        i, j = self._mass("output", output), self._mass("reference", reference)
        left, right, _ = self._polynomials
        angles = right if i >= j else left
        numerator = np.polymul(angles[i], self._shafts(min(i, j), max(i, j)))
        return TransferFunction(tuple(numerator), tuple(angles[j]), f"theta_{i} / theta_{j}")

    def transfer_functions(self) -> dict[str, TransferFunction]:
        """Transfer functions by the names of [Roldan2017, eqs. 3.7-3.12], for any number of masses.

        Returns
        -------
        dict of str to TransferFunction
            ``TF1`` = theta_motor / tau_motor, ``TF2`` = theta_load / theta_motor driven by the motor, ``TF1d`` = theta_load /
            torque on the load (the torque the mechanism requires enters with a minus), ``TF2d`` = theta_motor / theta_load
            driven by the load.
        """
        found = {
            "TF1": self.receptance(0, 0),
            "TF2": self.transmissibility(-1, 0),
            "TF1d": self.receptance(-1, -1),
            "TF2d": self.transmissibility(0, -1),
        }
        return {name: replace(function, name=f"{name} = {function.name}") for name, function in found.items()}

    def state_space(self) -> StateSpace:
        """Continuous state space: states and outputs are all angles, then all speeds.

        Inputs ``tau_m`` on the rotor and ``tau_d``, the torque that the mechanism requires of the load (with a minus).
        """
        n = len(self)
        J = np.array(self.inertias)
        A = np.zeros((2 * n, 2 * n))
        A[:n, n:] = np.eye(n)
        A[n:, :n] = -self.stiffness_matrix / J[:, None]
        A[n:, n:] = -self.damping_matrix / J[:, None]
        B = np.zeros((2 * n, 2))
        B[n, 0], B[-1, 1] = 1.0 / J[0], -1.0 / J[-1]
        names = (*(f"theta_{i}" for i in range(n)), *(f"omega_{i}" for i in range(n)))
        return StateSpace(A, B, np.eye(2 * n), np.zeros((2 * n, 2)), ("tau_m", "tau_d"), names)

    def modes(self) -> Modes:
        """Modal form, the rigid motion first. Frequencies, decays and mass-normalised shapes."""
        return free_modes(self.inertias, self.stiffness, self.damping_matrix)

    def resonances(self) -> Array:
        """Undamped natural frequencies of the free chain, without the rigid motion.

        Returns
        -------
        ndarray, (n - 1,)
            [Hz], rising; for two masses ``sqrt(k (J1 + J2) / (J1 J2)) / (2 pi)``.
        """
        return self.modes().frequency[1:]

    def anti_resonances(self, mass: int = 0) -> Array:
        """Undamped frequencies at which a mass stands still although it is driven: those of the chain with it held.

        Parameters
        ----------
        mass : int
            The driven mass, 0 is the rotor, -1 the load.

        Returns
        -------
        ndarray, (n - 1,)
            [Hz], rising; for two masses and the rotor ``sqrt(k / J2) / (2 pi)``, which is also the resonance of TF2.
        """
        held = self._mass("mass", mass)
        twist = np.sqrt(self.stiffness)[:, None] * np.diff(np.eye(len(self)), axis=0) / np.sqrt(self.inertias)
        return np.sort(np.linalg.svd(np.delete(twist, held, axis=1), compute_uv=False)) / (2.0 * np.pi)


def _tridiagonal(shafts: tuple[float, ...]) -> Array:
    twist = np.diff(np.eye(len(shafts) + 1), axis=0)
    return np.asarray(twist.T @ np.diag(shafts) @ twist) if shafts else np.zeros((1, 1))


@dataclass(frozen=True, eq=False)
class TwoMass:
    """Inertias, stiffness and damping of a two-mass actuator, seen at the motor.

    Parameters
    ----------
    values : ndarray, (4,)
        J1, J2 [kg m^2], k [N m/rad], c [N m s/rad].
    covariance : ndarray, (4, 4)
        Of the values.
    """

    values: Array
    covariance: Array

    names = ("J1", "J2", "k", "c")

    @property
    def standard_deviation(self) -> Array:
        """Of the values, (4,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def chain(self) -> Chain:
        """The chain; a damping that noise made negative becomes zero."""
        J1, J2, k, c = self.values.tolist()
        return Chain((J1, J2), (k,), (max(c, 0.0),))


def two_mass(modal: Array, covariance: Array, at: str = "load", ratio: float = 1.0) -> TwoMass:
    """Return the two masses whose driving point has one mode and a rigid motion.

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
            f"the fit gives rigid = {rigid:.3g} and residue = {residue:.3g}, which no driving point of two masses has; "
            "check kind, sign and that the lines reach well below the resonance"
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
