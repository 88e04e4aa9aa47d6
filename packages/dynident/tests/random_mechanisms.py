"""Random mechanisms and their translation to two independent libraries, Pinocchio and MuJoCo.

The translations use nothing of `dynident.mechanism.tree`: they walk the bodies and joints of the description themselves,
lump fixed bodies with the other library's own tools, and map coordinates by name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from optional import optional
from scipy.spatial.transform import Rotation

from dynident.friction import TERMS
from dynident.mechanics import Motion
from dynident.mechanism import Actuator, Body, Coupling, Joint, Mechanism, Placement
from dynident.mechanism.elements import COORDINATES

pin = optional("pinocchio")
mujoco = optional("mujoco")

KINDS = tuple(COORDINATES)
SCALAR_KINDS = ("fixed", "revolute", "continuous", "prismatic", "universal", "planar")

ROBOTS = 10_000 if os.environ.get("DYNIDENT_EXPLORE") else 14
"""How many random robots there are: all properties are proven on the same ones, two of each size, whose code is made once."""
PROPERTY = settings(max_examples=min(ROBOTS, 20), deadline=None, database=None, suppress_health_check=list(HealthCheck))

# ---- random robots ---------------------------------------------------------------------------------------------------


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    quaternion = rng.normal(size=4)
    return Rotation.from_quat(quaternion / np.linalg.norm(quaternion)).as_matrix()


def random_placement(rng: np.random.Generator) -> Placement:
    return Placement(random_rotation(rng), rng.normal(size=3) * 0.4)


def random_inertia(rng: np.random.Generator) -> np.ndarray:
    """Return the ten parameters of six random point masses: a body that surely can exist."""
    m = rng.uniform(0.05, 2.0, size=6)
    x = rng.normal(size=(6, 3)) * 0.2 + rng.normal(size=3) * 0.2
    inertia = sum(mi * (xi @ xi * np.eye(3) - np.outer(xi, xi)) for mi, xi in zip(m, x, strict=True))
    return np.concatenate([[m.sum()], m @ x, inertia[np.triu_indices(3)]])


def build(
    links: Sequence[tuple[str, int, bool]],
    seed: int,
    terms: Sequence[str] = (),
    gravity: bool = True,
) -> Mechanism:
    """Make a robot from (kind, parent, massless) per link; parent -1 is the base, others are taken modulo the index.

    A massless moving link gets a massive body fixed behind it in another frame, so that M stays positive definite.
    A free joint starts at the base, as MuJoCo wants it.
    """
    rng = np.random.default_rng(seed)
    bodies, joints = [Body("base", random_inertia(rng))], []
    for i, (kind, parent, massless) in enumerate(links):
        above = "base" if i == 0 or parent < 0 or kind == "free" else f"L{parent % i}"
        priors = {} if kind in ("fixed", "free") else {symbol: float(rng.uniform(0.05, 1.0)) for symbol in terms}
        axes = {"axis": rng.normal(size=3), "axis2": rng.normal(size=3)}
        joints.append(Joint(f"J{i}", kind, above, f"L{i}", random_placement(rng), terms=priors, **axes))
        bodies.append(Body(f"L{i}", None if massless else random_inertia(rng)))
        if massless and kind != "fixed":
            joints.append(Joint(f"W{i}", "fixed", f"L{i}", f"B{i}", random_placement(rng)))
            bodies.append(Body(f"B{i}", random_inertia(rng)))
    g = rng.normal(size=3) * 6.0 if gravity else np.zeros(3)
    return Mechanism("random", tuple(bodies), tuple(joints), terms=tuple(terms), gravity=g)


def mechanisms(kinds: Sequence[str] = KINDS, terms: Sequence[str] = (), largest: int = 7) -> st.SearchStrategy[Mechanism]:
    """Return a strategy of trees of up to `largest` joints of the given kinds, the first one moving.

    One number chooses the whole robot: drawn piece by piece, most examples would be tiny and alike.
    """

    def make(index: int) -> Mechanism:
        rng = np.random.default_rng(index)
        moving = [kind for kind in kinds if kind != "fixed"]
        links = [
            (str(rng.choice(moving if i == 0 else list(kinds))), int(rng.integers(-1, largest)), bool(rng.random() < 0.25))
            for i in range(1 + index % largest)
        ]
        return build(links, index, terms)

    return st.sampled_from(range(ROBOTS)).map(make)


ALL_TERMS = tuple(TERMS)
BRANCHED = (
    ("revolute", -1, False),
    ("prismatic", 0, False),
    ("revolute", 1, True),
    ("universal", 1, False),
    ("continuous", 3, False),
    ("fixed", 4, False),
    ("revolute", 0, False),
)
EVERY_KIND = (
    ("free", -1, False),
    ("revolute", 0, True),
    ("spherical", 1, False),
    ("planar", 0, False),
    ("universal", 3, False),
    ("fixed", 4, True),
    ("prismatic", 5, False),
    ("continuous", -1, False),
)


def every_kind(terms: Sequence[str] = ALL_TERMS) -> Mechanism:
    """Return a robot with all kinds of joints, branches, lumped bodies and all joint terms."""
    return build(EVERY_KIND, 7, terms)


def coupled(terms: Sequence[str] = ALL_TERMS) -> Mechanism:
    """Return a robot with a follower of a follower and two motors that turn with two joints each."""
    robot = build(BRANCHED, 11, terms)
    couplings = (
        Coupling("J6", {"J2": -0.5}, 0.1),
        Coupling("J2", {"J0": 0.7, "J3.r1": -0.3}, 0.2),
    )
    motor = {symbol: 0.1 + 0.05 * i for i, symbol in enumerate(terms) if symbol not in ("off", "k")}
    actuators = (
        Actuator("sum", {"J3.r1": 1.0, "J3.r2": 0.8}, ratio=-50.0, offset=0.3, terms=motor),
        Actuator("difference", {"J3.r1": 1.0, "J3.r2": -0.8}, ratio=30.0, terms=motor),
        *(Actuator(name, {name: 1.0}, ratio=100.0) for name in ("J0", "J1", "J4")),
    )
    return replace(robot, couplings=couplings, actuators=actuators)


def random_motion(mechanism: Mechanism, samples: int, seed: int = 0, turn: float = 1.2) -> Motion:
    """Return unrelated q, v, a; the first samples are at q = 0 and near it, where exp changes to its series."""
    rng = np.random.default_rng(seed)
    q, v, a = (rng.normal(size=(samples, mechanism.dof)) * scale for scale in (turn, 1.0, 2.0))
    q[:1], q[1:2], q[2:3] = 0.0, q[1:2] * 1e-8, q[2:3] * 1e-5
    return Motion(np.arange(samples, dtype=float), q, v, a)


def advance(mechanism: Mechanism, q: np.ndarray, v: np.ndarray, h: float) -> np.ndarray:
    """Return q moved along v for the time h, on the manifold: R exp(h w) and p + h R v."""
    result = q + h * v
    index = {name: i for i, name in enumerate(mechanism.coordinate_names)}
    for joint in mechanism.joints:
        if joint.kind in ("spherical", "free"):
            c = [index[name] for name in joint.coordinates]
            turn = Rotation.from_rotvec(q[:, c[-3:]])
            result[:, c[-3:]] = (turn * Rotation.from_rotvec(h * v[:, c[-3:]])).as_rotvec()
            if joint.kind == "free":
                result[:, c[:3]] = q[:, c[:3]] + h * turn.apply(v[:, c[:3]])
    return result


def close(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
    """Assert agreement relative to the largest entry (at least 1, SI)."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    if ours.size:
        error = np.max(np.abs(ours - theirs)) / max(1.0, float(np.max(np.abs(theirs))))
        assert error <= tolerance, f"relative difference {error:.3g} exceeds {tolerance:g}"


