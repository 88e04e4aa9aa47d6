"""Laws put together: sums of laws, and a law with numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DescriptionError
from dynident.friction.law import FrictionLaw
from dynident.friction.state import State

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sum(FrictionLaw):
    """Sum of laws; its parameters carry the name of their law: ``coulomb.fc``, ``tanh.beta``, ``tanh2.beta``.

    Parameters
    ----------
    members : tuple of FrictionLaw
        The laws, at least one.
    """

    members: tuple[FrictionLaw, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise DescriptionError("a sum of friction laws needs at least one law")

    @property
    def name(self) -> str:
        """Names of the laws joined by a plus."""
        return "+".join(law.name for law in self.members)

    def _members(self) -> tuple[FrictionLaw, ...]:
        return self.members

    def _prefixes(self) -> list[str]:
        names = [law.name for law in self.members]
        rank = [names[: i + 1].count(name) for i, name in enumerate(names)]
        return [name if r == 1 else f"{name}{r}" for name, r in zip(names, rank, strict=True)]

    @property
    def linear(self) -> tuple[str, ...]:
        """Linear parameters of all members."""
        return tuple(f"{p}.{n}" for p, law in zip(self._prefixes(), self.members, strict=True) for n in law.linear)

    @property
    def shape(self) -> tuple[str, ...]:
        """Shape parameters of all members."""
        return tuple(f"{p}.{n}" for p, law in zip(self._prefixes(), self.members, strict=True) for n in law.shape)

    def _range(self, speed: float) -> Array:
        return np.concatenate([law._range(speed) for law in self.members])

    def _parts(self, eta: Array) -> list[tuple[FrictionLaw, Array]]:
        ends = np.cumsum([len(law.shape) for law in self.members])
        return list(zip(self.members, np.split(eta, ends[:-1]), strict=True))

    def _check(self, eta: Array) -> None:
        for law, part in self._parts(eta):
            law._check(part)

    def _columns(self, state: State, eta: Array) -> Array:
        return np.concatenate([law._columns(state, part) for law, part in self._parts(eta)], axis=-1)

    def _dv(self, state: State, eta: Array) -> Array:
        return np.concatenate([law._dv(state, part) for law, part in self._parts(eta)], axis=-1)

    def _dq(self, state: State, eta: Array) -> Array:
        return np.concatenate([law._dq(state, part) for law, part in self._parts(eta)], axis=-1)

    def _dtau(self, state: State, eta: Array) -> Array:
        return np.concatenate([law._dtau(state, part) for law, part in self._parts(eta)], axis=-1)

    def _dT(self, state: State, eta: Array) -> Array:
        return np.concatenate([law._dT(state, part) for law, part in self._parts(eta)], axis=-1)

    def _dshape(self, state: State, eta: Array) -> Array:
        result = np.zeros((*state.v.shape, len(self.linear), len(self.shape)))
        row = column = 0
        for law, part in self._parts(eta):
            k, s = len(law.linear), len(law.shape)
            result[..., row : row + k, column : column + s] = law._dshape(state, part)
            row, column = row + k, column + s
        return result


@dataclass(frozen=True, eq=False)
class Friction:
    """A law with numbers: ``friction(v)`` is the torque.

    Parameters
    ----------
    law : FrictionLaw
        The law.
    values : ndarray, shape (k + s,)
        Its parameters in the order of ``law.parameters``.
    """

    law: FrictionLaw
    values: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.concatenate(self.law.split(self.values)))

    @property
    def parameters(self) -> dict[str, float]:
        """Values by name."""
        return dict(zip(self.law.parameters, self.values.tolist(), strict=True))

    def __call__(self, state: State | ArrayLike) -> Array:
        """Friction torque or force.

        Parameters
        ----------
        state : State or array_like, shape (...)
            State, or the velocities alone.

        Returns
        -------
        ndarray, shape (...)
            f [N m or N].
        """
        return self.law.value(state, self.values)

    def dv(self, state: State | ArrayLike) -> Array:
        """Exact derivative with respect to the velocity.

        Parameters
        ----------
        state : State or array_like, shape (...)
            State, or the velocities alone.

        Returns
        -------
        ndarray, shape (...)
            ``d f / d v``.
        """
        return self.law.value_dv(state, self.values)

    def power(self, state: State | ArrayLike) -> Array:
        """Power turned into heat; negative where the friction feeds energy into the motion.

        Parameters
        ----------
        state : State or array_like, shape (...)
            State, or the velocities alone.

        Returns
        -------
        ndarray, shape (...)
            ``W = f v`` [W] (document 3 eq. 96).
        """
        given = State.of(state)
        return np.asarray(self(given) * given.v)
