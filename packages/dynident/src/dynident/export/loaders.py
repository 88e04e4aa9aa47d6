"""Python modules that load an exported robot into its program and add what the program's file cannot say."""

from __future__ import annotations

from collections.abc import Mapping

from dynident.export.remainder import Split
from dynident.graph.names import comment, identifier
from dynident.graph.print_python import numpy_function, numpy_helpers

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
