"""`export_robot`: the identified robot as files of another program, read back by that program and compared.

difference = max |tau_program(q, v, a) - tau_dynident(q, v, a)|      over random states
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dynident.errors import DescriptionError, DescriptionWarning, DynidentError
from dynident.export.loaders import Split, loader_name, loader_text, split
from dynident.files import visible, write_atomic
from dynident.graph.printing import comment, identifier
from dynident.mechanics.dynamics import inverse_dynamics
from dynident.mechanics.functions import Motion
from dynident.mechanism.files import is_mjcf, is_patched, read_robot, write_robot
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.text_writers import mjcf_text, urdf_text
from dynident.mechanism.urdf_writer import drake_rotors, gazebo_base, gazebo_springs
from dynident.results import Result

TARGETS = ("pinocchio", "mujoco", "gazebo", "drake")
NEAR = 0.02  # largest distance from home in the comparison of robots with loops [rad, m]
SAMPLES = 20
_MODULES = {"pinocchio": "pinocchio", "mujoco": "mujoco", "drake": "pydrake"}
_TITLES = {"pinocchio": "Pinocchio", "mujoco": "MuJoCo", "gazebo": "Gazebo", "drake": "Drake"}


@dataclass(frozen=True, eq=False)
class Exported(Result):
    """Files of a robot for another program, and their agreement with dynident."""

    target: str  #: One of `TARGETS`
    files: tuple[str, ...]  #: Files written
    reader: str  #: Program that read the files back; empty if there was none
    difference: float  #: Largest difference of any torque over random states [N m, N]; NaN without a reader
    notes: tuple[str, ...] = ()  #: Content that the format cannot hold, and its place instead

    def summary(self) -> str:
        """Return files, difference and notes as text."""
        said = (
            f"read back by {self.reader}: largest difference {self.difference:.2g} N m or N over {SAMPLES} random states"
            if self.reader
            else "not read back"
        )
        return "\n".join([f"written for {_TITLES[self.target]}: {', '.join(self.files)}", said, *self.notes])


def export_robot(
    mechanism: Mechanism,
    folder: str | os.PathLike[str],
    target: str,
    source: str | os.PathLike[str] | None = None,
    *,
    search: Sequence[str | os.PathLike[str]] = (),
    arguments: Mapping[str, object] | None = None,
    remarks: Sequence[str] = (),
) -> Exported:
    """Write a robot for another program; parameters that its format cannot hold are added by a generated module.

    The folder gets a description (``<robot>.urdf``, or ``<robot>.xml`` for MuJoCo) and ``load_<robot>.py``, which loads it and
    gives torques with friction, offsets and springs. Where the program is installed both are used and compared with dynident.

    Parameters
    ----------
    mechanism, folder
        The robot with its numbers, such as ``fit.model``, and the output folder. Torques are those of its spanning tree.
    target : {"pinocchio", "mujoco", "gazebo", "drake"}
        The program.
    source, search, arguments
        Source file of the robot, as in `read_robot`: its meshes, comments and order are kept if it has the program's format.
    remarks : sequence of str
        Comments for the description, such as ``fit.provenance()``.

    Returns
    -------
    Exported
        Files, the largest difference of torques, and notes.

    Examples
    --------
    >>> import tempfile
    >>> import dynident as di
    >>> from dynident.export import export_robot
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0)], gravity=(0, -9.81, 0)).with_payload(2.0)
    >>> export_robot(arm, tempfile.mkdtemp(), "gazebo").difference < 1e-9
    True
    """
    if not isinstance(target, str) or target not in TARGETS:
        raise DynidentError(f"target is {target!r}; it must be one of {', '.join(TARGETS)}")
    parts = split(mechanism, target)
    stem = identifier(mechanism.name).lower()
    path = Path(folder) / f"{stem}{'.xml' if target == 'mujoco' else '.urdf'}"
    notes: list[str] = []
    written = source is None or not is_patched(source) or is_mjcf(source) != (target == "mujoco")
    if mechanism.loops and target == "mujoco":
        how = "constraints of the model" if written else "those of the source"
        notes.append(f"loops are equality constraints, {how}; the torques compared are those of the spanning tree")
    elif mechanism.loops:
        notes.append(
            f"{_TITLES[target]} cannot read loops from this file, which contains the spanning tree; export for mujoco to "
            "keep them"
        )
    if any(c.function is not None for c in mechanism.couplings):
        notes.append("coupling functions are not exported: torques are those of the spanning tree")
    _write_description(mechanism, parts, path, target, source, search, arguments, notes)
    remark(path, remarks)
    held = _held(parts, path)
    module = loader_name(mechanism.name)
    notes += [f"joint '{name}' was locked; {module}.py locks it at {x:.6g}" for name, x in held.items()]
    loader = write_atomic(Path(folder) / f"{module}.py", loader_text(target, parts, path.name, held))
    if parts.others:
        missing = _listed(parts.others, mechanism)
        notes.append(f"{_TITLES[target]} has no term for {missing}: remainder(q, v, a) in {loader.name} adds them")
    reader, difference = _compare(parts, path, loader, target, notes)
    return Exported(target, (str(path), str(loader)), reader, difference, tuple(notes))


def _listed(names: Sequence[str], mechanism: Mechanism) -> str:
    """Return the terms by kind with their joints, and the force elements by name."""
    forces = [name for force in mechanism.forces for name in force.names]
    kinds: dict[str, list[str]] = {}
    for name in names:
        if name not in forces:
            owner = max((c for c in mechanism.tree.coordinates if name.endswith(f"_{c}")), key=len, default="")
            kinds.setdefault(name.removesuffix(f"_{owner}"), []).append(owner)
    said = [f"{kind} of {', '.join(owners[:8])}{' ...' * (len(owners) > 8)}" for kind, owners in kinds.items()]
    own = [f"'{name}'" for name in names if name in forces]
    if own:
        said.append(f"force {'elements' if len(own) > 1 else 'element'} {', '.join(own[:8])}{' ...' * (len(own) > 8)}")
    return "; ".join(said)


def _write_description(
    mechanism: Mechanism,
    parts: Split,
    path: Path,
    target: str,
    source: str | os.PathLike[str] | None,
    search: Sequence[str | os.PathLike[str]],
    arguments: Mapping[str, object] | None,
    notes: list[str],
) -> None:
    same = source is not None and is_patched(source) and is_mjcf(source) == (target == "mujoco")
    if same and source is not None:
        write_robot(source, mechanism, mechanism.parameters.replace(parts.native.values), path, search, arguments)
    else:
        known = mechanism.parameters
        # The remainder contains the offsets; a springref next to a spring would add them again.
        told = [0.0 if name.startswith("off_") else x for name, x in zip(known.names, parts.native.values, strict=True)]
        robot = mechanism.with_parameters(known.replace(np.array(told) if target == "mujoco" else parts.native.values))
        write_atomic(path, mjcf_text(robot) if target == "mujoco" else urdf_text(_on_the_ground(robot)))
        notes.append("a new description is written, without meshes and collision shapes")
    if target == "drake":
        rotors = {name: x for name, x in zip(parts.joints, parts.term("ia"), strict=True) if x}
        write_atomic(path, drake_rotors(path.read_bytes(), rotors))
    if target == "gazebo":
        springs = {name: (k, 0.0) for name, k in zip(parts.joints, parts.term("k"), strict=True) if k}
        write_atomic(path, gazebo_base(gazebo_springs(path.read_bytes(), springs)))


def _on_the_ground(robot: Mechanism) -> Mechanism:
    """Return a robot without its free base joint, which programs that read URDF add themselves."""
    free = [joint for joint in robot.joints if joint.kind == "free"]
    if not free:
        return robot
    return replace(
        robot,
        bodies=tuple(body for body in robot.bodies if body.name != robot.root),
        joints=tuple(joint for joint in robot.joints if joint.kind != "free"),
        actuators=(),
    )


def _held(parts: Split, path: Path) -> dict[str, float]:
    """Return the joints of the written file that the robot locks, with their positions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        written = read_robot(path)
    known = {joint.name: joint for joint in parts.tree.joints}
    found = {}
    for joint in written.joints:
        ours = known.get(joint.name)
        if joint.kind == "fixed" or ours is None or ours.kind != "fixed":
            continue
        if joint.kind not in ("revolute", "continuous", "prismatic"):
            raise DescriptionError(f"joint '{joint.name}' is {joint.kind} and held still; fix it in the description first")
        moved = joint.placement.inverse() @ ours.placement
        if joint.kind == "prismatic":
            found[joint.name] = float(moved.translation @ joint.axis)
        else:
            R = moved.rotation
            sine = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) @ joint.axis / 2.0
            found[joint.name] = float(np.arctan2(sine, (np.trace(R) - 1.0) / 2.0))
    return found


