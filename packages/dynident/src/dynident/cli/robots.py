"""Robots by name: packages register them in the group ``dynident.robots``, as dynident-papers does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dynident as di
from dynident.cli.consoles import note
from dynident.errors import DynidentError
from dynident.plugins import ROBOTS, PluginError, entries, not_installed, require

if TYPE_CHECKING:
    from dynident.arrays import Array
    from dynident.excitation.limits_file import MotionLimits
    from dynident.excitation.plan import Plan
    from dynident.simulate.robot import VirtualRobot
    from dynident.trajectory.curves import Fourier


@dataclass(frozen=True, eq=False)
class Published:
    """Published data on experiments with a robot."""

    limits: MotionLimits
    source: str  # Source of the limits, one sentence
    family: Fourier  # Motions of the source
    base: di.BaseParameters | None = None  # Base parameters of the source; ours when None


@dataclass(frozen=True)
class PublishedResponse:
    """Published frequency response of one coordinate."""

    points: Mapping[float, tuple[float, float]]  # Frequency [Hz] to ratio and phase [deg], measured on the machine
    bandwidths: Mapping[str, float]  # Printed bandwidths [Hz] by quantity
    notes: tuple[str, ...] = ()  # Reasons for differences of our values
    amplitude: float | None = None  # Amplitude of the first coordinate [rad or m]
    unloaded: Callable[[], VirtualRobot] | None = None  # The machine with the friction of its drives without their load


@dataclass(frozen=True)
class KnownRobot:
    """A robot that commands know by name: the type of entries of the group ``dynident.robots``."""

    mechanism: Callable[[], di.Mechanism]  #: Returns the robot as a `Mechanism`
    machine: Callable[[], VirtualRobot] | None = None  #: Returns its `VirtualRobot` with drives, sensors and controller
    #: Returns limits and motions of the robot's source for a mechanism, as `Published`
    published: Callable[[di.Mechanism], Published] | None = None
    #: Returns the case of ``dynident track`` for a seed, a `dynident_lab.testbench.tracking_case.ProofCase`
    proof_case: Callable[[int], Any] | None = None
    #: Returns the tests of the source, simulated: mappings with test, quantity, unit, found, model and experiment
    compare: Callable[[], list[Mapping[str, Any]]] | None = None
    response: Callable[[str], PublishedResponse] | None = None  #: Returns the `PublishedResponse` of a coordinate
    #: Converts a plan in coordinates of the mechanism into a motion of the machine, if their coordinates differ
    reference: Callable[[Plan], di.Motion | Plan] | None = None
    #: Closed-form inverse kinematics of a robot with loops: takes position and roll, pitch, yaw of its platform, returns the
    #: positions of the actuated joints by branch, NaN where there is none
    branches: Callable[[Array, Array], Mapping[str, Array]] | None = None
    #: Friction laws by joint that ``dynident identify`` fits unless others are chosen
    friction: Mapping[str, str] | None = None
    #: Takes the fit of ``dynident identify`` and returns the parameters of the robot's source as text, which is printed.
    parameters: Callable[[di.Fit], str] | None = None
    #: Whether the described bodies are physically consistent; if not (published fits), consistency is not enforced.
    possible: bool = True
    notes: tuple[str, ...] = ()  #: Differences of the machine from its source; noted when a command uses the machine
    block: Callable[[VirtualRobot], Any] | None = None  #: Returns a machine with voltages in, a `dynident_lab.fmu.Block`


def known_robots() -> tuple[str, ...]:
    """Return the names of the robots that installed packages provide."""
    return tuple(entries(ROBOTS))


def is_known(robot: Path | str) -> bool:
    """Return whether an argument names a known robot and not a file."""
    return not Path(robot).is_file() and str(robot) in entries(ROBOTS)


def find_robot(name: str) -> KnownRobot:
    """Return a robot by name; the error names the package that provides it, or the known names."""
    if name not in entries(ROBOTS):
        names = ", ".join(known_robots())
        raise DynidentError(
            f"robot {missing}"
            if (missing := not_installed(ROBOTS, name))
            else f"robot '{name}' does not exist; give a file with its ending{f', or a name: {names}' if names else ''}"
        )
    found = require(ROBOTS, name)
    if not isinstance(found, KnownRobot):
        raise PluginError(
            f"robot '{name}' of a plug-in is a {type(found).__name__}; it must be a dynident.cli.robots.KnownRobot"
        )
    return found


def find_machine(name: str) -> VirtualRobot:
    """Return the machine of a known robot."""
    make = find_robot(name).machine
    if make is None:
        raise DynidentError(f"robot '{name}' has no drives and controller; give a description of the robot instead")
    return make()


def ready_machine(name: str) -> VirtualRobot:
    """Return the machine of a known robot, and note its differences from the source."""
    machine = find_machine(name)
    for text in find_robot(name).notes:
        note(text)
    return machine
