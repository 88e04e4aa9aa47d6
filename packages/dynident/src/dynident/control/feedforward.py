"""Feed-forward: what actuators must do on a reference, from a model and friction laws [Roldan2017, figs. 2.21 and 2.27].

A^T tau = ID_model(reference) + friction of the coordinates,    tau += friction of the actuators at their speed
tau_motor = tau / ratio + J_drive theta'' + friction of the rotor,    i = tau_motor / K_t
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import per_actuator
from dynident.control.distribution import actuator_rows, coupling_rows, with_preload
from dynident.drive.drive import Drive
from dynident.errors import DynidentError, require
from dynident.friction.dynamic import DynamicLaw
from dynident.friction.friction import Friction
from dynident.friction.state import State
from dynident.mechanics.dynamics import inverse_dynamics
from dynident.mechanics.functions import tree_motion
from dynident.mechanics.motion import Motion, MotionLike, as_motion
from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]
Laws = Mapping[str, Friction | DynamicLaw]


def actuator_motion(mechanism: Mechanism, motion: MotionLike) -> Motion:
    """Return the motion of the actuator coordinates rho, behind the gears: rho_v = A v, rho_a = A a + c b."""
    motion = as_motion(motion)
    tree = tree_motion(mechanism, motion)
    rows = coupling_rows(mechanism)
    return Motion(motion.t, tree.q @ rows.T, tree.v @ rows.T, tree.a @ rows.T)


def feedforward_torques(
    model: Mechanism,
    reference: MotionLike,
    *,
    friction: Laws | None = None,
    preload: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Return the torques of the actuators, behind the gears, that a model needs on a reference.

    Parameters
    ----------
    model : Mechanism
        What the controller believes, rotor inertia and friction as joint terms (ia, fv, fc) included.
    reference : Motion or (q, v, a)
        N samples of its coordinates.
    friction : mapping of str to Friction or DynamicLaw, optional
        Laws to compensate, by actuator (at the speed of rho) or by coordinate (at its own speed); a dynamic law counts with
        its steady part.
    preload : array_like (N, k), (k,) or scalar, optional
        Torques whose internal part is added.
    weights : array_like (k,), optional
        How the load is shared between more actuators than freedoms, see `minimum_norm`.

    Returns
    -------
    ndarray, (N, k)
        Torques [N m, N]: minimum norm (plus preload) when there are more actuators than freedoms.

    Examples
    --------
    >>> import dynident as di
    >>> from dynident.control import feedforward_torques
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0)], convention="standard", gravity=(0, -9.81, 0)).with_payload(2.0)
    >>> feedforward_torques(arm, di.Motion([0.0], [0.0], [0.0], [0.0])).round(4)
    array([[5.886]])
    """
    reference = as_motion(reference)
    f = inverse_dynamics(model, reference)
    A = actuator_rows(model, reference.q)
    actuators = [actuator.name for actuator in model.actuators]
    laws = friction_laws(friction, (*actuators, *model.coordinate_names))
    for name in [name for name in laws if name not in actuators]:
        column = model.coordinate_names.index(name)
        f[:, column] += laws[name](State(reference.v[:, column], reference.q[:, column], f[:, column]))
    tau = with_preload(A, f, 0.0 if preload is None else preload, weights)
    if any(name in actuators for name in laws):
        rho = actuator_motion(model, reference)
        for column, name in enumerate(actuators):
            if name in laws:
                tau[:, column] += laws[name](State(rho.v[:, column], rho.q[:, column], tau[:, column]))
    return tau


def friction_laws(friction: Laws | None, names: Sequence[str]) -> dict[str, Friction]:
    """Return the static laws of `names` after checking; dynamic laws become their steady part."""
    if friction is None:
        return {}
    if not isinstance(friction, Mapping):
        raise DynidentError(f"friction is a {type(friction).__name__}; give a mapping of actuator or coordinate name to a law")
    found: dict[str, Friction] = {}
    for name, law in friction.items():
        if name not in names:
            raise DynidentError(f"friction names '{name}', which does not exist; use one of {', '.join(dict.fromkeys(names))}")
        if not isinstance(law, Friction | DynamicLaw):
            raise DynidentError(f"friction of '{name}' is a {type(law).__name__}; give a law with numbers (law.using(...))")
        found[name] = law.steady
    return found


def motor_torques(drives: Sequence[Drive], rho: MotionLike, torques: ArrayLike, *, inertia: bool = True) -> Array:
    """Return the torques that the motors must make so that the actuators give `torques` behind their gears."""
    if not isinstance(rho, tuple):
        require(rho, Motion, "rho")
    rho = as_motion(rho)
    tau = np.atleast_2d(np.asarray(torques, dtype=np.float64))
    if tau.shape != (len(rho), len(drives)) or rho.dof != len(drives):
        raise DynidentError(
            f"torques have shape {tau.shape} and rho ({len(rho)}, {rho.dof}); give ({len(rho)}, {len(drives)}), one column "
            "for each drive"
        )
    out = np.empty_like(tau)
    for j, drive in enumerate(drives):
        require(drive, Drive, f"drives[{j}]")
        ratio, omega = drive.transmission.ratio, drive.transmission.ratio * rho.v[:, j]
        before = drive.input_inertia if inertia else 0.0
        behind = drive.inertia - drive.input_inertia if inertia else 0.0  # turns with rho, so its torque goes through the gear
        out[:, j] = drive.transmission.motor_torque(tau[:, j] + behind * ratio**2 * rho.a[:, j], omega)
        out[:, j] += before * ratio * rho.a[:, j]
        if drive.friction is not None:
            out[:, j] += drive.friction.steady(State(omega, ratio * rho.q[:, j], out[:, j]))
    return out


def motor_currents(drives: Sequence[Drive], torques: ArrayLike) -> Array:
    """Return the currents of motor torques, i = tau / K_t."""
    constants = np.array([drive.motor.torque_constant for drive in drives])
    return np.asarray(np.atleast_2d(np.asarray(torques, dtype=np.float64)) / per_actuator(constants, len(drives), "K_t"))
