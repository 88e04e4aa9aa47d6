"""The ER3A-C60-like arm as a machine: geared servo drives, cascaded loops, and friction that warms up while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynident.control import Cascade
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.mechanics import mass_matrix
from dynident.robots.assumptions import Assumption
from dynident.robots.er3a_c60.data import AMBIENT, JOINTS
from dynident.robots.er3a_c60.data import ASSUMPTIONS as ARM
from dynident.robots.er3a_c60.model import assumed, friction_laws, mechanism, thermal_models
from dynident.robots.machines import without_terms
from dynident.simulate import Sensors, VirtualRobot

STEP = 2.5e-4  # s

ASSUMPTIONS: Mapping[str, Assumption] = {
    **{name: Assumption(*entry) for name, entry in ARM.items()},
    "position_cycle": Assumption(2e-3, "s", "half of the sampling time of the logs, 4 ms (5.1)"),
    "velocity_cycle": Assumption(2.5e-4, "s", "usual for servo drives"),
    "velocity_bandwidth": Assumption(50.0, "Hz", "of the velocity loops: five times the position loops'"),
    "velocity_reset": Assumption(0.2, "-", "corner of the velocity loops' integral, over their bandwidth"),
    "velocity_feedforward": Assumption(1.0, "-", "share of the reference velocity: industrial controllers follow without lag"),
    "encoder": Assumption(2.0 * np.pi / 2**17, "rad", "17 bit on the motor, usual for servo motors"),
    "encoder_filter": Assumption(500.0, "Hz", "of the velocity from counts: ten times the velocity loops"),
    "speed_reserve": Assumption(1.2, "-", "largest speed of the motors over that of Table 4"),
    "torque_noise": Assumption("noise", "N m", "standard deviations of the logged joint torques, see `noise`"),
    "pose": Assumption((0.0,) * 6, "rad", "whose inertias set the velocity gains: upper arm up, forearm ahead"),
}
"""Numbers that [Pagani2022] does not give: those of the arm and, after them, those of drives and control."""


def machine(
    *,
    payload: bool = False,
    warm: bool = True,
    bandwidth: float = ARM["bandwidth"].value,
    position_cycle: float = ASSUMPTIONS["position_cycle"].value,
    velocity_cycle: float = ASSUMPTIONS["velocity_cycle"].value,
    velocity_feedforward: float = ASSUMPTIONS["velocity_feedforward"].value,
    noise: bool = True,
    controller: Any = None,
    step: float = STEP,
) -> VirtualRobot:
    """Return the arm on geared drives with cascaded control; [Pagani2022] gives few of the numbers, see `ASSUMPTIONS`.

    Rotor inertia is in the drives, friction (cubic in the speed, [Pagani2022, eq. 35]) at the joints; neither is counted twice.

    Parameters
    ----------
    payload : bool
        True carries 3 kg.
    warm : bool
        True lets friction heat the joints (130), which lowers it; False keeps it cold.
    bandwidth : float
        Of the position loops [Hz]; the velocity loops are five times as fast.
    position_cycle, velocity_cycle : float
        Cycle times [s].
    velocity_feedforward : float
        Share of the reference velocity.
    noise : bool
        True logs torques with noise.
    controller : optional
        Any other controller instead of the cascade.
    step : float
        Step of the simulation [s].

    Returns
    -------
    VirtualRobot
        The machine; logs hold joint positions and torques.
    """
    whole = mechanism(payload)
    arm = without_terms(whole, JOINTS)
    limits = {joint.name: joint.limits for joint in arm.joints}
    gears, rotors, constants = assumed("gears"), assumed("rotors"), assumed("torque_constants")
    drives = []
    for i, joint in enumerate(JOINTS):
        motor = Motor(
            float(constants[i]),
            inertia=float(rotors[i]),
            current_limit=float(limits[joint].effort / (gears[i] * constants[i])),
            speed_limit=float(ASSUMPTIONS["speed_reserve"].value * limits[joint].velocity * gears[i]),
        )
        encoder = Encoder(ASSUMPTIONS["encoder"].value, filter=ASSUMPTIONS["encoder_filter"].value)
        drives.append(Drive(f"motor_{i + 1}", motor, Transmission.gear(float(gears[i])), encoder=encoder))
    fast = 2.0 * np.pi * bandwidth / ARM["bandwidth"].value * ASSUMPTIONS["velocity_bandwidth"].value
    seen = np.diag(mass_matrix(whole, ASSUMPTIONS["pose"].value)[0])  # links and rotors at the joints
    gain = fast * seen / (gears**2 * constants)
    loops = controller or Cascade(
        2.0 * np.pi * bandwidth,
        gain,
        fast * ASSUMPTIONS["velocity_reset"].value * gain,
        position_cycle=position_cycle,
        velocity_cycle=velocity_cycle,
        velocity_feedforward=velocity_feedforward,
    )
    return VirtualRobot(
        arm,
        tuple(drives),
        loops,
        friction=dict(zip(JOINTS, friction_laws(), strict=True)),
        thermal=dict(zip(JOINTS, thermal_models(), strict=True)) if warm else {},
        sensors=Sensors(effort="joint_torque", side="joint", effort_noise=assumed("noise") if noise else 0.0),
        step=step,
        name="ER3A-C60",
        ambient=AMBIENT,
    )
