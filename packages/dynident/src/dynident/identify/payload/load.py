"""`Payload`: an identified load, its plausibility, and the conventions of robot controllers.

phi = (m, h, I_o)   ->   c = h / m,   I_c = I_o - m (|c|^2 1 - c c^T)          deviations by the derivative
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.checks import choice, number
from dynident.mechanics.inverse_kinematics_damped import robot_size
from dynident.mechanism.mechanism import Mechanism
from dynident.results import Result

CLEAR = 2.0  # standard deviations of a significant value
HEAVY = 2.0  # fraction of the described mass of a robot: a heavier load is doubted
LOOSE = 0.1  # fraction of the reach: a less certain centre of mass is of no use to a controller
STEP = 1e-6
CONVENTIONS = ("ur", "franka", "franka_desk", "kuka")
UPPER = ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])  # Ixx Ixy Ixz Iyy Iyz Izz


@dataclass(frozen=True, eq=False)
class Payload(Result):
    """An identified load."""

    #: (10,), ``m mx my mz Ixx Ixy Ixz Iyy Iyz Izz`` in the frame of the link that carries it, inertia about its origin; NaN
    #: where the data show none of it, or only its sum with others
    parameters: Array
    covariance: Array  #: (10, 10), their covariance, NaN in the same way
    names: tuple[str, ...] = ()  #: Estimated base parameters of the load
    values: Array = field(default_factory=lambda: np.zeros(0))  #: (k,), their values
    std: Array = field(default_factory=lambda: np.zeros(0))  #: (k,), their standard deviations
    frame: str = ""  #: Link that carries the load
    reach: float = np.inf  #: Largest plausible distance of the centre of mass from that frame [m]
    #: (6,), offset of a wrist sensor, force and moment [N, N m]; NaN where poses do not separate it from the load
    bias: Array | None = None
    bias_std: Array | None = None  #: (6,), its standard deviation
    gravity: Array | None = None  #: (3,), gravity in the base frame, where it was estimated [m/s^2]
    gravity_std: float | None = None  #: Standard deviation of its direction [rad]
    notes: tuple[str, ...] = ()  #: Method and quality of the estimate
    doubts: tuple[str, ...] = ()  #: Assumptions contradicted by the data, such as a level base
    heaviest: float = np.inf  #: Largest plausible mass [kg]
    derived = ("mass", "mass_std", "com", "com_std", "inertia", "inertia_std", "plausible", "findings", "conventions")

    @property
    def mass(self) -> float:
        """Mass [kg]; NaN if the data do not determine it."""
        return float(self.parameters[0])

    @property
    def mass_std(self) -> float:
        """Its standard deviation [kg]."""
        return float(np.sqrt(self.covariance[0, 0]))

    @property
    def com(self) -> Array:
        """Centre of mass in the frame of the link [m], (3,); NaN where the data do not show it."""
        return np.asarray(self.parameters[1:4] / self.parameters[0])

    @property
    def com_std(self) -> Array:
        """Its standard deviation [m], (3,)."""
        return self._deviation(lambda phi: phi[1:4] / phi[0])

    @property
    def inertia(self) -> Array:
        """Inertia about the centre of mass, axes of the link [kg m^2], (3, 3); NaN where the data do not show it."""
        return _about_com(self.parameters)

    @property
    def inertia_std(self) -> Array:
        """Its standard deviation [kg m^2], (3, 3)."""
        out = np.zeros((3, 3))
        out[UPPER] = self._deviation(lambda phi: _about_com(phi)[UPPER])
        return out + np.triu(out, 1).T

    def _deviation(self, function: Any) -> Array:
        """Return the standard deviations of functions of the parameters."""
        scale = np.where(np.isfinite(self.parameters), np.maximum(np.abs(self.parameters), 1e-3), 1.0)
        at = function(self.parameters)
        J = np.zeros((at.size, 10))
        for k in range(10):
            step = np.zeros(10)
            step[k] = STEP * scale[k]
            J[:, k] = (function(self.parameters + step) - function(self.parameters - step)) / (2.0 * step[k])
        with np.errstate(invalid="ignore"):
            spread = np.where(np.isfinite(J), J, 0.0)
            cov = np.where(np.isfinite(self.covariance), self.covariance, 0.0)
            std = np.sqrt(np.einsum("ik,kl,il->i", spread, cov, spread))
        return np.asarray(np.where(np.isfinite(at), std, np.nan))

    @property
    def inertia_known(self) -> bool:
        """Whether the inertia about the centre of mass is possible and significant in at least one axis."""
        moments, std = self.inertia, self.inertia_std
        if not np.isfinite(moments).all():
            return False
        return bool(_violation(moments) <= 0.0 and np.any(np.diag(moments) > CLEAR * np.diag(std)))

    @property
    def unseen(self) -> tuple[str, ...]:
        """Coordinates of the centre of mass that the data do not show."""
        return tuple(f"{axis} of the centre of mass" for axis, at in zip("xyz", self.com, strict=True) if not np.isfinite(at))

    @property
    def findings(self) -> tuple[str, ...]:
        """Implausible properties, one sentence each; empty for a plausible load."""
        found = []
        mass = f"{self.mass:.4g} +- {self.mass_std:.2g} kg"
        if not np.isfinite(self.mass):
            found.append("its mass is not determined by these data; rotate the load against gravity, or accelerate it")
        elif self.mass <= -CLEAR * self.mass_std:
            found.append(
                f"its mass is {mass}, which is impossible; check that loaded and unloaded runs are not exchanged, and the "
                "sign of the efforts"
            )
        elif self.mass < CLEAR * self.mass_std:
            found.append(f"no load is detected: its mass of {mass} is not significantly above zero")
        elif self.mass - CLEAR * self.mass_std > self.heaviest:
            found.append(f"its mass of {mass} is above the {self.heaviest:.4g} kg that are plausible (heaviest=)")
        found += self._far()
        if np.isfinite(self.inertia).all():
            excess = _violation(self.inertia)
            spread = float(np.sqrt(3.0) * np.nanmax(self.inertia_std))
            if excess > CLEAR * spread:
                moments = ", ".join(f"{x:.3g}" for x in np.linalg.eigvalsh(self.inertia))
                found.append(f"no body has its principal moments of inertia ({moments} kg m^2)")
        return (*found, *self.doubts)

    def _far(self) -> list[str]:
        """Return doubts about the centre of mass of a significant load."""
        seen = np.isfinite(self.com)
        if not seen.any() or not abs(self.mass) >= CLEAR * self.mass_std:
            return []
        far, spread = float(np.linalg.norm(self.com[seen])), float(np.linalg.norm(self.com_std[seen]))
        if far > self.reach:
            return [f"its centre of mass is {far:.3g} +- {spread:.2g} m from '{self.frame}', beyond {self.reach:.3g} m"]
        loose = [
            axis for axis, std in zip("xyz", self.com_std, strict=True) if np.isfinite(std) and CLEAR * std > LOOSE * self.reach
        ]
        if loose:
            return [
                f"its centre of mass is known to only +- {spread:.2g} m ({', '.join(loose)}); rotate and accelerate the "
                "load more"
            ]
        return []

    @property
    def plausible(self) -> bool:
        """True if there are no findings."""
        return not self.findings

    def __repr__(self) -> str:
        return f"Payload({self.mass:.4g} +- {self.mass_std:.2g} kg on '{self.frame}'; summary() has the rest)"

    def summary(self) -> str:
        """Return the load as text.

        Mass, centre of mass, inertia, every base parameter with its standard deviation, and doubts.
        """
        place = f" in '{self.frame}'" if self.frame else ""
        lines = [
            f"payload {self.mass:.4g} kg (+- {self.mass_std:.2g}), centre of mass {np.round(self.com, 4).tolist()} m{place}"
        ]
        if np.isfinite(self.com).any():
            lines[0] += f" (+- [{', '.join(f'{x:.1g}' for x in self.com_std)}])"
        if self.unseen:
            lines.append(f"  not determined by these data (zero in the conventions of controllers): {', '.join(self.unseen)}")
        if self.inertia_known:
            for row, deviation in zip(self.inertia, self.inertia_std, strict=True):
                lines.append("  inertia " + "  ".join(f"{x:>10.4g} +- {s:.2g}" for x, s in zip(row, deviation, strict=True)))
        else:
            lines.append("  inertia about the centre of mass: not determined")
        lines += [f"  {n:<14} {v:>12.5g} +- {s:.2g}" for n, v, s in zip(self.names, self.values, self.std, strict=True)]
        if self.bias is not None:
            lines.append(f"  sensor bias {np.round(self.bias, 4).tolist()} N, N m")
            if not np.isfinite(self.bias).any():
                lines[-1] = "  sensor bias: these poses do not separate it from the load"
            elif self.bias_std is not None:
                lines[-1] += f" (+- [{', '.join(f'{x:.1g}' for x in self.bias_std)}])"
        if self.gravity is not None:
            lines.append(f"  gravity in the base frame {np.round(self.gravity, 4).tolist()} m/s^2")
            if self.gravity_std is not None:
                lines[-1] += f" (direction +- {np.degrees(self.gravity_std):.2g} degrees)"
        lines += [f"note: {text}" for text in self.notes if text.startswith("elastic drives")]
        lines += [f"doubtful: {text}" for text in self.findings]
        return "\n".join(lines)

    @property
    def conventions(self) -> dict[str, dict[str, Any]]:
        """Load data in the conventions of controllers, by maker; empty for an implausible load."""
        return {name: self.convention(name) for name in CONVENTIONS} if self.plausible else {}

    def convention(self, maker: str) -> dict[str, Any]:
        """Return the load in the convention of a robot controller, in the frame of the link (which must be the flange)."""
        choice("maker", maker, CONVENTIONS)
        c = np.where(np.isfinite(self.com), self.com, 0.0)
        inertia = self.inertia if self.inertia_known else np.zeros((3, 3))
        if maker == "ur":
            order = ([0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2])
            return {"m": self.mass, "cog": c.tolist(), "inertia": inertia[order].tolist()}
        if maker == "franka":
            return {"load_mass": self.mass, "F_x_Cload": c.tolist(), "load_inertia": inertia.T.ravel().tolist()}
        if maker == "franka_desk":  # endeffector-config.json [FrankaDesk]: matrices column by column, flange to end effector
            body = {"mass": self.mass, "centerOfMass": c.tolist(), "inertia": inertia.T.ravel().tolist()}
            return {**body, "transformation": np.eye(4).ravel().tolist()}
        moments, angles = _principal_axes(inertia)
        millimetres = dict(zip("XYZ", (1000.0 * c).tolist(), strict=True))
        turned = dict(zip("ABC", np.degrees(angles).tolist(), strict=True))
        return {"M": self.mass, **millimetres, **turned, **dict(zip(("JX", "JY", "JZ"), moments.tolist(), strict=True))}


def plausible_limits(
    robot: Mechanism, reach: float | None, heaviest: float | None, load: str | None = None
) -> tuple[float, float]:
    """Return the largest plausible distance from its link [m] and mass [kg] of a load on a robot.

    Defaults: the size of the robot and twice the described mass of its moving bodies without `load`, since arms carry less
    than they weigh. Robots with loops may carry more, and robots described without masses have no such limit.
    """
    far = robot_size(robot) if reach is None else number("reach", reach, above=0.0, unit="m")
    if heaviest is not None:
        return far, number("heaviest", heaviest, above=0.0, unit="kg")
    own = zip(robot.tree.bodies, robot.tree.inertias[::10].tolist(), strict=True)
    described = sum(mass for body, mass in own if body != load)
    return far, HEAVY * described if described > 0.0 and not robot.loops else np.inf


def inverse_of(W: Array, least: float, size: Array | None = None) -> tuple[Array, NDArray[np.bool_]]:
    """Return W^+ for columns divided by their `size` (their length), and the mask of individually identifiable unknowns."""
    length = np.linalg.norm(W, axis=0)
    size = np.where(length > 0.0, length, 1.0) if size is None else size
    U, s, V = np.linalg.svd(W / size, full_matrices=False)
    good = s > least
    known = (length > 0.0) & (1.0 - np.sum(V[good] ** 2, axis=0) < least)
    return (V[good].T / s[good]) @ U[:, good].T / size[:, None], known


def _about_com(phi: Array) -> Array:
    """Return the inertia about the centre of mass; NaN where an entry is not known."""
    m, h = phi[0], phi[1:4]
    about_origin = np.empty((3, 3))
    about_origin[UPPER] = phi[4:]
    about_origin.T[UPPER] = phi[4:]
    return np.asarray(about_origin - (h @ h * np.eye(3) - np.outer(h, h)) / m)


def _violation(inertia: Array) -> float:
    """Return by how much principal moments break the triangle inequality or are negative; zero or less when they do not."""
    low, middle, high = np.linalg.eigvalsh(inertia)
    return float(max(high - low - middle, -low))


def _principal_axes(inertia: Array) -> tuple[Array, Array]:
    """Return principal moments and the angles of their axes about z, y, x; the axes nearest to those of the frame."""
    moments, axes = np.linalg.eigh(inertia)
    if not np.any(np.abs(inertia - np.diag(np.diag(inertia))) > 1e-12 * max(float(np.abs(inertia).max()), 1e-300)):
        return np.diag(inertia).copy(), np.zeros(3)
    order = []
    for axis in range(3):  # the principal axis that points most along this one
        left = [k for k in range(3) if k not in order]
        order.append(left[int(np.argmax(np.abs(axes[axis, left])))])
    R = axes[:, order] * np.where(np.diag(axes[:, order]) < 0.0, -1.0, 1.0)
    if np.linalg.det(R) < 0.0:
        R[:, 2] *= -1.0
    a, b, c = np.arctan2(R[1, 0], R[0, 0]), np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0])), np.arctan2(R[2, 1], R[2, 2])
    return moments[order], np.array([a, b, c])
