"""Python modules that load an exported robot into its program and add the torques that the program's file cannot express.

    tau = tau_program(q, v, a; bodies, native terms) + remainder(q, v, a)

Both are linear in the parameters, so the remainder is the robot's inverse dynamics with the program's own parameters
set to zero. Any joint term, friction law or force is exported this way, without a list of all kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources

import numpy as np

from dynident.errors import DescriptionError
from dynident.graph.expression import Function, Graph, reachable
from dynident.graph.printing import comment, identifier, numpy_function, numpy_helpers
from dynident.mechanics.equations import Equations
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters

NATIVE: dict[str, tuple[str, ...]] = {
    "pinocchio": ("ia",),
    "mujoco": ("ia", "fv", "fc", "k"),
    "gazebo": ("fv", "fc", "k"),
    "drake": ("ia", "fv"),
}
"""Joint terms that a program supports; none of them accepts negative numbers."""

IGNORED: dict[str, tuple[str, ...]] = {"drake": ("fc",), "mujoco": ("off",)}
"""Joint terms that are zero in the file: the program ignores them with a warning, or the remainder contains them."""


@dataclass(frozen=True)
class Split:
    """A robot's spanning tree, and its parameters divided into those of a program and the remainder."""

    tree: Mechanism  # The identified robot without loops and couplings
    native: Parameters  # Parameters as written: the program's own terms are not negative
    own: tuple[str, ...]  # Names of the parameters that the program supports
    remainder: Function  # ``tau (n,)`` of ``q, v, a``: everything else

    @property
    def joints(self) -> tuple[str, ...]:
        """Coordinates of the tree that are joints of their own."""
        return tuple(name for name in self.tree.tree.coordinates if "." not in name or name in self._single)

    @property
    def _single(self) -> set[str]:
        return {joint.name for joint in self.tree.joints}

    def term(self, symbol: str) -> tuple[float, ...]:
        """Return a term of every joint with its value in the program."""
        known = dict(zip(self.native.names, self.native.values.tolist(), strict=True))
        return tuple(known.get(f"{symbol}_{name}", 0.0) for name in self.joints)

    @property
    def added(self) -> bool:
        """Whether the remainder contains anything."""
        return any(not node.is_const(0.0) for node in self.remainder.entries)

    @property
    def accelerates(self) -> bool:
        """Whether the remainder depends on accelerations."""
        return any(node.op == "symbol" and node.name.startswith("a[") for node in reachable(self.remainder.entries))

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the nonzero parameters in the remainder, without the tangents of laws."""
        first = self.tree.tree.inertias.size
        inner = {own.name for own in self.tree.own_columns if own.kind == "tangent"}
        pairs = zip(self.tree.parameters.names, self.tree.parameters.values, self.native.values, strict=True)
        rows = list(enumerate(pairs))[first:]
        return tuple(
            name for _, (name, value, own) in rows if value and name not in inner and (name not in self.own or value != own)
        )


def split(mechanism: Mechanism, target: str) -> Split:
    """Divide the parameters of an identified robot between a program and the remainder."""
    tree = replace(mechanism, loops=(), couplings=(), independent=(), home={})
    for joint in tree.joints:
        if len(joint.coordinates) > 1 and not (joint.kind == "free" and joint.parent == tree.root):
            raise DescriptionError(
                f"joint '{joint.name}' is {joint.kind}; robots for {target} have single-axis joints and a free base only"
            )
    parameters = tree.parameters
    first = tree.tree.inertias.size
    own = {f"{symbol}_{name}" for name in tree.tree.coordinates for symbol in NATIVE[target]}
    # Python compares -0.0 and 0.0 as equal; adding zero removes the minus sign.
    positive = own | {f"{symbol}_{name}" for name in tree.tree.coordinates for symbol in ("fv", "fc")}  # in every format
    native = np.array([max(x, 0.0) if name in positive else x for name, x in parameters.to_dict().items()]) + 0.0
    rest = parameters.values - np.where([name in own for name in parameters.names], native, 0.0)
    rest[:first] = 0.0
    ignored = {f"{symbol}_{name}" for name in tree.tree.coordinates for symbol in IGNORED.get(target, ())}
    native[[name in ignored for name in parameters.names]] = 0.0
    graph = Graph()
    equations = Equations(tree, graph, phi=[graph.const(float(x)) for x in rest])
    equations.load_phi = [graph.const(x) for x in parameters.values.tolist()]
    nodes = equations.tree_torques()
    for node in reachable(nodes):
        if node.op == "symbol" and not node.name.startswith(("q[", "v[", "a[")):
            raise DescriptionError(
                f"the friction of robot '{tree.name}' depends on '{node.name}', which the target program does not have"
            )
    n = len(tree.tree.coordinates)
    function = Function("remainder", {"q": n, "v": n, "a": n}, {"tau": nodes})
    return Split(tree, parameters.replace(native), tuple(sorted(own.intersection(parameters.names))), function)


_IMPORTS = {
    "pinocchio": "import pinocchio as pin",
    "mujoco": "import mujoco",
    "drake": "from pydrake.multibody.parsing import Parser\n"
    "from pydrake.multibody.plant import MultibodyPlant\n"
    "from pydrake.multibody.tree import MultibodyForces",
    "gazebo": "",
}
_TITLES = {"pinocchio": "Pinocchio", "mujoco": "MuJoCo", "drake": "Drake", "gazebo": "Gazebo"}


def _template(name: str) -> str:
    """Return the functions that a program's modules share."""
    return (resources.files("dynident.export") / "templates" / f"{name}.py.txt").read_text(encoding="utf-8")


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
    text = "" if target == "gazebo" else _template(target)
    if target == "pinocchio":
        text = text.replace("{root}", ", pin.JointModelFreeFlyer()" if base else "")
        text += "" if parts.accelerates else _template("pinocchio_forward")
    return "\n".join([*lines, "", "", "\n\n".join([*numpy_helpers(body), body]), text]) + ("" if text else "\n")


def _listed(parts: Split) -> list[str]:
    names = parts.others
    if not names:
        return ["There are none: all are zero."]
    return ["They are " + ", ".join(comment(name) for name in names[:40]) + (", ..." if len(names) > 40 else "") + "."]
