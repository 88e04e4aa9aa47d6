"""Drives of a mechanism as joint terms: the parameters that identification of the robot should find.

The drive of an actuator with rho = c q and theta = ratio rho adds at its joint

    ia = ratio^2 J,   fv = ratio^2 fv_m,   fc = |ratio| fc_m,   off = ratio off_m        (times c^2, |c|, c)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynident.drive.drive import Drive
from dynident.errors import SimulationError
from dynident.friction.dynamic import DynamicLaw
from dynident.friction.law import Friction, FrictionLaw
from dynident.friction.laws import (
    Asymmetric,
    Coulomb,
    Offset,
    Polynomial,
    SmoothStribeck,
    Stribeck,
    Tanh,
    TemperatureDependent,
    Viscous,
)
from dynident.friction.terms import TERMS
from dynident.mechanism.elements import with_joint_terms
from dynident.mechanism.mechanism import Mechanism, on_same_tree

Law = Friction | DynamicLaw


def joint_side(mechanism: Mechanism) -> Mechanism:
    """Return the robot with actuator coordinates rho = c q behind the gears; the gears belong to the drives."""
    if all(actuator.ratio == 1.0 and actuator.offset == 0.0 for actuator in mechanism.actuators):
        return mechanism
    bare = tuple(replace(actuator, ratio=1.0, offset=0.0) for actuator in mechanism.actuators)
    return replace(mechanism, actuators=bare)


def check_gears(mechanism: Mechanism, drives: Sequence[Drive]) -> None:
    """Refuse a drive whose ratio contradicts the gear that the mechanism states for its actuator."""
    for actuator, drive in zip(mechanism.actuators, drives, strict=True):
        ratio = drive.transmission.ratio
        if 1.0 not in (ratio, actuator.ratio) and abs(ratio - actuator.ratio) > 1e-6 * abs(actuator.ratio):
            raise SimulationError(
                f"drive '{drive.actuator}' has the ratio {ratio:g} but the mechanism's actuator has {actuator.ratio:g}; "
                f"give Transmission(ratio={actuator.ratio:g}), or omit the ratio of the actuator"
            )


def terms_of(law: Law | None) -> tuple[dict[str, float], bool]:
    """Return the joint terms of a friction law, and whether they represent it exactly."""
    if law is None:
        return {}, True
    terms, exact = dict[str, float](), isinstance(law, Friction)
    for part in law.steady.parts:
        found, whole = _member_terms(part.law, part.parameters)
        exact = exact and whole
        _add(terms, found)
    return terms, exact


def _member_terms(law: FrictionLaw, own: Mapping[str, float]) -> tuple[dict[str, float], bool]:
    short = {name.split(".")[-1]: value for name, value in own.items()}
    plain = isinstance(law, Asymmetric) and set(short) <= {"fcp", "fcn", "fvp", "fvn"}
    if isinstance(law, Coulomb | Viscous | Offset) or plain:
        return short, True
    if isinstance(law, Polynomial):
        kept = {symbol: own[name] for symbol, name in (("fc", "a0"), ("fv", "a1")) if name in own}
        return kept, law.degree <= 1
    if isinstance(law, Stribeck):
        return {"fc": own["fc"]}, False
    if isinstance(law, Tanh | SmoothStribeck):  # fc tanh(beta v) becomes fc sign(beta) sign(v)
        return {"fc": own["fc"] * np.sign(own["beta"])}, False
    if isinstance(law, TemperatureDependent):
        return terms_of(law.law.using({name: own[name] for name in law.law.parameters}))[0], False
    return {}, False


def seen_from(terms: Mapping[str, float], turns: float) -> dict[str, float]:
    """Return terms referred to the other side of a gear."""
    out: dict[str, float] = {}
    for symbol, value in terms.items():
        name, factor = TERMS[symbol].reflected(turns)
        out[name] = out.get(name, 0.0) + factor * value
    return out


def identified_model(
    mechanism: Mechanism, drives: Sequence[Drive], friction: Mapping[str, Law], effort: str
) -> tuple[Mechanism, tuple[str, ...]]:
    """Return the mechanism to fit to a log of the robot, and notes on the effects that it omits."""
    added: dict[str, dict[str, float]] = {}
    notes: list[str] = []
    actuators, coupled = [], False
    for actuator, drive in zip(mechanism.actuators, drives, strict=True):
        motor, ratio = drive.motor, drive.transmission.ratio
        terms, exact = terms_of(drive.friction)
        terms["ia"] = drive.inertia
        gain: float | None = motor.torque_constant or None
        if effort == "voltage":
            gain = motor.torque_constant / motor.resistance
            terms["fv"] = terms.get("fv", 0.0) + gain * motor.emf_constant
        if not exact:
            notes.append(f"friction of drive '{drive.actuator}' is not only viscous and Coulomb")
        if drive.transmission.efficiency < 1.0:
            notes.append(f"drive '{drive.actuator}' has an efficiency below 1: load-dependent friction")
        if not drive.rigid:
            notes.append(f"drive '{drive.actuator}' is elastic; the model treats it as rigid")
        if len(actuator.coupling) == 1:
            coordinate, c = next(iter(actuator.coupling.items()))
            _add(added.setdefault(coordinate, {}), seen_from(terms, ratio * c))
            own: Mapping[str, float] = actuator.terms
        else:
            coupled = True
            own = dict(actuator.terms)
            _add(own, seen_from({k: v for k, v in terms.items() if k not in ("off", "k")}, ratio))
        actuators.append(replace(actuator, ratio=ratio, gain=gain, terms=own))
    for coordinate, law in friction.items():
        terms, exact = terms_of(law)
        _add(added.setdefault(coordinate, {}), terms)
        if not exact:
            notes.append(f"friction of joint '{coordinate}' is not only viscous and Coulomb")
    joints = []
    for joint in mechanism.joints:
        terms = dict(joint.terms)
        for coordinate in joint.coordinates:
            for symbol, value in added.get(coordinate, {}).items():
                if value != 0.0 or symbol in terms:
                    key = symbol + coordinate.removeprefix(joint.name)
                    terms[key] = joint.term(coordinate, symbol) + value
        joints.append(with_joint_terms(joint, terms))
    every = mechanism.terms
    if coupled:  # a motor coupled to several joints has a parameter only for terms that all these joints have
        used = [s for actuator in actuators if len(actuator.coupling) > 1 for s, value in actuator.terms.items() if value]
        every = (*every, *(s for s in dict.fromkeys(used) if s not in every))
    source = f"virtual robot on {mechanism.source or mechanism.name}"
    return on_same_tree(mechanism, tuple(joints), tuple(actuators), every, source), tuple(notes)


def _add(terms: dict[str, float], more: Mapping[str, float]) -> None:
    for symbol, value in more.items():
        terms[symbol] = float(np.add(terms.get(symbol, 0.0), value))


def beside_drives(mechanism: Mechanism, drives: Sequence[Drive]) -> Mechanism:
    """Return the mechanism without the rotor inertia and friction that its drives model, so that nothing counts twice.

    A description or a fit states totals at the joint, drive included; the part of the drive is subtracted, down to zero.
    """
    parts: dict[str, dict[str, float]] = {}
    for actuator, drive in zip(mechanism.actuators, drives, strict=True):
        if len(actuator.coupling) == 1:
            coordinate, c = next(iter(actuator.coupling.items()))
            own = {**terms_of(drive.friction)[0], "ia": drive.inertia}
            parts[coordinate] = seen_from(own, drive.transmission.ratio * c)
    joints = []
    for joint in mechanism.joints:
        terms = dict(joint.terms)
        for coordinate in joint.coordinates:
            for symbol, part in parts.get(coordinate, {}).items():
                key = symbol + coordinate.removeprefix(joint.name)
                if symbol in ("ia", "fv", "fc") and key in terms:
                    terms[key] = max(terms[key] - part, 0.0)
        joints.append(replace(joint, terms=terms))
    return replace(mechanism, joints=tuple(joints))
