"""Python modules that load an exported robot into its program and add the torques that the program's file cannot express.

    tau = tau_program(q, v, a; bodies, native terms) + remainder(q, v, a)

Both are linear in the parameters, so the remainder is the robot's inverse dynamics with the parameters that the program has
set to zero. Any joint term, friction law or force is exported that way, without a list of all kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dynident.errors import DescriptionError
from dynident.graph.expression import Function, Graph, reachable
from dynident.graph.print_python import numpy_function, numpy_helpers
from dynident.graph.printing import comment, identifier
from dynident.mechanics.equations import Equations
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters

NATIVE: dict[str, tuple[str, ...]] = {
    "pinocchio": ("ia",),
    "mujoco": ("ia", "fv", "fc", "k"),
    "gazebo": ("fv", "fc", "k"),
    "drake": ("ia", "fv"),
}
"""Joint terms that a program has itself; none of them takes negative numbers."""

IGNORED: dict[str, tuple[str, ...]] = {"drake": ("fc",), "mujoco": ("off",)}
"""Joint terms that are zero in the file: the program only warns of them, or they are in the remainder already."""


def open_tree(mechanism: Mechanism) -> Mechanism:
    """Return the spanning tree, every coordinate of which is independent: other programs give the torques of that."""
    return replace(mechanism, loops=(), couplings=(), independent=(), home={})


@dataclass(frozen=True)
class Split:
    """A robot's spanning tree, and its parameters divided between a program and what is added to it."""

    tree: Mechanism  # The identified robot without loops and couplings
    native: Parameters  # Parameters as they are written: those of the program's own terms are not negative
    own: tuple[str, ...]  # Names of the parameters that the program has
    remainder: Function  # ``tau (n,)`` of ``q, v, a``: everything else

    @property
    def joints(self) -> tuple[str, ...]:
        """Coordinates of the tree that are joints of their own."""
        return tuple(name for name in self.tree.tree.coordinates if "." not in name or name in self._single)

    @property
    def _single(self) -> set[str]:
        return {joint.name for joint in self.tree.joints}

    def term(self, symbol: str) -> tuple[float, ...]:
        """Return a term of every joint, as the program has it."""
        known = dict(zip(self.native.names, self.native.values.tolist(), strict=True))
        return tuple(known.get(f"{symbol}_{name}", 0.0) for name in self.joints)

    @property
    def added(self) -> bool:
        """Whether there is anything that the program does not have."""
        return any(not node.is_const(0.0) for node in self.remainder.entries)

    @property
    def accelerates(self) -> bool:
        """Whether the remainder depends on accelerations."""
        return any(node.op == "symbol" and node.name.startswith("a[") for node in reachable(self.remainder.entries))

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the parameters in the remainder that are not zero; tangents of laws are no parameters of anybody."""
        first = self.tree.tree.inertias.size
        inner = {own.name for own in self.tree.own_columns if own.kind == "tangent"}
        pairs = zip(self.tree.parameters.names, self.tree.parameters.values, self.native.values, strict=True)
        rows = list(enumerate(pairs))[first:]
        return tuple(
            name for _, (name, value, own) in rows if value and name not in inner and (name not in self.own or value != own)
        )


def split(mechanism: Mechanism, target: str) -> Split:
    """Divide the parameters of an identified robot between a program and the remainder."""
    tree = open_tree(mechanism)
    for joint in tree.joints:
        if len(joint.coordinates) > 1 and not (joint.kind == "free" and joint.parent == tree.root):
            raise DescriptionError(
                f"joint '{joint.name}' is {joint.kind}; robots for {target} have single-axis joints and a free base only"
            )
    parameters = tree.parameters
    first = tree.tree.inertias.size
    own = {f"{symbol}_{name}" for name in tree.tree.coordinates for symbol in NATIVE[target]}
    # Python compares -0.0 and 0.0 as equal; adding zero leaves no minus sign in a file.
    positive = own | {f"{symbol}_{name}" for name in tree.tree.coordinates for symbol in ("fv", "fc")}  # in every format
    native = np.array([max(x, 0.0) if name in positive else x for name, x in parameters.to_dict().items()]) + 0.0
    rest = parameters.values - np.where([name in own for name in parameters.names], native, 0.0)
    rest[:first] = 0.0
    ignored = {f"{symbol}_{name}" for name in tree.tree.coordinates for symbol in IGNORED.get(target, ())}
    native[[name in ignored for name in parameters.names]] = 0.0
    graph = Graph()
    nodes = Equations(tree, graph, phi=[graph.const(float(x)) for x in rest]).tree_torques()
    for node in reachable(nodes):
        if node.op == "symbol" and not node.name.startswith(("q[", "v[", "a[")):
            raise DescriptionError(f"the friction of robot '{tree.name}' depends on '{node.name}', which no program gives")
    n = len(tree.tree.coordinates)
    function = Function("remainder", {"q": n, "v": n, "a": n}, {"tau": nodes})
    return Split(tree, parameters.replace(native), tuple(sorted(own.intersection(parameters.names))), function)


_PINOCCHIO = '''
def load():
    """Return the Pinocchio model, with rotor inertias and gravity."""
    model = pin.buildModelFromUrdf(str(FILE){root})
    model.gravity.linear = np.array(GRAVITY)
    for name, value in zip(JOINTS, ARMATURE):
        model.armature[model.joints[model.getJointId(name)].idx_v] = value
    return model


def _state(model, q, v, a):
    """Return q, v, a in Pinocchio's order, and the places of our columns there."""
    x, rates, accelerations = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    places = list(range(BASE))
    if BASE:
        x[:3], x[3:7] = q[:3], pin.Quaternion(pin.exp3(np.array(q[3:6]))).coeffs()
    for name, value in (*zip(JOINTS, q[BASE:]), *HELD.items()):
        joint = model.joints[model.getJointId(name)]
        x[joint.idx_q : joint.idx_q + joint.nq] = value if joint.nq == 1 else (np.cos(value), np.sin(value))
        places += [joint.idx_v] if name in JOINTS else []
    rates[places], accelerations[places] = v, a
    return x, rates, accelerations, places


