"""Control laws in a work space (`workspace`), with the freedoms that fewer rows than coordinates leave.

    TaskPID             F = kp e + kd e' + ki int e dt,      A^T tau = J^T F + ID_model(reference) + N^T M a_posture
    TaskComputedTorque  w'' = w_ref'' + kp e + kd e' + ki int e dt,    a = J^-1 (w'' - J' v),    A^T tau = ID_model(x, v, a)
    TaskCascade         w_v0 = kv e + share w_ref',          rho_v0 = A J^-1 w_v0,   then the loops of every actuator

[Roldan2017, figs. 2.23, 3.14 and 3.15, section 3.3.3; Callegari2006]. With fewer rows than coordinates

    J^-1 becomes J+ = M^-1 J^T (J M^-1 J^T)^-1,    N = 1 - J+ J

the inverse of least kinetic energy. N lets through what the work space does not feel, neither as a motion (J N = 0) nor as a
force of the robot's inertia (J M^-1 N^T = 0): the posture follows the reference there, a_posture = kd (v_ref - v) +
kp (q_ref - q), and a_ref with it where accelerations are asked for.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import gain, number
from dynident.control.checks import check_gains, optional_model
from dynident.control.laws import Cascade
from dynident.control.workspace import Bound, Workspace
from dynident.errors import DynidentError, require
from dynident.mechanism.mechanism import Mechanism


def bound_space(owner: str, space: Workspace, mechanism: Mechanism) -> Bound:
    """Return the work space of a robot, or refuse one with more rows than coordinates."""
    bound = space.bind(mechanism)
    if bound.rows > mechanism.dof:
        raise DynidentError(
            f"{owner}: the work space has {bound.rows} rows but robot '{mechanism.name}' has {mechanism.dof} coordinates; "
            "choose at most as many rows as coordinates, as in ToolSpace(rows=('x', 'y'))"
        )
    return bound


def _check_space(space: object) -> None:
    if not callable(getattr(space, "bind", None)):
        raise DynidentError(f"space is a {type(space).__name__}; give a ToolSpace, CoordinateSpace or MapSpace")


def _check(law: TaskPID | TaskComputedTorque) -> None:
    """Check what the two laws that command torques have in common."""
    _check_space(law.space)
    check_gains(law.owner, law)
    if law.posture is not None:
        values = np.asarray(gain(law.owner, "posture", law.posture))
        if values.shape != (2,):
            raise DynidentError(f"{law.owner}: posture has shape {values.shape}; give two numbers, kp [1/s^2] and kd [1/s]")
        object.__setattr__(law, "posture", tuple(values.tolist()))


@dataclass(frozen=True)
class TaskPID:
    """PID in a work space of m rows, at most as many as the robot has coordinates.

    Parameters
    ----------
    space : Workspace
        What is controlled: ``ToolSpace("tool")``, ``CoordinateSpace()`` or ``MapSpace(position)``.
    kp : float or array_like (m,)
        Stiffness [N/m, N m/rad].
    kd : float or array_like (m,)
        Damping [N s/m, N m s/rad].
    ki : float or array_like (m,)
        Integral gain [N/(m s), N m/(rad s)]; it waits while an actuator is at its limit.
    cycle : float
        Cycle time [s].
    derivative_filter : float or array_like (m,)
        Corner frequency of a first-order low-pass on the velocity error [Hz]; 0 is none.
    feedforward : Mechanism, optional
        Model whose inverse dynamics on the reference is added.
    preload : float or array_like (k,)
        Torques whose internal part is added [N m, N]; refused on a robot without more motors than freedoms.
    delay : float
        Time from the sampling of the sensors to the command at the motors [s], a whole multiple of the simulation's step.
    posture : array_like (2,), optional
        Gains kp [1/s^2] and kd [1/s] with which the freedoms that fewer rows than coordinates leave follow the reference's
        posture; when omitted as fast as the slowest row where the run starts, kp = min_i kp_i (J M^-1 J^T)_ii, and
        critically damped.
    """

    owner: ClassVar[str] = "task PID"

    space: Workspace
    kp: ArrayLike
    kd: ArrayLike
    ki: ArrayLike = 0.0
    _: KW_ONLY
    cycle: float
    derivative_filter: ArrayLike = 0.0
    feedforward: Mechanism | None = None
    preload: ArrayLike = 0.0
    delay: float = 0.0
    posture: ArrayLike | None = None

    def __post_init__(self) -> None:
        _check(self)
        optional_model(self.owner, "feedforward", self.feedforward)


@dataclass(frozen=True)
class TaskComputedTorque:
    """Computed torque in a work space with at most as many rows as the robot has coordinates.

    The model must hold everything that the motors move: rotor and gear inertia and friction as joint terms (ia, fv, fc)
    too, which [Roldan2017, section 3.3.3] leaves out. Its dry friction has the sign of the wanted velocity.

    Parameters
    ----------
    space : Workspace
        What is controlled: ``ToolSpace("tool")``, ``CoordinateSpace()`` or ``MapSpace(position)``.
    model : Mechanism
        What the controller believes, kinematics and dynamics; its coordinates are those of the robot.
    kp : float or array_like (m,)
        Gain of the position error [1/s^2].
    kd : float or array_like (m,)
        Gain of the velocity error [1/s].
    ki : float or array_like (m,)
        Gain of the error's integral [1/s^3]; it waits while an actuator is at its limit.
    cycle : float
        Cycle time [s].
    derivative_filter : float or array_like (m,)
        Corner frequency of a first-order low-pass on the velocity error [Hz]; 0 is none.
    preload : float or array_like (k,)
        Torques whose internal part is added [N m, N]; refused on a robot without more motors than freedoms.
    delay : float
        Time from the sampling of the sensors to the command at the motors [s], a whole multiple of the simulation's step.
    posture : array_like (2,), optional
        Gains kp [1/s^2] and kd [1/s] with which the freedoms that fewer rows than coordinates leave follow the reference's
        posture; the smallest of the task when omitted.
    """

    owner: ClassVar[str] = "task computed torque"

    space: Workspace
    model: Mechanism
    kp: ArrayLike
    kd: ArrayLike
    ki: ArrayLike = 0.0
    _: KW_ONLY
    cycle: float
    derivative_filter: ArrayLike = 0.0
    preload: ArrayLike = 0.0
    delay: float = 0.0
    posture: ArrayLike | None = None

    def __post_init__(self) -> None:
        require(self.model, Mechanism, f"{self.owner}: model")
        _check(self)


@dataclass(frozen=True)
class TaskCascade:
    """P position loop in a work space, PI velocity and current loops of every actuator.

    Parameters
    ----------
    space : Workspace
        What is controlled, with at most as many rows as the robot has coordinates.
    loops : Cascade
        Gains, cycles, filters, delays and limits. Position gain, filter and feed-forward share are per row of the work space;
        all others per actuator.
    posture : float, optional
        Gain [1/s] with which the freedoms that fewer rows than coordinates leave follow the reference's posture, beside the
        smallest share of its velocity; the smallest position gain when omitted.
    """

    owner: ClassVar[str] = "task cascade"

    space: Workspace
    loops: Cascade
    _: KW_ONLY
    posture: float | None = None

    def __post_init__(self) -> None:
        require(self.loops, Cascade, f"{self.owner}: loops")
        _check_space(self.space)
        posture = float(np.min(self.loops.position_gain)) if self.posture is None else self.posture
        object.__setattr__(self, "posture", number(f"{self.owner}: posture", posture, least=0.0, unit="1/s"))

    @property
    def delay(self) -> float:
        """Time from the sampling of the innermost loop to its command at the motor [s]."""
        return self.loops.delay

    @property
    def cycle(self) -> float:
        """Cycle time of the position loop [s]."""
        return self.loops.cycle
