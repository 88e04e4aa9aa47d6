"""Small closed mechanisms, one per kind of cut joint, and an independent formulation of their dynamics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import dynident as di
from dynident.mechanism import from_com
from dynident.mechanism.elements import rotation_exp

GRAVITY = (0.0, -9.81, 0.0)


def at(x: float, y: float = 0.0, z: float = 0.0, rotation: object = None) -> di.Placement:
    return di.Placement(np.eye(3) if rotation is None else np.asarray(rotation), np.array([x, y, z]))


def link(name: str, length: float, seed: int) -> di.Body:
    """A body with nothing zero: mass, centre of mass off every axis, full inertia tensor."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3)) * 0.05
    spread = root @ root.T + 0.001 * np.eye(3)  # second moments: trace - spread is a possible inertia tensor
    com = np.array([0.5 * length, *rng.uniform(-0.05, 0.05, 2)])
    return di.Body(name, from_com(rng.uniform(0.5, 2.0), com, np.trace(spread) * np.eye(3) - spread))


def robot(name: str, bodies: list, joints: list, loops: list, driven: str, home: dict, **more: object) -> di.Mechanism:
    settings = {"independent": (driven,), "actuators": (di.Actuator("motor", {driven: 1.0}),), "gravity": GRAVITY}
    settings |= {"terms": ("ia", "fv", "fc", "off")}  # of all joints, also those without a motor
    return di.Mechanism(name, tuple(bodies), tuple(joints), tuple(loops), home=home, **(settings | more))


def four_bar(
    kind: str = "revolute", lengths: tuple = (0.3, 0.8, 0.6, 0.9), mirror: bool = False, **more: object
) -> di.Mechanism:
    """Crank, coupler and rocker in a plane; cut where coupler and rocker meet. Grashof: the crank turns fully."""
    crank, coupler, rocker, ground = lengths
    bodies = [di.Body("base"), link("crank", crank, 1), link("coupler", coupler, 2), link("rocker", rocker, 3)]
    joints = [
        di.Joint("a", "revolute", "base", "crank"),
        di.Joint("b", "revolute", "crank", "coupler", at(crank)),
        di.Joint("c", "revolute", "base", "rocker", at(ground)),
    ]
    # A universal cut holds its two axes at a right angle: z of the coupler and y of the rocker, which a plane always does.
    loops = [di.Loop("tip", kind, "coupler", "rocker", at(coupler), at(rocker))]
    sign = -1.0 if mirror else 1.0
    home = {"a": sign * 1.2, "b": -sign * 0.9, "c": sign * 1.9}
    return robot(f"four-bar ({kind})", bodies, joints, loops, "a", home, **more)


def welded_four_bar() -> di.Mechanism:
    """The same four bars as one chain whose last link is welded to the base."""
    bodies = [di.Body("base"), link("crank", 0.3, 1), link("coupler", 0.8, 2), link("rocker", 0.6, 3), di.Body("foot")]
    joints = [
        di.Joint("a", "revolute", "base", "crank"),
        di.Joint("b", "revolute", "crank", "coupler", at(0.3)),
        di.Joint("c", "revolute", "coupler", "rocker", at(0.8, 0.0, 0.0, rotation_exp([0.0, 0.0, np.pi]))),
        di.Joint("d", "revolute", "rocker", "foot", at(0.6)),
    ]
    loops = [di.Loop("foot", "weld", "foot", "base", at(0.0), at(0.9))]
    return robot("four-bar (weld)", bodies, joints, loops, "a", {"a": 1.2, "b": -0.9, "c": -1.2, "d": 0.9})


def slider_crank(crank: float = 0.25, rod: float = 0.7) -> di.Mechanism:
    """Crank, rod and slider; the cut is the guide of the slider, along x."""
    bodies = [di.Body("base"), link("crank", crank, 4), link("rod", rod, 5), link("slider", 0.0, 6)]
    joints = [
        di.Joint("theta", "revolute", "base", "crank"),
        di.Joint("knee", "revolute", "crank", "rod", at(crank)),
        di.Joint("pin", "revolute", "rod", "slider", at(rod)),
    ]
    loops = [di.Loop("guide", "prismatic", "base", "slider", axis=np.array([1.0, 0.0, 0.0]))]
    return robot("slider-crank", bodies, joints, loops, "theta", {"theta": 0.5, "knee": -0.7, "pin": 0.2})


