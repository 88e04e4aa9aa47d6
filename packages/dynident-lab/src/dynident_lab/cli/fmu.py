"""The target ``fmu`` of ``dynident export --for``: a robot, or a machine with drives and control law, as an FMU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from dynident.checks import choice
from dynident.cli.consoles import note
from dynident.cli.export import Exporter, ExportRequest
from dynident.cli.machines import drives_of, no_drives
from dynident.cli.robots import find_robot, is_known, ready_machine
from dynident.control import OpenLoop
from dynident.errors import DynidentError
from dynident.simulate import standard_machine
from dynident_lab.fmu import tool_block, write_fmu

LAWS = ("torque", "voltage", "computed_torque", "feedforward", "pd", "cascade")
INPUTS = ("torque", "voltage")  # of machines without control law
BANDWIDTH = "10"  # Hz


def _content(request: ExportRequest) -> Any:
    """Return the content of the FMU: a known machine, a robot with drives and a control law, or the robot alone."""
    law, file = request.options.get("controller"), request.options.get("drives")
    drives = None if file is None else Path(file)
    if law is not None:
        choice("--option controller", law, LAWS)
    if request.fit is None and is_known(request.robot):
        no_drives(request.robot, drives)
        if law not in (None, *INPUTS):
            raise DynidentError(
                f"option controller is {law}, but machine '{request.robot}' has its own controller; use controller=torque "
                "or voltage to omit it"
            )
        machine, block = ready_machine(request.robot), find_robot(request.robot).block
        if law == "voltage" and block is not None:
            return block(machine)
    else:
        if drives is None and law in (None, "torque"):
            return request.mechanism
        kind = "pd" if law in INPUTS else law or "computed_torque"
        hertz = _bandwidth(request.options.get("bandwidth", BANDWIDTH))
        own = drives_of(drives, request.mechanism, request.robot, kind, hertz)
        machine = standard_machine(request.mechanism, drives=own, controller=kind, bandwidth=hertz)
    if law == "voltage":
        return tool_block(machine, request.options.get("frame"))
    if law == "torque":
        machine = replace(machine, controller=OpenLoop(torque=np.zeros(len(machine.drives))))
    return machine


def _bandwidth(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not 0.0 < found < float("inf"):
        raise DynidentError(f"the option bandwidth is '{text}'; give a frequency above 0 Hz")
    return found


def _write(request: ExportRequest) -> tuple[dict[str, Any], str]:
    """Write the FMU; return a summary as data and as text."""
    path = write_fmu(_content(request), request.output)
    with ZipFile(path) as parts:
        names, description = parts.namelist(), parts.read("modelDescription.xml").decode()
    if not any(name.startswith("binaries/") for name in names):
        note("no C compiler found: the FMU contains source code only, which the importing program must compile")
    kinds = ["co-simulation", *(["model exchange"] if "<ModelExchange" in description else [])]
    if len(kinds) == 1:
        note("this FMU supports co-simulation only: control laws, delays and friction with memory advance in fixed steps")
    return {"written": str(path), "kinds": kinds}, f"written: {path} (FMI 3.0, {' and '.join(kinds)})"


exporter = Exporter(_write, folder=False, needs_fit=False, options=("controller", "drives", "bandwidth", "frame"))
"""Options: ``controller``, the control law, with the reference as input (``torque`` and ``voltage`` take commands);
``drives``, a TOML file; ``bandwidth`` of the control law in Hz; ``frame``, the link
with its position as an output with ``voltage``."""