# ---- reading back ---------------------------------------------------------------------------------------------------


def _states(parts: Split) -> Motion:
    """Return random states in which every joint moves."""
    rng, n = np.random.default_rng(0), parts.tree.dof
    speed = rng.uniform(0.2, 2.0, (SAMPLES, n)) * rng.choice([-1.0, 1.0], (SAMPLES, n))
    return Motion(np.arange(float(SAMPLES)), rng.uniform(-1.0, 1.0, (SAMPLES, n)), speed, rng.normal(size=(SAMPLES, n)) * 3.0)


def _compare(parts: Split, path: Path, loader: Path, target: str, notes: list[str]) -> tuple[str, float]:
    """Return the program that read the files back and the largest difference of torques."""
    motion = _states(parts)
    ours = inverse_dynamics(parts.tree, motion)
    if target == "gazebo":
        return "dynident itself, as Gazebo would use it", float(np.max(np.abs(_as_gazebo(parts, path, loader, motion) - ours)))
    if importlib.util.find_spec(_MODULES[target]) is None:
        notes.append(f"not compared: {_TITLES[target]} is not installed here")
        return "", float("nan")
    with _undisturbed(target):
        try:
            module = _import(loader)
            model = module.load()
            theirs = np.array([module.torque(model, *x) for x in zip(motion.q, motion.v, motion.a, strict=True)])
        except Exception as error:  # the user needs any message of the program about the file
            raise DescriptionError(f"{_TITLES[target]} does not accept '{path}' as written: {error}") from error
    version = getattr(sys.modules[_MODULES[target]], "__version__", "")
    return f"{_TITLES[target]} {version}".strip(), float(np.max(np.abs(theirs - ours)))


