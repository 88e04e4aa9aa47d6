"""Stage Robot: description and sidecar, the robot in three dimensions, editable numbers, identifiable parameters."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import ui

from dynident.cli.robots import known_robots
from dynident.errors import DynidentError
from dynident_lab.workbench import edits
from dynident_lab.workbench.gates import describe_words, robot_status
from dynident_lab.workbench.layout import (
    JobBox,
    banner,
    button,
    card,
    choice,
    command,
    controls,
    fold,
    heading,
    number,
    table,
    text,
)
from dynident_lab.workbench.logs import keep
from dynident_lab.workbench.project import LogUse, Project, result_of
from dynident_lab.workbench.uploads import DESCRIPTIONS, LARGEST, ROBOTS
from dynident_lab.workbench.view3d import RobotView, meshes_of

if TYPE_CHECKING:
    from dynident_lab.workbench.app import Page


def build(page: Page) -> None:
    """Draw the stage."""
    p = page.project
    status = robot_status(p)
    data = result_of(p.jobs.latest("robot")) if status.state in ("ok", "stale") else None
    with ui.element("div").classes("wb-columns"):
        with ui.element("div").classes("wb-stack"):
            with card("Description"):
                _source(page)
                if p.settings.robot:
                    command(describe_words(p))
                JobBox(page, p.jobs.latest("robot"), "reading the robot")
            if data is not None:
                with card("Joints, motors and masses"):
                    _numbers(page, data)
        if data is not None:
            with ui.element("div").classes("wb-stack"):
                with card(str(data["name"])):
                    _view(page)
                with card("Identifiable parameters"):
                    _parameters(data)


def describe(p: Project) -> None:
    """Start the command of this stage."""
    if not p.settings.robot:
        raise DynidentError("no robot is chosen; drop a description first")
    p.jobs.start("robot", [describe_words(p)], checksum=p.checksum(describe_words(p), p.robot_files()))


def refresh(p: Project) -> None:
    """Describe the robot again after changes of its files."""
    busy = any(job.stage in ("robot", "example") for job in p.jobs.running())
    if robot_status(p).state == "stale" and not busy:
        describe(p)


def _source(page: Page) -> None:
    """Show the source of the robot."""
    p = page.project

    async def uploaded(event: Any) -> None:
        saved: list[Path] = []
        for file in event.files:
            data = await file.read()
            page.attempt(partial(keep, saved, p.folder, file.name, data, ROBOTS))
        page.attempt(lambda: take(p, saved))

    def chosen(name: str, value: str | None) -> None:
        setattr(p.settings, name, value or "")
        page.attempt(p.save)

    with controls(page):
        upload = ui.upload(
            label="Drop URDF, xacro, MJCF, SDF or JSON, its sidecar and meshes, or a .zip",
            multiple=True,
            auto_upload=True,
            max_file_size=LARGEST,
            on_multi_upload=uploaded,
            on_rejected=lambda: page.say(f"a file is larger than {LARGEST // 1_000_000} MB or not allowed here"),
        )
        upload.props('flat hide-upload-btn aria-label="Robot files"')
        found = p.descriptions()
        with ui.element("div").classes("wb-row"):
            options = [*found, *known_robots()]
            options += [p.settings.robot] if p.settings.robot and p.settings.robot not in options else []
            choice("Robot", options, p.settings.robot, lambda value: chosen("robot", value)).style("flex:2 1 11rem")
            side = {"": "none", **{name: name for name in p.sidecars()}}
            choice("Sidecar", side, p.settings.sidecar, lambda value: chosen("sidecar", value)).style("flex:1 1 8rem")
            if not p.settings.robot:
                button("Example arm", lambda: page.attempt(lambda: example(p)), main=True)
    JobBox(page, p.jobs.latest("example") if not p.settings.robot else None, "writing the example")


def take(p: Project, saved: list[Path]) -> None:
    """Use uploaded files: the first description, and a sidecar uploaded with it."""
    names = [p.relative(path) for path in saved]
    robots = [name for name in names if name.lower().endswith(DESCRIPTIONS) and not name.endswith("workbench.json")]
    sides = [name for name in names if name.endswith(".toml")]
    if robots:
        p.settings.robot = next((name for name in robots if name.endswith((".urdf", ".xacro"))), robots[0])
        beside = Path(p.settings.robot).with_suffix(".toml").as_posix()
        p.settings.sidecar = beside if (p.folder / beside).exists() else ""
    limits = [name for name in sides if Path(name).name == "limits.toml"]
    if limits:
        p.settings.limits = limits[0]
    others = [name for name in sides if name not in limits]
    if others and not p.settings.sidecar:
        p.settings.sidecar = others[0]
    p.save()


def example(p: Project) -> None:
    """Write the bundled example and use it."""
    p.jobs.start("example", [["demo", "--files", "-o", "example"]])
    p.settings.robot, p.settings.effort = "example/robot.urdf", "joint_torque"
    p.settings.logs = [LogUse("example/run.csv"), LogUse("example/other.csv", "validation")]
    p.save()


def _view(page: Page) -> None:
    """Show the robot with sliders."""
    p = page.project
    try:
        robot = page.bench.robot()
        if not robot.dof:
            raise DynidentError("no joint of this robot moves")
        view = RobotView(robot, meshes_of(p.folder, p.folder / p.settings.robot))
    except DynidentError as error:
        banner(f"No picture: {error}", "mid")
        return
    said = text("")
    view.controls(lambda sentence: setattr(said, "text", sentence))
    if robot.loops and page.writes:
        button("Use this pose as home", lambda: page.attempt(lambda: edits.set_home(p, robot, view.pose.tree)))


def _numbers(page: Page, data: dict[str, Any]) -> None:
    """Show numbers of joints, motors and bodies in fields."""
    p = page.project
    try:
        masses, limits, gains = edits.known_numbers(p)
    except DynidentError as error:
        banner(str(error), "bad")
        return
    robot = page.bench.robot()
    plain = {joint["name"]: joint for joint in data["joints"]}
    described = {key: ("effort" if key == "torque" else key) for key in edits.LIMITS}
    text("Limits are saved to limits.toml, motors and weighed masses to the sidecar. Empty fields use the description.")

    def limit(joint: str, key: str, value: float | None) -> None:
        if value != limits.get(joint, {}).get(key):
            page.attempt(lambda: edits.set_limit(p, joint, key, value))

    def motor(name: str, key: str, old: float | None, value: float | None) -> None:
        if value != old:
            page.attempt(lambda: edits.set_motor(p, robot, name, key, value))

    def mass(body: str, value: float | None) -> None:
        if value != masses.get(body):
            page.attempt(lambda: edits.set_mass(p, body, value))

    with controls(page):
        with fold(page, "Limits of motion"):
            for i, name in enumerate(data["coordinates"]):
                with ui.element("div").classes("wb-row"):
                    text(name, "").style("flex:0 0 7rem; overflow-wrap:anywhere")
                    for key in edits.LIMITS:
                        field = number(
                            key,
                            limits.get(name, {}).get(key),
                            partial(limit, name, key),
                        )
                        there = plain.get(name, {}).get(described[key])
                        field.props(
                            f'placeholder="{"" if there is None else there}" stack-label aria-label="{key} of joint {i + 1}"'
                        )
                        field.style("flex:1 1 4.5rem; min-width:4.5rem")
        with fold(page, "Gears and motors"):
            for i, actuator in enumerate(data["actuators"]):
                with ui.element("div").classes("wb-row"):
                    text(actuator["name"], "").style("flex:0 0 7rem; overflow-wrap:anywhere")
                    for label, key, old in (
                        ("gear ratio", "ratio", actuator["ratio"]),
                        ("torque constant [N m/A]", "gain", gains.get(actuator["name"])),
                    ):
                        field = number(
                            label,
                            old,
                            partial(motor, actuator["name"], key, old),
                        )
                        field.style("flex:1 1 7rem").props(f'aria-label="{label} of motor {i + 1}"')
        with fold(page, "Weighed masses"):
            for i, body in enumerate(data["bodies"]):
                with ui.element("div").classes("wb-row"):
                    text(f"{body}: {data['masses'][body]:.4g} kg described", "").style("flex:1 1 11rem; overflow-wrap:anywhere")
                    field = number("weighed [kg]", masses.get(body), partial(mass, body))
                    field.style("flex:1 1 7rem").props(f'aria-label="weighed mass of body {i + 1}"')
    for sentence in data["consistency"]:
        banner(sentence, "bad")
    heading("Joints", 3)
    keys = ("name", "kind", "lower", "upper", "velocity", "effort")
    rows = [["" if joint[key] is None else str(joint[key]) for key in keys] for joint in data["joints"]]
    table(("joint", "kind", "lower", "upper", "speed", "effort"), rows, "Joints")


def _parameters(data: dict[str, Any]) -> None:
    """Show the base parameters."""
    base = data.get("base_parameters")
    if base is None:
        text("The robot is too large to find its base parameters here.")
        return
    text(
        f"{base['rank']} base parameters can be identified from motion. {len(data.get('unidentifiable', []))} parameters "
        "have no effect on the efforts."
    )
    rows = [expression.split(" = ", 1) for expression in base["expressions"]]
    table(("base parameter", "combination"), [[row[0], row[-1]] for row in rows], "Base parameters")
