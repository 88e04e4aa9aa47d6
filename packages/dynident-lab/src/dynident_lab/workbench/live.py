"""The newest samples of a running campaign, read from the file written by `record`."""

from __future__ import annotations

import contextlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import dynident as di
from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.excitation import Plan
from dynident.mechanism import Mechanism
from dynident_lab.campaigns.log import SIGNALS
from dynident_lab.campaigns.segments import FRAME, LARGEST, MAGIC

WINDOW = 10.0  # time shown [s, clock of the controller]
POINTS = 240  # of a curve
GRID = 4000  # samples of the predicted efforts of one cycle


class LiveTail:
    """The last seconds of the samples of a campaign folder.

    Parameters
    ----------
    folder : path
        Folder of the campaign, which need not exist yet.
    robot : Mechanism, optional
        Model that predicts efforts.
    """

    def __init__(self, folder: Path, robot: Mechanism | None = None) -> None:
        self.folder, self.robot = folder, robot
        self.channels: list[str] = []
        self.count = 0  # samples so far
        self.kind = ""  # kind of the segment: cycle, approach, rest
        self._file: Path | None = None
        self._at = 0
        self._columns: list[str] = []
        self._rows: list[Array] = []
        self._predicted: tuple[Array, Array] | None = None
        self._tried = False

    def update(self) -> bool:
        """Read new samples; return whether there are any."""
        files = sorted(self.folder.glob("*.seg"))
        if not files:
            return False
        if files[-1] != self._file:
            self._file, self._at, self._columns = files[-1], 0, []
        with contextlib.suppress(OSError), self._file.open("rb") as file:
            file.seek(self._at)
            return self._take(file.read())
        return False

    def _take(self, data: bytes) -> bool:
        """Process the complete frames in new bytes."""
        at, new = 0, False
        if self._at == 0:
            if not data.startswith(MAGIC):
                return False
            at = len(MAGIC)
        while at + FRAME.size <= len(data):
            length, crc = FRAME.unpack_from(data, at)
            body = data[at + FRAME.size : at + FRAME.size + length]
            if length > LARGEST or len(body) < length or zlib.crc32(body) != crc:
                break
            at += FRAME.size + length
            if not self._columns:
                header = json.loads(body)
                self._columns, self.kind = [str(name) for name in header["columns"]], str(header.get("kind", ""))
                first = f"{SIGNALS[0]}_"
                self.channels = [name.removeprefix(first) for name in self._columns if name.startswith(first)]
            elif len(body) % (8 * len(self._columns)) == 0:
                rows = np.frombuffer(body, "<f8").reshape(-1, len(self._columns))
                self._rows.append(rows)
                self.count += len(rows)
                new = True
        self._at += at
        self._forget()
        return new

    def _forget(self) -> None:
        """Remove rows outside the window."""
        if len(self._rows) > 1 and self._rows[0].shape[1] != self._rows[-1].shape[1]:
            self._rows = self._rows[-1:]
        while len(self._rows) > 2 and self._rows[-1][-1, 2] - self._rows[1][0, 2] > WINDOW:
            del self._rows[0]

    def curves(self) -> tuple[list[float], dict[str, list[list[float]]]]:
        """Return times [s, the newest is 0] and position, effort, residual and temperature by channel."""
        if not self._rows:
            return [], {}
        table = np.concatenate(self._rows)
        step = max(1, len(table) // POINTS)
        first = (self.count - len(table)) % step  # the choice of samples is independent of removed rows
        table = table[(step - first) % step :: step][-POINTS:]
        n = len(self.channels)
        signals = {name: table[:, 5 + i * n : 5 + (i + 1) * n] for i, name in enumerate(SIGNALS)}
        residual = self._residual(table[:, 3], signals["effort"])
        shown = {name: values for name, values in signals.items() if name != "velocity" and np.isfinite(values).any()}
        if residual is not None:
            shown["residual"] = residual
        times = np.round(table[:, 2] - table[-1, 2], 3).tolist()
        return times, {name: _rounded(values) for name, values in shown.items()}

    def _residual(self, motion: Array, effort: Array) -> Array | None:
        """Return measured minus predicted efforts along the plan; None without a prediction."""
        if not self._tried and (self.folder / "plan.json").exists():
            self._tried = True
            with contextlib.suppress(DynidentError, ValueError, KeyError):
                self._predicted = _prediction(self.folder, self.robot, self.channels)
        if self._predicted is None or self.kind != "cycle":
            return None
        grid, tau = self._predicted
        return effort - np.column_stack([np.interp(motion, grid, tau[:, i]) for i in range(tau.shape[1])])


def _prediction(folder: Path, robot: Mechanism | None, channels: list[str]) -> tuple[Array, Array] | None:
    """Return the predicted efforts of one cycle, for controllers that report efforts of joints."""
    about: dict[str, Any] = json.loads((folder / "campaign.json").read_text(encoding="utf-8"))
    if robot is None or about["controller"]["effort_kind"] not in ("joint_torque", "joint_force"):
        return None
    if set(channels) != set(robot.coordinate_names):
        return None
    plan = Plan.load(folder / "plan.json")
    t = np.linspace(0.0, plan.curve.duration, GRID)
    order = [plan.coordinates.index(name) for name in robot.coordinate_names]
    tau = di.inverse_dynamics(robot, di.Motion(t, *(x[:, order] for x in plan.curve(t))))
    return t, tau[:, [robot.coordinate_names.index(name) for name in channels]]


def _rounded(values: Array) -> list[list[float]]:
    """Return one list of rounded numbers per channel; NaN becomes 0."""
    size = float(np.nanmax(np.abs(values), initial=0.0))
    digits = int(np.clip(4 - np.ceil(np.log10(size)) if size > 0.0 else 4, 0, 8))
    return np.nan_to_num(np.round(values.T, digits)).tolist()  # type: ignore[no-any-return]
