"""Models of Pinocchio and MuJoCo in memory, to a mechanism and back; the programs themselves are not needed to read."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from dynident.errors import DescriptionError, DynidentError
from dynident.mechanism.elements import Body, Joint, Limits, Placement, quaternion_matrix, rotation_exp
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import from_com, transform
from dynident.mechanism.text_writers import mjcf_text, urdf_text
from dynident.mechanism.xml import unique_name

_PINOCCHIO = {"RX": (1, 0, 0), "RY": (0, 1, 0), "RZ": (0, 0, 1), "PX": (1, 0, 0), "PY": (0, 1, 0), "PZ": (0, 0, 1)}
_MUJOCO = ("free", "spherical", "prismatic", "revolute")  # by the numbers of jnt_type


def from_pinocchio(model: Any) -> Mechanism:
    """Take a robot from a ``pinocchio.Model``; see `Mechanism.from_pinocchio`."""
    if not hasattr(model, "jointPlacements") or not hasattr(model, "inertias"):
        raise DescriptionError(f"model is a {type(model).__name__}; give a pinocchio.Model")
    links = _links(model)
    bodies, joints = [Body(links[0])], []
    friction = getattr(model, "friction", None)
    friction = getattr(model, "upperDryFrictionLimit", None) if friction is None else friction
    for i in range(1, model.njoints):
        inertia, placement = model.inertias[i], model.jointPlacements[i]
        phi = from_com(float(inertia.mass), np.array(inertia.lever), np.array(inertia.inertia))
        bodies.append(Body(links[i], phi))
        kind, axis, turns = _pinocchio_kind(model.joints[i], model.names[i])
        q, v = model.joints[i].idx_q, model.joints[i].idx_v
        single = model.joints[i].nv == 1
        terms = {}
        if single:
            values = {"ia": model.armature[v], "fv": model.damping[v], "fc": 0.0 if friction is None else friction[v]}
            terms = {key: float(x) for key, x in values.items() if x}
        lower, upper = (-np.inf, np.inf) if turns or not single else (model.lowerPositionLimit[q], model.upperPositionLimit[q])
        limits = Limits(
            *(_limit(x) for x in (lower, upper, *((model.velocityLimit[v], model.effortLimit[v]) if single else ())))
        )
        frame = Placement(np.array(placement.rotation), np.array(placement.translation))
        joints.append(
            Joint(model.names[i], kind, links[model.parents[i]], links[i], frame, np.array(axis), limits=limits, terms=terms)
        )
    gravity = np.array(model.gravity.linear)
    return Mechanism(str(model.name) or "robot", tuple(bodies), tuple(joints), gravity=gravity, source="pinocchio.Model")


def _limit(x: float) -> float:
    return float(x) if abs(x) < 1e15 else float(np.copysign(np.inf, x))


def _links(model: Any) -> list[str]:
    """Return the name of the first body of every joint."""
    found: dict[int, str] = {}
    for frame in model.frames:
        if "BODY" in str(frame.type):
            parent = frame.parentJoint if hasattr(frame, "parentJoint") else frame.parent
            found.setdefault(int(parent), frame.name)
    names: list[str] = []
    for i in range(model.njoints):
        names.append(unique_name(found.get(i) or (f"{model.names[i]}_link" if i else "universe"), set(names).__contains__))
    return names


def _pinocchio_kind(joint: Any, name: str) -> tuple[str, Any, bool]:
    """Return kind and axis of a joint, and whether it is unbounded."""
    short = joint.shortname().removeprefix("JointModel")
    if short in _PINOCCHIO:
        return ("revolute" if short[0] == "R" else "prismatic"), _PINOCCHIO[short], False
    if short in ("RUBX", "RUBY", "RUBZ"):
        return "continuous", _PINOCCHIO[f"R{short[-1]}"], True
    if short in ("RevoluteUnaligned", "PrismaticUnaligned", "RevoluteUnboundedUnaligned", "RUBUnaligned"):
        data = joint.extract() if hasattr(joint, "extract") else joint
        kind = "prismatic" if short[0] == "P" else "revolute" if short == "RevoluteUnaligned" else "continuous"
        return kind, np.array(data.axis), kind == "continuous"
    if short in ("FreeFlyer", "Spherical"):
        return ("free" if short == "FreeFlyer" else "spherical"), (0, 0, 1), True
    raise DescriptionError(f"joint '{name}' is a {short} of Pinocchio, which is not read; give the robot's URDF")


def from_mujoco(model: Any) -> Mechanism:
    """Take a robot from a ``mujoco.MjModel``; see `Mechanism.from_mujoco`."""
    if not hasattr(model, "body_parentid") or not hasattr(model, "jnt_type"):
        raise DescriptionError(f"model is a {type(model).__name__}; give a mujoco.MjModel")
    if model.neq:
        raise DescriptionError(f"the model has {model.neq} equality constraints; read its file with from_mjcf")
    names: list[str] = []
    for i in range(model.nbody):
        names.append(unique_name(model.body(i).name or ("world" if i == 0 else f"body{i}"), set(names).__contains__))
    bodies, joints, taken = [Body(names[0])], [], set[str]()
    for i in range(1, model.nbody):
        turn = quaternion_matrix(np.array(model.body_iquat[i]), f"body '{names[i]}': iquat")
        inner = from_com(float(model.body_mass[i]), np.zeros(3), np.diag(model.body_inertia[i]))
        bodies.append(Body(names[i], transform(inner, turn, np.array(model.body_ipos[i]))))
        rest = Placement(
            quaternion_matrix(np.array(model.body_quat[i]), f"body '{names[i]}': quat"), np.array(model.body_pos[i])
        )
        carrier = names[model.body_parentid[i]]
        for k in range(model.body_jntnum[i]):
            joint, offset = _mujoco_joint(model, int(model.body_jntadr[i]) + k, carrier, rest, taken)
            last = k == model.body_jntnum[i] - 1 and not np.any(offset.translation)
            child = names[i] if last else unique_name(f"{names[i]}/{joint['name']}", {b.name for b in bodies}.__contains__)
            joints.append(Joint(child=child, **joint))
            if not last:
                bodies.append(Body(child))
            carrier, rest = child, offset.inverse()
        if carrier != names[i]:
            joints.append(Joint(unique_name(f"{names[i]}_fixed", taken.__contains__), "fixed", carrier, names[i], rest))
            taken.add(joints[-1].name)
    gravity = np.array(model.opt.gravity)
    return Mechanism("robot", tuple(bodies), tuple(joints), gravity=gravity, source="mujoco.MjModel")


def _mujoco_joint(model: Any, j: int, carrier: str, rest: Placement, taken: set[str]) -> tuple[dict[str, Any], Placement]:
    """Return the fields of a joint but its child, and the pose of the joint in the body's frame."""
    kind, dof = _MUJOCO[int(model.jnt_type[j])], int(model.jnt_dofadr[j])
    name = unique_name(model.joint(j).name or f"joint{j + 1}", taken.__contains__)
    taken.add(name)
    if kind == "free":
        return {"name": name, "kind": kind, "parent": carrier}, Placement()
    offset, axis = Placement(np.eye(3), np.array(model.jnt_pos[j])), np.array(model.jnt_axis[j])
    placement, address = rest @ offset, int(model.jnt_qposadr[j])
    terms, limits = {}, Limits()
    if kind != "spherical":
        start = float(model.qpos0[address])  # the body poses of a model hold at qpos0
        shift = rotation_exp(-start * axis), np.zeros(3)
        placement = placement @ (Placement(*shift) if kind == "revolute" else Placement(np.eye(3), -start * axis))
        values = {"ia": model.dof_armature[dof], "fv": model.dof_damping[dof], "fc": model.dof_frictionloss[dof]}
        values |= {"k": _scalar(model.jnt_stiffness[j]), "off": -_scalar(model.jnt_stiffness[j]) * model.qpos_spring[address]}
        terms = {key: _scalar(x) for key, x in values.items() if _scalar(x)}
        limits = Limits(*map(float, model.jnt_range[j])) if model.jnt_limited[j] else limits
    fields = {"name": name, "kind": kind, "parent": carrier, "placement": placement, "axis": axis}
    return {**fields, "limits": limits, "terms": terms}, offset


