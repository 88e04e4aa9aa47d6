"""The robot in three dimensions: meshes from STL or glTF files of the project, otherwise capsules from its inertias.

Sliders move the robot's coordinates; loops are closed by dynident itself, starting from the present configuration.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from nicegui import ui

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.excitation.limits_file import capsules_of
from dynident.mechanics.closure import close_positions
from dynident.mechanics.dynamics import link_poses
from dynident.mechanism import Mechanism
from dynident.mechanism.elements import Placement
from dynident.mechanism.xml import numbers, parse_xml
from dynident.pages import printable
from dynident_lab.workbench.layout import COLOURS

MESHES = (".stl", ".glb", ".gltf")
WAY = 0.02  # largest step of a coordinate while following loops [rad, m]
JOINT = 0.012  # radius of the joint marks of a robot without shapes [m]


@dataclass(frozen=True)
class Mesh:
    """The visual shape of a link."""

    link: str
    file: str  # Relative to the project
    placement: Placement
    scale: tuple[float, float, float]


class Pose:
    """Positions of all bodies of a robot, moved by its coordinates.

    Parameters
    ----------
    robot : Mechanism
        Robot.
    """

    def __init__(self, robot: Mechanism) -> None:
        self.robot = robot
        self.tree: Array | None = robot.closure.home.copy() if robot.loops else None
        lower, upper = limits_of(robot)
        start = self.tree[robot.closure.independent] if self.tree is not None else np.clip(np.zeros(robot.dof), lower, upper)
        self.q = np.array(start, dtype=np.float64)

    def move(self, q: Array) -> None:
        """Move to other coordinates; if loops cannot follow, keep the position and raise an error."""
        if self.tree is None:
            self.q = np.array(q, dtype=np.float64)
            return
        steps = max(2, int(np.ceil(np.max(np.abs(q - self.q), initial=0.0) / WAY)) + 1)
        way = np.linspace(self.q, q, steps)
        self.tree = close_positions(self.robot, way, start=self.tree)[-1]
        self.q = np.array(q, dtype=np.float64)

    def places(self) -> dict[str, tuple[Array, Array]]:
        """Return rotation and position of every link."""
        at = self.q if self.tree is None else self.tree
        return {name: (R[0], p[0]) for name, (R, p) in link_poses(self.robot, at[None]).items()}


def limits_of(robot: Mechanism) -> tuple[Array, Array]:
    """Return the range of every coordinate; one turn or one metre without described limits."""
    lower, upper = np.full(robot.dof, -np.pi), np.full(robot.dof, np.pi)
    for joint in robot.joints:
        if len(joint.coordinates) != 1 or joint.coordinates[0] not in robot.coordinate_names:
            continue
        i = robot.coordinate_names.index(joint.coordinates[0])
        reach = 1.0 if joint.kind == "prismatic" else np.pi
        lower[i] = joint.limits.lower if np.isfinite(joint.limits.lower) else -reach
        upper[i] = joint.limits.upper if np.isfinite(joint.limits.upper) else reach
    return lower, upper


def meshes_of(folder: Path, description: Path) -> list[Mesh]:
    """Return the meshes of a URDF file that are in the project; others are omitted, because files elsewhere are never read."""
    if description.suffix.lower() != ".urdf" or not description.is_file():
        return []
    found = []
    try:
        root = parse_xml(description.read_bytes(), "robot")
        for link in root.iter("link"):
            for visual in link.iter("visual"):
                mesh = visual.find("geometry/mesh")
                name = "" if mesh is None else mesh.get("filename", "")
                file = _mesh_file(folder, description.parent, name)
                if mesh is None or file is None:
                    continue
                origin = visual.find("origin")
                xyz, rpy = numbers(origin, "xyz", 3, np.zeros(3), "origin"), numbers(origin, "rpy", 3, np.zeros(3), "origin")
                size = numbers(mesh, "scale", 3, np.ones(3), "mesh")
                placement = Placement.from_rpy(xyz, rpy)
                found.append(Mesh(str(link.get("name")), file, placement, (float(size[0]), float(size[1]), float(size[2]))))
    except (DynidentError, OSError):
        return []
    return found


def _mesh_file(folder: Path, beside: Path, name: str) -> str | None:
    """Return the file of a mesh inside the project; None for other places and formats."""
    plain = name.partition("://")[2] if "://" in name else name
    if not plain.lower().endswith(MESHES):
        return None
    shorter = plain.split("/", 1)[-1]  # path without the name of the package
    for place in (beside / plain, beside / shorter, beside.parent / plain, beside.parent / shorter):
        with contextlib.suppress(OSError, ValueError):
            path = place.resolve()
            if path.is_file() and path.is_relative_to(folder):
                return path.relative_to(folder).as_posix()
    return None


class RobotView:
    """The scene of a robot, and sliders for its coordinates.

    Parameters
    ----------
    robot : Mechanism
        Robot.
    meshes : list of Mesh
        Shapes of its links.
    """

    def __init__(self, robot: Mechanism, meshes: list[Mesh]) -> None:
        self.robot, self.pose = robot, Pose(robot)
        self.groups: dict[str, Any] = {}
        self.values: list[ui.label] = []
        self.sliders: list[ui.slider] = []
        places = self.pose.places()
        points = np.array([p for _, p in places.values()])
        centre, size = 0.5 * (points.min(axis=0) + points.max(axis=0)), float(np.ptp(points, axis=0).max() or 0.5)
        with ui.scene(width=560, height=400, grid=(4, 16), background_color="#eef1f4", fps=15) as self.scene:
            self._shapes(meshes, size)
        self.scene.classes("wb-scene").props('role=img aria-label="Robot in three dimensions"')
        eye = centre + size * np.array([1.0, -1.3, 0.9])
        x, y, z, *looked = map(float, (*eye, *centre))
        self.scene.move_camera(x=x, y=y, z=z, look_at_x=looked[0], look_at_y=looked[1], look_at_z=looked[2], duration=0)
        self._place(places)

    def _shapes(self, meshes: list[Mesh], size: float) -> None:
        """Draw every link as meshes or a capsule, and joints as balls."""
        drawn = {mesh.link for mesh in meshes}
        capsules = {capsule.link: capsule for capsule in capsules_of(self.robot)}
        carried = {name: node for name, (node, _) in self.robot.tree.frames.items()}
        shown = {carried[link] for link in drawn if link in carried}
        for i, body in enumerate(self.robot.bodies):
            colour = COLOURS[i % len(COLOURS)]
            with self.scene.group() as group:
                for mesh in meshes:
                    if mesh.link == body.name:
                        url = f"/files/{quote(mesh.file)}"
                        shape = self.scene.stl(url) if mesh.file.lower().endswith(".stl") else self.scene.gltf(url)
                        shape.material(colour).scale(*mesh.scale).rotate_R(mesh.placement.rotation.tolist())
                        shape.move(*map(float, mesh.placement.translation))
                if body.name in capsules and carried[body.name] not in shown:
                    self._capsule(capsules[body.name], colour)
                if any(joint.child == body.name and joint.kind != "fixed" for joint in self.robot.joints):
                    self.scene.sphere(max(JOINT, 0.018 * size)).material("#33414d")
            self.groups[body.name] = group
        self._links(size)

    def _links(self, size: float) -> None:
        """Draw lines from each joint to the next ones of the same body: so that robots without inertias are visible, too."""
        for joint in self.robot.joints:
            length = float(np.linalg.norm(joint.placement.translation))
            if joint.parent in self.groups and length > 1e-6:
                with self.groups[joint.parent]:
                    _rod(self.scene, np.zeros(3), joint.placement.translation, 0.008 * size, "#7c8791", 1.0)
        for loop in self.robot.loops:
            for body, placement in ((loop.body_a, loop.placement_a), (loop.body_b, loop.placement_b)):
                if body in self.groups and np.linalg.norm(placement.translation) > 1e-6:
                    with self.groups[body]:
                        _rod(self.scene, np.zeros(3), placement.translation, 0.008 * size, "#7c8791", 1.0)

    def _capsule(self, capsule: Any, colour: str) -> None:
        start, end = np.asarray(capsule.start, dtype=float), np.asarray(capsule.end, dtype=float)
        _rod(self.scene, start, end, float(capsule.radius), colour, 0.85)
        for point in (start, end):
            self.scene.sphere(float(capsule.radius)).material(colour, 0.85).move(*map(float, point))

    def controls(self, changed: Callable[[str], None]) -> None:
        """Show one slider per coordinate; `changed` receives an error message if the loops cannot follow."""
        lower, upper = limits_of(self.robot)
        for i, name in enumerate(self.robot.coordinate_names):
            low, high = min(lower[i], self.pose.q[i]), max(upper[i], self.pose.q[i])
            with ui.element("div").classes("wb-slider"):
                ui.label(printable(name))
                step = float(f"{(high - low) / 200:.1g}")
                slider = ui.slider(min=float(low), max=float(high), step=step, value=float(self.pose.q[i]))
                slider.props(f'aria-label="Joint {i + 1}"')
                slider.on_value_change(lambda event, i=i: self._moved(i, float(event.value), changed))
                self.sliders.append(slider)
                self.values.append(ui.label(f"{self.pose.q[i]:.3f}").classes("wb-value"))

    def _moved(self, i: int, value: float, changed: Callable[[str], None]) -> None:
        wanted = self.pose.q.copy()
        wanted[i] = value
        try:
            self.pose.move(wanted)
        except DynidentError as error:
            changed(str(error))
            return
        changed("")
        self.values[i].text = f"{value:.3f}"
        self._place(self.pose.places())

    def _place(self, places: dict[str, tuple[Array, Array]]) -> None:
        with self.scene:
            for name, group in self.groups.items():
                rotation, position = places[name]
                group.move(*map(float, position)).rotate_R(rotation.tolist())


def _rod(scene: Any, start: Array, end: Array, radius: float, colour: str, opacity: float) -> None:
    """Draw a cylinder between two points; three.js cylinders are along y."""
    along = end - start
    length = float(np.linalg.norm(along))
    if length < 1e-9:
        return
    y = along / length
    x = np.cross(y, (0.0, 0.0, 1.0) if abs(y[2]) < 0.9 else (1.0, 0.0, 0.0))
    x /= np.linalg.norm(x)
    rotation = np.column_stack([x, y, np.cross(x, y)])
    made = scene.cylinder(radius, radius, length, 20).material(colour, opacity)
    made.rotate_R(rotation.tolist()).move(*map(float, 0.5 * (start + end)))
