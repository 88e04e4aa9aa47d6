"""Closed-loop proof: a model is good if the robot tracks better with it [Briot2015] [Kostic2002].

The virtual robot records a log with noise, the model is identified from that log, and motions that were not used for
the identification are then run three times: with feedback alone, with a catalogue model, and with the identified model.
The gains are the same each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynident.control import PID, Cascade, ComputedTorque, feedforward_torques
from dynident.control.feedforward import actuator_motion
from dynident.errors import DynidentError, require
from dynident.friction import Friction, FrictionLaw
from dynident.friction.terms import term_of
from dynident.identify import OLS, WLS, Fit, Regression
from dynident.identify.estimators.least_squares import fit_of
from dynident.identify.regression.logs import same_band
from dynident.identify.regression.rows import Projection
from dynident.mechanics import Motion, actuator_jacobian, forward_kinematics
from dynident.mechanism import Mechanism
from dynident.signals import Log
from dynident.simulate import Run, VirtualRobot
from dynident.simulate.analysis import tool_of
from dynident.simulate.robot import actuator_inertia
from dynident_lab.testbench.tracking_result import ALONE, CATALOGUE, IDENTIFIED, STIFFNESS, TrackingProof, TrackingTrial

Law = PID | ComputedTorque | Cascade

LEAD = 1e-3  # s, sampling time of a reference with lead
SLIDING = (".x", ".y", ".z")  # coordinates of planar and free joints
EFFORT_UNITS = {"motor_current": "A", "voltage": "V", "motor_torque": "N m", "joint_torque": "N m, N", "joint_force": "N"}


class Known(NamedTuple):
    """Knowledge of a controller about a robot."""

    model: Mechanism  # Bodies, rotors and friction terms
    friction: Mapping[str, Friction] | None = None  # Friction laws by joint, in addition to the terms


def catalogue_model(model: Mechanism, error: float = 0.1, seed: int = 0) -> Mechanism:
    """Return a typical catalogue or CAD model of a robot: bodies and rotors with errors, and no friction."""
    require(model, Mechanism, "model")
    if not 0.0 <= error < 0.5:
        raise DynidentError(f"catalogue: error is {error}; give a relative error from 0 to 0.5")
    known = model.parameters
    owners = tuple(dict.fromkeys(known.owners))
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(owners))
    off = dict(zip(owners, 1.0 + error * signs, strict=True))
    values = [
        0.0 if (term := term_of(name)) and (term.friction or not term.passive) else off[owner] * value  # masses and springs
        for name, owner, value in zip(known.names, known.owners, known.values, strict=True)
    ]
    return model.with_parameters(known.replace(np.array(values), provenance=f"catalogue, {100 * error:g} % off, no friction"))


def identify_machine(
    machine: VirtualRobot,
    training: Any,
    *,
    prior: Mechanism | None = None,
    projection: Projection | Sequence[str] = "gls",
    estimator: OLS | WLS | None = None,
    seed: int = 0,
    **options: Any,
) -> Fit:
    """Identify a virtual robot from its own noisy logs."""
    robot = prior or catalogue_model(machine.model)
    logs = training_logs(machine, training, seed)
    evidence = Regression.from_logs(robot, logs, projection=projection, **options)
    return fit_of(WLS() if estimator is None else estimator, evidence)


def identify_friction(
    machine: VirtualRobot, training: Any, law: FrictionLaw, *, prior: Mechanism | None = None, seed: int = 0, starts: int = 4
) -> Known:
    """Identify bodies and a friction law of a virtual arm without loops from its own noisy logs, by separable least squares.

    `training` is a motion, trajectory or plan, or a list of them; `prior` is `catalogue_model` of the machine when omitted.
    """
    from dynident.identify import fit_friction  # noqa: PLC0415 - needed only for proofs with a friction law

    fit = fit_friction(prior or catalogue_model(machine.model), training_logs(machine, training, seed), law, starts=starts)
    return Known(fit.model.without_friction(), fit.friction)


def training_logs(machine: VirtualRobot, training: Any, seed: int) -> list[Log]:
    """Return the logs of all training motions, each with different noise; logs are returned as they are."""
    runs = list(training) if isinstance(training, list | tuple) else [training]
    if not runs:
        raise DynidentError("training is an empty list; give at least one motion to identify from")
    return [run if isinstance(run, Log) else machine.simulate(run, seed=seed + i).log for i, run in enumerate(runs)]


def feedback_alone(law: object, robot: Mechanism, q: ArrayLike) -> Law:
    """Return a control law without its model, with equivalent gains.

    PID and cascades lose their feed-forward. Computed torque outputs accelerations; without a model they become torques by
    the inertia J of every actuator at one pose (`dynident.simulate.robot.actuator_inertia`): kp J, kd J, ki J.
    """
    if isinstance(law, PID):
        return replace(law, feedforward=None, friction=None)
    if isinstance(law, Cascade):
        return replace(law, torque_feedforward=None)
    if not isinstance(law, ComputedTorque):
        raise DynidentError(f"controller is a {type(law).__name__}; use PID, Cascade or ComputedTorque")
    gains = [np.unique(np.asarray(gain, dtype=np.float64)) for gain in (law.kp, law.kd, law.ki, law.derivative_filter)]
    if any(gain.size > 1 for gain in gains):
        raise DynidentError("computed torque: gains differ between coordinates; give the feedback law with baseline=")
    kp, kd, ki, corner = (float(gain[0]) for gain in gains)
    J = actuator_inertia(robot, q)
    many = len(robot.actuators) > robot.dof
    return PID(kp * J, kd * J, ki * J, cycle=law.cycle, derivative_filter=corner, project=many, preload=law.preload)


def with_model(law: object, model: Mechanism, friction: Mapping[str, Friction] | None = None) -> Law:
    """Return a control law that uses a model."""
    if isinstance(law, PID):
        return replace(law, feedforward=model, friction=friction)
    if friction is not None:
        raise DynidentError(f"controller is a {type(law).__name__}; friction laws can only be given to a PID")
    if isinstance(law, Cascade):
        return replace(law, torque_feedforward=model)
    if isinstance(law, ComputedTorque):
        return replace(law, model=model)
    raise DynidentError(f"controller is a {type(law).__name__}; use PID, Cascade or ComputedTorque")


def tracking_proof(
    machine: VirtualRobot,
    training: Any,
    motions: Mapping[str, Any] | Sequence[Any],
    *,
    catalogue: Mechanism | None = None,
    others: Mapping[str, Mechanism | Known] | None = None,
    baseline: Law | None = None,
    projection: Projection | Sequence[str] = "gls",
    projections: Mapping[str, Projection | Sequence[str]] | None = None,
    estimator: OLS | WLS | None = None,
    effort_unit: str | None = None,
    tool: str | None = None,
    shafts: bool = False,
    notes: Sequence[str] = (),
    seed: int = 0,
    **options: Any,
) -> TrackingProof:
    """Prove an identified model in closed loop, compared with feedback alone and a catalogue model.

    Parameters
    ----------
    machine : VirtualRobot
        Robot; its controller is a `PID` (the model enters as feed-forward), a `Cascade` (the same) or a `ComputedTorque`.
    training : Motion, trajectory, plan, or a list of them or of their logs
        Training motions of the identification.
    motions : mapping of name to motion, or sequence of motions
        Motions for the comparison of controllers; none may be a training motion.
    catalogue : Mechanism, optional
        Catalogue or CAD model; `catalogue_model` of the machine when omitted.
    others : mapping of str to Mechanism or Known, optional
        Further models, such as those of other estimators, or with friction laws.
    baseline : PID, Cascade or ComputedTorque, optional
        Feedback alone; `feedback_alone` of the machine's controller when omitted.
    projection : str or sequence of str
        Equations of a robot with loops, see `Regression.from_log`.
    projections : mapping of str to projection, optional
        Further models by name, identified from other equations of the same logs in the same band.
    estimator : OLS or WLS, optional
        Estimator; `WLS()` when omitted.
    effort_unit : str, optional
        Unit of the efforts in tables, if an ampere represents another quantity.
    tool : str, optional
        Link whose position is also compared; when omitted the last link of an arm, and none of a robot with loops.
    shafts : bool
        True also runs the identified model with a lead of the motors for the deflection of their shafts (`led_reference`).
    notes : sequence of str
        Remarks for the reader of the table, one sentence each.
    seed : int
        Seed of all noise.
    **options
        Passed to `dynident.signals.prepare`.

    Returns
    -------
    TrackingProof
        Errors, reductions and effort shares of every controller on every motion.
    """
    require(machine, VirtualRobot, "machine")
    named = dict(motions) if isinstance(motions, Mapping) else {f"motion {i + 1}": m for i, m in enumerate(motions)}
    trained = list(training) if isinstance(training, list | tuple) else [training]
    if not named:
        raise DynidentError("motions is empty; give at least one motion to compare controllers on")
    used = [name for name, motion in named.items() if any(motion is other for other in trained)]
    if used:
        raise DynidentError(f"motion '{used[0]}' was used for identification; test the model on other motions")
    nominal = catalogue or catalogue_model(machine.model)
    prior = _believed(machine.model, nominal)
    logs, how = training_logs(machine, trained, seed), {"prior": prior, "estimator": estimator, **options}
    fit = identify_machine(machine, logs, projection=projection, **how)
    how |= {"base": fit.data.base, **same_band(fit.data.sources, min(log.rate for log in logs))}
    law, frame = machine.controller, tool_of(machine.mechanism, tool)
    first = machine.reference(next(iter(named.values()))).sample([0.0])
    known = {CATALOGUE: Known(nominal), IDENTIFIED: Known(fit.model)}
    for name, more in (projections or {}).items():
        known[name] = Known(identify_machine(machine, logs, projection=more, **how).model)
    known |= {name: m if isinstance(m, Known) else Known(m) for name, m in (others or {}).items()}
    laws: dict[str, tuple[Law, Known | None]] = {ALONE: (baseline or feedback_alone(law, nominal, first.q[0]), None)}
    laws |= {name: (with_model(law, *what), what) for name, what in known.items()}
    trials = []
    for i, (motion, reference) in enumerate(named.items()):
        for controller, (choice, what) in laws.items():
            run = replace(machine, controller=choice).simulate(reference, seed=seed + 1000 + i)
            trials.append(_trial(controller, motion, run, run.reference, what, frame))
        if shafts:
            led = led_reference(machine, fit.model, reference)
            run = replace(machine, controller=laws[IDENTIFIED][0]).simulate(led, seed=seed + 1000 + i)
            asked = machine.reference(reference).sample(run.reference.t)
            trials.append(_trial(STIFFNESS, motion, run, asked, known[IDENTIFIED], frame))
    words = {PID: "PID with the model as feed-forward", Cascade: "cascade with the model as feed-forward"}
    return TrackingProof(
        machine.name or machine.mechanism.name,
        tuple(actuator.name for actuator in machine.mechanism.actuators),
        _units(machine.mechanism),
        effort_unit or EFFORT_UNITS[machine.sensors.effort],
        tuple(trials),
        fit,
        words.get(type(law), "computed torque with the model"),
        (f"catalogue model: {nominal.parameters.provenance or 'as given'}", *notes),
    )


def _believed(model: Mechanism, catalogue: Mechanism) -> Mechanism:
    """Return the robot to fit, with the catalogue's numbers if available and zero elsewhere."""
    known = catalogue.parameters.to_dict()
    return model.with_parameters(model.parameters.replace(np.array([known.get(name, 0.0) for name in model.parameters.names])))