def torque(model, q, v, a):
    """Return the torques of a motion, friction and all: pin.rnea and what Pinocchio leaves out."""
    x, rates, accelerations, places = _state(model, q, v, a)
    return pin.rnea(model, model.createData(), x, rates, accelerations)[places] + remainder(q, v, a)
'''

_PINOCCHIO_FORWARD = '''

def acceleration(model, q, v, tau):
    """Return the accelerations that torques cause: pin.aba without what friction and springs take."""
    x, rates, _, places = _state(model, q, v, np.zeros(len(v)))
    effort = np.zeros(model.nv)
    effort[places] = np.asarray(tau) - remainder(q, v, np.zeros(len(v)))
    return pin.aba(model, model.createData(), x, rates, effort)[places]
'''

_MUJOCO = '''
def load():
    """Return the MuJoCo model; in a simulation the remainder acts as a passive force of it.

    That force is a callback for all models. MuJoCo reads no file while it has one: call mujoco.set_mjcb_passive(None) before
    you read a model by other means.
    """
    known = mujoco.get_mjcb_passive()
    mujoco.set_mjcb_passive(None)
    try:
        model = mujoco.MjModel.from_xml_path(str(FILE))
    finally:
        mujoco.set_mjcb_passive(known)
    if ADDED:
        address = model._address

        def passive(other, data):
            if known is not None:
                known(other, data)
            if other._address == address:
                q, v, places = _ours(model, data)
                data.qfrc_passive[places] -= remainder(q, v, np.zeros(len(v)))

        mujoco.set_mjcb_passive(passive)
    return model


def _places(model):
    return [*range(BASE), *(int(model.joint(name).dofadr[0]) for name in JOINTS)]


def _ours(model, data):
    """Return q and v of the joints in our order; a free base has none of the remainder's forces."""
    q, v = (np.zeros(BASE + len(JOINTS)) for _ in range(2))
    for i, name in enumerate(JOINTS, BASE):
        q[i] = data.qpos[model.joint(name).qposadr[0]]
        v[i] = data.qvel[model.joint(name).dofadr[0]]
    return q, v, _places(model)


def torque(model, q, v, a):
    """Return the torques of a motion: mj_inverse, dry friction at its full size, and what MuJoCo leaves out.

    MuJoCo's frictionloss is a soft constraint; here it is what it is for a joint that moves.
    """
    data, places = mujoco.MjData(model), _places(model)
    turn = np.eye(3)
    if BASE:
        r = np.array(q[3:6], dtype=float)
        angle = np.linalg.norm(r)
        mujoco.mju_axisAngle2Quat(data.qpos[3:7], r / angle if angle else np.array([1.0, 0.0, 0.0]), angle)
        flat = np.zeros(9)
        mujoco.mju_quat2Mat(flat, data.qpos[3:7])
        turn, data.qpos[:3] = flat.reshape(3, 3), q[:3]
    for name, value in (*zip(JOINTS, q[BASE:]), *HELD.items()):
        data.qpos[model.joint(name).qposadr[0]] = value
    data.qvel[places], data.qacc[places] = v, a
    if BASE:  # MuJoCo's linear velocity is in the world's axes
        data.qvel[:3], data.qacc[:3] = turn @ v[:3], turn @ (np.array(a[:3]) + np.cross(v[3:6], v[:3]))
    flags, passive = model.opt.disableflags, mujoco.get_mjcb_passive()
    try:
        model.opt.disableflags = flags | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        mujoco.set_mjcb_passive(None)
        mujoco.mj_inverse(model, data)
    finally:
        model.opt.disableflags = flags
        mujoco.set_mjcb_passive(passive)
    tau = data.qfrc_inverse[places] + model.dof_frictionloss[places] * np.sign(v)
    if BASE:
        tau[:3] = turn.T @ tau[:3]
    return tau + remainder(q, v, a)
