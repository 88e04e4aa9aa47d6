"""Friction laws as rows of numbers for the compiled simulation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.errors import SimulationError
from dynident.friction import (
    Asymmetric,
    Coulomb,
    Dahl,
    DynamicLaw,
    Friction,
    FrictionLaw,
    GeneralisedMaxwellSlip,
    LoadDependent,
    LuGre,
    Offset,
    Polynomial,
    Ripple,
    Sigmoid,
    SmoothStribeck,
    Stribeck,
    Sum,
    Tanh,
    TemperatureDependent,
    Viscous,
)
from dynident.friction.modifiers import _Unit
from dynident.simulate.layout import (
    COSINE,
    COULOMB,
    DAHL,
    LOAD,
    LUGRE,
    MAXWELL,
    OFFSET,
    POWER,
    SINE,
    SMOOTH,
    SPRING,
    STEADY,
    STRIBECK,
    TANH,
    VISCOUS,
    WAVE_NUMBER,
)

Array = NDArray[np.float64]

WIDTH = 9  # numbers per row that describe the law; the last is its harmonic, or its power of the load


class Row(NamedTuple):
    """One row of the friction table.

    Parameters
    ----------
    kind : int
        OFFSET ... MAXWELL.
    way : int
        0 for both directions, +1 or -1 for one.
    values : tuple of float
        Up to eight numbers.
    wave : int
        STEADY, or what multiplies it: COSINE or SINE of the position, or a power of the LOAD.
    number : float
        Harmonic, or power.
    warmth : tuple of (float, float)
        Slopes alpha and temperatures T0 of the factors 1 + alpha (T - T0) that multiply it [1/K, degree Celsius].
    """

    kind: int
    way: int
    values: tuple[float, ...]
    wave: int = STEADY
    number: float = 0.0
    warmth: tuple[tuple[float, float], ...] = ()

    @property
    def holds(self) -> bool:
        """Whether its force jumps at rest, so that it can hold its owner."""
        return self.kind in (COULOMB, STRIBECK) and self.jump > 0.0

    @property
    def jump(self) -> float:
        """Size of the force that changes its sign with the speed, which sets how steeply it may do so."""
        if self.kind in (COULOMB, TANH):
            return abs(self.values[0])
        if self.kind == STRIBECK:
            return max(abs(self.values[0]), abs(self.values[1]))
        if self.kind == SMOOTH:
            return abs(self.values[0]) + abs(self.values[1])
        return 0.0


#: Kind, direction and further numbers of the rows of joint terms; rotor inertia is none.
TERM_ROWS: dict[str, tuple[int, int, tuple[float, ...]]] = {
    "fv": (VISCOUS, 0, ()),
    "fc": (COULOMB, 0, ()),
    "off": (OFFSET, 0, ()),
    "k": (SPRING, 0, ()),
    "fvp": (VISCOUS, 1, ()),
    "fvn": (VISCOUS, -1, ()),
    "fcp": (COULOMB, 1, ()),
    "fcn": (COULOMB, -1, ()),
    "f2": (POWER, 0, (2.0,)),
    "f3": (POWER, 0, (3.0,)),
}


def law_rows(law: Friction | DynamicLaw, owner: str) -> list[Row]:
    """Return the rows of a law with numbers.

    Parameters
    ----------
    law : Friction or DynamicLaw
        The law.
    owner : str
        Whose it is, for the message when the compiled simulation does not know the law.

    Returns
    -------
    list of Row
        Their forces add up to the law's.
    """
    if isinstance(law, DynamicLaw):
        return _dynamic(law, owner)
    count = len(law.law.linear)
    return _static(law.law, law.values[:count], law.values[count:], 0, owner)


def _dynamic(law: DynamicLaw, owner: str) -> list[Row]:
    if isinstance(law, Dahl):
        return [Row(DAHL, 0, (law.sigma0, law.fc, law.exponent)), Row(VISCOUS, 0, (law.fv,))]
    if isinstance(law, LuGre):
        return [Row(LUGRE, 0, (law.sigma0, law.sigma1, law.fc, law.fs, law.vs, law.exponent)), Row(VISCOUS, 0, (law.fv,))]
    if isinstance(law, GeneralisedMaxwellSlip):
        damping = law.damping or (0.0,) * len(law.stiffness)
        curve = (law.attraction, law.fc, law.fs, law.vs, law.exponent)
        elements = zip(law.stiffness, law.share, damping, strict=True)
        return [*(Row(MAXWELL, 0, (*element, *curve)) for element in elements), Row(VISCOUS, 0, (law.fv,))]
    raise _unknown(type(law).__name__, owner)


def _static(law: FrictionLaw, rho: Array, eta: Array, way: int, owner: str) -> list[Row]:
    """Return the rows of a static law from its linear parameters rho and shape parameters eta."""
    if isinstance(law, Sum):
        rows: list[Row] = []
        i = j = 0
        for member in law.members:
            k, s = len(member.linear), len(member.shape)
            rows += _static(member, rho[i : i + k], eta[j : j + s], way, owner)
            i, j = i + k, j + s
        return rows
    if isinstance(law, Asymmetric) and way == 0:
        forward = _static(law.law, rho[0::2], eta[0::2], 1, owner)
        return forward + _static(law.law, rho[1::2], eta[1::2], -1, owner)
    if isinstance(law, TemperatureDependent):
        inner = _static(law.law, rho, eta[:-1], way, owner)
        return [row._replace(warmth=(*row.warmth, (float(eta[-1]), law.reference))) for row in inner]
    if isinstance(law, Ripple | LoadDependent):
        waves = [(wave, h) for h in law.harmonics for wave in (COSINE, SINE)] if isinstance(law, Ripple) else _powers(law)
        rows = []
        for i, (wave, number) in enumerate(waves):  # every linear parameter of the inner law has one number per wave
            inner = _static(law.law, rho[i :: len(waves)], eta, way, owner)
            if any(row.wave != STEADY for row in inner):
                raise _unknown(f"{law.name} of {law.law.name}", owner)
            rows += [row._replace(wave=wave, number=float(number)) for row in inner]
        return rows
    return _plain(law, rho, eta, way, owner)


def _powers(law: LoadDependent) -> list[tuple[int, float]]:
    return [(LOAD, power) for power in law.powers]


def _plain(law: FrictionLaw, rho: Array, eta: Array, way: int, owner: str) -> list[Row]:
    """Return the rows of a law that is not made from others."""
    r, e = tuple(float(x) for x in rho), tuple(float(x) for x in eta)
    if isinstance(law, Viscous):
        return [Row(VISCOUS, way, r)]
    if isinstance(law, Coulomb):
        return [Row(COULOMB, way, r)]
    if isinstance(law, Offset | _Unit):  # one direction's offset jumps at rest as Coulomb friction does
        return [Row(OFFSET, 0, r)] if way == 0 else [Row(COULOMB, way, (way * r[0],))]
    if isinstance(law, Polynomial):
        low = [Row(COULOMB, way, r[:1]), Row(VISCOUS, way, r[1:2])][: len(r)]
        return low + [Row(POWER, way, (value, float(power))) for power, value in enumerate(r) if power > 1]
    if isinstance(law, Stribeck):
        delta = e[1] if law.exponent is None else law.exponent
        return [Row(STRIBECK, way, (*r, e[0], float(delta)))]
    if isinstance(law, Tanh):
        return [Row(TANH, way, (r[0], e[0]))]
    if isinstance(law, SmoothStribeck):
        return [Row(SMOOTH, way, (*r, *e))]
    if isinstance(law, Sigmoid):
        return [Row(VISCOUS, way, r[:1]), *(Row(TANH, way, pair) for pair in zip(r[1:], e, strict=True))]
    raise _unknown(law.name, owner)


def _unknown(name: str, owner: str) -> SimulationError:
    return SimulationError(
        f"friction of '{owner}': the simulation has no compiled form of the law '{name}'; use Coulomb, Viscous, Offset, "
        "Polynomial, Stribeck, Tanh, SmoothStribeck, Sigmoid, Asymmetric of those, one of Ripple or LoadDependent around them, "
        "TemperatureDependent of all these, sums, Dahl, LuGre or GeneralisedMaxwellSlip"
    )


def row_numbers(row: Row, stick: float) -> Array:
    """Return the numbers of a row, smooth slopes limited to what a step can follow.

    Parameters
    ----------
    row : Row
        The row.
    stick : float
        Speed that a unit force takes away from its owner within one step [rad/s per N m, m/s per N].

    Returns
    -------
    ndarray, (9,)
        Values, slopes limited to 1 / v_s, v_s being stick times the jump, and the number of its wave at the end.
    """
    out = np.zeros(WIDTH)
    out[: len(row.values)] = row.values
    if row.wave != STEADY:
        out[WAVE_NUMBER] = row.number
    soft = row.jump * stick
    slope = {TANH: 1, SMOOTH: 3}.get(row.kind)
    if slope is not None and soft > 0.0:
        out[slope] = np.clip(out[slope], -1.0 / soft, 1.0 / soft)
    return out