# ---- Pinocchio -------------------------------------------------------------------------------------------------------


@dataclass
class PinRobot:
    """The same robot in Pinocchio. Velocities differ by vp = B(q) v, so tau = B^T tau_p and M = B^T M_p B."""

    mechanism: Mechanism
    model: pin.Model = field(default_factory=lambda: pin.Model())  # noqa: PLW0108 - pin may not be installed

    def __post_init__(self) -> None:
        self.model.gravity.linear = self.mechanism.gravity
        self.where = {self.mechanism.root: (0, pin.SE3.Identity())}
        self.joints: list[tuple[Joint, list[int]]] = []
        self._grow(self.mechanism.root)
        self.data = self.model.createData()
        self.column = {name: i for i, name in enumerate(self.mechanism.coordinate_names)}

    def _grow(self, link: str) -> None:
        for joint in self.mechanism.joints:
            if joint.parent == link:
                self._add(joint)
                self._grow(joint.child)

    def _add(self, joint: Joint) -> None:
        model = self.model
        at, pose = self.where[joint.parent]
        pose = pose * pin.SE3(np.array(joint.placement.rotation), np.array(joint.placement.translation))
        turned = pin.SE3.Identity()
        parts: list[pin.JointModel] = []
        if joint.kind in ("revolute", "continuous", "universal"):
            parts.append(pin.JointModelRevoluteUnaligned(np.array(joint.axis)))
        if joint.kind == "universal":
            parts.append(pin.JointModelRevoluteUnaligned(np.array(joint.axis2)))
        if joint.kind == "prismatic":
            parts.append(pin.JointModelPrismaticUnaligned(np.array(joint.axis)))
        if joint.kind == "planar":  # Pinocchio's plane is xy of the joint frame
            turned = pin.SE3(np.column_stack([*joint.plane, joint.axis]), np.zeros(3))
            parts.append(pin.JointModelPlanar())
        if joint.kind == "spherical":
            parts.append(pin.JointModelSpherical())
        if joint.kind == "free":
            parts.append(pin.JointModelFreeFlyer())
        ids = []
        for k, part in enumerate(parts):
            at = model.addJoint(at, part, pose * turned if k == 0 else pin.SE3.Identity(), f"{joint.name}_{k}")
            ids.append(at)
        if ids:
            pose = turned.inverse()
            self.joints.append((joint, ids))
        self.where[joint.child] = (at, pose)
        phi = next(body.inertia for body in self.mechanism.bodies if body.name == joint.child)
        if phi is not None and at > 0:
            model.appendBodyToJoint(at, pin_inertia(phi), pose)
        model.addFrame(pin.Frame(joint.child, at, pose, pin.FrameType.OP_FRAME))

    def state(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> SimpleNamespace:
        """Return Pinocchio's q, v, a and B for one sample."""
        model = self.model
        qp, ap, B = pin.neutral(model), np.zeros(model.nv), np.zeros((model.nv, self.mechanism.dof))
        for joint, ids in self.joints:
            c = [self.column[name] for name in joint.coordinates]
            x, rows = q[c], np.concatenate([model.joints[i].idx_v + np.arange(model.joints[i].nv) for i in ids])
            first = model.joints[ids[0]].idx_q
            block, extra = np.eye(len(c)), np.zeros(len(c))
            if joint.kind == "planar":
                cos, sin = np.cos(x[2]), np.sin(x[2])
                qp[first : first + 4] = x[0], x[1], cos, sin
                block[:2, :2] = [[cos, sin], [-sin, cos]]
                vx, vy = block[:2, :2] @ v[c[:2]]
                extra[:2] = v[c[2]] * vy, -v[c[2]] * vx
            elif joint.kind == "spherical":
                qp[first : first + 4] = Rotation.from_rotvec(x).as_quat()
            elif joint.kind == "free":
                qp[first : first + 3], qp[first + 3 : first + 7] = x[:3], Rotation.from_rotvec(x[3:]).as_quat()
            else:
                for i, value in zip(ids, x, strict=True):
                    qp[model.joints[i].idx_q] = value
            B[np.ix_(rows, c)] = block
            ap[rows] = block @ a[c] + extra
        return SimpleNamespace(q=qp, v=B @ v, a=ap, B=B)


def pin_inertia(phi: np.ndarray) -> pin.Inertia:
    """Return Pinocchio's inertia; its order is m, h, Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""
    return pin.Inertia.FromDynamicParameters(np.array(phi)[[0, 1, 2, 3, 4, 5, 7, 6, 8, 9]])


# ---- MuJoCo ----------------------------------------------------------------------------------------------------------


def _text(values: object) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(np.asarray(values, dtype=float)))


def _quat(R: np.ndarray) -> str:
    return _text(Rotation.from_matrix(R).as_quat()[[3, 0, 1, 2]])


def _mjcf_joints(joint: Joint) -> str:
    def one(kind: str, name: str, axis: object) -> str:
        pairs = {"ia": "armature", "fv": "damping", "k": "stiffness"}
        extra = " ".join(f'{key}="{joint.term(name, term)!r}"' for term, key in pairs.items())
        return f'<joint name="{name}" type="{kind}" axis="{_text(axis)}" {extra}/>'

    names = joint.coordinates
    if joint.kind in ("revolute", "continuous"):
        return one("hinge", names[0], joint.axis)
    if joint.kind == "prismatic":
        return one("slide", names[0], joint.axis)
    if joint.kind == "universal":
        return one("hinge", names[0], joint.axis) + one("hinge", names[1], joint.axis2)
    if joint.kind == "planar":
        first, second = joint.plane
        return one("slide", names[0], first) + one("slide", names[1], second) + one("hinge", names[2], joint.axis)
    if joint.kind == "spherical":
        return one("ball", joint.name, [0, 0, 1])
    return f'<freejoint name="{joint.name}"/>' if joint.kind == "free" else ""


def to_mjcf(mechanism: Mechanism) -> str:
    """Return MJCF text of a robot whose free joints, if any, start at the base."""

    def body(joint: Joint) -> str:
        phi = next(b.inertia for b in mechanism.bodies if b.name == joint.child)
        inertial = ""
        if phi is not None:
            i = np.zeros((3, 3))
            i[np.triu_indices(3)] = phi[4:]
            com = phi[1:4] / phi[0]
            about_com = i + np.triu(i, 1).T - phi[0] * (com @ com * np.eye(3) - np.outer(com, com))
            moments, axes = np.linalg.eigh(about_com)
            axes = axes * np.linalg.det(axes)
            inertial = (
                f'<inertial pos="{_text(com)}" quat="{_quat(axes)}" mass="{float(phi[0])!r}" diaginertia="{_text(moments)}"/>'
            )
        p = joint.placement
        return (
            f'<body name="{joint.child}" pos="{_text(p.translation)}" quat="{_quat(p.rotation)}">{_mjcf_joints(joint)}'
            f"{inertial}{children(joint.child)}</body>"
        )

    def children(link: str) -> str:
        return "".join(body(joint) for joint in mechanism.joints if joint.parent == link)

    return (
        '<mujoco><compiler angle="radian" inertiafromgeom="false" balanceinertia="false"/>'
        f'<option gravity="{_text(mechanism.gravity)}"><flag constraint="disable" contact="disable" energy="enable"/></option>'
        f"<worldbody>{children(mechanism.root)}</worldbody></mujoco>"
    )


@dataclass
class MujocoRobot:
    """The same robot in MuJoCo, vm = B(q) v: a free joint's linear velocity is in the world there."""

    mechanism: Mechanism

    def __post_init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_string(to_mjcf(self.mechanism))
        self.data = mujoco.MjData(self.model)
        self.column = {name: i for i, name in enumerate(self.mechanism.coordinate_names)}

    def set(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Write one sample into MuJoCo's data and return B."""
        model, data = self.model, self.data
        B, extra = np.zeros((model.nv, self.mechanism.dof)), np.zeros(model.nv)
        for joint in self.mechanism.joints:
            c = [self.column[name] for name in joint.coordinates]
            whole = joint.kind in ("spherical", "free")
            for name, k in zip((joint.name,), (c,), strict=True) if whole else zip(joint.coordinates, c, strict=True):
                j = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
                at, d = model.jnt_qposadr[j], model.jnt_dofadr[j]
                if not whole:
                    data.qpos[at], B[d, k] = q[k], 1.0
                    continue
                turn = Rotation.from_rotvec(q[k[-3:]])
                B[d + np.arange(len(k)), k] = 1.0
                if joint.kind == "free":
                    base = joint.placement
                    turn = Rotation.from_matrix(base.rotation) * turn
                    R, w, u = turn.as_matrix(), v[k[3:]], v[k[:3]]
                    data.qpos[at : at + 3] = base.translation + base.rotation @ q[k[:3]]
                    B[d : d + 3, k[:3]] = R
                    extra[d : d + 3] = R @ np.cross(w, u)
                    at = at + 3
                data.qpos[at : at + 4] = turn.as_quat()[[3, 0, 1, 2]]
        data.qvel[:], data.qacc[:] = B @ v, B @ a + extra
        self.extra = extra
        return B