def cardan(angle: float = 0.5) -> di.Mechanism:
    """Two shafts at an angle with a Hooke joint between them as universal cut."""
    turn = rotation_exp([0.0, 0.0, angle])
    bodies = [di.Body("base"), link("first", 0.2, 7), link("second", 0.2, 8)]
    along = np.array([1.0, 0.0, 0.0])
    joints = [
        di.Joint("in", "revolute", "base", "first", at(0.0), axis=along),
        di.Joint("out", "revolute", "base", "second", at(0.0, 0.0, 0.0, turn), axis=along),
    ]
    arms = {"axis": np.array([0.0, 0.0, 1.0]), "axis2": np.array([0.0, 1.0, 0.0])}
    return robot("cardan", bodies, joints, [di.Loop("cross", "universal", "first", "second", **arms)], "in", {})


def rssr() -> di.Mechanism:
    """Spatial crank and rocker with skew axes; the coupler hangs on a universal joint and a spherical cut."""
    tilt = rotation_exp([0.4, 0.9, 0.0])
    bodies = [di.Body("base"), link("crank", 0.2, 9), link("coupler", 0.9, 10), link("rocker", 0.5, 11)]
    joints = [
        di.Joint("a", "revolute", "base", "crank"),
        di.Joint("u", "universal", "crank", "coupler", at(0.2), axis=np.array([0.0, 0.0, 1.0])),
        di.Joint("c", "revolute", "base", "rocker", at(0.8, 0.1, 0.3, tilt)),
    ]
    loops = [di.Loop("ball", "spherical", "coupler", "rocker", at(0.9), at(0.5))]
    return robot("RSSR", bodies, joints, loops, "a", {"a": 0.3, "u.r1": 0.1, "u.r2": -0.2, "c": 1.0})


def bennett(a: float = 0.4, alpha: float = 0.6, beta: float = 1.1) -> di.Mechanism:
    """Bennett's linkage: four skew axes, mobile only because a sin(beta) = b sin(alpha)."""
    b = a * np.sin(beta) / np.sin(alpha)
    A = di.Placement(rotation_exp([alpha, 0.0, 0.0]), np.array([a, 0.0, 0.0]))
    B = di.Placement(rotation_exp([beta, 0.0, 0.0]), np.array([b, 0.0, 0.0]))
    bodies = [di.Body("base"), link("l1", a, 12), link("l2", b, 13), link("l3", a, 14)]
    joints = [
        di.Joint("t1", "revolute", "base", "l1"),
        di.Joint("t2", "revolute", "l1", "l2", A),
        di.Joint("t3", "revolute", "l2", "l3", B),
    ]
    first = 1.0
    second = 2.0 * np.arctan(np.sin(0.5 * (beta + alpha)) / np.sin(0.5 * (beta - alpha)) / np.tan(0.5 * first))
    loops = [di.Loop("t4", "revolute", "l3", "base", A, B.inverse())]
    return robot("Bennett", bodies, joints, loops, "t1", {"t1": first, "t2": second, "t3": -first})


def parallelogram(cranks: int = 2) -> di.Mechanism:
    """Parallel cranks under one coupler; with three it moves only because they are parallel."""
    bodies = [di.Body("base"), link("coupler", 0.5, 15)] + [link(f"crank{i}", 0.4, 16 + i) for i in range(cranks)]
    joints = [di.Joint(f"a{i}", "revolute", "base", f"crank{i}", at(0.5 * i)) for i in range(cranks)]
    joints.insert(1, di.Joint("b", "revolute", "crank0", "coupler", at(0.4)))
    loops = [di.Loop(f"tip{i}", "revolute", "coupler", f"crank{i}", at(0.5 * i), at(0.4)) for i in range(1, cranks)]
    home = {f"a{i}": 1.1 for i in range(cranks)} | {"b": -1.1}
    return robot(f"parallelogram of {cranks}", bodies, joints, loops, "a0", home)


CASES = {
    "point": lambda: four_bar("point"),
    "revolute": lambda: four_bar("revolute"),
    "universal in a plane": lambda: four_bar("universal"),
    "spherical in a plane": lambda: four_bar("spherical"),
    "weld": welded_four_bar,
    "prismatic": slider_crank,
    "universal": cardan,
    "spherical": rssr,
    "Bennett": bennett,
    "parallelogram": parallelogram,
    "three cranks": lambda: parallelogram(3),
}
REDUNDANT = {"point": 1, "revolute": 3, "universal in a plane": 2, "spherical in a plane": 1, "weld": 3, "prismatic": 3}
REDUNDANT |= {"universal": 3, "spherical": 0, "Bennett": 3, "parallelogram": 3, "three cranks": 7}