def _scalar(x: Any) -> float:
    """Return a number, or the first of the polynomial coefficients that newer versions of MuJoCo store instead."""
    return float(np.atleast_1d(np.asarray(x, dtype=np.float64))[0])


def to_pinocchio(robot: Mechanism) -> Any:
    """Return the robot as a ``pinocchio.Model``; see `Mechanism.to_pinocchio`."""
    pin = _program("pinocchio", "pin")
    if robot.loops:
        raise DescriptionError(f"robot '{robot.name}' has loops, which Pinocchio does not read from a description")
    free = [joint for joint in robot.joints if joint.kind == "free"]
    if free:
        raise DescriptionError("a robot with a free base is exported with export_robot(robot, folder, 'pinocchio')")
    model = pin.buildModelFromXML(urdf_text(robot))
    model.gravity.linear = np.array(robot.gravity)
    for name, value in zip(robot.parameters.names, robot.parameters.values, strict=True):
        symbol, _, joint = name.partition("_")
        if symbol == "ia" and model.existJointName(joint):
            model.armature[model.joints[model.getJointId(joint)].idx_v] = value
    return model


def to_mujoco(robot: Mechanism) -> Any:
    """Return the robot as a ``mujoco.MjModel``; see `Mechanism.to_mujoco`."""
    mujoco = _program("mujoco", "mujoco")
    return mujoco.MjModel.from_xml_string(mjcf_text(robot))


def _program(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DynidentError(f"a model of {module} needs the package: run  pip install {package}") from error
