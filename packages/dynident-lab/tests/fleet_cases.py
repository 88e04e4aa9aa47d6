"""A small fleet of three-axis arms whose parameters are known, as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from identify_cases import arm, smooth

from dynident.mechanics import inverse_dynamics
from dynident.mechanism import Mechanism
from dynident.signals import Log

CUTOFF = 4.3  # Hz: motions reach 0.75 Hz


@dataclass(frozen=True)
class Case:
    """A type, its logs as rows of a table, and the truth of every robot by serial."""

    robot: Mechanism
    rows: list[dict[str, str]]
    truth: dict[str, np.ndarray]


def log_of(robot: Mechanism, phi: np.ndarray, seconds: float, seed: int, rate: float = 100.0, noise: float = 0.02) -> Log:
    """Return the log of a motion under given parameters."""
    motion = smooth(robot.dof, int(seconds * rate), seed, rate)
    rng = np.random.default_rng(seed)
    effort = inverse_dynamics(robot.with_parameters(robot.parameters.replace(phi)), motion)
    effort = effort + noise * rng.normal(size=effort.shape)
    position = motion.q + 1e-5 * rng.normal(size=effort.shape)
    return Log(t=motion.t, joints=robot.coordinate_names, position=position, effort=effort, effort_kind="joint_torque")


def fleet(
    folder: Path, robots: int, logs: int = 2, spread: float = 0.01, faults: Mapping[str, tuple[str, float]] | None = None
) -> Case:
    """Write the logs of some robots whose parameters differ by `spread`; a fault multiplies one parameter of a serial."""
    robot, rng = arm(), np.random.default_rng(7)
    rows, truth = [], {}
    for k in range(robots):
        serial = f"S{k:02d}"
        phi = robot.parameters.values * (1.0 + spread * rng.normal(size=len(robot.parameters)))
        name, factor = (faults or {}).get(serial, (robot.parameters.names[0], 1.0))
        phi[robot.parameters.names.index(name)] *= factor
        truth[serial] = phi
        for j in range(logs):
            path = folder / f"{serial}_2026-{j + 1:02d}-03.npz"
            log_of(robot, phi, 12.0, 100 * k + j).save(path)
            rows.append({"serial": serial, "date": f"2026-{j + 1:02d}-03", "log": str(path)})
    return Case(robot, rows, truth)