def led_reference(machine: VirtualRobot, model: Mechanism, reference: Any) -> Motion:
    """Return a reference with a lead of the motors for the deflection of their shafts under the load of a model.

    q + A^+ (tau_s / k) with the actuators' Jacobian A, the stiffness k and the load of the shafts tau_s: torques of the model
    without friction, minus those of the rotors. A feedback on motors then brings the joints to their commanded positions.
    """
    asked = machine.reference(reference)
    motion = asked.sample(np.arange(0.0, asked.duration + LEAD, LEAD))
    ratio, rotor, give = np.array(
        [
            (drive.transmission.ratio, drive.motor.inertia, sum(1.0 / k for k in drive.transmission.stiffness))
            for drive in machine.drives
        ]
    ).T
    bare = model.without_friction()
    rubs = [term is not None and term.friction for term in map(term_of, bare.parameters.names)]
    bare = bare.with_parameters(bare.parameters.replace(np.where(rubs, 0.0, bare.parameters.values)))
    load = feedforward_torques(bare, motion) - ratio**2 * rotor * actuator_motion(model, motion).a
    lead = np.einsum("tnk,tk->tn", np.linalg.pinv(actuator_jacobian(model, motion.q)), load * give / ratio**2)
    rate = np.gradient(lead, LEAD, axis=0)
    return Motion(motion.t, motion.q + lead, motion.v + rate, motion.a + np.gradient(rate, LEAD, axis=0))


