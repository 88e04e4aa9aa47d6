"""What the code of a machine depends on.

Numbers of masses, gains, friction and motors are no part of a shape: machines that differ only in those share their code.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.control.feedforward import coupling_rows
from dynident.drive.drive import Drive
from dynident.errors import SimulationError
from dynident.mechanics.functions import geometry_key
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.tree import FREE, SPHERICAL
from dynident.simulate.friction import Owner, Part, jumps

IDEAL, RESISTIVE, INDUCTIVE = "current", "resistance", "winding"  # what a drive is fed with, and what that meets
FINE, SINGULAR_MASS, LOST_CLOSURE, UNSTABLE, LOST_TASK = 0, 1, 2, 3, 4


def own_positions(mechanism: Mechanism) -> list[int]:
    """Return where the robot's coordinates are among the positions that are integrated: those of the tree with loops."""
    return [int(i) for i in mechanism.closure.independent] if mechanism.loops else list(range(mechanism.dof))


@dataclass(frozen=True)
class DriveShape:
    """How a drive is built: its feed, whether the amplifier's voltage limits the current, its shafts, play and losses."""

    feed: str
    limited: bool
    shafts: int
    play: bool
    lossy: bool

    @classmethod
    def of(cls, drive: Drive, voltage: bool) -> DriveShape:
        """Return the shape of a drive that is fed with a voltage or with a current."""
        motor, gear = drive.motor, drive.transmission
        if motor.torque_constant == 0.0:
            raise SimulationError(f"drive '{drive.actuator}': motor.torque_constant is 0; give it in N m/A")
        feed = IDEAL
        if voltage:
            feed = INDUCTIVE if motor.inductance > 0.0 else RESISTIVE
            if feed == RESISTIVE and motor.resistance == 0.0:
                raise SimulationError(
                    f"drive '{drive.actuator}' is fed with a voltage but its motor has no resistance or inductance; give them"
                )
        limited = feed == IDEAL and motor.resistance > 0.0 and motor.voltage_limit < np.inf
        return cls(feed, limited, drive.states, gear.backlash > 0.0, gear.efficiency < 1.0)

    @property
    def loses_rigidly(self) -> bool:
        """Whether a rigid gear has losses."""
        return self.lossy and not self.shafts


@dataclass(frozen=True)
class LawShape:
    """How a control law is built: its kind, and what of it the code needs to know."""

    # "held" (a controller in Python), "open", "cascade", "pid", "projected", "computed", "task forces", "task computed" or
    # "task cascade"
    kind: str
    model: Mechanism  # model of the robot that the law has
    frictions: tuple[Owner, ...] = ()  # friction of that model
    current_loop: bool = False  # whether a cascade has one
    torque: bool = False  # whether an open loop commands torques
    on_reference: bool = False  # whether computed torque evaluates its model on the reference
    space: Any = None  # what a law in a work space controls

    @property
    def asks(self) -> bool:
        """Whether the law needs to know where the robot is, not only its motors."""
        return self.kind not in ("open", "cascade", "pid")

    @property
    def key(self) -> Hashable:
        """The same without numbers."""
        model = geometry_key(self.model) if self.asks else None
        owners = tuple(owner.shape for owner in self.frictions)
        return self.kind, model, owners, self.current_loop, self.torque, self.on_reference, self.space


@dataclass(frozen=True, eq=False)
class Shape:
    """A machine without its numbers."""

    mechanism: Mechanism  # the robot; only its geometry counts
    drives: tuple[DriveShape, ...]  # one per actuator
    owners: tuple[Owner, ...]  # friction of joints, rotors and gears
    law: LawShape  # the control law
    loop: str = ""  # "" where mechanism and drives are solved together, else "iterated" or "delayed"
    integrator: str = "rk4"  # "rk4", "midpoint" or "euler"
    pushed: bool = False  # whether disturbances act on the actuators
    links: tuple[str, ...] = ()  # links with external wrenches

    def __post_init__(self) -> None:
        if self.mechanism.has_opaque_couplings:
            names = ", ".join(c.joint for c in self.mechanism.couplings if c.gradient is not None)
            raise SimulationError(
                f"robot '{self.mechanism.name}': the couplings of {names} are known by their numbers only (gradient= and "
                "hessian=); write their functions with NumPy and leave those out, so that they can be compiled"
            )

    @property
    def key(self) -> Hashable:
        """What tells the code of two machines apart."""
        owners = tuple(owner.shape for owner in self.owners)
        rest = (self.loop, self.integrator, self.pushed, self.links)
        return geometry_key(self.mechanism), self.drives, owners, self.law.key, *rest

    @cached_property
    def rows(self) -> Array:
        """N (k, n_tree) with rho = N q_t."""
        return coupling_rows(self.mechanism)

    @property
    def shafts(self) -> list[int]:
        """First shaft mass of every drive, and their number at the end."""
        return [int(x) for x in np.cumsum([0, *(drive.shafts for drive in self.drives)])]

    @property
    def windings(self) -> list[int]:
        """First winding of every drive, and their number at the end."""
        return [int(x) for x in np.cumsum([0, *(drive.feed == INDUCTIVE for drive in self.drives)])]

    @cached_property
    def balls(self) -> list[tuple[bool, int]]:
        """Whether it is free, and the first coordinate of every ball and free joint in the state."""
        arrays, names = self.mechanism.tree.arrays, self.mechanism.tree.coordinates
        found = []
        for kind, d in zip(arrays.kind, arrays.dof, strict=True):
            if int(kind) in (SPHERICAL, FREE):
                first = int(d) if self.mechanism.loops else self.mechanism.coordinate_names.index(names[int(d)])
                found.append((int(kind) == FREE, first))
        return found

    def on_shaft(self, owner: Owner) -> bool:
        """Tell whether an owner is a rotor in front of an elastic shaft, which moves on its own."""
        return owner.motor >= 0 and not owner.gear and self.drives[owner.motor].shafts > 0

    @cached_property
    def jumping(self) -> list[int]:
        """Owners whose friction jumps at rest: first those that move with the mechanism, then rotors on shafts."""
        lossy = [owner.gear or (owner.motor >= 0 and self.drives[owner.motor].loses_rigidly) for owner in self.owners]
        found = [i for i, owner in enumerate(self.owners) if lossy[i] or jumps(owner)]
        return sorted(found, key=lambda i: (self.on_shaft(self.owners[i]), i))

    @property
    def bound(self) -> int:
        """How many of them move with the mechanism."""
        return sum(not self.on_shaft(self.owners[i]) for i in self.jumping)

    @property
    def remembering(self) -> list[int]:
        """Owners with laws that have memory."""
        return [i for i, owner in enumerate(self.owners) if any(part.states for part in owner.parts)]

    @property
    def loading(self) -> list[int]:
        """Owners whose friction looks at their load."""
        return [i for i, owner in enumerate(self.owners) if any(part.asks_load for part in owner.parts)]


def starts(owners: Sequence[Owner], what: str) -> list[int]:
    """Return where the ``numbers`` or ``states`` of every owner begin, and how many there are at the end."""
    sizes = [sum(len(p.numbers) if what == "numbers" else p.states for p in owner.parts) for owner in owners]
    return [int(x) for x in np.cumsum([0, *sizes])]


def parts_of(owners: Sequence[Owner]) -> Iterator[tuple[int, Part, int, int]]:
    """Yield all parts of the owners' friction: whose it is, the part, and where its numbers and its states begin."""
    number = state = 0
    for i, owner in enumerate(owners):
        for part in owner.parts:
            yield i, part, number, state
            number, state = number + len(part.numbers), state + part.states