'''

_DRAKE = '''
def load():
    """Return the Drake plant, finalized, its base welded to the world."""
    plant = MultibodyPlant(time_step=0.0)
    (robot,) = Parser(plant).AddModels(str(FILE))
    if ROOT != "world":
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(ROOT, robot))
    plant.mutable_gravity_field().set_gravity_vector(GRAVITY)
    plant.Finalize()
    return plant


def torque(plant, q, v, a):
    """Return the torques of a motion: CalcInverseDynamics, rotor inertia and damping inside, and what Drake leaves out."""
    context = plant.CreateDefaultContext()
    positions, rates, accelerations = np.zeros(plant.num_positions()), np.zeros(plant.num_velocities()), None
    accelerations = np.zeros(plant.num_velocities())
    for name, value in HELD.items():
        positions[plant.GetJointByName(name).position_start()] = value
    places = [plant.GetJointByName(name).velocity_start() for name in JOINTS]
    starts = [plant.GetJointByName(name).position_start() for name in JOINTS]
    positions[starts], rates[places], accelerations[places] = q, v, a
    plant.SetPositions(context, positions)
    plant.SetVelocities(context, rates)
    forces = MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, forces)
    return plant.CalcInverseDynamics(context, accelerations, forces)[places] + remainder(q, v, a)
'''

_IMPORTS = {
    "pinocchio": "import pinocchio as pin",
    "mujoco": "import mujoco",
    "drake": "from pydrake.multibody.parsing import Parser\n"
    "from pydrake.multibody.plant import MultibodyPlant\n"
    "from pydrake.multibody.tree import MultibodyForces",
    "gazebo": "",
}
_TITLES = {"pinocchio": "Pinocchio", "mujoco": "MuJoCo", "drake": "Drake", "gazebo": "Gazebo"}


def loader_name(robot: str) -> str:
    """Return the name of the module that loads a robot."""
    return f"load_{identifier(robot).lower()}"


def loader_text(target: str, parts: Split, file: str, held: Mapping[str, float]) -> str:
    """Return the module that loads a written robot."""
    tree = parts.tree
    base = len(tree.tree.coordinates) - len(parts.joints)
    name = loader_name(tree.name)
    uses = "remainder" if target == "gazebo" else "load, torque"
    about = [
        f'"""Robot {comment(tree.name)!a} for {_TITLES[target]}, with everything that was identified; generated by dynident.',
        "",
        f"    from {name} import {uses}",
    ]
    if target != "gazebo":
        about += ["    model = load()", "    tau = torque(model, q, v, a)  # columns as in JOINTS, SI units"]
    body = numpy_function(
        parts.remainder,
        about=[
            f"Return the torques that {_TITLES[target]} has no terms for, shape (..., {len(tree.tree.coordinates)}).",
            "",
            *(f"{key}" for key in _listed(parts)),
        ],
    )
    constants = {
        "JOINTS": parts.joints,
        "BASE": base,
        "HELD": dict(held),
        "GRAVITY": tuple(tree.gravity.tolist()),
    }
    if target == "pinocchio":
        constants["ARMATURE"] = parts.term("ia")
    if target == "mujoco":
        constants["ADDED"] = parts.added and not parts.accelerates
    if target == "drake":
        constants["ROOT"] = tree.root
    if target == "gazebo":
        constants = {"JOINTS": parts.joints}
    lines = [*about, '"""', ""]
    if target != "gazebo":
        lines += ["from pathlib import Path", ""]
    lines += ["import numpy as np", *([_IMPORTS[target]] if _IMPORTS[target] else []), ""]
    if target != "gazebo":
        lines.append(f"FILE = Path(__file__).with_name({file!a})")
    lines += [f"{key} = {value!a}" for key, value in constants.items()]
    text = {"pinocchio": _PINOCCHIO, "mujoco": _MUJOCO, "drake": _DRAKE, "gazebo": ""}[target]
    if target == "pinocchio":
        text = text.replace("{root}", ", pin.JointModelFreeFlyer()" if base else "")
        text += "" if parts.accelerates else _PINOCCHIO_FORWARD
    return "\n".join([*lines, "", "", "\n\n".join([*numpy_helpers(body), body]), text]) + ("" if text else "\n")


def _listed(parts: Split) -> list[str]:
    names = parts.others
    if not names:
        return ["There are none: all are zero."]
    return ["They are " + ", ".join(comment(name) for name in names[:40]) + (", ..." if len(names) > 40 else "") + "."]
