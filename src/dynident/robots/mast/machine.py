"""MAST as a machine: belt drives of two inertias (Table 4.2), cascaded loops, and what had to be assumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynident.control import Cascade
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError
from dynident.friction import Coulomb, Friction
from dynident.robots.assumptions import Assumption
from dynident.robots.machines import without_terms
from dynident.robots.mast.data import (
    COULOMB_ADJUSTED,
    COULOMB_CATALOGUE,
    GEAR,
    J_1,
    J_1_ADJUSTED,
    J_2,
    PITCH,
    TABLE_4_2,
)
from dynident.simulate import VirtualRobot

STEP = 1.25e-4  # s

ASSUMPTIONS: Mapping[str, Assumption] = {
    "position_gain": Assumption(22.8, "1/s", "k_v that fits the three measured points with 8.8 ms of dead time"),
    "position_cycle": Assumption(5e-3, "s", "[Ruiz2016], the same guides and drives"),
    "position_delay": Assumption(
        6e-3,
        "s",
        "what is left of those 8.8 ms after half a position cycle (2.5 ms) and the velocity loop (J / K_t k_P - half its "
        "cycle: 0.3 ms), for the way from the computer with the position loop to the drives; not printed",
    ),
    "velocity_cycle": Assumption(1e-3, "s", "[Ruiz2016], the same guides and drives"),
    "velocity_gain": Assumption(0.9, "A s/rad", "[Ruiz2016], read as A s/rad (its units are swapped)"),
    "velocity_integral": Assumption(0.001, "A/rad", "[Ruiz2016], read as A/rad (its units are swapped)"),
    "torque_constant": Assumption(30.2e-3, "N m/A", "[Ruiz2016] and [Roldan2017, section 6.1], the same motor (Maxon RE 40)"),
    "current_limit": Assumption(10.0, "A", "largest current of the drive EPOS2 50/5 of [Ruiz2016], from its data sheet"),
    "encoder": Assumption(
        0.0,
        "rad",
        "lines are not printed: exact positions; the speed is their difference over a velocity cycle, as drives do it. A "
        "sampled tachometer would alias the undamped 914 Hz below 500 Hz and make the loop unstable with the mechanism on it",
    ),
    "platform_inertia": Assumption("thin disc", "", "I_mp is not printed, see `dynident.robots.mast.BODIES`"),
    "damping": Assumption(
        TABLE_4_2["c_t"], "N m s/rad", "as printed, although suspiciously small: nothing damps 914 Hz but the loops"
    ),
    "centre": Assumption("home", "", "pose about which it shakes; not printed"),
    "amplitude": Assumption(
        1e-3, "m", "of the z sines, not printed but small (3.5); the current limit is touched above 4 Hz even so"
    ),
}
"""Everything that [Roldan2017, section 4.2] and [Roldan2016] do not print; only the position loop is fitted."""

BANDWIDTH_NOTES = (
    "the thesis says 4 Hz of the actuators alone and 3.5 Hz with the mechanism. Rigid bodies cannot do that: a third of "
    "2.27 kg is 2 % of the drives' inertia, in a velocity loop of 200 Hz. What lowers the response here is friction, and the "
    "guides rub more under the mechanism's load [Roldan2016, eq. 23]",
)
"""What to know when its bandwidths are held beside those of the thesis."""

LOAD, FRICTION_PER_LOAD = 2.27, 4.07e-2 / GEAR  # kg, and N m at the motor per kg: [Roldan2016, eqs. 22 and 23]
"""The guides rub more under load. The 2.27 kg that [Roldan2016] puts into (23) are the whole mechanism."""

PARAMETERS = {"catalogue": (J_1, COULOMB_CATALOGUE), "adjusted": (J_1_ADJUSTED, COULOMB_ADJUSTED)}
"""J_1 [kg m^2] and Coulomb friction [N m] at the motor: of the manufacturers, and fitted by the thesis ("Sim. Ident.")."""


def drives(parameters: str = "catalogue", elastic: bool = True, load: float = LOAD) -> tuple[Drive, ...]:
    """Return the three belt drives (Table 4.2): rotor, gear and coupling J_1 on a shaft k_t, c_t to the carriage J_2."""
    if parameters not in PARAMETERS:
        raise DynidentError(f"MAST: parameters is {parameters!r}; it is one of {', '.join(PARAMETERS)}")
    inertia, loaded = PARAMETERS[parameters]
    coulomb = loaded + FRICTION_PER_LOAD * (load - LOAD)
    shaft = {"stiffness": (TABLE_4_2["k_t"],), "damping": (ASSUMPTIONS["damping"].value,)} if elastic else {}
    belt = Transmission.belt(PITCH, GEAR, inertias=(J_2,), **shaft)
    motor = Motor(ASSUMPTIONS["torque_constant"].value, inertia=inertia, current_limit=ASSUMPTIONS["current_limit"].value)
    law: Friction = Coulomb().using(fc=coulomb)
    return tuple(Drive(f"motor_{i}", motor, belt, law, Encoder()) for i in (1, 2, 3))


def machine(
    position_gain: float = ASSUMPTIONS["position_gain"].value,
    position_cycle: float = ASSUMPTIONS["position_cycle"].value,
    velocity_cycle: float = ASSUMPTIONS["velocity_cycle"].value,
    *,
    position_delay: float = ASSUMPTIONS["position_delay"].value,
    velocity_gain: float = ASSUMPTIONS["velocity_gain"].value,
    velocity_integral: float = ASSUMPTIONS["velocity_integral"].value,
    parameters: str = "catalogue",
    elastic: bool = True,
    load: float = LOAD,
    coordinates: str = "platform",
    controller: Any = None,
    step: float = STEP,
) -> VirtualRobot:
    """Return the shaking table with its drives and loops; what is not printed is in `ASSUMPTIONS`.

    Sliders and gears are in the drives only (J_1, J_2); bars and platform are the mechanism.

    Parameters
    ----------
    position_gain : float
        k_v [1/s].
    position_cycle, velocity_cycle : float
        Cycle times of the loops [s].
    position_delay : float
        From the sampling of the position to the wanted speed at the drives [s].
    velocity_gain, velocity_integral : float
        PI of the velocity loop [A s/rad, A/rad].
    parameters : {"catalogue", "adjusted"}
        Inertia and friction of the drives: of the manufacturers, or as the thesis fitted them.
    elastic : bool
        False makes the transmissions rigid.
    load : float
        Mass on a guide in the formula of its friction [kg]; it changes nothing else.
    coordinates : {"platform", "actuators"}
        Coordinates of references and results: z, psi, theta, or the sliders.
    controller : optional
        Any other controller instead of the cascade.
    step : float
        Step of the simulation [s].

    Returns
    -------
    VirtualRobot
        The machine, motors ``motor_1`` to ``motor_3``.
    """
    from dynident.robots import mast  # noqa: PLC0415 - the package imports this module

    robot = without_terms(mast.mechanism(coordinates, passive="ideal"), ("rho_1", "rho_2", "rho_3"))
    loops = controller or Cascade(
        position_gain,
        velocity_gain,
        velocity_integral,
        position_cycle=position_cycle,
        velocity_cycle=velocity_cycle,
        position_delay=position_delay,
    )
    return VirtualRobot(robot, drives(parameters, elastic, load), loops, step=step, name="MAST")


def unloaded() -> VirtualRobot:
    """Return the machine whose guides rub as they do without the mechanism: what "actuators alone" have.

    Returns
    -------
    VirtualRobot
        `machine` with only the carriage, 0.076 kg, in the formula of the guides' friction.
    """
    return machine(load=TABLE_4_2["M"])