def _trial(controller: str, motion: str, run: Run, asked: Motion, known: Known | None, tool: str | None) -> TrackingTrial:
    """Return errors and effort shares of a run; errors are relative to the commanded joint motion."""
    machine, truth = run.robot, run.truth
    wanted = actuator_motion(machine.mechanism, asked).q
    error = wanted - truth.rho
    share = np.zeros_like(error)
    if known is not None:
        share = feedforward_torques(known.model, run.reference, friction=known.friction)
    ratio = np.array([drive.transmission.ratio for drive in machine.drives])
    constant = np.array([drive.motor.torque_constant for drive in machine.drives])
    kind = machine.sensors.effort
    if kind == "joint_torque":
        total = truth.motor_torque * ratio
    elif kind == "motor_torque":
        total, share = truth.motor_torque, share / ratio
    elif kind == "motor_current":
        total, share = truth.current, share / (ratio * constant)
    else:
        total, share = truth.voltage, share * np.array([d.motor.resistance for d in machine.drives]) / (ratio * constant)
    limited = max(run.saturation.values(), default=0.0)
    on_motor = np.array([drive.encoder.side == "motor" for drive in machine.drives])
    seen = None
    if not all(drive.rigid for drive in machine.drives):
        asked_of_motors = actuator_motion(machine.mechanism, run.reference).q
        seen = asked_of_motors - np.where(on_motor, truth.theta / ratio, truth.rho)
    away = None
    if tool is not None:
        places = [forward_kinematics(machine.mechanism, q, tool)[1] for q in (asked.q, truth.motion.q)]
        away = np.linalg.norm(places[0] - places[1], axis=1)
    return TrackingTrial(controller, motion, truth.t, error, share, total - share, limited, seen, away)


def _units(mechanism: Mechanism) -> tuple[str, ...]:
    """Return "rad" or "m" for every actuator coordinate."""
    slides = {c for joint in mechanism.joints for c in joint.coordinates if joint.kind == "prismatic" or c.endswith(SLIDING)}
    return tuple("m" if next(iter(actuator.coupling)) in slides else "rad" for actuator in mechanism.actuators)
