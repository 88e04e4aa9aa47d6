"""The command payload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import dynident as di
from dynident.cli.consoles import out, print_json
from dynident.cli.options import (
    AS_LOGGED,
    AS_WRITTEN,
    NOT_OK,
    AsJson,
    Essential,
    LogOptions,
    OptionalFolder,
    Order,
    Projection,
    Robot,
    RobotOptions,
    check_output,
    column_order,
    projection_of,
)
from dynident.cli.words import in_options
from dynident.errors import DynidentError
from dynident.files import read_json, to_json, write_atomic
from dynident.identify import (
    DriveGains,
    Payload,
    payload_from_wrench,
    payload_of,
    payload_on_arm,
    payload_regression,
    read_wrench,
    with_gain_uncertainty,
)
from dynident.mechanism.parameters import SYMBOLS as INERTIA_SYMBOLS


def payload(
    robot: Robot,
    /,
    *,
    loaded: list[Path] | None = None,
    unloaded: list[Path] | None = None,
    fit: Path | None = None,
    wrench: Path | None = None,
    link: str | None = None,
    tilt: bool = False,
    reaction: bool = False,
    gain_std: float = 0.0,
    gains: Path | None = None,
    reach: float | None = None,
    heaviest: float | None = None,
    logged: LogOptions = AS_LOGGED,
    described: RobotOptions = AS_WRITTEN,
    projection: Projection = "gls",
    order: Order = None,
    essential: Essential = None,
    output: OptionalFolder = None,
    franka_desk: Path | None = None,
    save_fit: Path | None = None,
    strict: bool = False,
    as_json: AsJson = False,
) -> int:
    """Identify a load: from runs without and with it, on a known arm, or from a wrist sensor; for UR, Franka and KUKA too.

    Example: dynident payload robot.urdf --unloaded empty.csv --loaded full.csv --effort joint_torque --link tool0

    Parameters
    ----------
    loaded
        Run with the load; may be given several times.
    unloaded
        Run without the load; may be given several times.
    fit
        fit.json of the arm without the load, instead of runs without it.
    wrench
        Poses or a motion with a wrist sensor: columns of joints, fx fy fz tx ty tz, t.
    link
        Link that carries the load, or the sensor's frame.
    tilt
        Estimate the direction of gravity too (wrist sensor).
    reaction
        The sensor shows the wrench on the load, of the opposite sign.
    gain_std
        Relative deviation of the drive gains, 0.05 for five per cent.
    gains
        File of `dynident gains -o`: corrects the logs, and its deviations go into the load's.
    reach
        Largest plausible distance of the load's centre [m]; the robot's size when omitted.
    heaviest
        Largest plausible mass [kg]; twice the described mass when omitted.
    output
        Write the load to this JSON file; as a line of URScript if its name ends in .script.
    franka_desk
        Write the load as an end-effector configuration for Franka Desk; a file that exists keeps its transformation.
    save_fit
        Write the fit of runs without and with the load, for validate and monitor.
    strict
        Exit with 3 for a load that cannot be true.
    """
    for path in (output, franka_desk, save_fit):
        if path is not None:
            check_output(path)
    given = {"--save-fit": save_fit, "--gain-std": gain_std, "--gains": gains, "--essential": essential, "--order": order}
    _check_payload(unloaded, fit, wrench, loaded, [name for name, value in given.items() if value])
    mechanism = described.robot(robot)
    read = logged.reader()
    full, empty = [read(path) for path in loaded or []], [read(path) for path in unloaded or []]
    limits: dict[str, Any] = {"reach": reach, "heaviest": heaviest}
    if wrench is not None:
        if link is None:
            raise DynidentError("--wrench needs --link, the link whose frame is the sensor's")
        motion, measured, independence = read_wrench(mechanism, wrench)
        sense = "reaction" if reaction else "load"
        options: dict[str, Any] = {"sense": sense, "gravity": tilt, "independence": independence, **limits}
        load = payload_from_wrench(mechanism, motion, measured, link, **options)
    elif fit is not None:
        load = payload_on_arm(di.Fit.load(fit, mechanism), full, link, **limits)
    else:
        how: dict[str, Any] = {"order": column_order(order), "projection": projection_of(projection)}
        known = None if gains is None else DriveGains.load(gains)
        if known is not None:
            empty, full = ([known.correct(log) for log in logs] for logs in (empty, full))
        evidence = payload_regression(mechanism, empty, full, link, **how)
        both = (
            with_gain_uncertainty(di.MAP(), evidence, gain_std if known is None else known)
            if essential is None
            else di.essential_parameters(evidence, di.WLS(), essential)
        )
        load = payload_of(both, **limits)
        if save_fit is not None:
            both.save(save_fit)
    data = {"format": "dynident-payload-1", **_payload_data(load)}
    script = output is not None and output.suffix == ".script"
    if (script or franka_desk is not None) and not load.plausible:
        raise DynidentError(f"{load.findings[0]}; no configuration of a controller is written")
    if output is not None:
        write_atomic(output, _conventions(load)[0] + "\n" if script else to_json(data))
    if franka_desk is not None:
        write_atomic(franka_desk, to_json(_desk(load, franka_desk)))
    if as_json:
        print_json(data)
    else:
        removed = [text for text in load.notes if text.startswith("removal ")]
        out.print("\n".join([*removed, in_options(load.summary()), *_conventions(load)]))
    return NOT_OK if strict and not load.plausible else 0


def _payload_data(load: Payload) -> dict[str, Any]:
    """Return the numbers of a load by name."""
    shown = load.to_dict()
    keys = ("frame", "mass", "mass_std", "com", "com_std", "inertia", "inertia_std", "bias", "gravity", "plausible", "findings")
    rows = zip(load.names, load.values.tolist(), load.std.tolist(), strict=True)
    data = {key: shown[key] for key in (*keys, "notes")} | {
        "parameters": dict(zip(INERTIA_SYMBOLS, load.parameters.tolist(), strict=True)),
        "base_parameters": {name: {"value": value, "std": std} for name, value, std in rows},
    }
    return data | ({"conventions": load.conventions} if load.plausible else {})


def _desk(load: Payload, file: Path) -> dict[str, Any]:
    """Return the configuration of Franka Desk, with the transformation that the file already contains."""
    made = load.convention("franka_desk")
    if file.exists():
        before = read_json(file, "the end-effector configuration")
        kept = before.get("transformation") if isinstance(before, dict) else None
        if not isinstance(kept, list) or len(kept) != len(made["transformation"]):
            raise DynidentError(f"'{file}' has no transformation of 16 numbers to keep; give another name to --franka-desk")
        made["transformation"] = kept
    return made


def _check_payload(
    unloaded: list[Path] | None, fit: Path | None, wrench: Path | None, loaded: list[Path] | None, options: list[str]
) -> None:
    """Refuse contradictory options."""
    if sum((bool(unloaded), fit is not None, wrench is not None)) != 1 or (wrench is None) != bool(loaded):
        raise DynidentError("no input is given; give --loaded with --unloaded, --loaded with --fit, or --wrench")
    if options and not unloaded:
        raise DynidentError(f"{options[0]} is for runs without and with the load; give --unloaded and --loaded")
    apart = [name for name in ("--essential", "--gain-std", "--gains") if name in options]
    if len(apart) > 1:
        raise DynidentError(f"{' and '.join(apart)} exclude each other; omit one")


def _conventions(load: Any) -> list[str]:
    """Return a plausible load in the conventions of controllers, one line each; the first one is URScript."""
    if not load.plausible:
        return []
    lines = []
    for maker, call in (("ur", "set_target_payload"), ("franka", "setLoad"), ("kuka", "$LOAD")):
        shown = {
            key: np.vectorize(lambda x: float(f"{x:.6g}"))(value).tolist() for key, value in load.convention(maker).items()
        }
        named = ", ".join(f"{key} = {value}" for key, value in shown.items())
        lines.append(f"{call}({', '.join(map(str, shown.values()))})" if maker == "ur" else f"{call:<18} {named}")
    return lines
