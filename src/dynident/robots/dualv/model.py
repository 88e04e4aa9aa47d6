"""DualV as a `Mechanism`: a platform on a planar joint, four 3R legs, each welded to the platform by a cut joint."""

from __future__ import annotations

import numpy as np

from dynident.errors import DynidentError
from dynident.mechanism import Actuator, Body, Joint, Loop, Mechanism, Placement, rotation_exp
from dynident.robots.dualv.data import TABLE_2
from dynident.robots.dualv.geometry import HALF_TURNS, Geometry
from dynident.robots.dualv.kinematics import inverse_kinematics

_TERMS = {
    "paper": ({"ia": 0.0, "fv": 0.0, "fc": 0.0}, {"fv": 0.0, "fc": 0.0}, {"fv": 0.0, "fc": 0.0}),
    "full": ({"ia": 0.0, "fv": 0.0, "fc": 0.0, "off": 0.0},) * 3,
}


def _flat(m: float, mx: float, my: float, zz: float) -> list[float]:
    """Return the ten parameters of a flat body; only four of them act in the plane."""
    return [m, mx, my, 0.0, 0.5 * zz, 0.0, 0.0, 0.5 * zz, 0.0, zz]


def mechanism(r_p: float = 0.11, working_mode: str = "inward", parameters: str = "paper") -> Mechanism:
    """Return DualV with the platform's x, y, phi as coordinates and four motors, in a horizontal plane.

    Bodies are ``platform`` and ``link1_1`` to ``link3_4`` (link, leg); joints ``q1_1`` to ``q3_4``; motors ``motor_1`` to
    ``motor_4``. Prior values are those of Table 2, case 1; the paper prints no others, so the rest is zero.

    Parameters
    ----------
    r_p : float
        Half the distance C1 C3 [m]; inferred, see `Geometry`.
    working_mode : {"inward", "outward"}
        Elbows, see `WORKING_MODES`.
    parameters : {"paper", "full"}
        The 52 parameters of (51)-(52), where link 3 has no mass, only motors have rotors and no joint an offset: 40 base
        parameters. Or 14 per link and 10 of the platform, 178 of which 88 act: 57 base parameters.

    Returns
    -------
    Mechanism
        The robot; `dynident.base_parameters` with ``order=dualv.COLUMNS`` treats the legs alike (43).
    """
    if parameters not in _TERMS:
        raise DynidentError(f"DualV: parameters is {parameters!r}; it is one of {', '.join(_TERMS)}")
    g = Geometry(r_p, working_mode)
    known = {name: value for name, (value, _) in TABLE_2["case 1"].items()}
    bodies = [Body("base"), Body("platform", np.array(_flat(known["m_platform"], 0.0, 0.0, known["Izz_platform"])))]
    joints = [Joint("platform", "planar", "base", "platform")]
    loops, actuators, home = [], [], {}
    angles = inverse_kinematics(np.zeros((1, 3)), g)[0]
    for i in range(4):
        leg = i + 1
        links = [f"link{j}_{leg}" for j in (1, 2, 3)]
        massless = None if parameters == "paper" else np.zeros(10)
        inertias = (np.array(_flat(0.0, 0.0, 0.0, known[f"Izz_link1_{leg}R"])), np.zeros(10), massless)
        bodies += [Body(name, inertia) for name, inertia in zip(links, inertias, strict=True)]
        origins = ([*g.anchors[i], 0.0], [g.d2, 0.0, 0.0], [g.d3, 0.0, 0.0])
        for j in range(3):
            parent = "base" if j == 0 else links[j - 1]
            place = Placement(np.eye(3), np.array(origins[j]))
            joints.append(Joint(f"q{j + 1}_{leg}", "revolute", parent, links[j], place, terms=_TERMS[parameters][j]))
            home[f"q{j + 1}_{leg}"] = float(angles[i, j])
        # (53): q1 + q2 + q3 = phi + kbar pi, so link 3 is turned by half a turn on the legs with kbar = 1.
        side = 1.0 - 2.0 * HALF_TURNS[i]
        turned = Placement(rotation_exp([0.0, 0.0, np.pi * (1 - HALF_TURNS[i])]), np.array([0.0, side * r_p, 0.0]))
        loops.append(Loop(f"C{leg}", "weld", links[2], "platform", Placement(), turned))
        actuators.append(Actuator(f"motor_{leg}", {f"q1_{leg}": 1.0}))
    return Mechanism(
        "DualV",
        tuple(bodies),
        tuple(joints),
        tuple(loops),
        actuators=tuple(actuators),
        terms=(),
        gravity=np.zeros(3),
        independent=("platform.x", "platform.y", "platform.rz"),
        home=home,
        source="[Briot2015]",
    )


def toy(mass: float = 1.0) -> Mechanism:
    """Return the paper's first example (fig. 1): one mass on a line, pushed by two forces f1 + f2 = m a.

    Parameters
    ----------
    mass : float
        m [kg].

    Returns
    -------
    Mechanism
        One coordinate ``x``, motors ``f1`` and ``f2``; what they do against each other cannot be seen in the motion.
    """
    body = Body("mass", np.array([mass, *[0.0] * 9]))
    slide = Joint("x", "prismatic", "base", "mass", axis=np.array([1.0, 0.0, 0.0]))
    motors = (Actuator("f1", {"x": 1.0}), Actuator("f2", {"x": 1.0}))
    return Mechanism("two pushes", (Body("base"), body), (slide,), actuators=motors, terms=(), gravity=np.zeros(3))
