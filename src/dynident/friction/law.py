"""The friction law: a torque that is linear in some of its parameters and shaped by the others.

    f(v, q, tau, T) = Phi(v, q, tau, T; eta) rho          rho: linear parameters (k),  eta: shape parameters (s)

Every law gives the columns Phi and their exact derivatives, so that a fit can eliminate rho and search eta alone
(variable projection, document 4 eqs. 2.35-2.36). Laws add: ``Coulomb() + Viscous()``. Positive friction opposes the
motion and stands on the left of the equation of motion, ``M a + C v + g + f = tau`` (document 0 eq. 14).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DescriptionError
from dynident.friction.state import State

if TYPE_CHECKING:
    from dynident.friction.combine import Friction, Sum

Array = NDArray[np.float64]


class FrictionLaw(ABC):
    """Base of all static laws; a law is a structure without numbers, parameters are given at every call.

    A law implements the names and the hooks `_columns`, `_dv`, `_dshape` (and `_dq`, `_dtau`, `_dT` where it depends on
    them). The derivative of a jump (sgn at v = 0) is taken as zero.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Short name, the prefix of its parameters in a sum."""

    @property
    @abstractmethod
    def linear(self) -> tuple[str, ...]:
        """Names of the parameters that enter linearly, one per column."""

    @property
    def shape(self) -> tuple[str, ...]:
        """Names of the parameters that shape the columns."""
        return ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """All names: linear ones first, then shape."""
        return self.linear + self.shape

    @abstractmethod
    def _columns(self, state: State, eta: Array) -> Array: ...

    @abstractmethod
    def _dv(self, state: State, eta: Array) -> Array: ...

    def _dq(self, state: State, eta: Array) -> Array:
        return np.zeros((*state.v.shape, len(self.linear)))

    def _dtau(self, state: State, eta: Array) -> Array:
        return np.zeros((*state.v.shape, len(self.linear)))

    def _dT(self, state: State, eta: Array) -> Array:
        return np.zeros((*state.v.shape, len(self.linear)))

    def _dshape(self, state: State, eta: Array) -> Array:
        return np.zeros((*state.v.shape, len(self.linear), len(self.shape)))

    def _members(self) -> tuple[FrictionLaw, ...]:
        return (self,)

    def _check(self, eta: Array) -> None:
        """Refuse shape parameters for which the law has no meaning; called with finite numbers."""
        del eta

    def shape_range(self, speed: float) -> Array:
        """Interval in which to search each shape parameter, from the largest speed of the data alone.

        Parameters
        ----------
        speed : float
            Largest absolute speed of the data [rad/s or m/s].

        Returns
        -------
        ndarray, shape (s, 2)
            Lowest and highest value.
        """
        if not (np.isfinite(speed) and speed > 0.0):
            raise DescriptionError(f"speed = {speed} must be above zero; give the largest absolute speed of the data")
        return self._range(speed)

    def _range(self, speed: float) -> Array:
        del speed
        return np.zeros((0, 2))

    def _eta(self, shape: ArrayLike) -> Array:
        eta = np.asarray(shape, dtype=np.float64)
        if eta.shape != (len(self.shape),):
            raise DescriptionError(
                f"the law '{self.name}' has {len(self.shape)} shape parameters {self.shape}, but the array given has the "
                f"shape {eta.shape}; give one number each"
            )
        if not np.isfinite(eta).all():
            raise DescriptionError(f"shape parameters of '{self.name}' are {eta.tolist()}; they must be finite")
        self._check(eta)
        return eta

    def columns(self, state: State | ArrayLike, shape: ArrayLike = ()) -> Array:
        """Regressor columns, ``f = columns @ rho``.

        Parameters
        ----------
        state : State or array_like, shape (...)
            State, or the velocities alone.
        shape : array_like, shape (s,)
            Shape parameters eta.

        Returns
        -------
        ndarray, shape (..., k)
            One column per linear parameter.
        """
        return self._columns(State.of(state), self._eta(shape))

    def columns_dv(self, state: State | ArrayLike, shape: ArrayLike = ()) -> Array:
        """Exact derivative of the columns with respect to the velocity.

        Parameters
        ----------
        state : State or array_like, shape (...)
            State, or the velocities alone.
        shape : array_like, shape (s,)
            Shape parameters eta.

        Returns
        -------
        ndarray, shape (..., k)
            ``d Phi / d v``.
        """
        return self._dv(State.of(state), self._eta(shape))

    def columns_dq(self, state: State | ArrayLike, shape: ArrayLike = ()) -> Array:
        """Exact derivative of the columns with respect to the position.

        Parameters
        ----------
        state : State or array_like, shape (...)
            State, or the velocities alone.
        shape : array_like, shape (s,)
            Shape parameters eta.

        Returns
        -------
        ndarray, shape (..., k)
            ``d Phi / d q``.
        """
        return self._dq(State.of(state), self._eta(shape))

    def columns_dtau(self, state: State | ArrayLike, shape: ArrayLike = ()) -> Array:
        """Exact derivative of the columns with respect to the load.

        Parameters
        ----------
        state : State or array_like, shape (...)
            State, or the velocities alone.
        shape : array_like, shape (s,)
            Shape parameters eta.

        Returns
        -------
        ndarray, shape (..., k)
            ``d Phi / d tau``.
        """
        return self._dtau(State.of(state), self._eta(shape))

    def columns_dT(self, state: State | ArrayLike, shape: ArrayLike = ()) -> Array:
        """Exact derivative of the columns with respect to the temperature.

        Parameters
        ----------
        state : State or array_like, shape (...)
            State, or the velocities alone.
        shape : array_like, shape (s,)
            Shape parameters eta.

        Returns
        -------
        ndarray, shape (..., k)
            ``d Phi / d T``.
        """
        return self._dT(State.of(state), self._eta(shape))

    def columns_dshape(self, state: State | ArrayLike, shape: ArrayLike = ()) -> Array:
        """Exact derivative of the columns with respect to the shape parameters.

        Parameters
        ----------
        state : State or array_like, shape (...)
            State, or the velocities alone.
        shape : array_like, shape (s,)
            Shape parameters eta.

        Returns
        -------
        ndarray, shape (..., k, s)
            ``d Phi / d eta``.
        """
        return self._dshape(State.of(state), self._eta(shape))

    def split(self, parameters: Mapping[str, float] | ArrayLike) -> tuple[Array, Array]:
        """Linear and shape parameters out of one set.

        Parameters
        ----------
        parameters : mapping or array_like, shape (k + s,)
            Values by name, or in the order of `parameters`. A name may drop its prefix where that is unambiguous.

        Returns
        -------
        rho : ndarray, shape (k,)
            Linear parameters.
        eta : ndarray, shape (s,)
            Shape parameters.
        """
        names = self.parameters
        if isinstance(parameters, Mapping):
            given = {self._resolve(name): float(value) for name, value in parameters.items()}
            missing = [name for name in names if name not in given]
            if missing:
                raise DescriptionError(
                    f"the law '{self.name}' lacks a value for {', '.join(missing)}; its parameters are {names}"
                )
            values = np.array([given[name] for name in names], dtype=np.float64)
        else:
            values = np.asarray(parameters, dtype=np.float64)
        if values.shape != (len(names),):
            raise DescriptionError(
                f"the law '{self.name}' has the parameters {names}, but an array of shape {values.shape} was given"
            )
        if not np.isfinite(values).all():
            raise DescriptionError(f"the parameters of '{self.name}' are {values.tolist()}; they must be finite")
        return values[: len(self.linear)], self._eta(values[len(self.linear) :])

    def _resolve(self, name: str) -> str:
        if name in self.parameters:
            return name
        found = [full for full in self.parameters if full.endswith("." + name)]
        if len(found) != 1:
            choice = f"write one of {', '.join(found or self.parameters)}"
            raise DescriptionError(f"the law '{self.name}' has no parameter '{name}' of one meaning; {choice}")
        return found[0]

    def value(self, state: State | ArrayLike, parameters: Mapping[str, float] | ArrayLike) -> Array:
        """Friction torque or force.

        Parameters
        ----------
        state : State or array_like, shape (...)
            State, or the velocities alone.
        parameters : mapping or array_like, shape (k + s,)
            Values by name, or in the order of `parameters`.

        Returns
        -------
        ndarray, shape (...)
            ``f = Phi(state; eta) rho`` [N m or N].
        """
        rho, eta = self.split(parameters)
        return np.asarray(self._columns(State.of(state), eta) @ rho)

    def value_dv(self, state: State | ArrayLike, parameters: Mapping[str, float] | ArrayLike) -> Array:
        """Exact derivative of the friction with respect to the velocity.

        Parameters
        ----------
        state : State or array_like, shape (...)
            State, or the velocities alone.
        parameters : mapping or array_like, shape (k + s,)
            Values by name, or in the order of `parameters`.

        Returns
        -------
        ndarray, shape (...)
            ``d f / d v``.
        """
        rho, eta = self.split(parameters)
        return np.asarray(self._dv(State.of(state), eta) @ rho)

    def value_dparameters(self, state: State | ArrayLike, parameters: Mapping[str, float] | ArrayLike) -> Array:
        """Exact derivative of the friction with respect to all parameters, linear ones first.

        Parameters
        ----------
        state : State or array_like, shape (...)
            State, or the velocities alone.
        parameters : mapping or array_like, shape (k + s,)
            Values by name, or in the order of `parameters`.

        Returns
        -------
        ndarray, shape (..., k + s)
            ``[Phi, (d Phi / d eta) rho]``.
        """
        rho, eta = self.split(parameters)
        given = State.of(state)
        bent = np.einsum("...ks,k->...s", self._dshape(given, eta), rho)
        return np.concatenate([self._columns(given, eta), bent], axis=-1)

    def using(self, parameters: Mapping[str, float] | None = None, **values: float) -> Friction:
        """Law with numbers, to be called with a state.

        Parameters
        ----------
        parameters : mapping, optional
            Values by name.
        **values : float
            More values by name; the prefix of a sum may be dropped where that is unambiguous.

        Returns
        -------
        Friction
            The law with its numbers.
        """
        from dynident.friction.combine import Friction  # noqa: PLC0415  (it is built on this class)

        return Friction(self, np.concatenate(self.split({**(parameters or {}), **values})))

    def __add__(self, other: FrictionLaw) -> Sum:
        if not isinstance(other, FrictionLaw):
            return NotImplemented
        from dynident.friction.combine import Sum  # noqa: PLC0415  (it is built on this class)

        return Sum((*self._members(), *other._members()))