def read_back(robot: Mechanism, files: Sequence[Path]) -> float:
    """Return the largest difference in torque between a robot and its written description with sidecar.

    States are random, and near home with loops. NaN if the files have other coordinates, which is reported on writing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        again = read_robot(files[0], files[1] if len(files) > 1 else None)
    if set(again.coordinate_names) != set(robot.coordinate_names):
        return float("nan")
    rng, n = np.random.default_rng(0), robot.dof
    q, v, a = rng.uniform(-1.0, 1.0, (3, SAMPLES, n))
    if robot.loops:
        q = robot.closure.home[robot.closure.independent] + NEAR * q
    order = [robot.coordinate_names.index(name) for name in again.coordinate_names]
    theirs = inverse_dynamics(again, Motion(np.arange(float(SAMPLES)), q[:, order], v[:, order], a[:, order]))
    return float(np.max(np.abs(theirs - inverse_dynamics(robot, Motion(np.arange(float(SAMPLES)), q, v, a))[:, order])))


@contextmanager
def _undisturbed(target: str) -> Iterator[None]:
    """Preserve MuJoCo's callback, and suppress Drake's warnings about the description."""
    if target == "mujoco":
        mujoco = importlib.import_module("mujoco")
        passive = mujoco.get_mjcb_passive()
        try:
            yield
        finally:
            mujoco.set_mjcb_passive(passive)
        return
    importlib.import_module(_MODULES[target])  # the import sets up its log
    log = logging.getLogger("drake")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _import(file: Path) -> ModuleType:
    """Return the loader as a module, without creating other files in its folder."""
    module = ModuleType(f"_dynident_{file.stem}")
    module.__file__ = str(file)
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), module.__dict__)
    return module


def _as_gazebo(parts: Split, path: Path, loader: Path, motion: Motion) -> Any:
    """Return the torques of bodies, damping, friction and springs in the file, and the remainder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        file = read_robot(path)
    held = _held(parts, path)
    file = replace(file, couplings=(), actuators=()).lock(held) if held else replace(file, couplings=(), actuators=())
    own = {name: x if name.split("_", 1)[0] in ("fv", "fc", "k") else 0.0 for name, x in file.parameters.to_dict().items()}
    first = file.tree.inertias.size
    values = np.concatenate([file.parameters.values[:first], list(own.values())[first:]])
    base = len(parts.tree.tree.coordinates) - len(parts.joints)
    if base:
        raise DescriptionError("a robot with a free base is exported for pinocchio or mujoco")
    order = [parts.tree.tree.coordinates.index(name) for name in file.tree.coordinates]
    there = Motion(motion.t, motion.q[:, order], motion.v[:, order], motion.a[:, order])
    tau = np.empty_like(motion.q)
    tau[:, order] = inverse_dynamics(replace(file, gravity=parts.tree.gravity), there, values)
    return tau + _import(loader).remainder(motion.q, motion.v, motion.a)


def remark(path: Path, lines: Sequence[str]) -> Path:
    """Append sentences to a result file as comments in its language."""
    begin, end = {".urdf": ("<!-- ", " -->"), ".xml": ("<!-- ", " -->"), ".py": ("# ", ""), ".txt": ("# ", "")}.get(
        path.suffix, ("/* ", " */")
    )
    plain = [" ".join(visible(line).split()) for line in lines]  # joint names must not end the comment
    safe = [comment(line) if begin == "/* " else re.sub("-(?=-)", "- ", line) for line in plain]
    text = path.read_text(encoding="utf-8").rstrip("\n")
    return write_atomic(path, "\n".join([text, *(f"{begin}{line}{end}" for line in safe), ""]))
