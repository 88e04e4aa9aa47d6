"""CFT-transposer as a mechanism: the eight bodies of Table 2, with the pantograph's dependent joints.

Three joints follow others: q6 = -q5, q7 = pi - q4 (54) and q3 = d20' + L4 (sin q4 + sin(q4 + q5)) (56). The last one is not
linear, but it needs no special coupling: two equal massless links at angles psi and -psi from the vertical move their end by
2 l sin(psi) straight ahead, so five massless joints that follow q4 and q5 linearly slide the carriage exactly as (56) does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.mechanism import Body, Coupling, Joint, Mechanism, Placement, rotation_exp
from dynident.robots.cft.data import D6, D20, GRAVITY, L2, L4, L5, L6, L7, L8, THETA, Array, columns
from dynident.robots.cft.dynamics import _theta

BASE = "base"

# Rows of Table 2 as modified Denavit-Hartenberg: (link, antecedent, alpha, a, theta, d) with a and alpha of the row before.
_HALF = 0.5 * np.pi


def modified_dh(alpha: float, a: float, theta: float, d: float) -> Placement:
    """Return the transform (2): Rx(alpha) Tx(a) Rz(theta) Tz(d)."""
    x, z = np.eye(3)[0], np.eye(3)[2]
    return Placement(rotation_exp(alpha * x), a * x) @ Placement(rotation_exp(theta * z), d * z)


def carriage(q: ArrayLike) -> Array:
    """Return q3 = d20' + L4 (sin q4 + sin(q4 + q5)) (56), the forward position of the carriage.

    Parameters
    ----------
    q : array_like, (N, 4)
        q1, q2, q4, q5.

    Returns
    -------
    ndarray, (N,)
        q3 [m].
    """
    _, _, q4, q5 = columns(q, "q").T
    return np.asarray(D20 + L4 * (np.sin(q4) + np.sin(q4 + q5)))


def inertias_from_theta(theta: ArrayLike = THETA) -> dict[str, Array]:
    """Return inertial parameters of the links that make the complete chain equal to Appendix B.

    Appendix B is the chain without the masses of links 3, 4 and 5 (while keeping the first moments of 4 and 5), without the
    own inertia of links 4, 5 and 6 about the pitch axis, and with one constant yaw inertia theta_4. Such links cannot exist,
    which is why M is not positive definite everywhere.

    Parameters
    ----------
    theta : array_like, (32,) or (12,)
        Parameters of Table 4.

    Returns
    -------
    dict of str to ndarray, (10,)
        m, mx, my, mz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz of ``link_1`` ... ``link_8`` in the frames of Table 2.
    """
    t = np.concatenate([[0.0], _theta(theta, 12)[:12]])  # so that t[k] is theta_k
    phi = {f"link_{i}": np.zeros(10) for i in range(1, 9)}
    phi["link_2"][[0, 1, 2, 9]] = t[1], t[2], t[3], t[4]
    phi["link_4"][[1, 2]] = t[5], t[6]
    phi["link_5"][[1, 2]] = t[9], t[10]
    phi["link_6"][[0, 1, 2]] = t[11], t[7], t[8]
    phi["link_7"][0] = t[12]
    return phi


def mechanism(theta: ArrayLike | None = THETA, terms: tuple[str, ...] = ()) -> Mechanism:
    """Return the complete chain of Table 2 with coordinates q1, q2, q4, q5.

    Parameters
    ----------
    theta : array_like (32,) or (12,), or None
        Parameters of Table 4 as prior (see `inertias_from_theta`); zero when None.
    terms : tuple of str
        Joint terms; the report's friction (13) is not among them, see `friction`.

    Returns
    -------
    Mechanism
        Links ``link_1`` ... ``link_8`` and the frame ``tool`` (frame 9); ``slide_1`` ... ``slide_5`` are the massless joints
        that move the carriage ``link_3``.
    """
    phi = inertias_from_theta(theta) if theta is not None else {f"link_{i}": np.zeros(10) for i in range(1, 9)}
    bodies = [Body(BASE)]
    joints: list[Joint] = []
    couplings: list[Coupling] = []

    def add(name: str, kind: str, parent: str, child: str, placement: Placement, axis: int = 2) -> None:
        bodies.append(Body(child, phi.get(child)))
        joints.append(Joint(name, kind, parent, child, placement, axis=np.eye(3)[axis]))

    add("q1", "prismatic", BASE, "link_1", modified_dh(-_HALF, 0.0, 0.0, 0.0))
    add("q2", "revolute", "link_1", "link_2", modified_dh(_HALF, 0.0, 0.0, L2))
    # Angles from the vertical, about x_2, at which the four massless links stand: -q4, q4, -(q4 + q5), q4 + q5, then 0.
    angles = ((-1.0, 0.0), (1.0, 0.0), (-1.0, -1.0), (1.0, 1.0), (0.0, 0.0))
    before, parent, shift = (0.0, 0.0), "link_2", 0.0
    for i, angle in enumerate(angles, 1):
        add(f"slide_{i}", "revolute", parent, f"slider_{i}", Placement(translation=np.array([0.0, 0.0, shift])), axis=0)
        ratios = {"q4": angle[0] - before[0], "q5": angle[1] - before[1]}
        couplings.append(Coupling(f"slide_{i}", {name: ratio for name, ratio in ratios.items() if ratio}))
        before, parent, shift = angle, f"slider_{i}", 0.5 * L4 * (1.0 if i % 2 else -1.0)
    ahead = Placement(translation=np.array([0.0, D20, 0.0]))
    add("carriage", "fixed", parent, "link_3", ahead @ modified_dh(-_HALF, 0.0, -_HALF, 0.0))
    add("q4", "revolute", "link_3", "link_4", modified_dh(-_HALF, 0.0, 0.0, 0.0))
    add("q5", "revolute", "link_4", "link_5", modified_dh(0.0, L4, 0.0, 0.0))
    add("q6", "revolute", "link_5", "link_6", modified_dh(0.0, L5, 0.0, D6))
    add("q7", "revolute", "link_6", "link_7", modified_dh(0.0, L6, 0.0, -D6))
    add("q8", "fixed", "link_7", "link_8", modified_dh(0.0, L7, _HALF, 0.0))
    add("q9", "fixed", "link_8", "tool", modified_dh(0.0, L8, 0.0, 0.0))
    couplings += [Coupling("q6", {"q5": -1.0}), Coupling("q7", {"q4": -1.0}, np.pi)]
    return Mechanism(
        "CFT-transposer",
        tuple(bodies),
        tuple(joints),
        couplings=tuple(couplings),
        terms=terms,
        gravity=np.array([0.0, 0.0, -GRAVITY]),
        source="TU/e WFW 2002.52, Tables 1, 2 and 4",
    )
