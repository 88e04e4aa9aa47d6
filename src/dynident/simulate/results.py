"""From the record of the compiled simulation to a `Run`: true signals, limits, energies, and the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import SimulationError
from dynident.mechanics import Motion
from dynident.mechanics.inverse_kinematics_numeric import limits_of
from dynident.simulate.notices import notify
from dynident.simulate.record import Run, Truth
from dynident.simulate.recorder import record
from dynident.simulate.reference import Reference
from dynident.simulate.sensors import streams
from dynident.simulate.small_signal import limit_cycle

if TYPE_CHECKING:
    from dynident.simulate.robot import VirtualRobot
    from dynident.simulate.runner import Options, Raw

Array = NDArray[np.float64]

NOTICEABLE = 0.01  # share of time at a limit above which a warning says so


def finish(robot: VirtualRobot, reference: Reference, raw: Raw, options: Options) -> Run:
    """Return what a run leaves.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    reference : Reference
        What it was asked to do.
    raw : Raw
        Record of the simulation.
    options : Options
        How the run was made.

    Returns
    -------
    Run
        With its log.
    """
    if not np.all(np.isfinite(raw.record)):
        bad = int(np.argwhere(~np.isfinite(raw.record))[0][0])
        raise SimulationError(
            f"instability: signals are no longer finite at t = {raw.t[bad]:.6g} s; lower the gains or the step"
        )
    truth = _truth(robot, raw)
    unstable = limit_cycle(robot, raw.assembly, truth, raw.at_limit, NOTICEABLE)
    if unstable:
        raise SimulationError(unstable)
    names = [drive.actuator for drive in robot.drives]
    saturation = dict(zip(names, raw.at_limit.tolist(), strict=True))
    notes = _notes(robot, truth, saturation)
    seed: Any = options.seed
    if isinstance(seed, np.random.SeedSequence):
        seed = {"entropy": seed.entropy, "spawn_key": list(seed.spawn_key)}
    settings = {"seed": seed, **raw.settings, "reference": dict(reference.source)}
    facts = {"saturation": saturation, "notes": [*notes, *robot.model_notes], "ambient": robot.ambient}
    log = record(robot, truth, streams(options.seed), settings, facts, raw.readings)
    return Run(log, truth, robot, reference.sample(raw.t), saturation, raw.energy, settings, notes, raw.end)


def _truth(robot: VirtualRobot, raw: Raw) -> Truth:
    c, r = raw.assembly.columns, raw.record
    forms = np.array(raw.assembly.rubbing.forms).reshape(-1, len(robot.mechanism.tree.coordinates))
    return Truth(
        t=raw.t,
        motion=Motion(raw.t, r[:, c.x].copy(), r[:, c.v].copy(), r[:, c.a].copy()),
        rho=r[:, c.rho].copy(),
        rho_v=r[:, c.rho_v].copy(),
        theta=r[:, c.theta].copy(),
        omega=r[:, c.omega].copy(),
        torques=r[:, c.torque].copy(),
        gear_loss=r[:, c.loss].copy(),
        motor_torque=r[:, c.motor].copy(),
        current=r[:, c.current].copy(),
        voltage=r[:, c.voltage].copy(),
        friction=r[:, c.rub].copy(),
        joint_friction=r[:, c.joint_rub] @ forms,
        external=raw.push,
        parameters=robot.model.parameters,
        energy=r[:, c.energy].copy(),
        mean_current=raw.mean_current,
        mean_voltage=raw.mean_voltage,
        wrenches=raw.wrenches,
        temperature=raw.temperature,
    )


def _notes(robot: VirtualRobot, truth: Truth, saturation: Mapping[str, float]) -> tuple[str, ...]:
    """Return and warn of what needs attention."""
    notes = []
    for j, drive in enumerate(robot.drives):
        share, motor = saturation[drive.actuator], drive.motor
        if share > NOTICEABLE:
            at = np.mean(np.abs(truth.current[:, j]) >= 0.999 * motor.current_limit)
            kind = "current" if at >= 0.5 * share or not np.isfinite(motor.voltage_limit) else "voltage"
            value = f"{motor.current_limit:g} A" if kind == "current" else f"{motor.voltage_limit:g} V"
            notes.append(f"motor of '{drive.actuator}' was at its {kind} limit of {value} {100.0 * share:.3g} % of the time")
        speed = np.abs(truth.omega[:, j])
        fast = speed > motor.speed_limit
        if fast.any():
            notes.append(
                f"motor of '{drive.actuator}' was above its speed limit of {motor.speed_limit:g} rad/s "
                f"{100.0 * float(fast.mean()):.3g} % of the time, first at t = {truth.t[int(fast.argmax())]:.6g} s and with up "
                f"to {float(speed.max()):.4g} rad/s"
            )
    lower, upper = limits_of(robot.mechanism)
    outside = np.mean((truth.motion.q < lower - 1e-6) | (truth.motion.q > upper + 1e-6), axis=0)
    notes += [
        f"joint '{robot.mechanism.coordinate_names[i]}' was outside its limits {lower[i]:.6g} to {upper[i]:.6g} "
        f"{100.0 * outside[i]:.3g} % of the time, where nothing stops it in simulation"
        for i in np.flatnonzero(outside)
    ]
    if notes:
        title = robot.name or robot.mechanism.name
        notify(f"robot '{title}': {'; '.join(notes)}", stacklevel=4)
    return tuple(notes)