def states(mechanism: di.Mechanism, samples: int = 40, span: float = 0.5) -> di.Motion:
    """A smooth motion of the driven coordinate about home."""
    home = mechanism.closure.home[mechanism.closure.independent]
    t = np.linspace(0.0, 1.0, samples)
    q, v, a = span * np.sin(3.0 * t), 3.0 * span * np.cos(3.0 * t), -9.0 * span * np.sin(3.0 * t)
    return di.Motion(t, home + q[:, None], v[:, None] * np.ones(home.size), a[:, None] * np.ones(home.size))


def opened(mechanism: di.Mechanism) -> di.Mechanism:
    """The spanning tree alone, with a massless frame on both sides of every cut."""
    bodies, joints = list(mechanism.bodies), list(mechanism.joints)
    for loop in mechanism.loops:
        for side, body, placement in (("a", loop.body_a, loop.placement_a), ("b", loop.body_b, loop.placement_b)):
            bodies.append(di.Body(f"{loop.name}:{side}"))
            joints.append(di.Joint(f"{loop.name}:{side}", "fixed", body, f"{loop.name}:{side}", placement))
    return replace(mechanism, bodies=tuple(bodies), joints=tuple(joints), loops=(), independent=(), home={}, actuators=())


def constraints(mechanism: di.Mechanism, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """J and Jdot v of all cuts at tree states (N, n), from the tree's frame Jacobians: nothing of the closure code."""
    tree, still = opened(mechanism), np.zeros_like(v)
    motion = di.Motion(np.arange(float(q.shape[0])), q, v, still)
    rows, rates = [], []

    def frame(name: str) -> tuple[np.ndarray, ...]:
        R, x = di.forward_kinematics(tree, q, name)
        J = di.jacobian(tree, q, name, "world")
        velocity, acceleration = di.frame_motion(tree, motion, name)
        turned = [np.einsum("nij,nj->ni", R, y[:, s]) for y in (velocity, acceleration) for s in (slice(3), slice(3, 6))]
        return R, x, J[:, :3], J[:, 3:], *turned

    def dotted(u: np.ndarray, J: np.ndarray) -> np.ndarray:
        return np.einsum("ni,nij->nj", u, J)

    for loop in mechanism.loops:
        Ra, xa, La, Wa, va, wa, aa, ala = frame(f"{loop.name}:a")
        Rb, xb, Lb, Wb, vb, wb, ab, alb = frame(f"{loop.name}:b")
        if loop.kind != "prismatic":
            rows += [La[:, i] - Lb[:, i] for i in range(3)]
            rates += [aa[:, i] - ab[:, i] for i in range(3)]
        if loop.kind in ("prismatic", "weld"):
            rows += [Wa[:, i] - Wb[:, i] for i in range(3)]
            rates += [ala[:, i] - alb[:, i] for i in range(3)]
        # Two directions across the axis, whichever: they span the same plane.
        across = np.linalg.svd(loop.axis[None])[2][1:]
        if loop.kind in ("revolute", "universal"):
            partners = across if loop.kind == "revolute" else loop.axis2[None]
            for other in partners:
                u, e = Ra @ loop.axis, Rb @ other
                rows.append(dotted(np.cross(u, e), Wa - Wb))
                ud, ed = np.cross(wa, u), np.cross(wb, e)
                second = np.cross(ala, u) + np.cross(wa, ud), np.cross(alb, e) + np.cross(wb, ed)
                rates.append(np.sum(second[0] * e + 2.0 * ud * ed + u * second[1], axis=1))
        if loop.kind == "prismatic":
            for side in across:
                u, gap = Ra @ side, xb - xa
                ud = np.cross(wa, u)
                rows.append(dotted(np.cross(u, gap), Wa) + dotted(u, Lb - La))
                udd = np.cross(ala, u) + np.cross(wa, ud)
                rates.append(np.sum(udd * gap + 2.0 * ud * (vb - va) + u * (ab - aa), axis=1))
    return np.stack(rows, axis=1), np.stack(rates, axis=1)


def lagrange(mechanism: di.Mechanism, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Tree accelerations by Lagrange multipliers: M a + bias = tau + J^T lambda, J a = -Jdot v."""
    tree = opened(mechanism)
    M = di.mass_matrix(tree, q)
    bias = di.inverse_dynamics(tree, di.Motion(np.arange(float(q.shape[0])), q, v, np.zeros_like(q)))
    J, rate = constraints(mechanism, q, v)
    result = []
    for i in range(q.shape[0]):
        m = J.shape[1]
        K = np.block([[M[i], -J[i].T], [J[i], np.zeros((m, m))]])
        result.append(np.linalg.lstsq(K, np.concatenate([tau[i] - bias[i], -rate[i]]), rcond=1e-11)[0][: q.shape[1]])
    return np.array(result)
